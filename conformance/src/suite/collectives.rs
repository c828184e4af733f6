//! Collectives: values to which all nodes contribute.

use dhole::{CollectiveError, MOST_COLLECTIVE_BYTES, SyncError};
use dhole::{Counters, Error, Lock, MessageKind, NodeId, Ref};

use super::{assert_says, fail, keeps_pages, succeed};
use crate::Platform;

const THIS_FILE: &str = "collectives.rs:";

/// Values without a fixed size, which `once` refuses.
pub fn a_broadcast_gives_node_0s_value_to_every_node(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8] {
        succeed(on, nodes, |w| {
            let me = w.node().index();
            let name = w.broadcast(format!("of node {me}"))?;
            assert_eq!(name, "of node 0");
            let lists = w.broadcast(vec![(me, Some(vec![2.5_f64; me + 3])), (7, None)])?;
            assert_eq!(lists, [(0, Some(vec![2.5; 3])), (7, None)]);
            assert_eq!(w.broadcast(())?, ());
            Ok(())
        });
    }
}

/// Concatenation is not commutative, and addition of floats not associative.
pub fn values_are_reduced_in_the_order_of_their_nodes(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8] {
        let (all, all_again) = (names(nodes), names(nodes));
        let outcome = succeed(on, nodes, |w| {
            let me = w.node().index();
            let concatenated = w.reduce(format!("{me} "), |one, next| one + &next)?;
            assert_eq!(concatenated, (me == 0).then(|| all.clone()));
            let again = w.all_reduce(format!("{me} "), |one, next| one + &next)?;
            assert_eq!(again, all_again);
            let tenths = w.all_reduce(0.1 * (me + 1) as f64, |one, next| one + next)?;
            let least = w.all_reduce(-(me as i64), i64::min)?;
            assert_eq!(least, 1 - w.nodes() as i64);
            let bits = w.all_gather(tenths.to_bits())?;
            assert!(
                bits.windows(2).all(|two| two[0] == two[1]),
                "to the last bit"
            );
            Ok(bits[0])
        });
        let again = succeed(on, nodes, |w| {
            let tenths = 0.1 * (w.node().index() + 1) as f64;
            Ok(w.reduce(tenths, |one, next| one + next)?.map(f64::to_bits))
        });
        assert_eq!(again.value, Some(outcome.value), "the same in every run");
    }
}

fn names(nodes: usize) -> String {
    (0..nodes).map(|node| format!("{node} ")).collect()
}

/// Of any sizes.
pub fn gathered_values_come_in_the_order_of_their_nodes(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8] {
        succeed(on, nodes, |w| {
            let me = w.node().index();
            let all: Vec<Vec<usize>> = (0..w.nodes()).map(|node| vec![node; node]).collect();
            let gathered = w.gather(vec![me; me])?;
            assert_eq!(gathered, (me == 0).then(|| all.clone()));
            assert_eq!(w.all_gather(vec![me; me])?, all);
            Ok(())
        });
    }
}

/// Of numbers of any sizes, by an operation that is not commutative.
pub fn values_up_to_each_node_are_combined_in_their_order(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8, 13] {
        succeed(on, nodes, |w| {
            let me = w.node().index();
            let own = |node: usize| format!("{}", 10_u64.pow(node as u32 % 5));
            let up_to = |end: usize| (0..end).map(own).collect::<Vec<_>>().join(",");
            let join = |one: String, next: String| format!("{one},{next}");
            assert_eq!(w.scan(own(me), join)?, up_to(me + 1));
            let before = w.exclusive_scan(own(me), join)?;
            assert_eq!(before, (me > 0).then(|| up_to(me)));
            // The end of each node's part is where the next begins.
            let begins = w.exclusive_scan(me * me, |one, next| one + next)?;
            let ends = w.scan(me * me, |one, next| one + next)?;
            assert_eq!(begins.unwrap_or(0) + me * me, ends);
            Ok(())
        });
    }
}

/// Of any sizes; what the others pass is dropped.
pub fn scattered_values_come_from_any_node_to_each_its_own(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8, 13] {
        succeed(on, nodes, |w| {
            let (me, nodes) = (w.node().index(), w.nodes());
            let part = |from: usize, to: usize| vec![from as u32; to];
            for from in 0..nodes {
                let parts = match me == from {
                    true => (0..nodes).map(|to| part(from, to)).collect(),
                    false => vec![vec![77]; me % 2],
                };
                let mine = w.scatter(NodeId::at(from), parts)?;
                assert_eq!(mine, part(from, me));
            }
            Ok(())
        });
    }
}

