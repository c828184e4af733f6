//! Figure 4 of the paper: a counter under its lock.

use dhole::{Condvar, Error, Lock, Lockable, Ref, Result, Section, Share, Worker, section};

use super::{ADDERS, Found, Home, Problem};
use crate::solve::Steps;

/// Figure 4's class.
#[derive(Share, Clone, Copy)]
struct Counter {
    count: i64,
}

/// Figure 4's method, as a section.
fn inc(s: &mut Section<'_>, (x, delta): (Ref<Counter>, i64)) -> Result<i64> {
    let x = s.get_mut(x)?;
    let old = x.count;
    x.count += delta;
    Ok(old)
}

/// Virtual nanoseconds for which the home holds a reference.
const HOLDS_NS: u64 = 1_000_000_000;

/// Fetches of a copy after which a node keeps it.
const UNTIL_KEPT: usize = 3;

/// Counts on all nodes.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let me = w.node().index();
    if w.nodes() <= ADDERS[1] {
        let needed = ADDERS[1] + 1;
        let words = format!(
            "a run of at least {needed} nodes is needed, and has {}",
            w.nodes()
        );
        return Err(Error::program(words));
    }
    let x = w.once(|w| Ok(w.alloc(Counter { count: 0 })))?;
    let times = w.once(|w| Ok(w.alloc_range(w.nodes(), |_| [0_u64; 2])))?;
    for _ in 0..UNTIL_KEPT {
        if problem.keepers.contains(&me) {
            x.get(w);
        }
        w.barrier()?;
    }
    // The adder that is not first waits for its turn before the first one begins.
    let turns = problem.turns && ADDERS.contains(&me);
    let mut turn = (turns && me == ADDERS[1])
        .then(|| LOCK.acquire(w))
        .transpose()?;
    steps.begin(w)?;
    let mut time = [0; 2];
    if ADDERS.contains(&me) {
        for round in 0..problem.each {
            if let Some(held) = turn.take_if(|_| round == 0) {
                turn = Some(turn_of(me).wait(w, held)?);
            }
            let begun = w.now();
            x.lock().run(w, (x, 1), section!(inc))?;
            let took_ns = w.now().saturating_sub(begun).as_nanos() as u64;
            time = [time[0] + took_ns, time[1].max(took_ns)];
            if turns {
                let is_last = round + 1 == problem.each;
                turn = pass_on(w, turn, is_last)?;
            }
        }
    } else if me == 0 && problem.home == Home::Reads {
        read_for_long(w, x)?;
    }
    if let Some(held) = turn {
        held.release(w)?;
    }
    steps.end(w)?;
    *times.at(me).get_mut(w) = time;
    w.barrier()?;
    let all: Vec<[u64; 2]> = times.iter().map(|of| of.read(w)).collect();
    Ok(Found {
        value: x.get(w).count,
        increments_ns: all.iter().map(|[all, _]| all).sum(),
        longest_ns: all.iter().map(|[_, longest]| *longest).max().unwrap_or(0),
    })
}

/// The home computes with a reference. Nothing that it refers to changes meanwhile.
fn read_for_long(w: &mut Worker<'_>, x: Ref<Counter>) -> Result<()> {
    let seen = x.get(w);
    let count = seen.count;
    w.work(HOLDS_NS);
    match seen.count == count {
        true => Ok(()),
        false => Err(Error::program("the counter has changed under a reference")),
    }
}

/// The lock of the turns, which node 1 manages, and the condition on which each adder waits for its
/// turn.
const LOCK: Lock = Lock::numbered(1);

fn turn_of(node: usize) -> Condvar {
    Condvar::numbered(LOCK, node as u32)
}

/// The other adder has its turn; this one waits for its next, unless it has none.
fn pass_on(
    w: &mut Worker<'_>,
    turn: Option<dhole::Held>,
    is_last: bool,
) -> Result<Option<dhole::Held>> {
    let me = w.node().index();
    let held = match turn {
        Some(held) => held,
        None => LOCK.acquire(w)?,
    };
    let other = ADDERS.into_iter().find(|adder| *adder != me).unwrap_or(me);
    turn_of(other).notify_one(w)?;
    match is_last {
        true => {
            held.release(w)?;
            Ok(None)
        }
        false => Ok(Some(turn_of(me).wait(w, held)?)),
    }
}
