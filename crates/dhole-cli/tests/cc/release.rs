//! Programs whose threads write the same pages, with memory that is release consistent.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{built, checked, command, lines};

fn together() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "together", &["-std=gnu11"])
}

/// What a run prints, and the accesses that waited to write, of all nodes.
fn run(processes: usize, threads: &str, consistency: &str) -> (String, u64) {
    let folder = tempfile::tempdir().unwrap();
    let meet = folder.path().to_str().unwrap();
    let mut command = command("node", together(), processes, &[threads, meet]);
    let output = checked(
        command
            .env("DHOLE_CONSISTENCY", consistency)
            .output()
            .unwrap(),
    );
    let all = lines(&output);
    let last = all.last().expect("it prints something").clone();
    // The last that a node has printed.
    let mut faults = vec![0; processes];
    for line in &all {
        let Some((node, rest)) = line.split_once(": ") else {
            continue;
        };
        let node = node.trim_start_matches(|c: char| !c.is_ascii_digit());
        let counted = rest.split_once(" write faults").map(|(before, _)| before);
        let counted = counted.and_then(|before| before.rsplit(' ').next());
        if let (Ok(node), Some(Ok(counted))) = (node.parse::<usize>(), counted.map(str::parse)) {
            faults[node] = counted;
        }
    }
    let waits = faults.iter().any(|it: &u64| *it > 0);
    assert_eq!(waits, processes > 1, "{all:?}");
    (last, faults.iter().sum())
}

#[test]
fn threads_that_write_one_page_do_not_take_it_from_each_other() {
    let sum = |threads: u64| format!("wrong 0 sum {}", threads * 20 * (1..=10).sum::<u64>());
    let (said, faults) = run(2, "2", "release");
    assert_eq!(said, sum(2));
    // Five pages of arrays in each of ten turns, on each of two nodes; and the numbers that all
    // add to, with what threads and the mutex leave.
    let most = 10 * 2 * (5 + 2) + 40;
    assert!(faults <= most, "{faults} accesses waited, and not {most}");
    let (said, more) = run(2, "2", "sequential");
    assert_eq!(said, sum(2));
    println!("{faults} accesses waited to write, and {more} with sequential consistency");
    assert_eq!(run(3, "6", "release").0, sum(6));
    assert_eq!(run(1, "4", "release").0, sum(4));
}

#[test]
fn every_lock_try_and_once_orders_accesses() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "orders", &["-std=gnu11", "-pthread"]);
    for (processes, domains) in [(2, "node"), (4, "node"), (4, "2"), (2, "host")] {
        let mut command = command(domains, program, processes, &[]);
        command.env("DHOLE_CONSISTENCY", "release");
        let output = checked(command.output().unwrap());
        let expected = format!("wrong 0 counts{}", " 100".repeat(7));
        assert_eq!(lines(&output), [expected], "{processes}, domains {domains}");
    }
}
