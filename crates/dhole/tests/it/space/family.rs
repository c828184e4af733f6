//! The three protocols side by side: what small programs cost under each, exactly, and what a
//! switch refuses. `docs/protocols.md` shows these numbers.

use dhole::Coherence::{Home, Lazy, Update};
use dhole::sim::Settings;
use dhole::{
    Coherence, Condvar, Config, Lock, MessageKind, Own, Result, Run, RunError, Share, Worker,
};

/// Runs a program under a protocol on simulated nodes, whose messages arrive in order.
fn run<R: Send>(
    nodes: usize,
    coherence: Coherence,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<Run<R>, RunError> {
    Config::nodes(nodes)
        .coherence(coherence)
        .simulate(Settings::fixed_cost(nodes), program)
}

/// Messages of the kinds that keep objects consistent: fetches, replies, pushes, drop-outs,
/// flushes, acknowledgements.
fn sent<R>(run: &Run<R>) -> [u64; 6] {
    let total = run.report.total();
    [
        MessageKind::Fetch,
        MessageKind::FetchReply,
        MessageKind::Update,
        MessageKind::DropOut,
        MessageKind::Flush,
        MessageKind::FlushAck,
    ]
    .map(|kind| total.sent(kind))
}

/// Messages of the protocol `directory`, under which the program runs.
fn of_directory<R>(program: impl FnOnce(Coherence) -> Run<R>) -> u64 {
    let directory = "directory".parse().expect("dhole brings it");
    program(directory).report.total().by_protocol["directory"].messages
}

const ROUNDS: u64 = 10;

/// Node 0 writes a row in each round, and the three others read it.
fn broadcast(coherence: Coherence) -> Run<f64> {
    let ran = run(4, coherence, |w| {
        let row = w.once(|w| Ok(w.alloc_rows::<f64>(1, 100)))?.row(0);
        let mut sum = 0.0;
        for round in 0..ROUNDS {
            if w.node().index() == 0 {
                row.get_mut(w).fill(round as f64);
            }
            w.barrier()?;
            sum += row.get(w).iter().sum::<f64>();
            w.barrier()?;
        }
        assert_eq!(sum, 4500.0, "on {}", w.node());
        Ok(sum)
    });
    ran.unwrap()
}

#[test]
fn a_broadcast_row_costs_one_message_a_reader_once_it_has_been_read() {
    assert_eq!(sent(&broadcast(Lazy)), [30, 30, 0, 0, 0, 0]);
    assert_eq!(sent(&broadcast(Update)), [3, 3, 27, 0, 0, 0]);
    assert_eq!(sent(&broadcast(Home)), [30, 30, 0, 0, 0, 0]);
    assert_eq!(of_directory(broadcast), 114);
    let total = broadcast(Update).report.total();
    assert_eq!((total.pushes, total.pushes_read), (27, 27));
}

/// Four nodes in turn add to a counter under a lock, ten times round.
fn migratory(coherence: Coherence) -> Run<u64> {
    let ran = run(4, coherence, |w| {
        let count = w.once(|w| Ok(w.alloc(0_u64)))?;
        for turn in 0..4 * ROUNDS as usize {
            if turn % w.nodes() == w.node().index() {
                Lock::numbered(0).with(w, |w| {
                    *count.get_mut(w) += 1;
                    Ok(())
                })?;
            }
            w.barrier()?;
        }
        Ok(count.read(w))
    });
    let ran = ran.unwrap();
    assert_eq!(ran.value, 40);
    ran
}

#[test]
fn a_migratory_counter_is_never_pushed_and_goes_home_every_time() {
    let lazy = sent(&migratory(Lazy));
    assert_eq!(
        sent(&migratory(Update)),
        lazy,
        "its next writer is not known"
    );
    let home = sent(&migratory(Home));
    assert_eq!(lazy, [42, 42, 0, 0, 0, 0]);
    assert_eq!(home, [33, 33, 0, 0, 30, 30], "three nodes are not home");
    assert_eq!(of_directory(migratory), 234);
}

/// Four nodes each write a number of their own in one object, and all read all of them.
fn false_sharing(coherence: Coherence) -> Run<u64> {
    let ran = run(4, coherence, |w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let all = w.once(|w| Ok(w.alloc([0_u64; 4])))?;
        for round in 1..=ROUNDS {
            // Under the other protocols two nodes must not write one object at once.
            if coherence == Home {
                all.get_mut(w)[me] = round;
            } else {
                for turn in 0..nodes {
                    if turn == me {
                        all.get_mut(w)[me] = round;
                    }
                    w.barrier()?;
                }
            }
            w.barrier()?;
            assert_eq!(*all.get(w), [round; 4], "on {}", w.node());
            w.barrier()?;
        }
        Ok(ROUNDS)
    });
    ran.unwrap()
}

