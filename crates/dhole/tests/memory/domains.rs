//! Processes of one machine whose raw memory is the same pages.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, MemoryError, sync};
use dhole::sim::Settings;
use dhole::{CallSite, Config, Domains, Error, Result, RunError, Worker};

use crate::cluster::{self, Ended};
use crate::{config, held, messages};

/// Which domains a started process says that its run is to have.
pub const DOMAINS: &str = "DHOLE_TEST_DOMAINS";

/// As the test says, or else none, so that other tests are of the protocol.
pub fn domains() -> Domains {
    let said = std::env::var(DOMAINS).ok();
    said.map_or(Domains::Node, |said| said.parse().expect("domains"))
}

/// A program on so many processes over a transport, in such domains.
pub fn run_in(nodes: usize, program: &str, transport: &str, domains: &str) -> Vec<Ended> {
    cluster::run_with(nodes, program, |_| {
        let said = [("DHOLE_TRANSPORT", transport), (DOMAINS, domains)];
        said.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    })
}

/// What node 0 says.
pub fn said(nodes: usize, program: &str, transport: &str, domains: &str) -> Vec<String> {
    let mut all = run_in(nodes, program, transport, domains);
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{program}: {}", ended.all);
    }
    all.swap_remove(0).said
}

/// Each node writes its row, and reads all of them, by every way to do so. Two runs: the second
/// finds zeros where the first has written.
pub fn counts() -> Result<(), RunError> {
    for _ in 0..2 {
        let run = config(1).run(|w| {
            let (me, nodes) = (w.node().index(), w.nodes());
            let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2 * nodes, 100)?))?;
            let own = memory::alloc::<u64>(w)?;
            let fresh = rows.row(me).cells(w)[99].load(Relaxed) + own.get(w).load(Relaxed);
            rows.row(me).cells(w)[99].store(me as u64 + 1, Relaxed);
            own.get(w).store(7, Relaxed);
            rows.row(me).push(w)?;
            own.push(w)?;
            rows.row(nodes + me).write(w, |row| row.fill(5))?;
            w.barrier()?;
            let mut sum = 0;
            for node in 0..nodes {
                rows.row(node).prefetch(w)?;
                sum += rows.row(node).cells(w)[99].load(Relaxed);
                sum += 100 * rows.row(nodes + node).read(w, |row| row[99])?;
            }
            w.barrier()?;
            let usage = memory::usage(w)?;
            Ok((fresh, sum, usage.faults, usage.domain_nodes))
        })?;
        let total = run.report.total();
        let faults = total.raw_read_faults + total.raw_write_faults;
        let sent: u64 = messages(&run).iter().map(|(_, sent)| sent).sum();
        let domains = run.report.domains;
        println!("=> {:?} {faults} {sent} {domains:?}", run.value);
    }
    Ok(())
}

#[test]
fn nodes_of_one_domain_neither_fault_nor_send_messages_about_memory() {
    for (nodes, transport, sum) in [(1, "shm", 501), (2, "shm", 1003), (4, "mixed", 2010)] {
        let expected = format!("(0, {sum}, \"none\", {nodes}) 0 0 Some(1)");
        let said = said(nodes, "counts", transport, "host");
        assert_eq!(said, [&*expected, &*expected], "{nodes} over {transport}");
    }
}

#[test]
fn between_two_domains_of_two_nodes_the_protocol_runs() {
    let said = said(4, "counts", "shm", "2");
    for line in said {
        assert!(line.starts_with("(0, 2010, \""), "{line}");
        assert!(!line.contains("none") && line.contains(", 2) "), "{line}");
        assert!(line.ends_with(" Some(2)"), "{line}");
    }
    // The last of three is a domain by itself.
    for line in self::said(3, "counts", "shm", "2") {
        assert!(line.starts_with("(0, 1506, \""), "{line}");
        assert!(line.ends_with(" Some(2)"), "{line}");
    }
}

