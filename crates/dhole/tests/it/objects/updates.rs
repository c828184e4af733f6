//! Updates of elements in runs that survive: no owner that may be lost combines them.

use dhole::sim::{Crash, Settings};
use dhole::{Config, NodeId, Result, RunError, Worker};

/// Adds on all nodes, in rounds; what is there in the end.
fn program(w: &mut Worker<'_>, none_is_lost: bool) -> Result<Vec<u64>> {
    let (nodes, counts) = w.once(|w| Ok((w.nodes(), w.alloc_array::<u64>(600))))?;
    for round in 1..=5 {
        counts.add_all(w, &[3, 599, 3], &[1, 10, 1])?;
        counts.max_all(w, &[4], &[round])?;
        w.barrier()?;
        let all = nodes as u64;
        let got = counts.gather(w, &[3, 4, 599]);
        let expected = [2 * all * round, round, 10 * all * round];
        assert!(got == expected || !none_is_lost, "{got:?}");
        w.barrier()?;
    }
    Ok(counts.gather(w, &[3, 4, 5, 599]))
}

#[test]
fn all_nodes_combine_under_the_lock_of_the_array() {
    for seed in 0..20 {
        let mut settings = Settings::fixed_cost(3);
        (settings.seed, settings.network.jitter) = (seed, 1.0);
        let run = Config::nodes(1)
            .survive(true)
            .simulate(settings, |w| program(w, true));
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, [30, 5, 0, 150]);
    }
}

#[test]
fn after_a_loss_the_call_that_synchronises_says_so() {
    let mut failed = 0;
    for seed in 0..20 {
        let mut settings = Settings::fixed_cost(3);
        (settings.seed, settings.network.jitter) = (seed, 1.0);
        settings.crashes = vec![Crash {
            node: NodeId(2),
            at_ns: 50_000 + seed * 10_000,
        }];
        let run = Config::nodes(1).survive(true);
        match run.simulate(settings, |w| program(w, false)) {
            Ok(run) => assert_eq!(run.value.len(), 4, "seed {seed}"),
            Err(RunError::Failed { error, .. }) => {
                let words = error.to_string();
                assert!(words.contains("lost"), "seed {seed}: {words}");
                failed += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(failed > 0, "no run lost its node in the middle");
}
