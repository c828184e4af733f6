//! An operation on replicas that was started wakes nobody before somebody waits for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use conformance::{Platform, ports};
use dhole::{NodeId, Object, Pending, Worker, replicated};
use dhole_live::Processes;
use dhole_model::Notify;
use dhole_net::{Layer, Port, SendError};
use dhole_node::Machine;

/// Node 1 is starting an operation.
static STARTING: AtomicBool = AtomicBool::new(false);
/// What it sent meanwhile for which its receiver was to be woken.
static WOKEN_FOR: AtomicU32 = AtomicU32::new(0);
/// What it sent lazily meanwhile, and when.
static KEPT: Mutex<Option<(Vec<u8>, Instant)>> = Mutex::new(None);
/// Its receiver was woken for that later.
static NOTIFIED: AtomicBool = AtomicBool::new(false);

/// Keeps what is sent lazily while an operation is started, until its receiver is notified.
struct Keeps(Box<dyn Port>);

impl Keeps {
    fn let_go(&self, notified: bool) {
        let mut kept = KEPT.lock().unwrap();
        // Nobody is to hang where nobody is notified.
        let late = |(_, since): &mut (Vec<u8>, Instant)| since.elapsed() > Duration::from_secs(10);
        if self.0.me() == NodeId(1)
            && let Some((frame, _)) = kept.take_if(|kept| notified || late(kept))
        {
            NOTIFIED.store(notified, Ordering::SeqCst);
            Port::send(&self.0, NodeId(0), &[&frame]).unwrap();
        }
    }
}

impl Layer for Keeps {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        if self.0.me() == NodeId(1) && STARTING.load(Ordering::SeqCst) {
            match notify {
                Notify::Now => drop(WOKEN_FOR.fetch_add(1, Ordering::SeqCst)),
                Notify::Lazy => {
                    let kept = (parts.concat(), Instant::now());
                    assert!(KEPT.lock().unwrap().replace(kept).is_none());
                    return Ok(());
                }
            }
        }
        Port::send_with(&self.0, to, parts, notify)
    }

    fn notify(&self, to: NodeId) {
        self.let_go(true);
        Port::notify(&self.0, to);
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.let_go(false);
        Port::poll(&self.0, take)
    }
}

/// Nodes that have a core each, or share one with many others.
struct Cores {
    each: bool,
}

impl Platform for Cores {
    fn name(&self) -> String {
        "local".into()
    }

    fn machine(&self, _: usize, _: u64) -> Box<dyn Machine> {
        unreachable!("every node has a machine of its own")
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let neighbours = if self.each { 1 } else { usize::MAX };
        let machine = |port| -> Box<dyn Machine + Send> {
            let port = Box::new(Keeps(port));
            let machine = Processes::new(port, seed).unwrap();
            Box::new(machine.neighbours(neighbours))
        };
        ports::local(nodes).into_iter().map(machine).collect()
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn add(&mut self, more: u64) -> u64 {
        self.0 += more;
        self.0
    }

    #[when(self.0 >= *least)]
    pub fn at_least(&self, least: u64) -> u64 {
        self.0
    }
}

type Waits = fn(&mut Worker<'_>, Object<Sum>, Pending<u64>) -> dhole::Result<()>;

/// Node 1 starts an operation, and then waits so.
fn starts_and(on: &Cores, waits: Waits) {
    WOKEN_FOR.store(0, Ordering::SeqCst);
    NOTIFIED.store(false, Ordering::SeqCst);
    let run = conformance::run(on, 2, 1, |w| {
        let sum = w.once(|w| Ok(w.new_object(replicated(), Sum(7))?))?;
        w.barrier()?;
        if w.node() == NodeId(1) {
            STARTING.store(true, Ordering::SeqCst);
            let started = sum.start_add(w, 1)?;
            STARTING.store(false, Ordering::SeqCst);
            assert!(!NOTIFIED.load(Ordering::SeqCst));
            waits(w, sum, started)?;
        }
        Ok(w.barrier()?)
    });
    run.unwrap();
    assert_eq!(WOKEN_FOR.load(Ordering::SeqCst), 0, "woken for a start");
    assert!(NOTIFIED.load(Ordering::SeqCst), "not notified by who waits");
}

#[test]
fn what_was_started_wakes_nobody_before_it_is_waited_for() {
    for on in [Cores { each: true }, Cores { each: false }] {
        starts_and(&on, |w, _, started| {
            assert_eq!(started.wait(w)?, 8);
            Ok(())
        });
        // Something else may need it.
        starts_and(&on, |w, sum, started| {
            assert_eq!(sum.at_least(w, 8)?, 8);
            assert_eq!(started.wait(w)?, 8);
            Ok(())
        });
    }
}