/// Again and again, of any sizes, with references among them.
pub fn what_each_node_has_for_each_other_comes_there(on: &dyn Platform) {
    for nodes in [1, 2, 3, 5, 8] {
        let run = succeed(on, nodes, |w| {
            let (me, nodes) = (w.node().index(), w.nodes());
            for round in 0..4 {
                let cell: Ref<usize> = w.alloc(100 * round + me);
                let value = |from: usize, to: usize| vec![from * 10 + to; (from + to) % 3];
                let sends = (0..nodes).map(|to| (cell, value(me, to))).collect();
                let got: Vec<(Ref<usize>, Vec<usize>)> = w.all_to_all(sends)?;
                assert_eq!(got.len(), nodes);
                for (from, (cell, values)) in got.into_iter().enumerate() {
                    assert_eq!(cell.read(w), 100 * round + from);
                    assert_eq!(values, value(from, me));
                }
                w.reduce((), |(), ()| ())?;
            }
            Ok(())
        });
        let mut total = Counters::default();
        run.counters.iter().for_each(|node| total.add(node));
        let others = nodes as u64 - 1;
        let each_round = nodes as u64 * others + others;
        assert_eq!(total.sent(MessageKind::Collective), 4 * each_round);
    }
}

/// Writes before a collective are visible after it: to node 0 if values go up, to all nodes if they
/// go down, and those of all nodes to all if they go both ways.
pub fn what_was_written_before_a_collective_is_read_after_it(on: &dyn Platform) {
    for nodes in [2, 3, 5] {
        succeed(on, nodes, |w| {
            let me = w.node().index();
            let mine: Ref<u64> = w.alloc(0);
            let cells = w.all_gather(mine)?;
            for round in 1..=5 {
                *mine.get_mut(w) = round;
                w.work(w.random() % 20_000);
                let sum = w.all_reduce(round, |one, next| one + next)?;
                assert_eq!(sum, round * w.nodes() as u64);
                assert!(cells.iter().all(|cell| cell.read(w) == round), "on {me}");
                w.all_reduce((), |(), ()| ())?;
                *mine.get_mut(w) += 100;
                if w.reduce((), |(), ()| ())?.is_some() {
                    assert!(cells.iter().all(|cell| cell.read(w) == round + 100));
                }
                w.barrier()?;
                if me == 0 {
                    *mine.get_mut(w) += 1_000;
                }
                let told = w.broadcast(mine)?;
                assert_eq!(told.read(w), round + 1_100, "on {me}");
                w.all_gather(me)?;
                *mine.get_mut(w) = round + 2_000;
                let all = w.all_to_all(vec![mine; w.nodes()])?;
                assert!(all.iter().all(|cell| cell.read(w) == round + 2_000));
                w.scan((), |(), ()| ())?;
                let from = NodeId::at(w.nodes() - 1);
                *mine.get_mut(w) = round + 3_000;
                let told = w.scatter(from, vec![mine; w.nodes()])?;
                assert_eq!(told.read(w), round + 3_000, "on {me}");
                w.barrier()?;
            }
            Ok(())
        });
    }
}

/// An object that was allocated just before is named by a value, and by what that names.
pub fn references_in_values_are_known_where_they_arrive(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let me = w.node().index() as u64;
        let number = w.alloc(10 + me);
        let through = w.alloc(number);
        let all = w.all_gather((through, format!("{me}")))?;
        for (node, (through, name)) in (0..).zip(all) {
            assert_eq!(name, format!("{node}"));
            assert_eq!(through.read(w).read(w), 10 + node);
        }
        let array = w.alloc_array::<u64>(me as usize + 5);
        let first = w.broadcast(array)?;
        assert_eq!(first.len(), 5);
        Ok(())
    });
}

/// One way takes as many messages as there are other nodes, both ways twice as many, and nothing
/// else is sent. The ninth in a row that goes one way goes both.
pub fn collectives_take_one_message_for_each_other_node_and_way(on: &dyn Platform) {
    for nodes in [1, 2, 3, 8] {
        let others = nodes as u64 - 1;
        let all_of = |counters: &[Counters]| {
            let mut total = Counters::default();
            counters.iter().for_each(|node| total.add(node));
            assert_eq!(
                total.messages - total.sent(MessageKind::Collective),
                2 * others
            );
            total.sent(MessageKind::Collective)
        };
        let one_way = succeed(on, nodes, |w| {
            w.broadcast(1)?;
            w.reduce(1, |one, next| one + next)?;
            w.gather(1)?;
            w.scatter(NodeId(0), vec![1; w.nodes()])?;
            Ok(())
        });
        assert_eq!(all_of(&one_way.counters), 4 * others, "{nodes} nodes");
        let both_ways = succeed(on, nodes, |w| {
            w.all_reduce(1, |one, next| one + next)?;
            w.all_gather(1)?;
            w.scan(1, |one, next| one + next)?;
            w.exclusive_scan(1, |one, next| one + next)?;
            Ok(())
        });
        assert_eq!(all_of(&both_ways.counters), 8 * others, "{nodes} nodes");
        for kind in 0..3 {
            let in_a_row = succeed(on, nodes, |w| {
                for round in 0..27 {
                    match kind {
                        0 => assert_eq!(w.broadcast(round)?, round),
                        1 => drop(w.reduce(round, u32::max)?),
                        _ => drop(w.gather(round)?),
                    }
                }
                Ok(())
            });
            assert_eq!(all_of(&in_a_row.counters), 30 * others, "{nodes} nodes");
        }
    }
}

