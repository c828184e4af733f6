//! What is shared arrives, whatever it is, and costs what it costs on threads.

use crate::cluster::{run_with, succeeds};
use crate::programs;

#[test]
fn objects_of_all_kinds_are_shared_under_every_protocol() {
    for under in ["", " under update", " under home"] {
        let said = succeeds(3, &format!("everything{under}"));
        let sum: u64 = (0..3).map(|n| 1000 * n + 45 + 10 * (n + 1)).sum();
        assert_eq!(
            said,
            [format!("value {}", sum + 6), "node node 0".to_owned()]
        );
    }
}

#[test]
fn what_is_sent_is_what_is_sent_on_threads() {
    let on_threads = programs::disjoint(3).expect("a sound program");
    assert_eq!(succeeds(3, "disjoint"), programs::said(&on_threads));
}

/// Of two processes one that has nothing to tell at a barrier says just that it is there; whether
/// it says so before it hears that the other has more to tell, is a matter of time.
#[test]
fn what_two_processes_send_but_for_barriers_is_what_is_sent_on_threads() {
    let on_threads = programs::disjoint(2).expect("a sound program");
    let but_for_barriers = |said: Vec<String>| {
        let [value, _, kinds, types] = said.try_into().expect("four lines");
        let (kinds, _) = kinds.split_once("BarrierArrive").expect("barriers");
        [value, kinds.to_owned(), types]
    };
    assert_eq!(
        but_for_barriers(succeeds(2, "disjoint")),
        but_for_barriers(programs::said(&on_threads))
    );
}

#[test]
fn node_0_writes_the_timeline_of_all_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json").display().to_string();
    let ended = run_with(3, "disjoint", |_| {
        vec![("DHOLE_TRACE".to_owned(), file.clone())]
    });
    for (node, ended) in ended.iter().enumerate() {
        assert_eq!(ended.code, Some(0), "node {node}: {}", ended.all);
    }
    let files = std::fs::read_dir(folder.path()).expect("it is there");
    assert_eq!(files.count(), 1);
    let text = std::fs::read_to_string(&file).expect("node 0 has written it");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("sound JSON");
    let events = whole["traceEvents"].as_array().expect("events");
    for node in 0..3 {
        let own = events
            .iter()
            .filter(|it| it["pid"] == node && it["ph"] == "X");
        let barriers = own.filter(|it| it["cat"] == "barrier").count();
        assert!(barriers >= 6, "node {node}: {barriers}");
    }
}

#[test]
fn objects_with_operations_are_shared_of_types_that_a_process_has_never_met() {
    assert_eq!(succeeds(3, "objects"), ["value 5050"]);
}

#[test]
fn one_run_follows_on_the_other() {
    let wanted: Vec<String> = (0..20).map(|round| format!("{}", round + 3)).collect();
    assert_eq!(succeeds(3, "several runs"), wanted);
}

#[test]
fn who_computes_between_two_runs_for_long_is_not_taken_for_lost() {
    let ended = run_with(3, "computes between two runs", |_| {
        vec![("DHOLE_BOUND_MS".to_owned(), "400".to_owned())]
    });
    for (node, ended) in ended.iter().enumerate() {
        assert_eq!(ended.code, Some(0), "node {node}: {}", ended.all);
    }
}

#[test]
fn more_processes_than_cores_come_to_an_end() {
    let said = succeeds(8, "disjoint");
    assert!(said[0].starts_with("value "));
}
