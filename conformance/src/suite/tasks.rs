//! Tasks that make tasks.

use dhole::tasks::{self, ByParts, Schedule, Tasks, TasksError, for_each};
use dhole::{Counters, Error, MessageKind, NodeId, Ref, Worker, on, op};
use serde::{Deserialize, Serialize};

use super::{assert_says, fail, keeps_pages, succeed};
use crate::Platform;

const THIS_FILE: &str = "tasks.rs:";

/// A tree in which the number of a node says how many children it has, and which.
fn children(number: u64) -> impl Iterator<Item = u64> {
    let many = match number {
        0 => 0,
        _ => 1 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62),
    };
    (1..=many).map(move |child| number.saturating_sub(child * child))
}

/// How many nodes there are below a root, and the sum of their numbers.
fn alone(root: u64) -> (u64, u64) {
    let mut open = vec![root];
    let mut all = (0, 0);
    while let Some(number) = open.pop() {
        all = (all.0 + 1, all.1 + number);
        open.extend(children(number));
    }
    all
}

/// Whoever has the roots: one node, all, or none.
pub fn every_task_of_a_tree_is_run_once(on_: &dyn Platform) {
    const ROOT: u64 = 14;
    let of_one = alone(ROOT);
    assert!(of_one.0 > 100, "{of_one:?}");
    for nodes in [1, 2, 3, 5] {
        succeed(on_, nodes, |w| {
            let me = w.node().index();
            for with_roots in [0, 1, w.nodes()] {
                let roots = (me < with_roots).then_some(ROOT);
                let all = tasks::tree(
                    w,
                    roots,
                    |w, number, more| {
                        children(number).try_for_each(|child| more.push(child))?;
                        w.work(w.random() % 5_000);
                        Ok((1, number))
                    },
                    |one, other| (one.0 + other.0, one.1 + other.1),
                )?;
                let times = with_roots as u64;
                let expected = (times > 0).then_some((times * of_one.0, times * of_one.1));
                assert_eq!(all, expected, "{with_roots} roots on {me}");
            }
            Ok(())
        });
    }
}

/// Of one node all are in the order of their priorities, and of equals the newest first.
pub fn tasks_are_run_in_the_order_of_their_priorities(on_: &dyn Platform) {
    succeed(on_, 1, |w| {
        let tasks = Tasks::<i64>::new(w)?;
        for priority in [3, -1, 7, 3] {
            tasks.push_first(w, priority, priority)?;
        }
        let mut order = Vec::new();
        tasks.join(w, |_, task, more| {
            if task == 7 {
                more.push(0)?;
                more.push_first(5, 50)?;
                more.push_first(9, 90)?;
                more.push_first(9, 91)?;
            }
            order.push(task);
            Ok(())
        })?;
        assert_eq!(order, [7, 91, 90, 50, 3, 3, 0, -1]);
        Ok(())
    });
}

/// Again and again, by other closures; what is pushed by processes too.
pub fn tasks_are_joined_again_and_again(on_: &dyn Platform) {
    fn pushes(w: &mut Worker<'_>, (tasks, number): (Tasks<u64>, u64)) -> dhole::Result<()> {
        Ok(tasks.push(w, number)?)
    }
    succeed(on_, 3, |w| {
        let tasks = w.once(|w| Ok(Tasks::<u64>::new(w)?))?;
        let me = w.node().index() as u64;
        for round in 1..=4 {
            for number in 0..me * round {
                tasks.push(w, number)?;
            }
            match keeps_pages(on_) {
                true => tasks.push(w, 1_000)?,
                false => w
                    .spawn(on(w.node()), (tasks, 1_000), op!(pushes))?
                    .join(w)?,
            }
            let mut mine = (0, 0);
            tasks.join(w, |w, number, more| {
                if number < 1_000 {
                    more.push(1_000 * round)?;
                }
                w.work(w.random() % 10_000);
                mine = (mine.0 + 1, mine.1 + number);
                Ok(())
            })?;
            let all = w.all_reduce(mine, |one, other| (one.0 + other.0, one.1 + other.1))?;
            let (first, second) = (round, 2 * round);
            let numbers = |many: u64| many * (many - 1) / 2;
            let pushed = first + second;
            let sum = numbers(first) + numbers(second) + pushed * 1_000 * round + 3_000;
            // Nothing is pushed from 1,000 on.
            assert_eq!(all, (2 * pushed + 3, sum), "round {round}");
        }
        w.barrier()?;
        if me == 1 {
            tasks.free(w)?;
        }
        w.barrier()?;
        let freed = tasks.push(w, 1);
        assert!(matches!(freed, Err(TasksError::Object(_))), "{freed:?}");
        Ok(())
    });
}

