//! The timeline of a run: what was waited for, when, on which node.
#![cfg(feature = "sim")]

use std::collections::BTreeMap;
use std::path::Path;

use dhole::sim::Settings;
use dhole::{
    Config, ConfigError, Lock, Phase, PhaseTimes, Report, Result, RunError, Share, Worker,
};
use serde_json::Value;

const ROUNDS: u64 = 4;

#[derive(Share)]
struct Count(u64);

/// All nodes count under a lock, which the last node keeps for long, and read what node 0 wrote.
fn program(w: &mut Worker<'_>) -> Result<()> {
    let (count, others) = w.once(|w| {
        let others = w.alloc_range(20, |i| i as u64);
        Ok((w.alloc(Count(0)), others))
    })?;
    let me = w.node().index();
    let lock = Lock::numbered(0);
    for round in 0..ROUNDS {
        lock.with(w, |w| {
            count.get_mut(w).0 += 1;
            w.work(if me + 1 == w.nodes() { 900_000 } else { 1_000 });
            Ok(())
        })?;
        if me == 0 {
            others.iter().for_each(|number| *number.get_mut(w) += round);
        }
        w.barrier()?;
        let sum: u64 = others.iter().map(|number| *number.get(w)).sum();
        assert!(sum > 0);
        w.barrier()?;
    }
    Ok(())
}

/// A slice of a track: its name, its phase, and when it began and ended in nanoseconds.
type Slice = (String, String, u64, u64);

/// The file of a run: by node and track the slices, in their order.
fn tracks(file: &Path) -> BTreeMap<(u64, u64), Vec<Slice>> {
    let text = std::fs::read_to_string(file).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let mut tracks: BTreeMap<_, Vec<Slice>> = BTreeMap::new();
    for event in whole["traceEvents"].as_array().unwrap() {
        if event["ph"] != "X" {
            continue;
        }
        let ns = |name: &str| (event[name].as_f64().unwrap() * 1e3).round() as u64;
        let words = |name: &str| event[name].as_str().unwrap().to_owned();
        let track = ["pid", "tid"].map(|name| event[name].as_u64().unwrap());
        let track = tracks.entry((track[0], track[1])).or_default();
        track.push((words("name"), words("cat"), ns("ts"), ns("ts") + ns("dur")));
    }
    tracks
}

fn time_of(slices: &[Slice], phase: &str) -> u64 {
    let of_phase = slices.iter().filter(|(_, of, ..)| of == phase);
    of_phase.map(|(.., from, to)| to - from).sum()
}

fn simulated(nodes: usize, file: &Path) -> Report {
    let config = Config::nodes(nodes).one_sided(false).trace(file);
    let run = config.simulate(Settings::fixed_cost(nodes), program);
    run.expect("a run").report
}

