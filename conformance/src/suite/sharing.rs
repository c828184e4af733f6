//! Visibility: when a node sees another's write.

use dhole::{Lock, RaceReport, Ref, Result, Share, Worker};

use super::{has_home, has_member, keeps_pages, succeed};
use crate::Platform;

/// Numbers, one for each node.
fn numbers(w: &mut Worker<'_>) -> Result<dhole::Refs<u64>> {
    let nodes = w.nodes();
    w.once(|w| Ok(w.alloc_range(nodes, |_| 0_u64)))
}

/// Adds 1 to a number under a lock.
fn add_one(w: &mut Worker<'_>, lock: Lock, number: Ref<u64>) -> Result<()> {
    lock.with(w, |w| {
        *number.get_mut(w) += 1;
        Ok(())
    })
}

/// In every round each node writes its number, all meet, and all read all numbers.
pub fn what_was_written_before_a_barrier_is_read_after_it(on: &dyn Platform) {
    succeed(on, 5, |w| {
        let numbers = numbers(w)?;
        for round in 1..=10 {
            *numbers.at(w.node().index()).get_mut(w) = round;
            w.barrier()?;
            let seen: Vec<u64> = numbers.iter().map(|number| number.read(w)).collect();
            assert_eq!(seen, vec![round; w.nodes()], "on {}", w.node());
            w.barrier()?;
        }
        Ok(())
    });
}

/// At every barrier other nodes have written, or none has, and some have learnt of it before, by a
/// lock: as many nodes as there are, and two, of which one says no more than it has to.
pub fn whoever_has_written_before_a_barrier_is_read_after_it(on: &dyn Platform) {
    const ROUNDS: u64 = 60;
    // Who writes in which round, the same on every node.
    let writes = |round: u64, node: usize| {
        let mixed = (8 * round + node as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 33).is_multiple_of(3)
    };
    for nodes in [2, 3] {
        succeed(on, nodes, move |w| {
            let numbers = numbers(w)?;
            let (me, lock) = (w.node().index(), Lock::numbered(0));
            let mut newest = vec![0; nodes];
            for round in 1..=ROUNDS {
                if writes(round, me) {
                    *numbers.at(me).get_mut(w) = round;
                }
                if round % 5 == 0 {
                    lock.with(w, |_| Ok(()))?;
                }
                w.work(w.random() % 20_000);
                w.barrier()?;
                for (node, newest) in newest.iter_mut().enumerate() {
                    if writes(round, node) {
                        *newest = round;
                    }
                    // Who writes it now would race with this.
                    if !writes(round + 1, node) {
                        assert_eq!(numbers.at(node).read(w), *newest, "in {round} on {me}");
                    }
                }
            }
            Ok(())
        });
    }
}

/// Two objects are always written together, under a lock.
pub fn what_was_written_under_a_lock_is_read_under_it(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let pair = w.once(|w| Ok(w.alloc_range(2, |_| 0_u64)))?;
        let lock = Lock::numbered(6);
        for _ in 0..20 {
            lock.with(w, |w| {
                let (first, second) = (pair.at(0).read(w), pair.at(1).read(w));
                assert_eq!(first, second, "on {}", w.node());
                *pair.at(0).get_mut(w) += 1;
                *pair.at(1).get_mut(w) += 1;
                Ok(())
            })?;
            w.work(w.random() % 5_000);
        }
        w.barrier()?;
        Ok(pair.at(0).read(w))
    });
    assert_eq!(outcome.value, 80);
}

/// Three locks guard three counters, which all nodes raise in different orders.
pub fn a_lock_that_goes_round_loses_nothing(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let counters = w.once(|w| Ok(w.alloc_range(3, |_| 0_u64)))?;
        for step in 0..30 {
            let which = (step + w.node().index()) % 3;
            Lock::numbered(which as u32).with(w, |w| {
                *counters.at(which).get_mut(w) += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(counters
            .iter()
            .map(|counter| counter.read(w))
            .collect::<Vec<u64>>())
    });
    assert_eq!(outcome.value, [30; 3]);
}

/// A value that only node 0 knows.
pub fn a_value_made_once_is_the_same_everywhere(on: &dyn Platform) {
    succeed(on, 4, |w| {
        let numbers = numbers(w)?;
        for _ in 0..5 {
            let drawn = w.once(|w| Ok(w.random()))?;
            *numbers.at(w.node().index()).get_mut(w) = drawn;
            w.barrier()?;
            assert!(numbers.iter().all(|number| number.read(w) == drawn));
            w.barrier()?;
        }
        Ok(())
    });
}

/// The writes of every node before `once`, and those of node 0 within it, are visible after it.
pub fn once_makes_everything_before_it_visible(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let numbers = numbers(w)?;
        *numbers.at(w.node().index()).get_mut(w) = 7;
        let more = w.once(|w| Ok(w.alloc(8_u64)))?;
        assert_eq!(numbers.iter().map(|number| number.read(w)).sum::<u64>(), 21);
        assert_eq!(more.read(w), 8);
        Ok(())
    });
}