/// A task names an object that its maker has just written, and writes it again.
pub fn what_was_written_before_a_task_was_made_is_read_by_it(on_: &dyn Platform) {
    #[derive(Serialize, Deserialize, Clone)]
    struct Level {
        cell: Ref<u64>,
        level: u64,
    }
    succeed(on_, 3, |w| {
        const LEVELS: u64 = 6;
        let root = (w.node().index() == 0).then(|| Level {
            cell: w.alloc(0),
            level: 0,
        });
        let cells = tasks::tree(
            w,
            root,
            |w, task, more| {
                let Level { cell, level } = task;
                assert_eq!(cell.read(w), level);
                *cell.get_mut(w) += 100;
                for _ in 0..if level < LEVELS { 2 } else { 0 } {
                    let cell = w.alloc(level + 1);
                    let level = level + 1;
                    more.push(Level { cell, level })?;
                }
                w.work(w.random() % 20_000);
                Ok(vec![(cell, level)])
            },
            |one, other| [one, other].concat(),
        )?;
        let cells = cells.unwrap_or_default();
        assert_eq!(cells.len(), (1 << (LEVELS + 1)) - 1);
        for (cell, level) in cells {
            assert_eq!(cell.read(w), level + 100, "after the join");
        }
        Ok(())
    });
}

/// A long task gives others what it has made before it ends.
pub fn what_a_long_task_makes_is_run_meanwhile_by_another_node(on_: &dyn Platform) {
    #[derive(Serialize, Deserialize, Default)]
    struct Ran(u64);
    #[dhole::object]
    impl Ran {
        pub fn add(&mut self) {
            self.0 += 1;
        }
        pub fn count(&self) -> u64 {
            self.0
        }
    }
    const CHILDREN: u64 = 8;
    /// No run needs nearly as many.
    const MOST_LOOKS: u64 = 1 << 20;
    let outcome = succeed(on_, 3, |w| {
        let ran = w.once(|w| Ok(w.new_object(on(NodeId(0)), Ran::default())?))?;
        let root = (w.node().index() == 1).then_some(CHILDREN);
        let all = tasks::tree(
            w,
            root,
            |w, task, more| {
                if task == 0 {
                    ran.add(w)?;
                    return Ok(1);
                }
                (0..task).try_for_each(|_| more.push(0))?;
                let mut looks = 0;
                while ran.count(w)? == 0 {
                    more.share(w)?;
                    w.work(1_000);
                    looks += 1;
                    assert!(looks < MOST_LOOKS, "no other node runs a child");
                }
                Ok(1)
            },
            |one, other| one + other,
        )?;
        assert_eq!(all, Some(CHILDREN + 1));
        Ok(())
    });
    // Waits are at the program's own lines.
    for line in &outcome.costs.lines {
        assert!(!line.site.file.ends_with("dhole/src/tasks.rs"), "{line:#?}");
    }
}