#[test]
fn domains_of_several_nodes_are_refused_where_nodes_show_each_other_no_memory() {
    let asked = |most| config(2).domains(Domains::Most(most));
    let simulated = |most| asked(most).simulate(Settings::fixed_cost(2), |_| Ok(()));
    let words = "raw memory: domains of 2 nodes are asked for: the nodes are ";
    for run in [asked(2).run(|_| Ok(())), simulated(2)] {
        let said = run.map(|_| ()).expect_err("no domains").to_string();
        assert!(said.contains(words), "{said}");
        assert!(said.contains("threads of one process, or simulated; leave"));
    }
    for run in [asked(1).run(|_| Ok(())), simulated(1)] {
        run.expect("each node is a domain by itself");
    }
    for transport in ["tcp", "udp"] {
        for ended in run_in(2, "counts", transport, "2") {
            assert_eq!(ended.code, Some(1), "{transport}: {}", ended.all);
            assert!(ended.all.contains(words), "{transport}: {}", ended.all);
        }
        let alone = said(2, "counts", transport, "1");
        assert!(
            alone.iter().all(|line| line.ends_with(" Some(2)")),
            "{alone:?}"
        );
        // One node has nobody to be in a domain with.
        let one = said(1, "counts", transport, "2");
        assert!(one.iter().all(|line| line.ends_with(" Some(1)")), "{one:?}");
    }
}

#[test]
fn programs_of_two_domains_find_what_they_find_in_one() {
    let of = |program| said(4, program, "shm", "2");
    assert_eq!(of("increments"), cluster::succeeds(4, "increments"));
    assert_eq!(of("under a lock"), cluster::succeeds(4, "under a lock"));
    assert_eq!(of("swaps"), ["value ()"]);
    assert_eq!(of("moves"), [format!("value {}", held::SUM)]);
    let freed = of("frees");
    assert!(freed[0].contains("nothing is allocated there"), "{freed:?}");
}

/// A second run uses rows of the first, which lay in other views of the same bytes.
pub fn stale() -> Result<(), RunError> {
    let first = config(1).run(|w| w.once(|w| Ok(memory::alloc_rows::<u64>(w, 16, 32)?)))?;
    let old = first.value;
    let second = config(1).run(move |w| {
        let new = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 512)?))?;
        let fills = new.row(0).write(w, |row| row.fill(7));
        let is_gone = |error: MemoryError| matches!(error, MemoryError::Gone { .. });
        let read = old.row(3).read(w, |row| row[0]).is_err_and(is_gone);
        let written = old.row(3).write(w, |row| row.fill(1)).is_err_and(is_gone);
        let cells = old.row(3).try_cells(w).is_err_and(is_gone);
        Ok((fills.is_ok(), read, written, cells))
    })?;
    println!("=> {:?}", second.value);
    Ok(())
}

#[test]
fn rows_of_an_earlier_run_lead_nowhere_in_a_domain() {
    assert_eq!(
        said(2, "stale", "shm", "host"),
        ["(true, true, true, true)"]
    );
}

/// All nodes count in all rows, whose neighbours come with them. Each begins at another row.
pub fn groups() -> Result<(), RunError> {
    const ROWS: usize = 48;
    let run = config(1).run(|w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let rows = w.once(|w| Ok(memory::alloc_groups::<u64>(w, ROWS, 16)?))?;
        for turn in 1..=3 {
            for row in (0..ROWS).map(|row| (row + 16 * me) % ROWS) {
                rows.row(row).cells(w)[row % 16].fetch_add(1, Relaxed);
            }
            w.barrier()?;
            let all = (0..ROWS).map(|row| rows.row(row).cells(w)[row % 16].load(Relaxed));
            let is_whole = |found| found == (turn * nodes) as u64;
            let whole = all.filter(|found| is_whole(*found)).count();
            assert_eq!(whole, ROWS, "turn {turn} on node {me}");
            w.barrier()?;
        }
        Ok(())
    })?;
    let sent: u64 = messages(&run).iter().map(|(_, sent)| sent).sum();
    println!("=> {} {:?}", sent > 0, run.report.domains);
    Ok(())
}

