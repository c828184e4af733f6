//! Memory that is release consistent: nodes write one minipage together.

use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use dhole::memory::{self, SharedRows, sync, threads};
use dhole::sim::Settings;
use dhole::{CallSite, Config, MemoryConsistency, MessageKind, Run, RunError, Worker};

use crate::{cluster, config, domains, messages};

fn released(nodes: usize) -> Config {
    config(nodes).memory_consistency(MemoryConsistency::Release)
}

fn release(w: &mut Worker<'_>) -> dhole::Result<SharedRows<u64>> {
    w.once(|w| {
        let alloc = |w: &mut Worker<'_>| memory::alloc_contiguous::<u64>(w, 8, 64);
        Ok(memory::with_consistency(
            w,
            MemoryConsistency::Release,
            alloc,
        )??)
    })
}

/// Nodes 1 and 2 write every other number of a page together, and all nodes read all.
fn together(w: &mut Worker<'_>) -> dhole::Result<u64> {
    together_until(w, || ())
}

/// The same, where a node that has written calls `wrote` before it releases.
fn together_until(w: &mut Worker<'_>, wrote: impl Fn()) -> dhole::Result<u64> {
    let rows = release(w)?;
    let (me, cells) = (w.node().index(), |row: usize| rows.row(row).cells(w));
    if me > 0 {
        for row in 0..8 {
            let own = cells(row).iter().skip(me - 1).step_by(2);
            own.for_each(|cell| cell.store(me as u64, Relaxed));
        }
        wrote();
    }
    w.barrier()?;
    let all = (0..8).flat_map(|row| rows.row(row).cells(w));
    let sum = all.map(|cell| cell.load(Relaxed)).sum();
    w.barrier()?;
    Ok(sum)
}

/// The folder in which processes meet by files, of which dhole does not know.
pub const FOLDER: &str = "DHOLE_TEST_FOLDER";

/// Says something in the folder, if there is one, and waits until all nodes have said these things.
pub fn meet(says: &str, waits_for: &[&str]) {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    std::fs::write(folder.join(says), "").expect("a file");
    while !waits_for.iter().all(|said| folder.join(said).exists()) {
        std::thread::yield_now();
    }
}

/// Runs a program on processes that have such a folder; what node 0 says.
fn said_in_a_folder(nodes: usize, program: &str, transport: &str, domains: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let all = cluster::run_with(nodes, program, |_| {
        let transport = ("DHOLE_TRANSPORT", transport);
        let said = [transport, (domains::DOMAINS, domains), (FOLDER, path)];
        said.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    });
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{program}: {}", ended.all);
    }
    all[0].said.concat()
}

/// Says what a run came to.
pub fn counts() -> Result<(), RunError> {
    let run = config(1).run(|w| {
        let me = w.node().index();
        together_until(w, || meet(["", "one", "two"][me], &["one", "two"]))
    })?;
    println!("=> {}", words(&run));
    Ok(())
}

fn words(run: &Run<u64>) -> String {
    let total = run.report.total();
    let faults = (total.raw_read_faults, total.raw_write_faults);
    let flushes = total.raw_flushes;
    format!("{} {faults:?} {flushes} {:?}", run.value, messages(run))
}

#[test]
fn writers_of_one_page_take_the_same_messages_everywhere() {
    use MessageKind::{
        MemoryAck, MemoryData, MemoryDiff, MemoryDropped, MemoryForward, MemoryGrant,
        MemoryInvalidate, MemoryMerged, MemoryRequest,
    };
    // Both writers get the copy of node 0, which manages the page. One flushes: node 0 loses its
    // copy without a message, and the other writer sends what it wrote. The flush of that one
    // comes to nothing. Then it reads, and node 0 does, both from the first.
    let sent = [
        (MemoryRequest, 2 + 2 + 1),
        (MemoryForward, 2),
        (MemoryInvalidate, 1),
        (MemoryData, 2 + 2),
        (MemoryGrant, 1),
        (MemoryAck, 2 + 1 + 1),
        (MemoryDropped, 1),
        (MemoryDiff, 1),
        (MemoryMerged, 1),
    ];
    let expected = format!("{} (2, 2) 2 {sent:?}", 256 * 3);
    let simulated = (0..20).map(|seed| {
        let settings = Settings {
            seed,
            ..Settings::fixed_cost(3)
        };
        config(3).simulate(settings, together)
    });
    for run in simulated {
        assert_eq!(words(&run.expect("a run")), expected);
    }
    // Neither releases before both have written.
    let both = Barrier::new(2);
    let run = config(3).run(|w| together_until(w, || _ = both.wait()));
    assert_eq!(words(&run.expect("a run")), expected);
    for transport in ["shm", "tcp", "udp"] {
        let said = said_in_a_folder(3, "together", transport, "node");
        assert_eq!(said, expected, "{transport}");
    }
    // Nodes 0 and 1 are one domain here, and write beside node 2.
    let said = said_in_a_folder(3, "together", "shm", "2");
    assert!(said.starts_with("768 "), "{said}");
    let whole = domains::said(3, "together", "shm", "host").concat();
    assert_eq!(whole, "768 (0, 0) 0 []");
}

