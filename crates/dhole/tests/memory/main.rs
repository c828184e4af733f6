//! Raw memory, from a program's side.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod attempts;
#[path = "../processes/cluster.rs"]
mod cluster;
mod coarse;
mod domain_locks;
mod domains;
mod ending;
mod globals;
mod groups;
mod held;
mod isolate;
mod killed;
mod litmus;
mod managers;
mod nobody_comes;
mod programs;
mod release;
mod reuse;
mod rounds;
mod starting;
mod sync;
mod threads;
mod unlocked;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dhole::memory::{self, MemoryError, MemorySettings};
use dhole::sim::Settings;
use dhole::{Config, MessageKind, Run, Worker};

/// What a started process does; nothing where the tests themselves run.
#[test]
fn as_one_node() {
    if let Ok(name) = std::env::var(cluster::PROGRAM) {
        std::process::exit(programs::run(&name));
    }
}

fn config(nodes: usize) -> Config {
    let config = Config::nodes(nodes).memory(MemorySettings::default());
    config.domains(domains::domains())
}

/// A program on threads, and in the simulator with this seed.
fn everywhere<R: Send>(
    nodes: usize,
    seed: u64,
    program: impl for<'id> Fn(&mut Worker<'id>) -> dhole::Result<R> + Sync,
) -> [Run<R>; 2] {
    let simulated = Settings {
        seed,
        ..Settings::fixed_cost(nodes)
    };
    let run = config(nodes).run(&program).expect("a run on threads");
    let simulated = config(nodes).simulate(simulated, &program);
    let simulated = simulated.expect("a simulated run");
    // None of the programs waits for so long there that it looks why.
    let total = simulated.report.total();
    assert_eq!(total.sent(MessageKind::Probe), 0);
    [run, simulated]
}

/// Messages about minipages.
fn messages<R>(run: &Run<R>) -> Vec<(MessageKind, u64)> {
    let kinds = run.report.total().by_kind;
    let of = |kind: &MessageKind| kind.name().starts_with("memory");
    let sent = kinds.iter().filter(|(kind, _)| of(kind));
    sent.map(|(kind, sent)| (*kind, sent.messages)).collect()
}

#[test]
fn every_increment_of_every_node_counts() {
    const EACH: u64 = 300;
    for nodes in [1, 2, 4] {
        let runs = everywhere(nodes, 7, |w| {
            let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?;
            for _ in 0..EACH {
                cell.get(w).fetch_add(1, Relaxed);
            }
            w.barrier()?;
            Ok(cell.get(w).load(Relaxed))
        });
        for run in runs {
            assert_eq!(run.value, EACH * nodes as u64, "{}", run.report.transport);
        }
    }
}

#[test]
fn nodes_that_write_different_rows_of_one_page_do_not_meet() {
    const ROWS: usize = 40;
    let runs = everywhere(3, 1, |w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, ROWS, 25)?))?;
        let (node, nodes) = (w.node().index(), w.nodes());
        for round in 0..20_u32 {
            for row in (node..ROWS).step_by(nodes) {
                let cells = rows.row(row).cells(w);
                for (place, cell) in cells.iter().enumerate() {
                    let before = cell.swap((round + 1) * 1000 + place as u32, Relaxed);
                    let expected = if round == 0 {
                        0
                    } else {
                        round * 1000 + place as u32
                    };
                    assert_eq!(before, expected, "row {row} in round {round}");
                }
            }
        }
        w.barrier()?;
        let all = (0..ROWS).flat_map(|row| rows.row(row).cells(w)).enumerate();
        let right = |(place, cell): (usize, &std::sync::atomic::AtomicU32)| {
            cell.load(Relaxed) == 20_000 + (place % 25) as u32
        };
        let (all_right, usage) = (all.into_iter().all(right), memory::usage(w)?);
        w.barrier()?;
        Ok((all_right, usage.views, usage.bytes))
    });
    for run in runs {
        assert_eq!(run.value, (true, 32, 8192));
        // 26 of the rows are another node's than node 0's: each is asked for once to be written.
        // All nodes read all rows in the end: two of three lack each.
        let faults = run.report.total();
        assert_eq!(faults.raw_write_faults, 26);
        assert_eq!(faults.raw_read_faults, 2 * ROWS as u64);
    }
}