/// In each turn one node writes each row by slices, and then all read all rows.
pub fn slices_of_groups() -> Result<(), RunError> {
    const ROWS: usize = 40;
    let run = config(1).run(|w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let rows = w.once(|w| Ok(memory::alloc_groups::<u64>(w, ROWS, 100)?))?;
        for turn in 0..40 {
            let whose = |row: usize| (row * 7 + turn as usize * 3 + row / 5) % (nodes + 1);
            for row in (0..ROWS).filter(|row| whose(*row) == me) {
                rows.row(row).write(w, |row| row.fill(turn))?;
            }
            w.barrier()?;
            for row in 0..ROWS {
                let found = rows.row(row).read(w, |row| row[99])?;
                assert!(
                    whose(row) == nodes || found == turn,
                    "row {row} in turn {turn}"
                );
            }
            w.barrier()?;
        }
        Ok(())
    })?;
    println!("=> {:?}", run.report.domains);
    Ok(())
}

#[test]
fn slices_of_groups_are_held_in_domains_of_several_nodes() {
    for (nodes, domains) in [(3, "2"), (4, "2"), (5, "3")] {
        let managers = ["allocator", "one"];
        for managers in managers {
            let also = [
                ("DHOLE_TRANSPORT", "shm"),
                (DOMAINS, domains),
                ("DHOLE_MANAGERS", managers),
            ];
            let also = also.map(|(name, value)| (name.to_owned(), value.to_owned()));
            for ended in cluster::run_with(nodes, "slices of groups", |_| also.to_vec()) {
                assert_eq!(ended.code, Some(0), "{nodes} {managers}: {}", ended.all);
            }
        }
    }
}

#[test]
fn rows_of_groups_are_whole_within_domains_and_between_them() {
    for (nodes, domains, expected) in [
        (2, "node", "true Some(2)"),
        (3, "2", "true Some(2)"),
        (4, "2", "true Some(2)"),
        (2, "host", "false Some(1)"),
    ] {
        let said = said(nodes, "groups", "shm", domains);
        assert_eq!(said, [expected], "{nodes} nodes, domains {domains}");
    }
}

/// Each node of a domain writes a number of one minipage, which goes to the other domain once.
pub fn shares() -> Result<(), RunError> {
    let run = config(1).run(|w| {
        let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 8)?.row(0)))?;
        let (me, cells) = (w.node().index(), row.cells(w));
        // Node 2 leads the other domain, to which the minipage goes.
        for turn in 0..4 {
            if turn == me {
                cells[me].store(me as u64 + 1, Relaxed);
            }
            w.barrier()?;
        }
        let sum: u64 = cells.iter().map(|cell| cell.load(Relaxed)).sum();
        w.barrier()?;
        Ok(sum)
    })?;
    let kinds = messages(&run);
    println!("=> {} {kinds:?}", run.value);
    Ok(())
}

#[test]
fn a_minipage_goes_once_from_one_domain_to_another() {
    let said = said(4, "shares", "shm", "2");
    assert!(said[0].starts_with("10 "), "{said:?}");
    // To node 2 to write, and back to be read. It stays writable for both nodes of its domain.
    assert!(said[0].contains("(MemoryData, 2)"), "{said:?}");
}

#[test]
fn nodes_that_cannot_map_each_other_s_memory_or_must_not_have_their_own() {
    for (transport, domains) in [("tcp", "host"), ("shm", "node"), ("shm", "1")] {
        for line in said(2, "counts", transport, domains) {
            assert!(line.starts_with("(0, 1003, \""), "{line}");
            assert!(line.ends_with(" Some(2)"), "{line}");
            let is_silent = line.contains(" 0 0 Some") || line.contains("none");
            assert!(!is_silent, "{transport} {domains}: {line}");
        }
    }
}

#[test]
fn threads_of_one_process_are_no_domain() {
    let run = config(2)
        .domains(Domains::Host)
        .run(|w| Ok(memory::usage(w)?));
    let run = run.expect("a run");
    assert_eq!((run.value.domain_nodes, run.report.domains), (1, Some(2)));
    assert_ne!(run.value.faults, "none");
    let run = Config::nodes(2).run(|_| Ok(())).expect("a run");
    assert_eq!(run.report.domains, None);
}