/// Nodes 1 and 3 write a number each of one page beside each other. Node 1 releases first. Then
/// nodes 0, 1 and 3 read both.
pub fn in_domains() -> Result<(), RunError> {
    let run = config(1).run(|w| {
        let rows = release(w)?;
        let (me, cells) = (w.node().index(), rows.row(0).cells(w));
        let (said, site) = (["", "one", "", "three"][me], CallSite::caller());
        if me == 3 {
            assert_eq!(cells[3].load(Relaxed), 0);
        }
        w.barrier()?;
        if me % 2 == 1 {
            sync::lock(me as u64, site)?;
            cells[me].store(me as u64, Relaxed);
            meet(said, &["one", "three"]);
            if me == 3 {
                meet(said, &["released"]);
            }
            sync::unlock(me as u64)?;
            meet("released", &[]);
        }
        w.barrier()?;
        let sum = match me {
            2 => 4,
            _ => cells[1].load(Relaxed) + cells[3].load(Relaxed),
        };
        w.barrier()?;
        Ok(w.reduce(sum, |one, other| one + other)?.unwrap_or(sum))
    })?;
    println!("=> {}", words(&run));
    Ok(())
}

#[test]
fn two_domains_of_two_nodes_write_one_page_together() {
    use MessageKind::{
        MemoryAck, MemoryData, MemoryDiff, MemoryDropped, MemoryGrant, MemoryInvalidate,
        MemoryInvalidated, MemoryRequest,
    };
    // Node 0 leads and manages. Node 3 reads by its leader, and so do both that write. Node 1
    // flushes by node 0: node 2 withdraws what it has lent, and sends the diff. The flush of node 3
    // comes to nothing. Then it reads, and node 1 may read only.
    let sent = [
        (MemoryRequest, 2 + 1 + 2 + 1 + 2 + 2),
        (MemoryInvalidate, 2 + 1),
        (MemoryInvalidated, 1 + 1),
        (MemoryData, 1 + 1),
        (MemoryGrant, 1 + 1 + 2 + 1),
        (MemoryAck, 2 + 1 + 2 + 2),
        (MemoryDropped, 1 + 2),
        (MemoryDiff, 1),
    ];
    // Nodes 1 and 3 ask their leaders for the flush, which ask the manager.
    let expected = format!("16 (2, 2) 4 {sent:?}");
    let said = said_in_a_folder(4, "in domains", "shm", "2");
    assert_eq!(said, expected);
}

#[test]
fn what_is_released_is_found_also_by_a_node_that_acquires_nothing() {
    let is_released = AtomicBool::new(false);
    let program = |w: &mut Worker<'_>| {
        let rows = release(w)?;
        let cell = &rows.row(0).cells(w)[3];
        // Both have a copy.
        let before = cell.load(Relaxed);
        w.barrier()?;
        if w.node().index() == 0 {
            cell.store(7, Relaxed);
            sync::release()?;
            is_released.store(true, SeqCst);
        }
        while !is_released.load(SeqCst) {
            w.pause()?;
        }
        let after = cell.load(Relaxed);
        w.barrier()?;
        Ok(w.all_reduce((before, after), |one, other| {
            (one.0 + other.0, one.1 + other.1)
        })?)
    };
    let simulated = config(2).simulate(Settings::fixed_cost(2), program);
    assert_eq!(simulated.expect("a run").value, (0, 14));
    is_released.store(false, SeqCst);
    assert_eq!(config(2).run(program).expect("a run").value, (0, 14));
}

