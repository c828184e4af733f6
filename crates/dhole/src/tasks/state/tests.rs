//! Every run of small trees of tasks on two and three nodes, and of mistakes that must be found.

use std::collections::HashSet;

use dhole_model::NodeId;

use super::*;
use crate::tasks::hunt::{Hunt, Step};

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    Nothing,
    /// Whoever hears that as many tasks were done as made does not ask a second time.
    OneWave,
    /// Tasks leave a node before it has told that it made them.
    Untold,
    /// A node that has nothing to do does not say so.
    NoReport,
    /// Whoever is stolen from keeps the tasks.
    KeepStolen,
    /// A node does not say what processes made on it after it had said its counts.
    TellOnce,
    /// A node that hangs on another is forgotten while there is nothing to give.
    ForgetHungry,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    /// A node goes on though not all tasks are done.
    Early,
    /// A task was run twice.
    Twice,
    /// Nodes wait, and nothing happens any more.
    Stuck,
    /// A node waits while another has tasks for it, and is given none.
    Starves,
}

/// The task that starts a process.
const WITH_PROCESS: u8 = 3;

/// The tasks that one makes. But for that with a process its number is the levels below it.
fn children(task: u8) -> &'static [u8] {
    match task {
        0 => &[],
        1 | WITH_PROCESS => &[0, 0],
        _ => &[1, 0],
    }
}

/// How many of them a process makes that the task starts, on the next node.
fn beside(task: u8) -> usize {
    usize::from(task == WITH_PROCESS)
}

fn size(task: u8) -> usize {
    1 + children(task)
        .iter()
        .map(|child| size(*child))
        .sum::<usize>()
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum At {
    Runs(Pile<u8>),
    Hunts(Hunt),
    Left,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Works {
    at: At,
    untold: Counts,
}

/// An operation that was started.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Started {
    Give(usize, Pile<u8>),
    End(usize),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    deques: Vec<Deque<u8>>,
    workers: Vec<Works>,
    started: Vec<Started>,
    ran: usize,
}

/// What one run of the model is of.
#[derive(Clone, Copy)]
struct Model {
    nodes: usize,
    root: u8,
    /// Which node is stolen from by chance.
    chance: u64,
    mistake: Mistake,
}

impl Model {
    fn first(self) -> World {
        let deque = |_| Deque::new(self.nodes, 100);
        let mut deques: Vec<Deque<u8>> = (0..self.nodes).map(deque).collect();
        assert_eq!(deques[0].push(0, self.root), None);
        let worker = |_| Works {
            at: At::Runs(Pile::default()),
            untold: Counts::default(),
        };
        World {
            deques,
            workers: (0..self.nodes).map(worker).collect(),
            started: Vec::new(),
            ran: 0,
        }
    }

    /// All that may happen next.
    fn next(self, world: &World) -> Result<Vec<World>, Wrong> {
        let mut all = Vec::new();
        for at in 0..world.started.len() {
            let mut next = world.clone();
            match next.started.remove(at) {
                Started::Give(node, pile) => next.deques[node].give(pile),
                Started::End(node) => next.deques[node].end(),
            }
            all.push(next);
        }
        for node in 0..self.nodes {
            let mut next = world.clone();
            if self.works(&mut next, node)? {
                all.push(next);
            }
            let mut next = world.clone();
            if self.looks(&mut next, node) {
                all.push(next);
            }
        }
        Ok(all)
    }

    /// The worker takes its next step, if it need not wait.
    fn works(self, world: &mut World, node: usize) -> Result<bool, Wrong> {
        let works = &mut world.workers[node];
        match &mut works.at {
            At::Left => return Ok(false),
            At::Runs(pile) => match pile.pop() {
                Some(task) => {
                    let (there, here) = children(task).split_at(beside(task));
                    here.iter().for_each(|child| pile.push(0, *child));
                    works.untold.made += here.len() as u64;
                    works.untold.done += 1;
                    let next = &mut world.deques[(node + 1) % self.nodes];
                    for child in there {
                        assert_eq!(next.push(0, *child), None);
                    }
                    world.ran += 1;
                    if world.ran > size(self.root) {
                        return Err(Wrong::Twice);
                    }
                }
                None => {
                    let hunt = Hunt::new(NodeId::at(node), self.nodes, || self.chance);
                    works.at = At::Hunts(hunt);
                }
            },
            At::Hunts(hunt) => {
                let deques = &mut world.deques;
                let found = match hunt.step() {
                    Step::Take => {
                        let (found, counts) = deques[node].take(std::mem::take(&mut works.untold));
                        hunt.took(counts);
                        found
                    }
                    Step::Steal { victim, hangs } => {
                        hunt.stole();
                        let hangs = hangs && self.mistake != Mistake::ForgetHungry;
                        let deque = &mut deques[victim.index()];
                        match self.mistake {
                            Mistake::KeepStolen => deque.clone().steal(NodeId::at(node), hangs),
                            _ => deque.steal(NodeId::at(node), hangs),
                        }
                    }
                    Step::Report(_) if self.mistake == Mistake::NoReport => {
                        hunt.reported(None);
                        Pile::default()
                    }
                    Step::Report(counts) => {
                        let done = deques[0].report(NodeId::at(node), counts);
                        hunt.reported(done);
                        if self.mistake == Mistake::OneWave {
                            let mut made = done.unwrap_or(0);
                            while let Step::Ask(_) = hunt.step() {
                                hunt.asked(std::mem::take(&mut made));
                            }
                        }
                        Pile::default()
                    }
                    Step::Ask(other) => {
                        hunt.asked(deques[other.index()].made());
                        Pile::default()
                    }
                    Step::End(other) => {
                        hunt.told();
                        world.started.push(Started::End(other.index()));
                        Pile::default()
                    }
                    Step::Wait(told) => match self.awaits(&mut deques[node], told) {
                        None => return Ok(false),
                        Some(Next::Tasks(tasks)) => tasks,
                        Some(Next::Made) => {
                            *hunt = Hunt::new(NodeId::at(node), self.nodes, || self.chance);
                            Pile::default()
                        }
                        Some(Next::Over) if world.ran < size(self.root) => {
                            return Err(Wrong::Early);
                        }
                        Some(Next::Over) => {
                            works.at = At::Left;
                            return Ok(true);
                        }
                    },
                };
                if !found.is_empty() {
                    works.at = At::Runs(found);
                }
            }
        }
        Ok(true)
    }

    /// What the worker waits for in its own deque, if it is there.
    fn awaits(self, deque: &mut Deque<u8>, told: Counts) -> Option<Next<u8>> {
        let told = match self.mistake {
            Mistake::TellOnce => deque.counts,
            _ => told,
        };
        deque.has_next(told).then(|| deque.await_next(told))
    }

    /// The worker looks whether others need tasks.
    fn looks(self, world: &mut World, node: usize) -> bool {
        let works = &mut world.workers[node];
        let At::Runs(pile) = &mut works.at else {
            return false;
        };
        if pile.len() < 2 {
            return false;
        }
        let told = match self.mistake {
            Mistake::Untold => Counts::default(),
            _ => std::mem::take(&mut works.untold),
        };
        let most = u64::from(pile.len().ilog2());
        let (held_out, hungry) = world.deques[node].look(told, most);
        if held_out.is_some() && hungry.is_empty() {
            return false;
        }
        for node in hungry {
            world.started.push(Started::Give(node.index(), pile.half()));
        }
        if held_out.is_none() && pile.len() > 1 {
            world.deques[node].give(pile.half());
        }
        true
    }

    /// Explores every run: how many states there are, and how often a gift was under way.
    fn explore(self) -> Result<(usize, usize), Wrong> {
        let mut seen = HashSet::new();
        let mut open = vec![self.first()];
        let mut gifts = 0;
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            let gives = |it: &Started| matches!(it, Started::Give(..));
            gifts += usize::from(world.started.iter().any(gives));
            let next = self.next(&world)?;
            if next.is_empty() && world.workers.iter().any(|it| it.at != At::Left) {
                return Err(Wrong::Stuck);
            }
            open.extend(next);
        }
        match gifts {
            0 => Err(Wrong::Starves),
            _ => Ok((seen.len(), gifts)),
        }
    }
}