/// On other nodes, which may have nothing to do, while the others look for the end.
pub fn processes_that_tasks_start_make_tasks_too(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return;
    }
    fn pushes(w: &mut Worker<'_>, (tasks, level): (Tasks<u32>, u32)) -> dhole::Result<()> {
        Ok(tasks.push(w, level)?)
    }
    for nodes in [2, 3] {
        succeed(on_, nodes, |w| {
            let tasks = w.once(|w| Ok(Tasks::<u32>::new(w)?))?;
            if w.node().index() == 0 {
                tasks.push(w, 6)?;
            }
            let mut mine = 0;
            tasks.join(w, |w, level, _| {
                for _ in 0..if level > 0 { 2 } else { 0 } {
                    let there = NodeId::at((w.random() % w.nodes() as u64) as usize);
                    let process = w.spawn(on(there), (tasks, level - 1), op!(pushes))?;
                    process.join(w)?;
                }
                mine += 1;
                Ok(())
            })?;
            assert_eq!(w.all_reduce(mine, |one, other| one + other)?, 127);
            Ok(())
        });
    }
}

/// Though the program drops the error.
pub fn a_task_that_fails_ends_the_run_with_its_words(on_: &dyn Platform) {
    let error = fail(on_, 3, |w| {
        let root = (w.node().index() == 1).then_some(9_u32);
        let run = |_: &mut Worker<'_>, task: u32, more: &mut tasks::More<'_, u32>| {
            match task {
                0 => return Err(Error::program("the last one failed".to_owned())),
                _ => more.push(task - 1)?,
            }
            Ok(())
        };
        let _dropped = tasks::tree(w, root, run, |(), ()| ());
        Ok(w.barrier()?)
    });
    assert_says(&error, &["the last one failed"]);
}

/// Of any range, by any schedule; a static one takes no operation of another node.
pub fn each_number_is_called_with_once_whoever_gets_it(on_: &dyn Platform) {
    for nodes in [1, 2, 3, 5] {
        let run = succeed(on_, nodes, |w| {
            let cells = w.once(|w| Ok(w.alloc_array::<u64>(40)))?;
            for (round, range) in (1..).zip([0..40, 3..5, 7..7, 1..38]) {
                for_each(w, range.clone(), Schedule::Static, |w, at| {
                    let at = at as usize;
                    cells.slice_mut(w, at..at + 1)[0] += round;
                    Ok(())
                })?;
                for (at, cell) in (0..).zip(cells.slice(w, ..)) {
                    let told = (1..).zip([0..40, 3..5, 7..7, 1..38]).take(round as usize);
                    let sum = told
                        .filter(|(_, range)| range.contains(&at))
                        .map(|(it, _)| it);
                    assert_eq!(*cell, sum.sum::<u64>());
                }
                w.barrier()?;
            }
            Ok(())
        });
        let mut total = Counters::default();
        run.counters.iter().for_each(|node| total.add(node));
        // What divides the numbers is made and freed by node 0.
        assert_eq!(total.sent(MessageKind::OperationRequest), 0);
        succeed(on_, nodes, |w| {
            for schedule in [Schedule::Dynamic(1), Schedule::Dynamic(7), Schedule::Guided] {
                let mut mine = Vec::new();
                for_each(w, 5..105, schedule, |w, number| {
                    mine.push(number);
                    w.work(w.random() % 1_000);
                    Ok(())
                })?;
                let mut all = w.all_gather(mine)?.concat();
                all.sort_unstable();
                assert!(all.into_iter().eq(5..105), "{schedule:?}");
            }
            Ok(())
        });
    }
    let error = fail(on_, 2, |w| {
        let end = 10 + u64::from(w.node().0);
        for_each(w, 0..end, Schedule::Guided, |_, _| Ok(()))
    });
    assert_says(&error, &["for_each on node 1", THIS_FILE, "another range"]);
}

/// Of arrays and ranges of any length; parts are combined in their order.
pub fn elements_are_changed_and_combined_by_parts(on_: &dyn Platform) {
    for (nodes, len) in [(1, 5), (2, 0), (3, 2), (4, 41)] {
        succeed(on_, nodes, |w| {
            let (nodes, me) = (w.nodes(), w.node().index());
            let cells = w.once(|w| Ok(w.alloc_array::<u64>(len)))?;
            let mut own = Vec::new();
            cells.for_each_mut(w, |place, cell| {
                *cell += 10 + place as u64;
                own.push(place);
            })?;
            assert!(own.into_iter().eq(len * me / nodes..len * (me + 1) / nodes));
            let some = cells.range(len / 3..len);
            some.for_each_mut(w, |place, cell| *cell -= place as u64)?;
            // The first of all: it does not commute.
            assert_eq!(cells.reduce(w, |one, _| one)?, (len > 0).then_some(10));
            assert_eq!(some.reduce(w, u64::min)?, (len > 0).then_some(10));
            let sum = cells.reduce(w, |one, other| one + other)?;
            let before: usize = (0..len / 3).sum();
            let wanted = (len > 0).then(|| (10 * len + before) as u64);
            assert_eq!(sum, wanted);
            Ok(w.barrier()?)
        });
    }
}