#[test]
fn writers_of_one_object_need_no_turns_under_home() {
    let [lazy, update, home] = [Lazy, Update, Home].map(|under| sent(&false_sharing(under)));
    assert_eq!(home, [60, 60, 0, 0, 30, 30]);
    assert_eq!((lazy, update), ([60, 60, 0, 0, 0, 0], lazy));
    assert_eq!(of_directory(false_sharing), 324);
}

/// What keeps objects consistent, and what tells of outdated copies.
fn sent_and_told<R>(run: &Run<R>) -> ([u64; 6], [u64; 2]) {
    let total = run.report.total();
    let of = |kind| total.by_kind.get(&kind).map_or(0, |of| of.messages);
    let told = [MessageKind::Outdated, MessageKind::OutdatedAck];
    (sent(run), told.map(of))
}

/// Node 0 writes a table once; then the three others read it in each round, and in the middle node
/// 0 writes it again.
fn table(coherence: Coherence, again: bool) -> Run<u64> {
    let ran = run(4, coherence, |w| {
        let table = w.once(|w| Ok(w.alloc([1_u64; 100])))?;
        let mut sum = 0;
        for round in 0..ROUNDS {
            sum += table.get(w).iter().sum::<u64>();
            w.barrier()?;
            if again && round == ROUNDS / 2 && w.node().index() == 0 {
                table.get_mut(w)[0] += 1;
            }
            w.barrier()?;
        }
        Ok(sum)
    });
    ran.unwrap()
}

#[test]
fn what_is_only_read_is_fetched_three_times_and_then_kept() {
    for coherence in [Lazy, Update] {
        assert_eq!(sent(&table(coherence, false)), [3, 3, 0, 0, 0, 0]);
    }
    let of_home = table(Home, false);
    assert_eq!(sent_and_told(&of_home), ([9, 9, 0, 0, 0, 0], [0, 0]));
    let written = table(Home, true);
    assert_eq!(written.value, 1004);
    assert_eq!(sent_and_told(&written), ([18, 18, 0, 0, 0, 0], [3, 3]));
    let of_directory = [false, true].map(|again| of_directory(|under| table(under, again)));
    assert_eq!(of_directory, [6, 18]);
}

#[test]
fn what_one_node_alone_uses_is_flushed_and_fetched_no_more() {
    let count = |coherence| {
        let ran = run(3, coherence, |w| {
            let count = w.once(|w| Ok(w.alloc(0_u64)))?;
            for _ in 0..ROUNDS {
                if w.node().index() == 1 {
                    *count.get_mut(w) += 1;
                }
                w.barrier()?;
            }
            Ok(count.read(w))
        });
        let ran = ran.unwrap();
        assert_eq!(ran.value, ROUNDS);
        ran
    };
    assert_eq!(sent_and_told(&count(Home)), ([4, 4, 0, 0, 10, 10], [0, 0]));
    assert_eq!(of_directory(count), 10);
}

#[test]
fn what_nobody_else_has_had_stays_writable_at_home() {
    let ran = run(2, Home, |w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(8, 4)))?;
        for _ in 0..ROUNDS {
            if w.node().index() == 0 {
                rows.iter().for_each(|row| row.get_mut(w)[0] += 1);
            }
            w.barrier()?;
        }
        Ok(rows.row(7).get(w)[0])
    });
    let total = ran.unwrap().report.total();
    assert_eq!(
        total.write_faults, 8,
        "one for each row, and not one a round"
    );
}

#[test]
fn an_allocation_may_have_another_protocol_than_the_run() {
    let ran = run(2, Lazy, |w| {
        let pair = w.once(|w| {
            let mut w = w.under(Home);
            Ok((
                w.alloc([0_u32; 2]),
                w.alloc_range(2, |_| 0_u8),
                w.alloc_rows::<u16>(1, 2),
            ))
        })?;
        let me = w.node().index();
        for _ in 0..3 {
            pair.0.get_mut(w)[me] += 1;
            pair.2.row(0).get_mut(w)[me] += 1;
            w.barrier()?;
        }
        Ok((pair.0.read(w), pair.2.row(0).get(w).to_vec()))
    });
    let ran = ran.unwrap();
    assert_eq!(ran.value, ([3, 3], vec![3, 3]));
    let total = ran.report.total();
    assert_eq!((ran.report.protocol, sent(&ran)[4]), ("lazy", 3));
    assert_eq!(total.diffs, 6);
}