#[test]
fn a_timeline_has_each_wait_where_it_was_and_what_was_computed_between() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let report = simulated(3, &file);
    let tracks = tracks(&file);
    assert_eq!(
        tracks.keys().collect::<Vec<_>>(),
        [&(0, 0), &(1, 0), &(2, 0)]
    );
    for (slices, phases) in tracks.values().zip(report.phases()) {
        let PhaseTimes { whole_ns, .. } = phases;
        // The slices follow on each other, from the beginning to the end.
        let mut at = 0;
        for (name, _, from, to) in slices {
            assert!(*from == at && to > from, "{name}: {slices:#?}");
            at = *to;
        }
        assert_eq!(at, whole_ns);
        for (phase, name) in [
            (Phase::Computing, "computing"),
            (Phase::Miss, "miss"),
            (Phase::Lock, "lock"),
            (Phase::Barrier, "barrier"),
            (Phase::Operation, "operation"),
        ] {
            assert_eq!(time_of(slices, name), phases.of(phase), "{name}");
        }
    }
    let of_node = |node| &tracks[&(node, 0)];
    let locked: u64 = (0..3).map(|node| time_of(of_node(node), "lock")).sum();
    assert!(locked > 900_000, "another node waits while node 2 keeps it");
    // No node leaves a barrier before all have come.
    let barriers = |node| -> Vec<(u64, u64)> {
        let slices = of_node(node).iter();
        let barriers = slices.filter(|(_, of, ..)| of == "barrier");
        barriers.map(|(.., from, to)| (*from, *to)).collect()
    };
    let all = [0, 1, 2].map(barriers);
    for passed in 0..2 * ROUNDS as usize {
        // The first slices are those of `once`.
        let of_barrier = all
            .each_ref()
            .map(|own| own[own.len() - 2 * ROUNDS as usize + passed]);
        let last_came = of_barrier.iter().map(|(from, _)| from).max().unwrap();
        assert!(of_barrier.iter().all(|(_, to)| to >= last_came), "{all:?}");
    }
    let line = |phase: &str, mark: &str| {
        let mut lines = (1..).zip(include_str!("timeline.rs").lines());
        let found = lines.find(|(_, line)| line.contains(mark));
        format!("{phase} timeline.rs:{}", found.unwrap().0)
    };
    let has = |node, name: &str| of_node(node).iter().any(|(own, ..)| own == name);
    assert!(has(1, &line("lock", "lock.with(w, |w| {")));
    assert!(has(1, &line("miss", "let sum: u64 = others")));
}

#[test]
fn a_simulated_run_has_one_timeline_down_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["first.json", "second.json"].map(|name| folder.path().join(name));
    let texts = files.map(|file| {
        simulated(4, &file);
        std::fs::read(file).unwrap()
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn nodes_that_are_threads_have_tracks_and_runs_have_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let config = Config::nodes(2).trace(&file);
    for _ in 0..2 {
        config.run(program).unwrap();
    }
    for name in ["run.json", "run.2.json"] {
        let tracks = tracks(&folder.path().join(name));
        assert_eq!(tracks.len(), 2);
        for slices in tracks.values() {
            let in_order = |two: &[Slice]| two[0].3 <= two[1].2;
            assert!(slices.windows(2).all(in_order), "{slices:#?}");
            assert!(time_of(slices, "computing") > 0);
        }
        let reads = tracks
            .values()
            .flatten()
            .any(|(_, of, ..)| of == "one-sided read");
        assert!(reads, "what node 0 writes is read in its memory");
    }
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_before_the_program_begins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("not there").join("run.json");
    let config = Config::nodes(2).trace(&file);
    let never = |_: &mut Worker<'_>| -> Result<()> { panic!("it has begun") };
    match config.run(never) {
        Err(RunError::Config(ConfigError::Trace { path, .. })) => {
            assert_eq!(path, file.display().to_string());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_fails_leaves_its_timeline_up_to_the_failure() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = folder.path().join("simulated.json");
    let threads = folder.path().join("threads.json");
    let program = |w: &mut Worker<'_>| -> Result<()> {
        w.barrier()?;
        w.work(10_000);
        assert!(w.node().index() != 1, "as intended");
        w.barrier()?;
        Ok(())
    };
    let config = Config::nodes(3).trace(&simulated);
    config
        .simulate(Settings::fixed_cost(3), program)
        .unwrap_err();
    Config::nodes(3).trace(&threads).run(program).unwrap_err();
    // Of threads, the node that comes last to a barrier does not wait there.
    assert_eq!(tracks(&threads).len(), 3);
    let tracks = tracks(&simulated);
    assert_eq!(tracks.len(), 3);
    let barriers = |slices: &Vec<Slice>| slices.iter().filter(|it| it.1 == "barrier").count();
    assert_eq!(barriers(&tracks[&(0, 0)]), 2, "{tracks:#?}");
    assert_eq!(barriers(&tracks[&(1, 0)]), 1, "{tracks:#?}");
}