#[test]
fn stores_and_loads_of_two_nodes_are_in_one_order() {
    const ROUNDS: usize = 400;
    let runs = everywhere(2, 3, |w| {
        let (x, y, seen) = w.once(|w| {
            let seen = memory::alloc_rows::<u32>(w, 2, ROUNDS)?;
            Ok((memory::alloc::<u32>(w)?, memory::alloc::<u32>(w)?, seen))
        })?;
        let node = w.node().index();
        let (mine, other) = if node == 0 { (x, y) } else { (y, x) };
        for round in 0..ROUNDS as u32 {
            mine.get(w).store(round + 1, Relaxed);
            let found = other.get(w).load(Relaxed);
            seen.row(node).cells(w)[round as usize].store(found, Relaxed);
            w.barrier()?;
        }
        // Each node has stored before it loaded, so one of the two has seen the other's.
        let of = |node: usize, round: usize| seen.row(node).cells(w)[round].load(Relaxed);
        let neither = |round: &usize| {
            let before = |node| of(node, *round) <= *round as u32;
            before(0) && before(1)
        };
        let count = (0..ROUNDS).filter(neither).count();
        w.barrier()?;
        Ok(count)
    });
    for run in runs {
        assert_eq!(run.value, 0, "{}", run.report.transport);
    }
}

#[test]
fn a_row_of_several_pages_comes_as_one() {
    let runs = everywhere(2, 0, |w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 3, 1300)?))?;
        if w.node().index() == 1 {
            let cells = rows.row(1).cells(w);
            for (place, cell) in cells.iter().enumerate() {
                cell.store(place as u64, Relaxed);
            }
        }
        w.barrier()?;
        let sum = rows.row(1).cells(w).iter().map(|cell| cell.load(Relaxed));
        let sum = sum.sum::<u64>();
        w.barrier()?;
        Ok(sum)
    });
    for run in runs {
        assert_eq!(run.value, 1300 * 1299 / 2);
        let expected = [
            (MessageKind::MemoryRequest, 1),
            (MessageKind::MemoryForward, 1),
            (MessageKind::MemoryData, 2),
            (MessageKind::MemoryAck, 1),
        ];
        assert_eq!(messages(&run), expected);
        assert_eq!(run.report.total().raw_read_faults, 1);
        assert_eq!(run.report.total().raw_write_faults, 1);
    }
}

#[test]
fn what_is_pushed_or_fetched_ahead_is_there() {
    let runs = everywhere(3, 0, |w| {
        let (bound, rows) = w.once(|w| {
            Ok((
                memory::alloc::<u64>(w)?,
                memory::alloc_rows::<u64>(w, 8, 16)?,
            ))
        })?;
        if w.node().index() == 1 {
            bound.get(w).store(5, Relaxed);
            bound.push(w)?;
        }
        w.barrier()?;
        if w.node().index() == 2 {
            for row in 0..8 {
                rows.row(row).prefetch(w)?;
            }
        }
        w.barrier()?;
        let before = w.counters().raw_read_faults;
        let found = bound.get(w).load(SeqCst);
        let sum = match w.node().index() {
            2 => (0..8)
                .map(|row| rows.row(row).cells(w)[0].load(Relaxed))
                .sum(),
            _ => 0,
        };
        let faults = w.counters().raw_read_faults - before;
        w.barrier()?;
        Ok((found + sum, w.reduce(faults, |a, b| a + b)?))
    });
    for run in runs {
        assert_eq!(run.value, (5, Some(0)), "{}", run.report.transport);
    }
}

