//! Tasks, on runs of which nodes crash at times that the seed chooses: each task counts once.

use dhole::sim::{Crash, Settings};
use dhole::tasks::{self, Schedule, Tasks, TasksError};
use dhole::{Config, Error, NodeId, Result, Run, RunError, Worker, replicated};
use serde::{Deserialize, Serialize};

const SEEDS: u64 = 60;
/// Levels of the tree, and its tasks.
const LEVELS: u32 = 6;
const ALL: u64 = (1 << (LEVELS + 1)) - 1;

/// A cluster of three nodes of which one crashes while tasks are run, or none.
fn settings(seed: u64, crashes: bool) -> Settings {
    let mut settings = Settings::fixed_cost(3);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings.notice_ns = 20_000 << (seed % 4);
    if crashes {
        settings.crashes = vec![Crash {
            node: NodeId((seed % 3) as u16),
            at_ns: 60_000 + seed * 19_300,
        }];
    }
    settings
}

fn survives<R: Send>(
    settings: Settings,
    program: impl Fn(&mut Worker<'_>) -> Result<R> + Sync,
) -> std::result::Result<Run<R>, RunError> {
    Config::nodes(1).survive(true).simulate(settings, program)
}

/// Tasks whose roots are made in `once`: how many there are, and the sum of their levels.
fn count(w: &mut Worker<'_>) -> Result<Option<(u64, u64)>> {
    let tasks = w.once(|w| {
        let tasks = Tasks::new(w)?;
        tasks.push(w, LEVELS)?;
        Ok(tasks)
    })?;
    let all = tasks.reduce(w, run, |one, other| (one.0 + other.0, one.1 + other.1))?;
    let again = tasks.reduce(w, run, |one, _| one)?;
    assert_eq!(again, None, "there are no more");
    Ok(all)
}

fn run(w: &mut Worker<'_>, level: u32, more: &mut tasks::More<'_, u32>) -> Result<(u64, u64)> {
    for _ in 0..if level > 0 { 2 } else { 0 } {
        more.push(level - 1)?;
    }
    more.share(w)?;
    w.work(10_000 + w.random() % 40_000);
    Ok((1, level.into()))
}

fn sum_of_levels() -> u64 {
    let of = |level: u32| u64::from(level) << (LEVELS - level);
    (0..=LEVELS).map(of).sum()
}

#[test]
fn each_task_counts_once_whichever_node_crashes_when() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let run = survives(settings(seed, true), count);
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, Some((ALL, sum_of_levels())), "seed {seed}");
        lost += usize::from(!run.report.lost.is_empty());
    }
    println!("{lost} runs lost a node");
    assert!(lost > SEEDS as usize / 2, "only {lost} runs lost a node");
}