#[test]
fn objects_change_protocol_between_phases_and_the_last_writer_is_home() {
    let ran = run(3, Lazy, |w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(nodes, 3)))?;
        rows.row(me).get_mut(w)[me] = 1;
        w.switch(rows, Home)?;
        for row in 0..nodes {
            rows.row(row).get_mut(w)[me] += 1;
        }
        w.barrier()?;
        let before = w.counters().messages;
        assert_eq!(rows.row(me).get(w).iter().sum::<u64>(), 4);
        assert_eq!(
            w.counters().messages,
            before,
            "this node is home of its row"
        );
        w.switch(rows, Update)?;
        let sum = rows
            .iter()
            .map(|row| row.get(w).iter().sum::<u64>())
            .sum::<u64>();
        assert_eq!(sum, 12);
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn nodes_that_switch_to_different_protocols_are_all_told() {
    let ran = run(3, Lazy, |w| {
        let row = w.once(|w| Ok(w.alloc(0_u8)))?;
        let to = if w.node().index() == 2 { Home } else { Update };
        w.switch(row, to)
    });
    let Err(RunError::Failed { error, others, .. }) = ran else {
        panic!("a run that should fail")
    };
    let words = error.to_string();
    assert_eq!(others.len(), 2, "every node is told: {words}");
    assert!(
        words.contains("to update") && words.contains("to home"),
        "{words}"
    );
    assert!(words.contains("family.rs"), "{words}");
}

#[test]
fn only_what_was_allocated_together_is_switched() {
    let ran = run(1, Lazy, |w| {
        let (a, _, b) = (w.alloc(0_u8), w.alloc(0_u8), w.alloc(0_u8));
        w.switch([a, b], Home)
    });
    let error = ran.map(|run| run.value).unwrap_err().to_string();
    assert!(error.contains("2 ranges of objects"), "{error}");
}

/// A reader that has stopped reading is pushed to three times and no more.
#[test]
fn a_reader_that_reads_no_more_drops_out() {
    let ran = run(2, Update, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        number.read(w);
        w.barrier()?;
        for round in 1..=ROUNDS {
            if w.node().index() == 0 {
                *number.get_mut(w) = round;
            }
            w.barrier()?;
        }
        assert_eq!(number.read(w), ROUNDS);
        Ok(())
    });
    assert_eq!(sent(&ran.unwrap()), [2, 2, 3, 1, 0, 0]);
}

#[test]
fn a_notification_sends_nothing_home_before_the_lock_is_released() {
    let config = Config::nodes(2).coherence(Home);
    let run = config.run(|w| {
        let lock = Lock::numbered(0);
        let changed = Condvar::numbered(lock, 0);
        let pair = w.once(|w| Ok(w.alloc([0_u64; 2])))?;
        if w.node().index() == 1 {
            let held = lock.acquire(w)?;
            pair.get_mut(w)[0] = 1;
            changed.notify_all(w)?;
            pair.get_mut(w)[1] = 2;
            held.release(w)?;
        }
        w.barrier()?;
        Ok(pair.read(w))
    });
    let run = run.unwrap();
    assert_eq!(run.value, [1, 2]);
    let flushes = run.report.total().sent(MessageKind::Flush);
    assert_eq!(flushes, 1);
}

#[derive(Share)]
struct Owner {
    part: Own<u64>,
}

#[test]
fn what_came_along_with_its_owner_is_pushed_to_its_readers_as_well() {
    let config = Config::nodes(2).coherence(Update).one_sided(false);
    let run = config.run(|w| {
        let owner = w.once(|w| {
            let part = w.alloc_own(1_u64);
            Ok(w.alloc(Owner { part }))
        })?;
        let writer = w.node().index() == 1;
        if writer {
            owner.get(w); // its part comes along
        }
        let part = *owner.get(w).part;
        let mut seen = 0;
        for round in 0..6 {
            if writer {
                *part.get_mut(w) = round;
            }
            w.barrier()?;
            seen += part.read(w);
            w.barrier()?;
        }
        Ok(seen)
    });
    let run = run.unwrap();
    assert_eq!(run.value, 15);
    let [reader, writer] = &run.report.per_node[..] else {
        panic!()
    };
    assert_eq!(writer.came_along, 1);
    assert_eq!((reader.misses, reader.pushes_read), (1, 5));
}