/// Node 1 calls something else than the others.
pub fn different_collectives_are_an_error_that_names_both_calls(on: &dyn Platform) {
    type Body = fn(&mut dhole::Worker<'_>) -> dhole::Result<()>;
    let broadcast: Body = |w| Ok(w.broadcast(1).map(drop)?);
    let reduce: Body = |w| Ok(w.reduce(1, i32::max).map(drop)?);
    let gather: Body = |w| Ok(w.gather(1).map(drop)?);
    let other_type: Body = |w| Ok(w.gather(1_u64).map(drop)?);
    let all_reduce: Body = |w| Ok(w.all_reduce(1, i32::max).map(drop)?);
    let scan: Body = |w| Ok(w.scan(1, i32::max).map(drop)?);
    let scatter: Body = |w| Ok(w.scatter(NodeId(0), vec![1; w.nodes()]).map(drop)?);
    let from_1: Body = |w| Ok(w.scatter(NodeId(1), vec![1; w.nodes()]).map(drop)?);
    let all_to_all: Body = |w| Ok(w.all_to_all(vec![1; w.nodes()]).map(drop)?);
    let barrier: Body = |w| Ok(w.barrier()?);
    let once: Body = |w| w.once(|_| Ok(1)).map(drop);
    let nothing: Body = |_| Ok(());
    let all = [
        ("broadcast", broadcast),
        ("reduce", reduce),
        ("gather", gather),
        ("gather", other_type),
        ("all_reduce", all_reduce),
        ("scan", scan),
        ("scatter from node 0", scatter),
        ("scatter from node 1", from_1),
        ("all_to_all", all_to_all),
        ("barrier", barrier),
        ("once", once),
        ("", nothing),
    ];
    for (one, (name, of_one)) in all.iter().enumerate() {
        for (other, (other_name, of_others)) in all.iter().enumerate() {
            let of_collectives = one < 9 || other < 9;
            // Half of all pairs, for each of them takes a run.
            if (one + other) % 2 == 0 || !of_collectives {
                continue;
            }
            let nodes = 2 + one % 2;
            let error = fail(on, nodes, |w| match w.node().index() {
                1 => of_one(w),
                _ => of_others(w),
            });
            let text = error.to_string();
            assert!(
                text.contains(THIS_FILE),
                "{name} where others {other_name}: {text}"
            );
            let says = |name: &str| name.is_empty() || text.contains(name);
            assert!(
                says(name) && says(other_name),
                "{name}, {other_name}: {text}"
            );
        }
    }
}

/// A node waits in a collective for one that waits for a lock of its own.
pub fn a_deadlock_of_a_collective_and_a_lock_is_told_with_its_places(on: &dyn Platform) {
    for both_ways in [false, true] {
        let error = fail(on, 3, |w| {
            let held = match w.node().index() {
                0 => Some(Lock::numbered(4).acquire(w)?),
                _ => None,
            };
            w.barrier()?;
            if w.node().index() == 2 {
                Lock::numbered(4).with(w, |_| Ok(()))?;
            }
            match both_ways {
                true => drop(w.all_reduce(1, i32::max)?),
                false => drop(w.reduce(1, i32::max)?),
            }
            held.map_or(Ok(()), |held| Ok(held.release(w)?))
        });
        let what = if both_ways { "all_reduce" } else { "reduce" };
        let waits = format!("node 0 waits in {what}");
        assert_says(&error, &[&waits, "node 2 waits for lock 4 at", THIS_FILE]);
    }
}

/// Two of these together are longer than a message may be.
fn half_too_long() -> String {
    "x".repeat(MOST_COLLECTIVE_BYTES / 2)
}

/// An impossible collective is an error that names the reason, and no node waits for ever.
pub fn a_collective_that_cannot_be_is_an_error_that_says_why(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        w.once(|w| Ok(w.all_reduce(1, i32::max)?)).map(drop)
    });
    assert_says(
        &error,
        &["all_reduce on node 0", "within the once at", THIS_FILE],
    );
    let most = format!("the most is {MOST_COLLECTIVE_BYTES}");
    let error = fail(on, 2, |w| {
        w.all_reduce(half_too_long(), |one, next| one + &next)?;
        Ok(())
    });
    assert_says(&error, &["all_reduce on node 0", &most, THIS_FILE]);
    let error = fail(on, 2, |w| {
        w.scatter(NodeId(2), vec![1, 2]).map(drop)?;
        Ok(())
    });
    assert_says(
        &error,
        &[
            "scatter on node",
            THIS_FILE,
            "there is no node 2: the run has 2 nodes",
        ],
    );
    let error = fail(on, 2, |w| {
        let parts = if w.node().index() == 1 { 3 } else { 0 };
        w.scatter(NodeId(1), vec![1; parts]).map(drop)?;
        Ok(())
    });
    assert_says(
        &error,
        &[
            "scatter from node 1 on node 1",
            THIS_FILE,
            "3 values for 2 nodes",
        ],
    );
    let error = fail(on, 3, |w| {
        w.all_to_all(vec![(); w.node().index()]).map(drop)?;
        Ok(())
    });
    assert_says(&error, &["all_to_all on node", THIS_FILE, " for 3 nodes"]);
    let error = fail(on, 2, |w| {
        let long = "x".repeat(MOST_COLLECTIVE_BYTES);
        w.scatter(NodeId(0), vec![long; 2]).map(drop)?;
        Ok(())
    });
    assert_says(&error, &["scatter from node 0 on node 0", &most, THIS_FILE]);
    let error = fail(on, 3, |w| {
        assert!(w.node().index() != 2, "so it is");
        w.all_gather(1).map(drop)?;
        Ok(())
    });
    assert_says(&error, &["node 2 panicked: so it is"]);
}

