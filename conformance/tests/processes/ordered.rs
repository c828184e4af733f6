//! Writes of replicated objects between processes. Most are single writes. Now and then a port has
//! no room, an object changes its strategy, or there are write notices to carry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use conformance::{OverPorts, ports};
use dhole::{NodeId, Object, Result, Worker, on, op, replicated};
use dhole_model::Notify;
use dhole_net::{Layer, Port, SendError};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// Of a hundred frames so many find no room.
static NO_ROOM: AtomicU64 = AtomicU64::new(0);
static FRAMES: AtomicU64 = AtomicU64::new(0);
/// Frames that begin as those of ordered writes do, behind a header of 16 bytes.
static WRITES: AtomicU64 = AtomicU64::new(0);
/// One of these tests runs at a time.
static ONE: Mutex<()> = Mutex::new(());

struct Narrow(Box<dyn Port>);

impl Narrow {
    fn admits(&self, to: NodeId, parts: &[&[u8]]) -> std::result::Result<(), SendError> {
        let number = FRAMES.fetch_add(1, Ordering::Relaxed);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        if mixed % 100 < NO_ROOM.load(Ordering::Relaxed) {
            return Err(SendError::Busy { to });
        }
        let begin: Vec<u8> = parts.iter().copied().flatten().copied().take(17).collect();
        if matches!(begin.get(16..), Some([0x82 | 0x83])) {
            WRITES.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Layer for Narrow {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn send_with(
        &self,
        to: NodeId,
        parts: &[&[u8]],
        notify: Notify,
    ) -> std::result::Result<(), SendError> {
        self.admits(to, parts)?;
        Port::send_with(&self.0, to, parts, notify)
    }
}

fn narrow(nodes: usize) -> Vec<Box<dyn Port>> {
    let narrow = |port| Box::new(Narrow(port)) as _;
    ports::local(nodes).into_iter().map(narrow).collect()
}

const ON: OverPorts = OverPorts {
    name: "local, without room",
    make: narrow,
};

#[derive(Serialize, Deserialize, Default)]
struct Log {
    all: Vec<(u16, u64)>,
    tickets: u64,
}

#[dhole::object]
impl Log {
    /// Where it is now.
    pub fn push(&mut self, who: u16, what: u64, beside: Vec<u8>) -> (usize, usize) {
        self.all.push((who, what));
        (self.all.len() - 1, beside.len())
    }

    pub fn all(&self) -> Vec<(u16, u64)> {
        self.all.clone()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn give(&mut self) {
        self.tickets += 1;
    }

    #[when(self.tickets > 0)]
    pub fn take(&mut self) {
        self.tickets -= 1;
    }
}

/// What a node has pushed: to which log, what, and where that is.
type Pushed = (usize, u64, usize);

fn pushes(w: &mut Worker<'_>, (log, what): (Object<Log>, u64)) -> Result<Vec<usize>> {
    let who = w.node().0;
    let push = |more| Ok(log.push(w, who, what + more, vec![1; 9])?.0);
    (0..3).map(push).collect()
}

fn program(w: &mut Worker<'_>, seed: u64, nodes: usize) -> Result<()> {
    let new = |w: &mut Worker<'_>| w.new_object(replicated(), Log::default());
    let (logs, cell) = w.once(|w| Ok(([new(w)?, new(w)?], w.alloc(0_u64))))?;
    let me = w.node();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed * 16 + u64::from(me.0));
    let (mut pushed, mut started): (Vec<Pushed>, Vec<_>) = Default::default();
    let mut last = [0; 2];
    for what in (0..150).map(|number| number * 10) {
        let of = random.random_range(0..2);
        let log = logs[of];
        match random.random_range(0..100) {
            0..60 => {
                let beside = match random.random_range(0..20) {
                    0 => 5_000,
                    1 => 2_040,
                    _ => random.random_range(0..30),
                };
                let (at, brought) = log.push(w, me.0, what, vec![3; beside])?;
                assert!(brought == beside && at >= last[of] && log.len(w)? > at);
                last[of] = at;
                pushed.push((of, what, at));
            }
            60..70 => started.push((of, what, log.start_push(w, me.0, what, vec![])?)),
            70..75 => {
                for (of, what, pending) in started.drain(..) {
                    pushed.push((of, what, pending.wait(w)?.0));
                }
            }
            75..82 => {
                log.give(w)?;
                log.take(w)?;
            }
            82..86 => *cell.get_mut(w) = what,
            86..88 if me == NodeId(0) && seed.is_multiple_of(2) => {
                Object::strategy(&log, w, on(NodeId::at(random.random_range(0..nodes))))?;
                log.push(w, me.0, what, vec![])?;
                Object::strategy(&log, w, replicated())?;
            }
            88..90 if what > 1_000 && seed.is_multiple_of(3) => {
                let to = NodeId::at(random.random_range(0..nodes));
                let places = w.spawn(to, (log, what), op!(pushes))?.join(w)?;
                let all = log.all(w)?;
                assert!(
                    places
                        .iter()
                        .zip(what..)
                        .all(|(at, it)| all[*at] == (to.0, it))
                );
            }
            _ => assert!(log.len(w)? >= last[of]),
        }
    }
    for (of, what, pending) in started {
        pushed.push((of, what, pending.wait(w)?.0));
    }
    w.barrier()?;
    let all = [logs[0].all(w)?, logs[1].all(w)?];
    assert!(
        pushed
            .iter()
            .all(|(of, what, at)| all[*of][*at] == (me.0, *what))
    );
    if me == NodeId(0) {
        logs.iter().try_for_each(|log| Object::compare(log, w))?;
    }
    Ok(w.barrier()?)
}

#[test]
fn each_write_is_where_its_caller_was_told_on_every_replica() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = WRITES.load(Ordering::Relaxed);
    for seed in 1..=16 {
        let nodes = [2, 3, 2, 4][seed as usize % 4];
        NO_ROOM.store([0, 10, 50, 0, 80][seed as usize % 5], Ordering::Relaxed);
        let run = conformance::run(&ON, nodes, seed, |w| program(w, seed, nodes));
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    let writes = WRITES.load(Ordering::Relaxed) - before;
    assert!(writes > 1_000, "{writes} ordered writes");
}

#[test]
fn of_two_who_write_and_then_read_one_sees_the_other() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for seed in 0..6 {
        NO_ROOM.store([0, 30, 60][seed as usize % 3], Ordering::Relaxed);
        let nodes = 2 + seed as usize % 2;
        let seen = Mutex::new([vec![], vec![]]);
        let run = conformance::run(&ON, nodes, seed, |w| {
            let new = |w: &mut Worker<'_>| w.new_object(replicated(), Log::default());
            let pair = |w: &mut Worker<'_>| w.once(|w| Ok([new(w)?, new(w)?]));
            let pairs = (0..50).map(|_| pair(w)).collect::<Result<Vec<_>, _>>()?;
            let me = w.node().index();
            for pair in pairs.iter().filter(|_| me < 2) {
                pair[me].push(w, 0, 0, vec![])?;
                let sees = pair[1 - me].len(w)? == 1;
                seen.lock().unwrap()[me].push(sees);
            }
            Ok(w.barrier()?)
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let [one, other] = seen.into_inner().unwrap();
        assert_eq!((one.len(), other.len()), (50, 50));
        let blind = one.iter().zip(&other).position(|(a, b)| !a && !b);
        assert_eq!(blind, None, "seed {seed}");
    }
}
