//! A program that is asked for what it is built without says which feature it lacks, and runs on
//! nothing else instead. `docs/testing.md` says how these tests are built.
#![cfg(not(all(feature = "sim", feature = "tls")))]

use std::process::Command;

/// What a run on two nodes ends with in a process with these variables.
fn run_with(variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--ignored", "--exact", "a_program", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "a program that the other tests start"]
fn a_program() {
    match dhole::Config::nodes(2).run(|w| Ok(w.nodes())) {
        Ok(run) => println!("ran on {} nodes", run.value),
        Err(error) => println!("refused: {error}"),
    }
}

#[track_caller]
fn lacks(variables: &[(&str, &str)], feature: &str) {
    let said = run_with(variables);
    assert!(said.contains("refused: "), "{said}");
    assert!(
        said.contains(&format!("dhole's feature `{feature}`")),
        "{said}"
    );
    let added = format!("cargo add dhole --features {feature}");
    assert!(said.contains(&added), "{said}");
}

#[test]
fn a_program_without_features_runs_on_threads() {
    assert!(run_with(&[]).contains("ran on 2 nodes"));
}

#[cfg(not(feature = "sim"))]
#[test]
fn a_program_without_sim_that_is_started_as_a_simulation_names_the_feature() {
    lacks(&[("DHOLE_SIM", "nodes=4")], "sim");
    assert!(run_with(&[("DHOLE_SIM", "")]).contains("ran on 2 nodes"));
}

#[cfg(not(feature = "processes"))]
#[test]
fn a_program_without_processes_that_is_started_as_a_node_names_the_feature() {
    lacks(&[("DHOLE_NODE", "1"), ("DHOLE_NODES", "2")], "processes");
    lacks(&[("DHOLE_MEETING", "127.0.0.1:1")], "processes");
    lacks(&[("DHOLE_RUN", "7")], "processes");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_that_mpirun_starts_names_the_feature() {
    let said = run_with(&[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0")]);
    assert!(
        said.contains("refused: ") && said.contains("feature `mpi`"),
        "{said}"
    );
}

#[cfg(all(feature = "processes", not(feature = "tls")))]
#[test]
fn a_node_without_tls_that_is_to_encrypt_names_the_feature() {
    let node = [
        ("DHOLE_NODE", "1"),
        ("DHOLE_NODES", "2"),
        ("DHOLE_MEETING", "127.0.0.1:1"),
        ("DHOLE_TLS", "always"),
    ];
    lacks(&node, "tls");
}

/// Spans that a program enters, in a subscriber that knows their names and fields.
#[cfg(feature = "tracing")]
mod spans {
    use std::fmt::Debug;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Each span in words, and how often one was entered and left.
    #[derive(Clone, Default)]
    struct Seen {
        spans: Arc<Mutex<Vec<String>>>,
        entered: Arc<AtomicU64>,
        left: Arc<AtomicU64>,
    }

    struct Words(String);

    impl Visit for Words {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0 += &format!(" {}={value:?}", field.name());
        }
    }

    impl Subscriber for Seen {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "dhole"
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut words = Words(span.metadata().name().to_owned());
            span.record(&mut words);
            let mut spans = self.spans.lock().unwrap();
            spans.push(words.0);
            Id::from_u64(spans.len() as u64)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &Id) {
            self.entered.fetch_add(1, Ordering::Relaxed);
        }

        fn exit(&self, _: &Id) {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_program_and_its_waits_are_spans_with_node_phase_and_line() {
        let seen = Seen::default();
        tracing::subscriber::set_global_default(seen.clone()).unwrap();
        let run = dhole::Config::nodes(2).one_sided(false).run(|w| {
            let number = w.once(|w| Ok(w.alloc(7_u64)))?;
            // No node answers itself, so one of the two waits.
            let seven = *number.get(w);
            w.barrier()?;
            Ok(seven)
        });
        assert_eq!(run.unwrap().value, 7);
        let spans = seen.spans.lock().unwrap();
        for node in 0..2 {
            assert!(spans.contains(&format!("program node={node}")), "{spans:?}");
        }
        let waits = |phase: &str| {
            let words = format!("phase=\"{phase}\"");
            let mut waits = spans.iter().filter(|it| it.starts_with("wait node="));
            waits.any(|it| it.contains(&words) && it.contains("tests/features.rs:"))
        };
        assert!(waits("misses") && waits("barriers"), "{spans:?}");
        let entered = seen.entered.load(Ordering::Relaxed);
        assert_eq!(entered, spans.len() as u64);
        assert_eq!(seen.left.load(Ordering::Relaxed), entered);
    }
}