#[test]
fn a_simulated_run_is_repeated_exactly() {
    let program = |w: &mut Worker<'_>| {
        let cells = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 4, 8)?))?;
        let mut order = Vec::new();
        for _ in 0..50 {
            let row = w.random() as usize % 4;
            order.push(cells.row(row).cells(w)[0].fetch_add(1, SeqCst));
            w.work(w.random() % 5000);
        }
        w.barrier()?;
        Ok(order)
    };
    let run = |seed| {
        let settings = Settings {
            seed,
            ..Settings::fixed_cost(4)
        };
        let run = config(4).simulate(settings, program).expect("a run");
        (run.value, run.report.elapsed, run.report.per_node)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn what_cannot_be_had_is_an_error_in_words() {
    let without = Config::nodes(1).run(|w| Ok(memory::alloc::<u8>(w)?.get(w).load(Relaxed)));
    let words = without.map(|run| run.value).unwrap_err().to_string();
    assert!(
        words.contains("this run has none (Config::memory)"),
        "{words}"
    );
    for (views, bytes) in [(0, 1 << 20), (257, 1 << 20), (1, 4096), (1, 1 << 40)] {
        let settings = MemorySettings { views, bytes };
        let run = Config::nodes(2).memory(settings).run(|_| Ok(()));
        let words = run.map(|run| run.value).unwrap_err().to_string();
        assert!(words.contains("raw memory"), "{words}");
    }
    for (config, said) in [
        (
            config(2).survive(true),
            "survive `on` (Config::survive) contradicts memory `raw memory` (Config::memory)",
        ),
        (
            config(2).detector(dhole::Detector::Vm),
            "detector `vm` (Config::detector) contradicts memory `raw memory`",
        ),
    ] {
        let run = config.run(|_| Ok(())).map(|run| run.value);
        let words = run.unwrap_err().to_string();
        assert!(words.contains(said), "{words}");
    }
    let small = MemorySettings {
        views: 2,
        bytes: 16 << 10,
    };
    let run = Config::nodes(2).memory(small).run(|w| {
        let refused = [
            memory::alloc_rows::<u8>(w, 0, 1).unwrap_err(),
            memory::alloc_rows::<u8>(w, 1, 0).unwrap_err(),
            memory::alloc_rows::<u64>(w, 1, 1 << 40).unwrap_err(),
            memory::alloc_rows::<u64>(w, usize::MAX, 8).unwrap_err(),
            memory::alloc_rows::<u64>(w, 5, 8).unwrap_err(),
        ];
        let all = refused
            .iter()
            .all(|it| matches!(it, MemoryError::Refused(_)));
        assert!(all, "{refused:?}");
        Ok(memory::alloc_rows::<u64>(w, 4, 8)?.count())
    });
    assert_eq!(run.expect("what fits fits").value, 4);
}

#[test]
fn references_of_another_run_are_refused() {
    let program = |w: &mut Worker<'_>| Ok(memory::alloc_rows::<u64>(w, 100, 512)?);
    let rows = config(1).run(program).expect("a run").value;
    let small = MemorySettings {
        views: 1,
        bytes: 64 << 10,
    };
    let run = Config::nodes(1).memory(small).run(|w| {
        // It is within the memory, though nobody has allocated it; the last is not.
        assert!(rows.row(0).try_cells(w).is_ok());
        Ok(rows.row(99).try_cells(w).map(<[_]>::len))
    });
    let refused = run.expect("a run").value;
    assert!(
        matches!(refused, Err(MemoryError::Foreign { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_reference_to_numbers_of_another_size_is_refused() {
    let run = config(1).run(|w| {
        let rows = memory::alloc_rows::<u32>(w, 4, 16)?;
        rows.row(1).cells(w)[0].store(1, Relaxed);
        // SAFETY: references of all numbers are an address and a length, of which all values are
        // tested when they are used.
        let [forged, other] = [1, 2].map(|row| unsafe {
            std::mem::transmute::<memory::SharedRow<u32>, memory::SharedRow<u64>>(rows.row(row))
        });
        let refused = forged.try_cells(w).map(<[_]>::len);
        assert!(
            matches!(
                refused,
                Err(MemoryError::Mixed {
                    size: 8,
                    used: 4,
                    ..
                })
            ),
            "{refused:?}"
        );
        // Where this node has used no number yet the first that it uses is right.
        assert!(other.try_cells(w).is_ok() && rows.row(2).try_cells(w).is_err());
        Ok(rows.row(1).cells(w)[0].load(Relaxed))
    });
    assert_eq!(run.expect("a run").value, 1);
}

#[test]
fn what_is_freed_is_freed_once() {
    let runs = everywhere(3, 0, |w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 3, 16)?))?;
        let node = w.node().index();
        rows.row(node).cells(w)[0].store(1, Relaxed);
        let before = rows.row((node + 1) % 3).cells(w)[0].load(Relaxed);
        w.barrier()?;
        // Another node's, which it has written, and this one has read.
        let mine = rows.row((node + 1) % 3);
        mine.free(w)?;
        w.barrier()?;
        let again = [rows.row(node), mine].map(|row| row.free(w));
        let gone = again
            .iter()
            .all(|it| matches!(it, Err(MemoryError::Gone { .. })));
        w.barrier()?;
        Ok((before <= 1, gone))
    });
    for run in runs {
        assert_eq!(run.value, (true, true));
    }
}

#[test]
fn rows_of_one_chunk_come_together() {
    let runs = everywhere(2, 0, |w| {
        let rows = w.once(|w| Ok(memory::alloc_chunks::<u32>(w, 10, 16, 4)?))?;
        if w.node().index() == 0 {
            for row in 0..10 {
                rows.row(row).cells(w)[15].store(row as u32 + 1, Relaxed);
            }
        }
        w.barrier()?;
        let found = (0..10).map(|row| rows.row(row).cells(w)[15].load(Relaxed));
        let found: Vec<u32> = found.collect();
        w.barrier()?;
        Ok(found)
    });
    for run in runs {
        assert_eq!(run.value, (1..=10).collect::<Vec<u32>>());
        assert_eq!(run.report.total().raw_read_faults, 3);
    }
    let run = config(1).run(|w| {
        let none = memory::alloc_chunks::<u8>(w, 1, 1, 0).unwrap_err();
        assert!(matches!(none, MemoryError::Refused(_)), "{none}");
        Ok(())
    });
    run.expect("a run");
}