#[test]
fn what_threads_and_locks_promise_holds_in_a_domain() {
    let increments = said(2, "increments", "shm", "host");
    assert_eq!(increments, cluster::succeeds(2, "increments"));
    let locked = said(3, "under a lock", "shm", "host");
    assert_eq!(locked, cluster::succeeds(3, "under a lock"));
    let swaps = said(4, "swaps", "shm", "host");
    assert_eq!(swaps, ["value ()"]);
}

/// As on other machines: nobody finds a row in the middle of a change.
pub fn moves(w: &mut Worker<'_>) -> Result<u64> {
    held::moves(w)
}

#[test]
fn rows_that_are_held_are_whole_in_a_domain() {
    for nodes in [2, 4] {
        let said = said(nodes, "moves", "shm", "host");
        assert_eq!(said, [format!("value {}", held::SUM)], "{nodes} nodes");
    }
}

/// A row that one node uses as cells no node of the domain has as a slice, which others could
/// change.
pub fn mixes(w: &mut Worker<'_>) -> Result<String> {
    let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 8)?.row(0)))?;
    if w.node().index() == 1 {
        row.cells(w)[0].store(1, Relaxed);
    }
    w.barrier()?;
    let refused = row.read(w, |row| row[0]).expect_err("it is used as cells");
    assert!(matches!(refused, MemoryError::Used { .. }), "{refused}");
    // Nothing is waited for while a row is held.
    let other = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 8)?.row(0)))?;
    let site = CallSite::caller();
    let waits = other.write(w, |_| sync::lock(1, site).map_err(Error::program));
    Ok(format!("{refused}; {}", waits?.unwrap_err()))
}

#[test]
fn cells_and_slices_do_not_meet_in_a_domain() {
    let said = said(2, "mixes", "shm", "host");
    assert!(said[0].contains("as cells and as slices"), "{said:?}");
    assert!(said[0].contains("within a closure that holds"), "{said:?}");
}

/// Frees a row of another node; a second time there is none.
pub fn frees(w: &mut Worker<'_>) -> Result<String> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2, 8)?))?;
    rows.row(1).cells(w)[0].store(1, Relaxed);
    w.barrier()?;
    if w.node().index() == 1 {
        rows.row(0).free(w)?;
    }
    w.barrier()?;
    let again = rows.row(0).free(w).expect_err("it was freed");
    w.barrier()?;
    Ok(format!(
        "{again}; {}",
        rows.row(1).cells(w)[0].load(Relaxed)
    ))
}

#[test]
fn a_row_is_freed_once_for_all_nodes_of_a_domain() {
    let said = said(2, "frees", "shm", "host");
    assert!(said[0].contains("nothing is allocated there"), "{said:?}");
    assert!(said[0].ends_with("; 1\""), "{said:?}");
}

/// The last node frees a row of node 0's, and all hear where. Then all free one at once, in turns.
pub fn frees_by_members(w: &mut Worker<'_>) -> Result<String> {
    let (me, last) = (w.node().index(), w.nodes() - 1);
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 20, 8)?))?;
    if me == last {
        rows.row(0).free(w)?;
    }
    w.barrier()?;
    let words = rows.row(0).free(w).expect_err("it was freed").to_string();
    let freed = format!("freed by node {last} at crates/dhole/tests/memory/domains.rs:");
    let mut is_named = words.contains(&freed);
    let mut counts = Vec::new();
    for row in 1..20 {
        w.barrier()?;
        let freed = rows.row(row).free(w);
        if let Err(cause) = &freed {
            // Another node has freed it at the same time, and is named with its line.
            let words = cause.to_string();
            let by_other = !words.contains(&format!("freed by node {me} at"));
            let is_told = words.contains("allocated at ") && words.contains(", freed by node ");
            assert!(by_other && is_told, "{words}");
            is_named &= words.contains("domains.rs:");
        }
        counts.extend(w.reduce(u64::from(freed.is_ok()), |one, other| one + other)?);
    }
    let named = w.reduce(u64::from(is_named), |one, other| one + other)?;
    let once = counts.iter().filter(|count| **count == 1).count();
    Ok(format!("{named:?} {once}: {words}"))
}

