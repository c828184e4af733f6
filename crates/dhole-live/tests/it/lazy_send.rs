//! Which messages are sent lazily, and so wake no thread of a node that computes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dhole_live::Processes;
use dhole_model::{MessageKind, NodeId, Notify};
use dhole_net::{Layer, Local, Port, SendError};
use dhole_node::{Lock, Settings, run_on};
use dhole_protocol::Message;

use crate::alone;

/// How many messages of each kind were sent lazily, and how many otherwise.
type Noted = Arc<Mutex<BTreeMap<MessageKind, [u32; 2]>>>;

struct Notes {
    port: Local,
    noted: Noted,
}

impl Notes {
    fn note(&self, parts: &[&[u8]], otherwise: usize) {
        let frame = parts.concat();
        let number = |at: usize| {
            let number = frame[at..at + 4].try_into().unwrap();
            u32::from_le_bytes(number) as usize
        };
        // A header: kind, run, and how long what follows is.
        let (kind, told, message) = (frame[0], number(8), number(12));
        if kind == 1 && message > 0 {
            let body = &frame[16 + told..][..message];
            let kind = Message::decode(body).unwrap().kind();
            self.noted.lock().unwrap().entry(kind).or_default()[otherwise] += 1;
        }
    }
}

impl Layer for Notes {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.note(parts, usize::from(notify == Notify::Now));
        Port::send_with(&self.port, to, parts, notify)
    }
}

/// What nodes say to each other.
fn said() -> BTreeMap<MessageKind, [u32; 2]> {
    let _alone = alone();
    let noted = Noted::default();
    let machines = Local::cluster(2).unwrap().into_iter().map(|port| {
        let noted = Arc::clone(&noted);
        Processes::new(Box::new(Notes { port, noted }), 0).unwrap()
    });
    let machines: Vec<Processes> = machines.collect();
    std::thread::scope(|scope| {
        for machine in &machines {
            scope.spawn(move || {
                let ran = run_on(machine, &Settings::nodes(2), |w| {
                    let sum = w.once(|w| Ok(w.alloc(0_u64)))?;
                    let held = Lock::numbered(1).acquire(w)?;
                    *sum.get_mut(w) += 1;
                    held.release(w)?;
                    w.barrier()?;
                    Ok(*sum.get(w))
                });
                assert_eq!(ran.unwrap().value, 2);
            });
        }
    });
    let noted = noted.lock().unwrap();
    noted.clone()
}

#[test]
fn a_node_that_asks_and_waits_asks_lazily_and_is_answered_so() {
    let noted = said();
    for kind in [
        MessageKind::Fetch,
        MessageKind::FetchReply,
        MessageKind::LockRequest,
        MessageKind::LockGrant,
        MessageKind::BarrierArrive,
        MessageKind::BarrierDepart,
    ] {
        let [lazy, otherwise] = noted.get(&kind).copied().unwrap_or_default();
        assert!(lazy > 0 && otherwise == 0, "{kind:?}: {noted:?}");
    }
}