#[test]
fn what_a_node_writes_alone_takes_no_message_more() {
    let program = |w: &mut Worker<'_>| {
        let rows = release(w)?;
        let own = rows.row(w.node().index());
        for turn in 0..10 {
            if w.node().index() == 1 {
                own.cells(w)[0].store(turn, Relaxed);
            }
            w.barrier()?;
        }
        Ok(())
    };
    let run = config(2).run(program).expect("a run");
    // It asks once, and flushes once. Node 0 loses its copy to that, so the rest is its own.
    use MessageKind::{MemoryAck, MemoryData, MemoryGrant, MemoryRequest};
    let expected = [
        (MemoryRequest, 2),
        (MemoryData, 1),
        (MemoryGrant, 1),
        (MemoryAck, 2),
    ];
    assert_eq!(messages(&run), expected);
    assert_eq!(run.report.total().raw_write_faults, 1);
    let json = run.report.json();
    assert!(
        json.contains("\"memory_consistency\":\"sequential\""),
        "{json}"
    );
    let run = released(2).run(program).expect("a run");
    let said = run.report.lines().to_string();
    let line = "raw memory: 2 domains, managers allocator, release consistency; 0 read faults, \
                1 write fault, 1 minipage fetched, 1 flush\n";
    assert!(said.contains(line), "{said}");
    let fields = "\"memory_consistency\":\"release\",\"memory_read_faults\":0,\
                  \"memory_write_faults\":1,\"minipages_fetched\":1,\"memory_flushes\":1,";
    let json = run.report.json();
    assert!(json.contains(fields), "{json}");
}

/// Each node adds to its own numbers of a page in turns with barriers, and to those of all under a
/// lock of threads and one of the engine.
fn turns(w: &mut Worker<'_>) -> dhole::Result<u64> {
    const TURNS: u64 = 12;
    let (me, nodes) = (w.node().index(), w.nodes());
    let rows = w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, 3, 16)?))?;
    let lock = w.once(|w| Ok(w.new_lock()))?;
    let [own, all, again] = [0, 1, 2].map(|row| rows.row(row).cells(w));
    let add = |cell: &AtomicU64| cell.store(cell.load(Relaxed) + 1, Relaxed);
    let site = CallSite::caller;
    for turn in 0..TURNS {
        add(&own[me]);
        sync::lock(1, site())?;
        add(&all[turn as usize % 4]);
        sync::unlock(1)?;
        lock.with(w, |_| {
            add(&again[turn as usize % 3]);
            Ok(())
        })?;
        if turn % 3 == 0 {
            w.barrier()?;
        } else {
            sync::barrier(7, nodes as u32, site())?;
        }
        for (node, cell) in own[..nodes].iter().enumerate() {
            assert_eq!(cell.load(Relaxed), turn + 1, "node {node} in turn {turn}");
        }
        w.barrier()?;
    }
    let sum = |cells: &[AtomicU64]| cells.iter().map(|cell| cell.load(Relaxed)).sum::<u64>();
    assert_eq!(sum(all), TURNS * nodes as u64);
    assert_eq!(sum(again), TURNS * nodes as u64);
    Ok(sum(own))
}

#[test]
fn what_was_released_is_seen_by_each_node_that_acquires() {
    for nodes in [2, 3, 4] {
        let (expected, mut merges) = (12 * nodes as u64, 0);
        let seeds = 0..12;
        let simulated = seeds.map(|seed| {
            let settings = Settings {
                seed,
                ..Settings::fixed_cost(nodes)
            };
            released(nodes).simulate(settings, turns)
        });
        for run in simulated.chain([released(nodes).run(turns)]) {
            let run = run.expect("a run");
            assert_eq!(run.value, expected, "{}", run.report.transport);
            let merged = messages(&run).into_iter();
            merges += merged
                .filter(|(kind, _)| *kind == MessageKind::MemoryDiff)
                .count();
        }
        assert!(merges > 0, "{nodes} nodes write together");
    }
}

/// The same of a run of processes, which is release consistent.
pub fn takes_turns() -> Result<(), RunError> {
    let run = released(1).run(turns)?;
    println!("=> {}", run.value);
    Ok(())
}

#[test]
fn processes_see_what_was_released() {
    for (nodes, transport, domains) in [
        (3, "shm", "node"),
        (3, "tcp", "node"),
        (3, "shm", "2"),
        (4, "shm", "2"),
        (4, "shm", "3"),
        (3, "shm", "host"),
    ] {
        let said = domains::said(nodes, "takes turns", transport, domains);
        let expected = (12 * nodes).to_string();
        assert_eq!(said, [expected], "{nodes} {transport} {domains}");
    }
}