#[test]
fn a_free_by_a_node_of_a_domain_is_one_node_s_and_names_it() {
    for (nodes, domains) in [(4, "2"), (3, "host"), (3, "node")] {
        let said = said(nodes, "frees by members", "shm", domains);
        let expected = format!("value \"Some({nodes}) 19: ");
        assert!(said[0].starts_with(&expected), "{domains}: {said:?}");
    }
}

/// A node holds a row while another one is lost, and the leader comes to the end of the run.
pub fn holds_through_a_loss(w: &mut Worker<'_>) -> Result<()> {
    let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 64)?.row(0)))?;
    w.barrier()?;
    crate::killed::dies_soon(w);
    if w.node().index() == 1 {
        let is_whole = row.write(w, |row| {
            row.fill(7);
            // The others have ended long before.
            (0..200).all(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                std::hint::black_box(&*row)
                    .iter()
                    .all(|number| *number == 7)
            })
        })?;
        println!("=> whole {is_whole}");
    }
    loop {
        w.pause()?;
    }
}

#[test]
fn a_row_that_is_held_stays_when_a_node_is_lost() {
    let also = |_| {
        let said = [
            ("DHOLE_TRANSPORT", "shm".to_owned()),
            (DOMAINS, "host".to_owned()),
            (crate::killed::VICTIM, "2 2000".to_owned()),
        ];
        said.map(|(name, value)| (name.to_owned(), value)).to_vec()
    };
    let ended = cluster::run_with(3, "holds through a loss", also);
    assert_eq!(ended[0].code, Some(1), "{}", ended[0].all);
    let said = &ended[1].said;
    assert!(said.iter().any(|line| line == "whole true"), "{said:?}");
}

/// Waits for a store that never comes.
pub fn spins(w: &mut Worker<'_>) -> Result<()> {
    let cell = w.once(|w| Ok(memory::alloc::<u64>(w)?))?;
    w.barrier()?;
    crate::killed::dies_soon(w);
    while cell.get(w).load(Relaxed) == 0 {
        w.pause()?;
    }
    Ok(())
}

#[test]
fn a_process_of_a_domain_that_is_killed_ends_the_run_of_the_others() {
    for (program, domains, victim) in [
        ("spins", "host", 0),
        ("spins", "host", 1),
        ("killed at locks", "host", 0),
        ("spins", "2", 0),
        ("spins", "2", 1),
    ] {
        let also = |_| {
            let killed = (crate::killed::VICTIM, format!("{victim} 2000"));
            let said = [("DHOLE_TRANSPORT", "shm"), (DOMAINS, domains)];
            let said = said.map(|(name, value)| (name, value.to_owned()));
            let all = said.into_iter().chain([killed]);
            all.map(|(name, value)| (name.to_owned(), value)).collect()
        };
        for (node, ended) in cluster::run_with(3, program, also).iter().enumerate() {
            if node == victim {
                assert_eq!(ended.code, None);
                continue;
            }
            // Where the protocol runs, the loss may come within an access, which says so.
            let says = ended.all.contains("error: reading memory at ");
            let in_access = domains != "host" && ended.code == Some(70) && says;
            let is_told = ended.code == Some(1) || in_access;
            assert!(is_told, "{program}: {:?} {}", ended.code, ended.all);
            let lost = format!("node {victim}");
            assert!(ended.all.contains(&lost), "{program}: {}", ended.all);
        }
    }
    let left = std::fs::read_dir("/dev/shm")
        .expect("it is there")
        .flatten();
    let left = left.filter(|file| file.file_name().to_string_lossy().contains("dhole"));
    assert_eq!(left.count(), 0);
}