/// The operation of a reduction panics on one node, or the program drops an error: all end.
pub fn a_collective_that_does_not_come_to_its_end_ends_the_run(on: &dyn Platform) {
    let error = fail(on, 4, |w| {
        let adds = |one: u32, next: u32| {
            assert!(next < 3, "too many");
            one + next
        };
        w.all_reduce(w.node().index() as u32, adds).map(drop)?;
        Ok(())
    });
    assert_says(&error, &["panicked: too many"]);
    let most = format!("the most is {MOST_COLLECTIVE_BYTES}");
    let error = fail(on, 2, |w| {
        let longer = w.all_reduce(half_too_long(), |one, next| one + &next);
        let refused = matches!(longer, Err(CollectiveError::TooLong { .. }));
        match (w.node().index(), longer) {
            (0, _) => assert!(refused),
            (_, Err(CollectiveError::Sync(SyncError::Ended { .. }))) => {}
            (_, other) => panic!("{other:?}"),
        }
        match w.barrier() {
            Err(error) => Err(Error::from(error)),
            Ok(()) => panic!("the run is over"),
        }
    });
    assert_says(&error, &["all_reduce on node 0", &most]);
}

/// Programs that meet in collectives let processes of their nodes go on meanwhile.
pub fn processes_go_on_while_programs_are_in_collectives(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    fn add(_: &mut dhole::Worker<'_>, (a, b): (u64, u64)) -> dhole::Result<u64> {
        Ok(a + b)
    }
    succeed(on, 3, |w| {
        let me = w.node().index() as u64;
        let mut sum = 0;
        for round in 0..4 {
            if me == 1 {
                for node in [0, 2, 1] {
                    let on = dhole::on(dhole::NodeId(node));
                    let spawned = w.spawn(on, (round, 1), dhole::op!(add))?;
                    sum += spawned.join(w)?;
                }
            }
            sum = w.all_reduce(sum, u64::max)?;
            w.reduce(me, u64::max)?;
            sum = w.broadcast(sum)?;
        }
        assert_eq!(sum, 3 * (1 + 2 + 3 + 4));
        Ok(())
    });
    let error = fail(on, 2, |w| {
        fn meets(w: &mut dhole::Worker<'_>, (): ()) -> dhole::Result<()> {
            Ok(w.broadcast(())?)
        }
        if w.node().index() == 0 {
            w.spawn(dhole::on(dhole::NodeId(1)), (), dhole::op!(meets))?
                .join(w)?;
        }
        Ok(())
    });
    assert_says(&error, &["broadcast on node 1", "in a process"]);
}
