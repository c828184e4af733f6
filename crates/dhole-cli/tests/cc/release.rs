//! Programs whose threads write the same pages, with memory that is release consistent.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

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

/// The processes that lines name behind these words, in any order.
fn processes<const N: usize>(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    words: [&str; N],
) -> [Pid; N] {
    let mut found = [None; N];
    while found.contains(&None) {
        let line = lines.next().expect("the program goes on").unwrap();
        for (word, found) in words.iter().zip(&mut found) {
            if let Some(process) = line.strip_prefix(word) {
                *found = Pid::from_raw(process.trim().parse().expect("a process"));
            }
        }
    }
    found.map(|process| process.expect("it was found"))
}

#[test]
fn a_dump_names_the_memory_that_a_thread_flushes_and_the_report_counts_it() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "flushes", &["-std=gnu11", "-pthread"]);
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut command = command("node", program, 2, &[go.to_str().unwrap()]);
    command.env("DHOLE_CONSISTENCY", "release");
    // A node that is stopped is not lost meanwhile.
    command
        .env("DHOLE_REPORT", "json")
        .env("DHOLE_BOUND_MS", "600000");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let [manager, writer] = processes(&mut said, ["main ", "written "]);
    // The node that manages the memory answers no flush, so the thread waits for it.
    kill_process(manager, Signal::STOP).unwrap();
    let state = format!("/proc/{}/stat", manager.as_raw_nonzero());
    while !std::fs::read_to_string(&state).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
    std::fs::write(&go, "").unwrap();
    // Asked before it waits, it says something else.
    let flushes = loop {
        kill_process(writer, Signal::QUIT).unwrap();
        let line = told.next().expect("the run goes on").unwrap();
        if line.contains(" memory at ") {
            break line;
        }
    };
    kill_process(manager, Signal::CONT).unwrap();
    let all: Vec<String> = told.map(Result::unwrap).collect();
    let flushed = flushes.contains("node 1, run 1: flushes memory at 0x20");
    assert!(
        flushed && flushes.ends_with(", and waits for it"),
        "{flushes}"
    );
    let last = said.last().expect("the sum").unwrap();
    assert_eq!(
        (last.as_str(), child.wait().unwrap().code()),
        ("sum 3", Some(0)),
        "{all:?}"
    );
    let report = all.iter().find(|line| line.starts_with('{'));
    let report = report.expect("the report");
    assert!(report.contains("\"memory_flushes\":1,"), "{report}");
}
