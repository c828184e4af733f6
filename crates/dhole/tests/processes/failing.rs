//! What goes wrong anywhere ends the run everywhere, and every process says what it was.

use crate::cluster::{Ended, run, run_with};

/// Every process ends with this error of this kind; those in `gone` were gone.
fn all_say(ended: &[Ended], kind: &str, words: &[&str], gone: &[usize]) {
    for (node, ended) in ended.iter().enumerate() {
        if gone.contains(&node) {
            assert_eq!(ended.code, Some(77), "node {node}: {}", ended.all);
            continue;
        }
        assert_eq!(ended.code, Some(1), "node {node}: {}", ended.all);
        let [error, its_kind] = &ended.said[..] else {
            panic!("node {node}: {}", ended.all);
        };
        assert_eq!(its_kind, kind, "node {node}: {error}");
        for words in words {
            assert!(error.contains(words), "node {node}: {error}");
        }
    }
}

#[test]
fn a_panic_is_everybodys_error() {
    let ended = run(3, "panics");
    all_say(
        &ended,
        "panicked",
        &["node 1 panicked: of node 1's own words"],
        &[],
    );
}

#[test]
fn an_error_is_everybodys_error() {
    let ended = run(3, "fails");
    all_say(
        &ended,
        "failed",
        &["node 2 failed: node 2 has had enough"],
        &[],
    );
}

#[test]
fn a_deadlock_across_processes_is_told_with_its_places() {
    let words = ["is in a deadlock", "waits for lock", "programs.rs:"];
    all_say(&run(3, "deadlocks"), "failed", &words, &[]);
}

#[test]
fn whoever_leaves_early_is_named_by_all() {
    for transport in ["tcp", "shm", "udp", "mixed"] {
        let over = |program| {
            run_with(3, program, |_| {
                vec![("DHOLE_TRANSPORT".into(), transport.into())]
            })
        };
        let words = ["node 1 is lost", "it left early"];
        all_say(&over("leaves"), "lost", &words, &[1]);
        all_say(&over("leaves with a lock"), "lost", &words, &[1]);
        all_say(&over("leaves between runs"), "not started", &words, &[1]);
    }
}

#[test]
fn whoever_is_asked_says_what_it_does_holds_and_waits_for() {
    let ended = run(3, "asked");
    let says = |node: usize, words: &str| {
        let all = &ended[node].all;
        let of_it = all.lines().filter(|line| line.contains("dhole: node"));
        let mut of_it = of_it.filter(|line| line.contains(&format!("node {node}, run 1")));
        assert!(
            of_it.any(|line| line.contains(words)),
            "node {node}: {words}: {all}"
        );
    };
    assert!(ended.iter().all(|ended| ended.code == Some(0)));
    says(
        0,
        "waits at barrier 1 at crates/dhole/tests/processes/programs.rs:",
    );
    let source = include_str!("programs.rs").lines();
    let last = "// the last call of node 1 before it computes";
    let (line, _) = (1..)
        .zip(source)
        .find(|(_, line)| line.ends_with(last))
        .unwrap();
    let file = "crates/dhole/tests/processes/programs.rs";
    let since = format!(" s, since its last call of the runtime, at {file}:{line}:");
    says(1, &since);
    let computes = |line: &str| {
        let (_, time) = line.split_once("its worker computes for ")?;
        let (seconds, behind) = time.split_at(time.find(" s, ")?);
        let seconds: f64 = seconds.parse().ok()?;
        behind.starts_with(&since).then_some(seconds)
    };
    // It is asked for 2 s, in which the time goes on.
    let times: Vec<f64> = ended[1].all.lines().filter_map(computes).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times.last().is_some_and(|last| *last > 1.0), "{times:?}");
    says(2, "waits at barrier 1 at");
    says(
        2,
        "holds lock 5, acquired at crates/dhole/tests/processes/programs.rs:",
    );
}

#[test]
fn settings_that_differ_are_told_to_all() {
    let words =
        ["node 1 has the settings suspect_after: 101ms, and node 0 has suspect_after: 100ms"];
    all_say(&run(2, "seeds differ"), "not started", &words, &[]);
}

#[test]
fn what_needs_one_space_of_addresses_is_refused() {
    all_say(
        &run(2, "treadmarks"),
        "configured",
        &["the nodes are processes"],
        &[],
    );
}