/// Objects of two chunks for each node, a part of which lies in a chunk of another one's.
const ALONE: usize = 90;

/// Each node writes most of its objects in every round, and reads some of the others' after it.
pub fn what_one_node_alone_writes_is_read_now_and_then(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let nodes = w.nodes();
        let all = w.once(|w| Ok(w.alloc_range(nodes * ALONE, |_| 0_u64)))?;
        let me = w.node().index();
        let is_written = |round: u64, at: usize| !(round + at as u64).is_multiple_of(5);
        for round in 1..=16_u64 {
            for at in (me * ALONE..(me + 1) * ALONE).filter(|at| is_written(round, *at)) {
                *all.at(at).get_mut(w) = round;
            }
            w.barrier()?;
            for _ in 0..4 {
                let at = (w.random() % (nodes * ALONE) as u64) as usize;
                let newest = if is_written(round, at) {
                    round
                } else {
                    round - 1
                };
                assert_eq!(all.at(at).read(w), newest, "{at} in {round} on {me}");
            }
            w.barrier()?;
        }
        Ok(())
    });
}

/// Each node writes half of its objects in every round, and reads some of the others' meanwhile, of
/// the halves that are not written.
pub fn what_one_node_alone_writes_is_read_beside_its_writes(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let nodes = w.nodes();
        let all = w.once(|w| Ok(w.alloc_range(nodes * ALONE, |_| 0_u64)))?;
        let me = w.node().index();
        let is_written = |round: u64, at: usize| (round + at as u64).is_multiple_of(2);
        for round in 1..=16_u64 {
            for at in (me * ALONE..(me + 1) * ALONE).filter(|at| is_written(round, *at)) {
                *all.at(at).get_mut(w) = round;
                if round > 8 && (round + at as u64).is_multiple_of(32) {
                    let other = (w.random() % (nodes * ALONE) as u64) as usize;
                    let other = other - usize::from(is_written(round, other) && other > 0);
                    if !is_written(round, other) {
                        assert_eq!(all.at(other).read(w), round - 1, "{other} on {me}");
                    }
                }
                w.poll()?;
            }
            w.work(w.random() % 2_000);
            w.barrier()?;
        }
        Ok(())
    });
}

/// Every node walks a list, holding the lock of one link until it has that of the next.
pub fn locks_go_hand_over_hand_along_a_list(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let links = w.once(|w| Ok(w.alloc_range(6, |_| 0_u64)))?;
        for _ in 0..5 {
            let mut held = Lock::numbered(0).acquire(w)?;
            for (number, link) in links.iter().enumerate() {
                *link.get_mut(w) += 1;
                let next = Lock::numbered(number as u32 + 1).acquire(w)?;
                held.release(w)?;
                held = next;
            }
            held.release(w)?;
        }
        w.barrier()?;
        Ok(links.iter().map(|link| link.read(w)).collect::<Vec<u64>>())
    });
    assert_eq!(outcome.value, [20; 6]);
}

/// A place for each node to show the locks that it made.
#[derive(Clone, Copy, Share)]
struct Made {
    locks: [Lock; 3],
    count: u64,
}

/// Locks can be made by any node, kept in objects, and used by all.
pub fn locks_made_by_nodes_are_all_different(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let nodes = w.nodes();
        let empty = Made {
            locks: [Lock::numbered(0); 3],
            count: 0,
        };
        let made = w.once(|w| Ok(w.alloc_range(nodes, |_| empty)))?;
        let locks = [(); 3].map(|()| w.new_lock());
        made.at(w.node().index()).get_mut(w).locks = locks;
        w.barrier()?;
        let mut all: Vec<Lock> = made.iter().flat_map(|made| made.get(w).locks).collect();
        for lock in &all {
            lock.with(w, |w| {
                made.at(0).get_mut(w).count += 1;
                Ok(())
            })?;
            w.barrier()?;
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 9);
        assert_eq!(made.at(0).read(w).count, 27);
        Ok(())
    });
}

