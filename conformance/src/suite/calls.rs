//! Operations on objects, called from everywhere.

use std::collections::BTreeSet;

use dhole::{NodeId, Object, Ref, Result, Worker, on, op, replicated};
use serde::{Deserialize, Serialize};

use super::{keeps_pages, succeed};
use crate::Platform;

/// A number that is counted up, and the number of who was here last, beside it in shared memory.
#[derive(Serialize, Deserialize, Default)]
struct Desk {
    calls: u64,
    left: Option<(u64, Ref<u64>)>,
    stamps: u64,
}

#[dhole::object(crate = "dhole")]
impl Desk {
    /// The number of the call.
    pub fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Leaves a number, written in shared memory too, and takes the one that was left before.
    pub fn swap(&mut self, number: u64, written: Ref<u64>) -> Option<(u64, Ref<u64>)> {
        self.left.replace((number, written))
    }

    pub fn stamp(&mut self) {
        self.stamps += 1;
    }

    #[when(self.stamps > 0)]
    pub fn take_stamp(&mut self) {
        self.stamps -= 1;
    }
}

/// The numbers that were given out.
#[derive(Serialize, Deserialize, Default)]
struct Seen(BTreeSet<u64>);

#[dhole::object(crate = "dhole")]
impl Seen {
    pub fn is_new(&mut self, number: u64) -> bool {
        self.0.insert(number)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Calls of which most have nothing to tell, others hand over what was written before them, or wait
/// for their guards, while the object moves: each takes effect once, and tells what it should.
pub fn calls_take_effect_once_and_tell_all_wherever_an_object_is(platform: &dyn Platform) {
    const ROUNDS: u64 = 40;
    if keeps_pages(platform) {
        return;
    }
    let outcome = succeed(platform, 3, |w| {
        let (desk, seen): (Object<Desk>, Object<Seen>) = w.once(|w| {
            let desk = w.new_object(on(NodeId(1)), Desk::default())?;
            Ok((desk, w.new_object(on(NodeId(0)), Seen::default())?))
        })?;
        let me = u64::from(w.node().0);
        for round in 0..ROUNDS {
            match w.random() % 10 {
                0 => {
                    let number = me * ROUNDS + round;
                    let mine = w.alloc(number);
                    if let Some((number, written)) = desk.swap(w, number, mine)? {
                        assert_eq!(written.read(w), number, "what was left is not visible");
                    }
                }
                1 => {
                    desk.stamp(w)?;
                    desk.take_stamp(w)?;
                }
                2 if me == 0 => {
                    let place = w.random() % 4;
                    let to = match place {
                        3 => replicated(),
                        node => on(NodeId(node as u16)),
                    };
                    Object::strategy(&desk, w, to)?;
                }
                _ => {
                    let number = desk.call(w)?;
                    assert!(seen.is_new(w, number)?, "{number} was given out twice");
                }
            }
        }
        w.barrier()?;
        assert_eq!(desk.calls(w)?, seen.count(w)? as u64);
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

fn call(w: &mut Worker<'_>, desk: Object<Desk>) -> Result<u64> {
    Ok(desk.call(w)?)
}

/// A process is started on a node whose program does nothing but ask another whether it has begun,
/// and so waits: between processes, that is, where an answer has to come.
pub fn a_process_begins_though_its_nodes_program_only_asks(platform: &dyn Platform) {
    succeed(platform, 2, |w| {
        let desk: Object<Desk> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Desk::default())?))?;
        for round in 1..=20 {
            w.barrier()?;
            if w.node().0 == 0 {
                let number = w.spawn(NodeId(1), desk, op!(call))?.join(w)?;
                assert_eq!(number, round);
            } else {
                while desk.calls(w)? < round {}
            }
        }
        Ok(())
    });
}