#[test]
fn threads_of_a_node_flush_what_each_of_them_wrote() {
    let run = released(2).run(|w| {
        let rows = w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, 8, 8)?))?;
        let (me, parties) = (w.node().index(), 4 * w.nodes() as u32);
        let cells: Vec<_> = (0..8).map(|row| rows.row(row).cells(w)).collect();
        let cells = &cells;
        let body = move |thread: usize| -> Result<(), threads::ThreadError> {
            let own = 4 * me + thread;
            for turn in 0..50 {
                cells[own][thread].store(turn, Relaxed);
                sync::lock(5, CallSite::caller())?;
                let sum = &cells[0][7];
                sum.store(sum.load(Relaxed) + 1, Relaxed);
                sync::unlock(5)?;
                sync::barrier(6, parties, CallSite::caller())?;
                for (other, row) in cells.iter().enumerate() {
                    assert_eq!(row[other % 4].load(Relaxed), turn);
                }
                sync::barrier(6, parties, CallSite::caller())?;
            }
            Ok(())
        };
        threads::scope(w, |_, scope| {
            for thread in 1..4 {
                scope.spawn(move || body(thread).expect("turns"))?;
            }
            body(0)
        })??;
        w.barrier()?;
        Ok(cells[0][7].load(Relaxed))
    });
    assert_eq!(run.expect("a run").value, 50 * 8);
}

/// Nodes write their numbers of rows that they hold, and copy those of others.
fn hold_rows(w: &mut Worker<'_>) -> dhole::Result<u64> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2, 8)?))?;
    let (me, nodes) = (w.node().index(), w.nodes());
    for turn in 1..40 {
        rows.row(0).write(w, |row| row[me] = turn)?;
        rows.row(1).write(w, |row| row[me] = turn)?;
        w.barrier()?;
        let seen = rows.row(0).read(w, |row| row[..nodes].to_vec())?;
        assert!(seen.iter().all(|it| *it == turn), "{seen:?}");
        memory::hold(w, [rows.row(1)], [rows.row(0)], |[one], [two]| {
            assert!(one[..nodes].iter().all(|it| *it == turn), "{one:?}");
            two[4 + me] = one[(me + 1) % nodes];
        })?;
        w.barrier()?;
    }
    let sum = rows.row(0).read(w, |row| row[4..].iter().sum::<u64>());
    let sum = sum.map_err(dhole::Error::from)?;
    w.barrier()?;
    Ok(sum)
}

#[test]
fn rows_that_a_closure_holds_are_flushed_when_it_is_over() {
    for nodes in [2, 3] {
        let run = released(nodes).run(hold_rows).expect("a run");
        assert_eq!(run.value, 39 * nodes as u64);
    }
}

/// The same of a run of processes.
pub fn holds_rows() -> Result<(), RunError> {
    let run = released(1).run(hold_rows)?;
    println!("=> {}", run.value);
    Ok(())
}

#[test]
fn rows_that_nodes_of_domains_hold_are_whole() {
    for (nodes, domains) in [(3, "node"), (3, "2"), (4, "2")] {
        let said = domains::said(nodes, "holds rows", "shm", domains);
        let expected = (39 * nodes).to_string();
        assert_eq!(said, [expected], "{nodes} nodes, domains {domains}");
    }
}

/// Stores of two nodes that nothing orders may pass each other's loads; what a lock orders not.
#[test]
fn without_an_order_a_load_may_miss_a_store() {
    const ROUNDS: usize = 40;
    let mut missed = 0;
    for seed in 0..10 {
        let settings = Settings {
            seed,
            ..Settings::fixed_cost(2)
        };
        let run = released(2).simulate(settings, |w| {
            let rows = w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, 2, 8)?))?;
            let seen = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2, ROUNDS)?))?;
            let me = w.node().index();
            for round in 0..ROUNDS {
                let [x, y] = [0, 1].map(|row| &rows.row(row).cells(w)[0]);
                let (mine, other) = if me == 0 { (x, y) } else { (y, x) };
                mine.store(round as u64 + 1, Relaxed);
                let found = other.load(Relaxed);
                seen.row(me).cells(w)[round].store(found, Relaxed);
                // The other one asks to write meanwhile.
                w.work(10_000_000);
                w.barrier()?;
                assert_eq!(other.load(Relaxed), round as u64 + 1);
                w.barrier()?;
            }
            let of = |node: usize, round: usize| seen.row(node).cells(w)[round].load(Relaxed);
            let neither = |round: &usize| [0, 1].map(|node| of(node, *round)) == [*round as u64; 2];
            Ok((0..ROUNDS).filter(neither).count())
        });
        missed += run.expect("a run").value;
    }
    assert!(missed > 0, "both nodes may read what was there before");
}
