//! SOR over raw memory, on every machine: the same grid, and the same messages.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::{Command, Stdio};

use apps::raw::{Cut, Granularity};
use apps::sor;
use dhole::Config;
use dhole::memory::{MemorySettings, MemoryUsage};
use dhole::sim::Settings;
use serde_json::{Value, json};

fn problem(rows: usize, columns: usize, steps: usize) -> sor::Problem {
    sor::Problem {
        rows,
        columns,
        steps,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    }
}

#[test]
fn sor_over_memory_finds_the_same_grid_on_any_number_of_nodes() {
    // Rows of the last one are long enough to be held.
    for (rows, columns) in [(4, 1), (5, 8), (40, 61), (6, 2 * sor::memory::LEAST_HELD)] {
        let problem = problem(rows, columns, 5);
        let alone = sor::sequential::run(problem, |_| ()).grid;
        for (nodes, chunk) in [(1, 1), (2, 1), (3, 1), (4, 1), (2, 3), (3, 40), (4, 2)] {
            let cut = Cut { chunk, ..Cut::ROWS };
            let config = Config::nodes(nodes).memory(MemorySettings::default());
            let program = |w: &mut dhole::Worker<'_>| {
                sor::memory::run::<f64>(w, (&problem, cut), Some(&alone), |_| ())
            };
            let simulated = Settings::fixed_cost(nodes);
            let run = config.run(program).unwrap();
            let simulated = config.simulate(simulated, program).unwrap();
            for (found, _) in [run.value, simulated.value] {
                let error = found.max_error;
                assert_eq!(error, Some(0.0), "{rows} x {columns} on {nodes}");
                assert_eq!(found.digest, alone.digest());
            }
        }
    }
}

#[test]
fn sor_over_small_numbers_and_pages_finds_what_the_sequential_one_does() {
    let problem = problem(40, 61, 5);
    let alone = sor::sequential::run(problem, |_| ()).grid;
    let config = Config::nodes(3).memory(MemorySettings::default());
    let pages = Cut {
        granularity: Granularity::Page,
        ..Cut::ROWS
    };
    for cut in [Cut::ROWS, pages] {
        let run = config.run(|w| sor::memory::run::<f64>(w, (&problem, cut), Some(&alone), |_| ()));
        let (exact, usage) = run.unwrap().value;
        assert_eq!(exact.max_error, Some(0.0));
        // A row for what each node finds lies on a page with those of the others.
        assert_eq!(usage.views == 3, cut == pages, "{usage:?}");
        let run = config.run(|w| sor::memory::run::<f32>(w, (&problem, cut), Some(&alone), |_| ()));
        let error = run.unwrap().value.0.max_error.unwrap();
        assert!(error > 0.0 && error < 1e-5, "{error}");
    }
}

#[test]
fn sor_of_the_paper_s_rows_needs_as_many_views_as_the_paper_says() {
    // Rows of one colour of 256 bytes: 32 numbers, of which the last column's are the wall's.
    let problem = problem(62, 62, 1);
    let config = Config::nodes(1).memory(MemorySettings::default());
    let run = config.run(|w| sor::memory::run::<f64>(w, (&problem, Cut::ROWS), None, |_| ()));
    let (_, MemoryUsage { views, bytes, .. }) = run.unwrap().value;
    // Two colours of 64 rows, 16 on a page; and a page for what nodes find.
    assert_eq!((views, bytes), (16, 9 * 4096));
}

const SOR: (&str, &[&str]) = (
    env!("CARGO_BIN_EXE_sor"),
    &[
        "--share",
        "memory",
        "--rows",
        "40",
        "--columns",
        "30",
        "--steps",
        "6",
    ],
);

const IS: (&str, &[&str]) = (
    env!("CARGO_BIN_EXE_is"),
    &["--keys-log2", "10", "--values-log2", "7"],
);

/// The report of a program over memory, started so.
pub fn report((program, options): (&str, &[&str]), words: &[&str], faults: Option<&str>) -> Value {
    let dhole = std::path::Path::new(program).with_file_name("dhole");
    let mut command = match words {
        [] => Command::new(program),
        _ => Command::new(dhole),
    };
    if !words.is_empty() {
        // What is counted are the messages of the protocol, which runs between domains.
        command
            .args(words)
            .args(["--domains", "node", "--", program]);
    }
    let output = command
        .args(["--nodes", "2"])
        .args(options)
        .args(["--verify", "--json"])
        .env_remove("DHOLE_FAULTS")
        .envs(faults.map(|faults| ("DHOLE_FAULTS", faults)))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
}

/// What is counted of a report: the messages and bytes, by kind too, and the result.
fn counted(report: &Value) -> [Value; 3] {
    let names = ["messages", "data_bytes"];
    let totals = names.map(|name| report[name].clone());
    let mut result = report["result"].clone();
    result["faults"] = Value::Null;
    [json!(totals), report["counters"]["by_kind"].clone(), result]
}

/// A program does the same on every machine, and with both ways to catch faults; its report on
/// threads.
pub fn alike(program: (&str, &[&str])) -> Value {
    let threads = report(program, &[], None);
    for words in [
        &["run", "-n", "2", "--transport", "shm"][..],
        &["run", "-n", "2", "--transport", "tcp"],
        &["run", "-n", "2", "--transport", "udp"],
        &["run", "-n", "2", "--transport", "mixed"],
        &["sim", "--nodes", "2", "--fixed-cost"],
        &["sim", "--nodes", "2", "--fixed-cost", "--seed", "5"],
    ] {
        let other = report(program, words, None);
        assert_eq!(counted(&other), counted(&threads), "{words:?}");
    }
    let other = report(program, &[], Some("mprotect"));
    assert_eq!(counted(&other), counted(&threads));
    threads
}

