//! Virtual shared memory made of objects: the messages of each kind of fault, and that what the
//! programs see is sequentially consistent.

use apps::vote::{Break, Case, Mode, Outcome, Pattern, Problem, Protocol, run};
use dhole::sim::Settings;
use dhole::{Config, MessageKind, Run, RunError, Worker};

const SMALL: Problem = Problem {
    pattern: Pattern::Random {
        accesses: 60,
        seed: 1,
        working_set: 1,
        mode: Mode::Read,
    },
    pages: 4,
    words: 8,
    advisers: 1,
    protocol: Protocol::Cached,
    breaks: Break::Nothing,
};

fn with(seed: u64, working_set: u32, mode: Mode) -> Pattern {
    Pattern::Random {
        accesses: 60,
        seed,
        working_set,
        mode,
    }
}

fn simulated(nodes: usize, seed: u64, problem: &Problem) -> Result<Run<Outcome>, RunError> {
    let mut settings = Settings::fixed_cost(nodes);
    (settings.seed, settings.network.jitter) = (seed, 0.9);
    Config::nodes(nodes).simulate(settings, |w: &mut Worker<'_>| run(w, problem, true))
}

/// How many invocations there were, requests and replies.
fn invocations(run: &Run<Outcome>) -> [u64; 2] {
    let measured = run.report.measured().unwrap();
    let kinds = [MessageKind::OperationRequest, MessageKind::OperationReply];
    kinds.map(|kind| measured.sent(kind))
}

#[test]
fn each_kind_of_fault_takes_the_messages_of_the_paper() {
    for case in Case::ALL {
        for holders in 1..=3 {
            let pattern = Pattern::Case { case, holders };
            let problem = Problem { pattern, ..SMALL };
            let each = case.messages(holders.into()) / 2;
            let run = simulated(5, 1, &problem).unwrap();
            assert_eq!(invocations(&run), [each; 2], "{case:?}, {holders}");
            assert_eq!(run.value.faults, 1);
            let threads = Config::nodes(5).run(|w| run_it(w, &problem)).unwrap();
            assert_eq!(threads.value.faults, 1, "{case:?}, {holders}");
        }
    }
}

fn run_it(w: &mut Worker<'_>, problem: &Problem) -> dhole::Result<Outcome> {
    run(w, problem, true)
}

#[test]
fn what_programs_see_is_sequentially_consistent() {
    for seed in 0..25 {
        for (advisers, protocol) in [(1, Protocol::Cached), (2, Protocol::Uncached)] {
            for (working_set, mode) in [(1, Mode::Read), (2, Mode::Read), (2, Mode::Write)] {
                let problem = Problem {
                    pattern: with(seed, working_set, mode),
                    advisers,
                    protocol,
                    ..SMALL
                };
                let nodes = 2 + seed as usize % 3;
                let run = simulated(nodes, seed, &problem);
                let run = run.unwrap_or_else(|error| panic!("{problem:?}: {error}"));
                let accesses: usize = run.value.journals.iter().map(Vec::len).sum();
                assert_eq!(accesses, 60 * nodes, "{problem:?}");
            }
        }
    }
}

#[test]
fn so_it_is_on_threads() {
    for seed in 0..5 {
        let pattern = with(seed, 2, Mode::Read);
        let problem = Problem {
            pattern,
            advisers: 2,
            ..SMALL
        };
        let run = Config::nodes(3).run(|w| run_it(w, &problem));
        run.unwrap_or_else(|error| panic!("{problem:?}: {error}"));
    }
}

/// Pages of the working set come along with the first, so they are no faults.
#[test]
fn working_sets_save_faults() {
    let faults = |working_set| {
        let pattern = with(7, working_set, Mode::Read);
        let problem = Problem {
            pattern,
            pages: 32,
            ..SMALL
        };
        simulated(3, 7, &problem).unwrap().value.faults
    };
    assert!(faults(4) < faults(1));
}

#[test]
fn an_adviser_that_leaves_a_copy_behind_is_found() {
    let found = (0..100).find_map(|seed| {
        let pattern = with(seed, 1, Mode::Read);
        let breaks = Break::Invalidate;
        let problem = Problem {
            pattern,
            breaks,
            ..SMALL
        };
        simulated(3, seed, &problem).err()
    });
    let words = found.expect("it was not found").to_string();
    assert!(words.contains("order of all accesses"), "{words}");
}