/// All nodes write one object at once. After the barrier all see the same value of one of them.
/// Every pair of nodes is reported with its lines; under home, each writer with another.
pub fn of_racing_writers_one_wins_everywhere(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 5, |w| {
        let (numbers, prize) = (numbers(w)?, w.once(|w| Ok(w.alloc(u64::MAX)))?);
        for round in 0..10 {
            let mine = round * 5 + w.node().index() as u64;
            w.work(w.random() % 30_000);
            *prize.get_mut(w) = mine;
            w.work(w.random() % 30_000);
            w.barrier()?;
            let winner = prize.read(w);
            assert_eq!(winner / 5, round, "a writer of this round");
            *numbers.at(w.node().index()).get_mut(w) = winner;
            w.barrier()?;
            assert!(numbers.iter().all(|number| number.read(w) == winner));
            w.barrier()?;
        }
        Ok(())
    });
    if has_member(on) {
        return;
    }
    let races: u64 = outcome.counters.iter().map(|node| node.races).sum();
    if has_home(on) {
        // Each writer with the one before it; what the home wrote before anybody else had a copy
        // is not looked at.
        let found = (39..=40).contains(&races) && (4..=16).contains(&outcome.races.len());
        assert!(found, "{races} races, {} told", outcome.races.len());
        return;
    }
    assert_eq!(races, 10 * 10, "each pair in each round");
    assert_eq!(outcome.races.len(), 10, "each pair is told of once");
    let here = |race: &RaceReport| race.to_string().matches("sharing.rs:").count();
    assert!(outcome.races.iter().all(|race| here(race) == 3));
}

/// A value of many words, all the same.
#[derive(Clone, Copy, Share)]
struct Wide([u64; 64]);

/// Node 0 writes an object again and again while the others read it, without synchronisation.
pub fn a_racing_reader_sees_an_old_value_or_a_new_one_and_never_a_mixture(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let wide = w.once(|w| Ok(w.alloc(Wide([0; 64]))))?;
        for round in 0..20_u64 {
            if w.node().index() == 0 {
                for step in 0..5 {
                    wide.update(w, |wide| wide.0 = [round * 5 + step; 64]);
                    w.work(w.random() % 10_000);
                    if step == 2 {
                        w.pause()?;
                    }
                }
            } else {
                w.work(w.random() % 30_000);
                let Wide(words) = wide.get(w);
                assert!(words.iter().all(|word| *word == words[0]), "a mixture");
                assert!(words[0] + 1 >= round * 5, "older than the last barrier");
            }
            w.barrier()?;
        }
        Ok(())
    });
}

/// Node 0 does nothing; the others read its objects and take its locks after it has finished.
pub fn a_finished_node_serves_the_others(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let number = w.once(|w| Ok(w.alloc(3_u64)))?;
        if w.node().index() > 0 {
            w.work(1_000_000);
            Lock::numbered(0).with(w, |w| {
                assert!(number.read(w) >= 3);
                *number.get_mut(w) += 1;
                Ok(())
            })?;
        }
        Ok(())
    });
}

/// Node 0 computes on an object that node 1 asks for meanwhile.
pub fn a_node_that_computes_answers_at_its_next_call(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        for _ in 0..10 {
            if w.node().index() == 0 {
                for _ in 0..10 {
                    *number.get_mut(w) += 1;
                    w.work(5_000);
                }
            } else {
                w.work(20_000);
                number.read(w);
            }
            w.barrier()?;
        }
        assert_eq!(number.read(w), 100);
        Ok(())
    });
}

/// Everything works on a cluster of one, and nothing is sent.
pub fn one_node_alone_needs_no_message(on: &dyn Platform) {
    let outcome = succeed(on, 1, |w| {
        let number: Ref<u64> = w.once(|w| Ok(w.alloc(1)))?;
        let rows = w.alloc_rows::<f64>(2, 3);
        for _ in 0..3 {
            add_one(w, Lock::numbered(1), number)?;
            w.barrier()?;
        }
        rows.row(1).get_mut(w)[2] = 0.5;
        assert_eq!(rows.row(1).get(w), [0.0, 0.0, 0.5]);
        Ok(number.read(w))
    });
    assert_eq!(outcome.value, 4);
    assert_eq!(outcome.counters[0].messages, 0);
}

/// More nodes than cores pass a barrier and a lock.
pub fn many_nodes_meet(on: &dyn Platform) {
    const NODES: usize = 48;
    let outcome = succeed(on, NODES, |w| {
        let sum = w.once(|w| Ok(w.alloc(0_u64)))?;
        add_one(w, Lock::numbered(5), sum)?;
        w.barrier()?;
        assert_eq!(sum.read(w), NODES as u64);
        w.barrier()?;
        Ok(sum.read(w))
    });
    assert_eq!(outcome.value, NODES as u64);
}
