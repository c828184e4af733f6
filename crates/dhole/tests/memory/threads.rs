//! Several threads of a node touch memory.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use dhole::memory::{self, threads};
use dhole::sim::Settings;
use dhole::{Config, Result, Worker};

use crate::cluster;
use crate::config as config_of;

const ROUNDS: u64 = 200;

/// A thread that misses its wake looks again only after this time, and the test has not ended.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(nodes: usize) -> Config {
    config_of(nodes).suspect_after(PATIENCE)
}

/// Threads of each node, and its worker, increment one number and write rows of their own; another
/// thread, of which dhole knows nothing, does so too.
pub fn increments(w: &mut Worker<'_>, each: usize) -> Result<u64> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 64, 8)?))?;
    let first = 1 + w.node().index() * (each + 2);
    let number = &rows.row(0).cells(w)[0];
    let own: Vec<&[AtomicU64]> = (first..first + each + 2)
        .map(|row| rows.row(row).cells(w))
        .collect();
    let increment = |own: &[AtomicU64]| {
        for _ in 0..ROUNDS {
            number.fetch_add(1, Relaxed);
            own[7].fetch_add(1, Relaxed);
        }
    };
    threads::scope(w, |_, scope| {
        for own in &own[2..] {
            scope.spawn(|| increment(own))?;
        }
        std::thread::scope(|foreign| {
            foreign.spawn(|| increment(own[1]));
            increment(own[0]);
        });
        Ok::<(), threads::ThreadError>(())
    })??;
    w.barrier()?;
    let all = (1..1 + w.nodes() * (each + 2)).map(|row| rows.row(row).cells(w)[7].load(Relaxed));
    let own: u64 = all.sum();
    let number = number.load(SeqCst);
    w.barrier()?;
    assert_eq!(own, number);
    Ok(number)
}

#[test]
fn every_increment_of_every_thread_counts() {
    for (nodes, each) in [(1, 3), (2, 1), (3, 2)] {
        let run = config(nodes).run(|w| increments(w, each)).expect("a run");
        assert_eq!(run.value, ROUNDS * (nodes * (each + 2)) as u64);
    }
}

#[test]
fn threads_that_wait_have_tracks_of_their_own_in_a_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json");
    let run = config(2).trace(&file).run(|w| increments(w, 2));
    assert_eq!(run.expect("a run").value, ROUNDS * 8);
    let text = std::fs::read_to_string(&file).expect("it is written");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("sound JSON");
    let mut tracks = BTreeMap::<(u64, u64), Vec<[f64; 2]>>::new();
    for slice in whole["traceEvents"].as_array().expect("events") {
        let number = |name: &str| slice[name].as_f64().expect("a number");
        if slice["ph"] == "X" && slice["cat"] != "computing" {
            let track = (number("pid") as u64, number("tid") as u64);
            let (from, took) = (number("ts"), number("dur"));
            tracks.entry(track).or_default().push([from, from + took]);
        }
    }
    // Of the threads that compete for one number, at least one has waited for it.
    assert!(
        tracks.keys().any(|(_, track)| *track > 0),
        "{:?}",
        tracks.keys()
    );
    for slices in tracks.values() {
        assert!(
            slices.windows(2).all(|two| two[0][1] <= two[1][0]),
            "{slices:?}"
        );
    }
}

#[test]
fn threads_of_processes_increment_too() {
    let said = cluster::succeeds(2, "increments");
    assert_eq!(said, [format!("value {}", ROUNDS * 8)]);
}

#[test]
fn a_minipage_comes_once_for_all_threads_that_wait_for_it() {
    const THREADS: usize = 4;
    let run = config(2).run(|w| {
        let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, THREADS)?.row(0)))?;
        let cells = row.cells(w);
        if w.node().index() == 0 {
            cells.iter().for_each(|cell| cell.store(7, Relaxed));
        }
        w.barrier()?;
        let sum = AtomicU64::new(0);
        if w.node().index() == 1 {
            threads::scope(w, |_, scope| {
                for cell in cells {
                    scope.spawn(|| sum.fetch_add(cell.load(Relaxed), SeqCst))?;
                }
                Ok::<(), threads::ThreadError>(())
            })??;
        }
        w.barrier()?;
        Ok(sum.into_inner())
    });
    let run = run.expect("a run");
    // Node 1 asked its manager, who had it, once.
    assert_eq!(
        crate::messages(&run).len(),
        3,
        "{:?}",
        crate::messages(&run)
    );
    assert!(crate::messages(&run).iter().all(|(_, sent)| *sent == 1));
}

#[test]
fn a_thread_that_panics_ends_the_run_for_those_that_wait() {
    let run = config(2).run(|w| {
        if w.node().index() == 1 {
            return Ok(w.barrier()?);
        }
        threads::scope(w, |w, scope| {
            let thread = scope.spawn(|| panic!("of a thread's own words"))?;
            thread.join().expect_err("it panicked");
            Ok::<(), dhole::Error>(w.barrier()?)
        })?
    });
    let error = run.map(|_| ()).expect_err("a thread panicked").to_string();
    let expected = "node 0 failed: a thread of the program panicked: of a thread's own words";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_simulated_node_has_one_thread() {
    let simulated = config(1).simulate(Settings::fixed_cost(1), |w| {
        let refused = threads::scope(w, |_, _| ()).map_err(|error| error.to_string());
        Ok(refused)
    });
    let refused = simulated.expect("a run").value.expect_err("it is refused");
    assert!(refused.contains("it is simulated"), "{refused}");
}