/// Messages of these kinds while the program was measured.
pub fn sent(report: &Value, kinds: &[&str]) -> u64 {
    let by_kind = &report["measured"]["by_kind"];
    let of = |kind: &&str| by_kind[*kind]["messages"].as_u64().unwrap_or(0);
    kinds.iter().map(of).sum()
}

pub const KINDS: [&str; 7] = [
    "memory_request",
    "memory_forward",
    "memory_invalidate",
    "memory_invalidated",
    "memory_data",
    "memory_grant",
    "memory_ack",
];

#[test]
fn sor_sends_the_same_messages_on_every_machine_and_as_many_as_it_says() {
    let report = alike(SOR);
    // What the program's own words derive, of 6 steps.
    assert_eq!(sent(&report, &KINDS), 20 * 6 - 5);
    assert_eq!(sent(&report, &["memory_data"]), 4 * 6);
    let measured = &report["measured"];
    assert_eq!(measured["raw_read_faults"], json!(4 * 6));
    assert_eq!(measured["raw_write_faults"], json!(4 * 6 - 2));
}

#[test]
fn sor_in_one_domain_finds_the_same_grid_and_sends_no_message_about_memory() {
    let dhole = std::path::Path::new(SOR.0).with_file_name("dhole");
    let output = Command::new(dhole)
        .args(["run", "-n", "2", "--", SOR.0])
        .args(SOR.1)
        .args(["--verify", "--json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let protocol = report(SOR, &["run", "-n", "2"], None);
    for name in ["digest", "max_error", "views", "memory_bytes"] {
        assert_eq!(found["result"][name], protocol["result"][name], "{name}");
    }
    assert_eq!(found["result"]["faults"], "none");
    assert_eq!(sent(&found, &KINDS), 0);
    assert_eq!(found["measured"]["raw_read_faults"], json!(0));
}

#[test]
fn is_sends_the_same_messages_on_every_machine_and_faults_as_often_as_it_says() {
    let report = alike(IS);
    let measured = &report["measured"];
    // 10 rankings on 2 nodes.
    assert_eq!(measured["raw_write_faults"], json!(10 * 2 * 2 - 1));
    assert_eq!(measured["raw_read_faults"], json!(10 * 2));
    // With the regions asked for ahead: the same messages.
    let ahead = (IS.0, &[IS.1, &["--prefetch"]].concat()[..]);
    let ahead = self::report(ahead, &[], None);
    assert_eq!(sent(&ahead, &KINDS), sent(&report, &KINDS));
    assert_eq!(ahead["measured"]["raw_read_faults"], json!(0));
}

/// The process that is node 1 of those that a launcher has started, once it has memory.
fn node_one(launcher: u32) -> Option<String> {
    let threads = std::fs::read_dir(format!("/proc/{launcher}/task")).ok()?;
    let children = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children: String = children.collect();
    let is_one = |child: &&str| {
        let environment = std::fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == b"DHOLE_NODE=1")
    };
    let maps = |child: &&str| {
        let maps = std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap_or_default();
        maps.contains("dhole-memory")
    };
    let found = children.split_whitespace().filter(is_one).find(maps);
    found.map(str::to_owned)
}

/// Ends a process, if it has not ended.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ended = self.0.kill();
    }
}

#[test]
fn a_node_that_is_killed_ends_the_run_wherever_the_other_waits() {
    ["node", "host"].into_iter().for_each(kill_one_of);
}

fn kill_one_of(domains: &str) {
    let program = env!("CARGO_BIN_EXE_sor");
    let dhole = std::path::Path::new(program).with_file_name("dhole");
    let run = Command::new(dhole)
        .args(["run", "-n", "2", "--domains", domains, "--grace-ms", "5000"])
        .args(["--", program])
        .args(["--share", "memory", "--rows", "2", "--columns", "2"])
        .args(["--steps", "100000000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut run = Ends(run.unwrap());
    // It sleeps between two looks: which processes another one has, and that it has mapped memory,
    // can only be polled for.
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    let mut victim = None;
    for _ in 0..1500 {
        victim = node_one(run.0.id());
        if victim.is_some() {
            break;
        }
        pause();
    }
    let victim = victim.expect("node 1 has memory");
    // It is killed at whichever of its waits it has come to: a moment that nothing announces.
    (0..10).for_each(|_| pause());
    let killed = Command::new("kill").args(["-9", &victim]).status().unwrap();
    assert!(killed.success());
    let mut said = String::new();
    let stderr = run.0.stderr.as_mut().unwrap();
    std::io::Read::read_to_string(stderr, &mut said).unwrap();
    // A test that hangs here has found that the other node does.
    let code = run.0.wait().unwrap().code();
    assert_eq!(code, Some(128 + 9), "{said}");
    // In a barrier it has an error, in an access it ends with words of its own.
    let names = ["node 1 is lost", "node 1 was lost"];
    assert!(names.iter().any(|words| said.contains(words)), "{said}");
}