/// A task that waits for all nodes is refused, with the lines of both.
pub fn a_task_that_waits_for_all_nodes_is_an_error(on_: &dyn Platform) {
    type Meets = fn(&mut Worker<'_>) -> dhole::Result<()>;
    let all: [(&str, Meets); 5] = [
        ("a barrier on node", |w| Ok(w.barrier()?)),
        ("once on node", |w| w.once(|_| Ok(()))),
        ("all_reduce on node", |w| Ok(w.all_reduce((), |(), ()| ())?)),
        ("join on node", |w| {
            let tasks = Tasks::<u8>::new(w)?;
            tasks.join(w, |_, _, _| Ok(()))
        }),
        ("once on node", |w| {
            for_each(w, 0..3, Schedule::Static, |_, _| Ok(()))
        }),
    ];
    for (what, meets) in all {
        let error = fail(on_, 2, |w| {
            let tasks = w.once(|w| Ok(Tasks::<u8>::new(w)?))?;
            tasks.push(w, 1)?;
            tasks.join(w, |w, _, _| meets(w))
        });
        assert_says(&error, &[what, THIS_FILE, "within what the call at"]);
    }
    let error = fail(on_, 2, |w| {
        for_each(w, 0..4, Schedule::Dynamic(1), |w, _| Ok(w.barrier()?))
    });
    assert_says(&error, &["a barrier on node", "within what the call at"]);
    // Behind the tasks a node waits for all again.
    succeed(on_, 2, |w| {
        let tasks = w.once(|w| Ok(Tasks::<u8>::new(w)?))?;
        tasks.push(w, 1)?;
        tasks.join(w, |_, _, _| Ok(()))?;
        Ok(w.barrier()?)
    });
}

/// Errors that name the line, and no node that waits for ever.
pub fn tasks_that_cannot_be_are_errors_that_say_why(on_: &dyn Platform) {
    let error = fail(on_, 2, |w| {
        let tasks = w.once(|w| Ok(Tasks::<u32>::bounded(w, 3)?))?;
        tasks.push(w, 1)?;
        tasks.join(w, |_, _, more| {
            (0..4).try_for_each(|number| more.push(number))?;
            Ok(())
        })
    });
    let limit = "the most that may wait there is 3";
    assert_says(&error, &["pushing a task", THIS_FILE, limit]);
    let error = fail(on_, 1, |w| {
        let tasks = Tasks::<u32>::bounded(w, 2)?;
        (0..3).try_for_each(|number| tasks.push(w, number))?;
        Ok(())
    });
    assert_says(
        &error,
        &[
            "pushing a task",
            THIS_FILE,
            "the most that may wait there is 2",
        ],
    );
    let error = fail(on_, 3, |w| {
        let root = (w.node().index() == 0).then_some(40_u32);
        let run = |_: &mut Worker<'_>, task: u32, more: &mut tasks::More<'_, u32>| {
            assert!(task > 0, "so it is");
            more.push(task - 1)?;
            Ok(())
        };
        tasks::tree(w, root, run, |(), ()| ()).map(drop)
    });
    assert_says(&error, &["panicked: so it is"]);
    let error = fail(on_, 2, |w| {
        let tasks = w.once(|w| Ok(Tasks::<u32>::new(w)?))?;
        match w.node().index() {
            0 => tasks.join(w, |_, _, _| Ok(())),
            _ => Ok(w.barrier()?),
        }
    });
    assert_says(&error, &["Tasks::join", THIS_FILE]);
}
