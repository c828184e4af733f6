//! A process is killed while it manages, owns or acquires memory: the others end, and say why.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dhole::memory::{self, sync, threads::ThreadError};
use dhole::{CallSite, MemoryConsistency, Result, Worker};
use rustix::process::{Pid, Signal, kill_process};

use crate::{cluster, domains, release};

/// Which node is to die, and after how many microseconds.
pub const VICTIM: &str = "DHOLE_TEST_VICTIM";

/// The process is killed after this time, wherever it is then.
pub fn dies_soon(w: &Worker<'_>) {
    let said = std::env::var(VICTIM).expect("a victim");
    let (victim, after) = said.split_once(' ').expect("a node and a time");
    if w.node().index().to_string() != victim {
        return;
    }
    let after = Duration::from_micros(after.parse().expect("a time"));
    std::thread::spawn(move || {
        // When it dies is the test's own, and means nothing.
        std::thread::sleep(after);
        let own = rustix::process::getpid();
        let _killed = kill_process(own, Signal::KILL);
    });
}

/// Nodes take a number away from each other for ever. Node 0 manages it.
pub fn in_memory(w: &mut Worker<'_>) -> Result<()> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 4, 8)?))?;
    w.barrier()?;
    // None is in the runtime any more.
    let begun = &rows.row(0).cells(w)[7];
    begun.fetch_add(1, Relaxed);
    // By the only copy: one to read would stay as it is when the others have died.
    while begun.fetch_add(0, Relaxed) < w.nodes() as u64 {
        std::hint::spin_loop();
    }
    dies_soon(w);
    let cells: Vec<_> = (0..4).map(|row| &rows.row(row).cells(w)[0]).collect();
    loop {
        for _ in 0..10_000 {
            cells.iter().for_each(|cell| _ = cell.fetch_add(1, Relaxed));
        }
        // A node that has all of them when the others die faults no more.
        w.pause()?;
    }
}

/// Nodes take a lock away from each other for ever, and wait at a barrier.
pub fn at_locks(w: &mut Worker<'_>) -> Result<()> {
    w.barrier()?;
    dies_soon(w);
    let site = CallSite::caller();
    let forever = || -> std::result::Result<(), ThreadError> {
        loop {
            for key in 0..4 {
                sync::lock(key, site)?;
                sync::unlock(key)?;
            }
            sync::barrier(5, 3, site)?;
        }
    };
    Ok(forever()?)
}

/// Nodes 1 and 2 write a row together, which node 0 manages. Node 2 holds it until node 1 flushes,
/// and kills the victim then: before the closure is over nobody has its diff.
pub fn in_a_flush(w: &mut Worker<'_>) -> Result<()> {
    let row = w.once(|w| {
        let alloc = |w: &mut Worker<'_>| memory::alloc_rows::<u64>(w, 1, 512);
        Ok(memory::with_consistency(w, MemoryConsistency::Release, alloc)??.row(0))
    })?;
    let me = w.node().index();
    assert_eq!(row.read(w, |row| row[7])?, 0);
    let process = format!("{me} is {}", std::process::id());
    release::meet(&process, &[]);
    w.barrier()?;
    if me == 1 {
        row.write(w, |row| row[1] = 1)?;
        release::meet("written", &["held"]);
        release::meet("flushes", &[]);
    } else if me == 2 {
        row.write(w, |row| {
            row[2] = 2;
            release::meet("held", &["written", "flushes"]);
            kill(&std::env::var(VICTIM).expect("a victim"));
        })?;
    }
    w.barrier()?;
    loop {
        w.pause()?;
    }
}

/// Kills a node that has said which process it is.
fn kill(node: &str) {
    let folder = std::env::var_os(release::FOLDER).expect("a folder");
    let said = std::fs::read_dir(folder).expect("it is there").flatten();
    let said = said.filter_map(|file| file.file_name().into_string().ok());
    let process = said.filter_map(|said| {
        let process = said.strip_prefix(&format!("{node} is "))?;
        process.parse().ok().and_then(Pid::from_raw)
    });
    let process = process.last().expect("it has said so");
    kill_process(process, Signal::KILL).expect("a process of this test");
}

#[test]
fn a_flush_that_needs_a_killed_node_ends_and_names_it() {
    for (transport, domains) in [
        ("tcp", "node"),
        ("shm", "node"),
        ("udp", "node"),
        ("shm", "2"),
    ] {
        // The victim manages the flush, asks for it, and owes the diff.
        for victim in 0..3 {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().to_str().expect("a path");
            let ended = cluster::run_with(3, "killed in a flush", |_| {
                let said = [
                    ("DHOLE_TRANSPORT", transport.to_owned()),
                    (domains::DOMAINS, domains.to_owned()),
                    (release::FOLDER, path.to_owned()),
                    (VICTIM, victim.to_string()),
                    ("DHOLE_BOUND_MS", "2000".to_owned()),
                ];
                said.map(|(name, value)| (name.to_owned(), value)).to_vec()
            });
            let what = format!("{transport}, domains {domains}, node {victim}");
            for (node, ended) in ended.iter().enumerate() {
                if node == victim {
                    assert_eq!(ended.code, None, "{what}: {}", ended.all);
                    continue;
                }
                assert_eq!(ended.code, Some(1), "{what}: {}", ended.all);
                let lost = format!("node {victim}");
                assert!(ended.said.concat().contains(&lost), "{what}: {}", ended.all);
            }
        }
    }
}

/// The words of each node that is left, and its exit code.
pub fn left(program: &str, victim: usize, after_us: u64) -> Vec<(Option<i32>, String)> {
    let also = |_| vec![(VICTIM.to_owned(), format!("{victim} {after_us}"))];
    let ended = cluster::run_with(3, program, also);
    let (killed, left): (Vec<_>, Vec<_>) = ended
        .into_iter()
        .enumerate()
        .partition(|(node, _)| *node == victim);
    assert!(killed.iter().all(|(_, ended)| ended.code.is_none()));
    let words = left.into_iter().map(|(_, ended)| (ended.code, ended.all));
    words.collect()
}

#[test]
fn an_access_that_needs_a_killed_node_names_node_and_address() {
    // Node 0 manages; the others own and acquire in turn.
    for (victim, after_us) in [(0, 300), (1, 2_000), (2, 900), (0, 9_000)] {
        let left = left("killed in memory", victim, after_us);
        let faulted = left.iter().filter(|(code, _)| *code == Some(70)).count();
        assert!(faulted > 0, "{victim} after {after_us}: {left:?}");
        for (code, words) in left {
            // One that had all numbers by then ends by its next pause.
            if code != Some(70) {
                assert_eq!(code, Some(1), "{victim} after {after_us}: {words}");
                continue;
            }
            assert!(words.contains("ing memory at 0x"), "{words}");
            assert!(
                words.contains(&format!("node {victim} was lost")),
                "{words}"
            );
        }
    }
}

#[test]
fn a_thread_that_waits_for_a_killed_node_gets_an_error() {
    for (victim, after_us) in [(0, 700), (1, 4_000), (2, 1_500)] {
        for (code, words) in left("killed at locks", victim, after_us) {
            assert_eq!(code, Some(1), "{victim} after {after_us}: {words}");
            assert!(words.contains(&format!("node {victim}")), "{words}");
        }
    }
}
