//! What a process sees, and what is seen of it.

use dhole::{NodeId, Object, Ref, Result, Worker, anywhere, on, op, replicated};
use serde::{Deserialize, Serialize};

use super::values;

fn where_am_i(w: &mut Worker<'_>, n: u64) -> Result<(u16, u64)> {
    Ok((w.node().0, n + 1))
}

#[test]
fn a_process_runs_where_it_was_started_and_its_result_comes_back() {
    let all = values(3, |w| {
        let me = w.node().0;
        let mut results = Vec::new();
        for on_node in 0..3_u16 {
            let process = w.spawn(on(NodeId(on_node)), u64::from(on_node), op!(where_am_i))?;
            assert_eq!(process.node(), NodeId(on_node));
            results.push(process.join(w)?);
        }
        assert_eq!(results, [(0, 1), (1, 2), (2, 3)]);
        let closure = op!(|w, of: u16| Ok((w.node().0, of)));
        let next = NodeId((me + 1) % 3);
        assert_eq!(w.spawn(next, me, closure)?.join(w)?, (next.0, me));
        w.barrier()?;
        Ok(())
    });
    drop(all);
}

/// Adds one to what the references name, and hands a new object back.
fn add(w: &mut Worker<'_>, (number, from): (Ref<u64>, u64)) -> Result<Ref<u64>> {
    assert_eq!(
        number.read(w),
        from,
        "what was written before the start is seen"
    );
    *number.get_mut(w) += 1;
    Ok(w.alloc(from * 10))
}

#[test]
fn what_the_parent_wrote_is_seen_and_what_the_child_wrote_after_its_end() {
    let all = values(3, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        if w.node().0 == 1 {
            for round in 0..6 {
                *number.get_mut(w) = 100 * round;
                let child = w.spawn(anywhere(), (number, 100 * round), op!(add))?;
                let made = child.join(w)?;
                assert_eq!(number.read(w), 100 * round + 1);
                assert_eq!(made.read(w), 1000 * round);
            }
        }
        w.barrier()?;
        Ok(number.read(w))
    });
    assert!(all.iter().all(|value| *value == 501), "{all:?}");
}

#[derive(Serialize, Deserialize, Default)]
struct Gate {
    open: bool,
}

#[dhole::object]
impl Gate {
    pub fn open(&mut self) {
        self.open = true;
    }

    #[when(self.open)]
    pub fn pass(&mut self) {}
}

#[test]
fn anywhere_spreads_over_the_nodes() {
    let all = values(4, |w| {
        if w.node().0 != 0 {
            return Ok(());
        }
        // Whoever ends is no longer counted, so none ends before all have been started.
        let gate: Object<Gate> = w.new_object(replicated(), Gate::default())?;
        let passes = op!(|w, gate: Object<Gate>| Ok(gate.pass(w)?));
        let started = (0..8).map(|_| w.spawn(anywhere(), gate, passes));
        let started: Vec<_> = started.collect::<Result<_, _>>()?;
        let mut nodes: Vec<u16> = started.iter().map(|process| process.node().0).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 0, 1, 1, 2, 2, 3, 3]);
        gate.open(w)?;
        for process in started {
            process.join(w)?;
        }
        Ok(())
    });
    drop(all);
}

/// The sum of a range, by halves.
fn sum(w: &mut Worker<'_>, (from, to): (u64, u64)) -> Result<u64> {
    if to - from <= 8 {
        return Ok((from..to).sum());
    }
    let middle = (from + to) / 2;
    let left = w.spawn(anywhere(), (from, middle), op!(sum))?;
    let right = w.spawn(anywhere(), (middle, to), op!(sum))?;
    Ok(left.join(w)? + right.join(w)?)
}

#[test]
fn processes_start_processes() {
    let all = values(3, |w| match w.node().0 {
        0 => Ok(w.spawn(anywhere(), (0, 200), op!(sum))?.join(w)?),
        _ => Ok(0),
    });
    assert!(all.iter().all(|value| *value == 19_900), "{all:?}");
}

#[derive(Serialize, Deserialize, Default)]
struct Sum {
    of: u64,
}

#[dhole::object]
impl Sum {
    pub fn add(&mut self, n: u64) {
        self.of += n;
    }

    pub fn of(&self) -> u64 {
        self.of
    }
}

#[test]
fn processes_use_objects_that_they_are_given() {
    for strategy in [replicated(), on(NodeId(2))] {
        let all = values(3, |w| {
            if w.node().0 != 0 {
                return Ok(0);
            }
            let total: Object<Sum> = w.new_object(strategy, Sum::default())?;
            let adds = op!(|w, (total, n): (Object<Sum>, u64)| {
                (0..n).try_for_each(|_| total.add(w, n))?;
                Ok(())
            });
            for n in 1..=5 {
                // Nobody joins: whoever started them waits for them at its end.
                let _unjoined = w.spawn(anywhere(), (total, n), adds)?;
            }
            let reads = op!(|w, total: Object<Sum>| Ok(total.of(w)?));
            let mut sum = 0;
            while sum < 55 {
                sum = w.spawn(anywhere(), total, reads)?.join(w)?;
            }
            Ok(sum)
        });
        assert!(all.iter().all(|value| *value == 55), "{all:?}");
    }
}