#[test]
fn a_tree_is_whole_or_says_which_roots_it_lacks() {
    let (mut whole, mut lacks) = (0, 0);
    for seed in 0..SEEDS {
        let run = survives(settings(seed, true), |w| {
            let root = Some(LEVELS - 1 - u32::from(w.node().0));
            tasks::tree(w, root, run, |one, other| {
                (one.0 + other.0, one.1 + other.1)
            })
        });
        match run {
            Ok(run) => {
                let tasks: u64 = (0..3).map(|node| (1 << (LEVELS - node)) - 1).sum();
                assert_eq!(run.value.map(|(all, _)| all), Some(tasks), "seed {seed}");
                whole += 1;
            }
            Err(RunError::Failed { error, .. }) => {
                let words = error.to_string();
                assert!(
                    words.contains("was lost before it gave its roots"),
                    "{words}"
                );
                assert!(words.contains("tasks.rs:"), "{words}");
                lacks += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{whole} trees were whole, {lacks} lacked roots");
    assert!(whole > SEEDS as usize / 2, "{whole} of {SEEDS}");
}

#[test]
fn without_a_loss_all_nodes_run_tasks_on_lease_and_get_one_result() {
    for seed in 0..10 {
        let run = survives(settings(seed, false), |w| {
            let mut mine = 0_u64;
            let tasks = w.once(|w| Ok(Tasks::new(w)?))?;
            tasks.push(w, LEVELS - 1)?;
            let all = tasks.reduce(
                w,
                |w, level, more| {
                    mine += 1;
                    Ok(run(w, level, more)?.0)
                },
                |one, other| one + other,
            )?;
            assert_eq!(all, Some(3 * ((1 << LEVELS) - 1)));
            assert!(mine > 0, "node {} ran none", w.node());
            tasks.push(w, 0)?;
            tasks.join(w, |_, level, _| {
                assert_eq!(level, 0);
                Ok(())
            })?;
            Ok(w.barrier()?)
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// How often each number was called.
#[derive(Serialize, Deserialize)]
struct Calls(Vec<u32>);

#[dhole::object]
impl Calls {
    pub fn call(&mut self, number: u64) {
        self.0[number as usize] += 1;
    }

    pub fn all(&self) -> Vec<u32> {
        self.0.clone()
    }
}

const NUMBERS: u64 = 40;

/// Calls each number, and once again; how often.
fn call_each(w: &mut Worker<'_>, schedule: Schedule) -> Result<[Vec<u32>; 2]> {
    let calls = w.once(|w| {
        let new = || Calls(vec![0; NUMBERS as usize]);
        Ok([
            w.new_object(replicated(), new())?,
            w.new_object(replicated(), new())?,
        ])
    })?;
    for calls in calls {
        tasks::for_each(w, 0..NUMBERS, schedule, |w, number| {
            w.work(10_000 + w.random() % 40_000);
            Ok(calls.call(w, number)?)
        })?;
    }
    Ok([calls[0].all(w)?, calls[1].all(w)?])
}

#[test]
fn each_number_is_called_whichever_node_crashes_when() {
    for schedule in [Schedule::Static, Schedule::Dynamic(3), Schedule::Guided] {
        let (mut lost, mut again) = (0, 0);
        for seed in 0..SEEDS {
            let run = survives(settings(seed, true), |w| call_each(w, schedule));
            let run = run.unwrap_or_else(|error| panic!("{schedule:?}, seed {seed}: {error}"));
            let has_lost = !run.report.lost.is_empty();
            lost += usize::from(has_lost);
            for calls in run.value {
                let most = if has_lost { 2 } else { 1 };
                let is_fine = |calls: &u32| (1..=most).contains(calls);
                assert!(
                    calls.iter().all(is_fine),
                    "{schedule:?}, seed {seed}: {calls:?}"
                );
                again += calls.iter().filter(|calls| **calls == 2).count();
            }
        }
        println!("{schedule:?}: {lost} runs lost a node; {again} numbers were called again");
        assert!(
            lost > SEEDS as usize / 2 && again > 0,
            "{lost} runs, {again} numbers"
        );
    }
}

#[test]
fn without_a_loss_each_number_is_called_once_and_all_nodes_call_some() {
    for schedule in [Schedule::Static, Schedule::Dynamic(1), Schedule::Guided] {
        let run = survives(settings(0, false), |w| {
            let mut mine = 0;
            let calls = w.once(|w| {
                let none = Calls(vec![0; NUMBERS as usize]);
                Ok(w.new_object(replicated(), none)?)
            })?;
            tasks::for_each(w, 5..5, schedule, |_, number| panic!("{number} of none"))?;
            tasks::for_each(w, 7..7 + NUMBERS, schedule, |w, number| {
                w.work(20_000);
                mine += 1;
                Ok(calls.call(w, number - 7)?)
            })?;
            assert!(mine > 0, "{schedule:?}: node {} called none", w.node());
            Ok(calls.all(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        assert_eq!(run.value, vec![1; NUMBERS as usize], "{schedule:?}");
    }
}

#[test]
fn a_task_beside_its_lease_makes_no_more_than_may_wait() {
    let run = survives(settings(0, false), |w| {
        let tasks = w.once(|w| {
            let tasks = Tasks::bounded(w, 3)?;
            tasks.push(w, true)?;
            Ok(tasks)
        })?;
        tasks.reduce(
            w,
            |w, makes, _| {
                if !makes {
                    return Ok(1);
                }
                for _ in 0..3 {
                    tasks.push(w, false)?;
                }
                let full = tasks.push(w, false).unwrap_err();
                assert!(matches!(full, TasksError::Full { most: 3, .. }), "{full}");
                Ok(1)
            },
            |one, other| one + other,
        )
    });
    assert_eq!(run.map(|run| run.value).unwrap(), Some(4));
}

/// A node that looks after the error of a number has left the others alone with theirs.
#[test]
fn an_error_of_a_number_ends_the_run_for_all() {
    for schedule in [Schedule::Static, Schedule::Dynamic(3), Schedule::Guided] {
        let run = Config::nodes(3).run(|w| {
            let called = tasks::for_each(w, 0..300, schedule, |_, number| match number {
                20 => Err(Error::program("number 20 fails")),
                _ => Ok(()),
            });
            drop(called);
            w.barrier()?;
            Ok(())
        });
        let error = run.map(drop).unwrap_err().to_string();
        assert!(error.contains("number 20 fails"), "{schedule:?}: {error}");
    }
}

#[test]
fn what_a_survivor_cannot_run_is_an_error_with_its_line() {
    let run = survives(settings(0, false), |w| {
        tasks::for_each(w, 0..9, Schedule::Guided, |w, number| match number {
            5 => Err(Error::program(format!("{} fails", w.node()))),
            _ => Ok(()),
        })
    });
    let error = run.map(drop).unwrap_err().to_string();
    assert!(error.contains(" fails"), "{error}");
    let run = survives(settings(0, false), |w| {
        let end = if w.node() == NodeId(1) { 8 } else { 9 };
        tasks::for_each(w, 0..end, Schedule::Guided, |_, _| Ok(()))
    });
    let error = run.map(drop).unwrap_err().to_string();
    assert!(error.contains("for_each on node 1 at"), "{error}");
    assert!(error.contains("tasks.rs:"), "{error}");
    let run = survives(settings(0, false), |w| {
        let tasks = w.once(|w| Ok(Tasks::bounded(w, 2)?))?;
        if w.node() == NodeId(0) {
            tasks.push(w, 1_u8)?;
            tasks.push(w, 1)?;
            let full = tasks.push(w, 1).unwrap_err();
            assert!(matches!(full, TasksError::Full { most: 2, .. }), "{full}");
        }
        w.barrier()?;
        tasks.join(w, |_, _, _| Err(Error::program("it fails".to_owned())))
    });
    let error = run.map(drop).unwrap_err().to_string();
    assert!(error.contains("it fails"), "{error}");
}