fn model(nodes: usize, root: u8, mistake: Mistake) -> Model {
    Model {
        nodes,
        root,
        chance: 0,
        mistake,
    }
}

#[test]
fn every_run_of_two_and_three_nodes_does_all_tasks_once_and_ends() {
    for (nodes, root, chance) in [(2, 1, 0), (2, 2, 0), (3, 1, 0), (3, 1, 1), (3, 2, 0)] {
        let model = Model {
            chance,
            ..model(nodes, root, Mistake::Nothing)
        };
        let (states, gifts) = model.explore().unwrap_or_else(|wrong| panic!("{wrong:?}"));
        println!(
            "{nodes} nodes, {} tasks: {states} states, {gifts} with gifts",
            size(root)
        );
    }
    for nodes in 1..=3 {
        let model = model(nodes, WITH_PROCESS, Mistake::Nothing);
        // Nobody has two tasks at a time.
        assert_eq!(model.explore(), Err(Wrong::Starves));
    }
    // Alone there is nobody to give to.
    let alone = model(1, 2, Mistake::Nothing).explore();
    assert_eq!(alone, Err(Wrong::Starves));
}

#[test]
fn a_run_that_ends_after_one_wave_is_caught() {
    let wrong = model(3, 2, Mistake::OneWave).explore();
    assert_eq!(wrong, Err(Wrong::Early));
}

#[test]
fn tasks_that_leave_before_they_are_told_are_caught() {
    let wrong = model(3, 2, Mistake::Untold).explore();
    assert_eq!(wrong, Err(Wrong::Early));
}

#[test]
fn a_node_that_does_not_report_is_caught() {
    let wrong = model(2, 1, Mistake::NoReport).explore();
    assert_eq!(wrong, Err(Wrong::Stuck));
}

#[test]
fn tasks_of_processes_that_node_0_does_not_hear_of_are_caught() {
    let wrong = model(3, WITH_PROCESS, Mistake::TellOnce).explore();
    assert_eq!(wrong, Err(Wrong::Stuck));
}

#[test]
fn stolen_tasks_that_stay_are_caught() {
    let wrong = model(2, 1, Mistake::KeepStolen).explore();
    assert_eq!(wrong, Err(Wrong::Twice));
}

#[test]
fn a_hungry_node_that_is_forgotten_is_caught() {
    let wrong = model(2, 1, Mistake::ForgetHungry).explore();
    assert_eq!(wrong, Err(Wrong::Starves));
}

#[test]
fn what_no_sound_node_says_is_dropped() {
    let mut deque = Deque::<u8>::new(2, 1);
    assert_eq!(deque.report(NodeId(7), Counts::default()), None);
    assert!(deque.steal(NodeId(7), true).is_empty() && deque.hungry.is_empty());
    assert_eq!((deque.push(0, 1), deque.push(0, 2)), (None, Some(1)));
    assert_eq!(
        deque.left().as_deref(),
        Some("1 task was never run: every node calls `Tasks::join`")
    );
}
