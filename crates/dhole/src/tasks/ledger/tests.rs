//! Every run of small trees of tasks on two and three nodes of which some are lost, and of mistakes
//! that must be found.

use std::collections::HashSet;

use super::*;

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    Nothing,
    /// The tasks of a lost node do not wait again.
    LeaseLost,
    /// What a node hands in waits before its lease ends.
    HandedInEarly,
    /// What a node has done counts before its lease ends.
    ResultEarly,
    /// All counts as done while a node has tasks.
    OverWithLease,
    /// A node that is lost before it joins is waited for.
    AwaitsLost,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    /// All counts as done, and the result lacks tasks.
    Lacks,
    /// The result has a task twice.
    Twice,
    /// Nodes wait, and nothing happens any more.
    Stuck,
}

/// The tasks that one makes.
fn children(task: u8) -> &'static [u8] {
    match task {
        0 => &[],
        1 => &[0, 0],
        _ => &[1, 0],
    }
}

fn size(task: u8) -> u8 {
    1 + children(task).iter().map(|child| size(*child)).sum::<u8>()
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum At {
    Begins,
    Waits,
    Runs(Pile<u8>),
    /// It has handed in some of its tasks, and these are left.
    Ends(Pile<u8>),
    Left,
    Lost,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    ledger: Ledger<u8>,
    /// Where each node is, and how many tasks it has run.
    nodes: Vec<(At, u8)>,
    /// So many more nodes may be lost.
    losses: u8,
}

#[derive(Clone, Copy)]
struct Model {
    nodes: usize,
    losses: u8,
    root: u8,
    mistake: Mistake,
}

impl Model {
    fn first(self) -> World {
        let mut ledger = Ledger::new(self.nodes, 100);
        assert_eq!(ledger.push(NodeId(0), 0, self.root), None);
        World {
            ledger,
            nodes: vec![(At::Begins, 0); self.nodes],
            losses: self.losses,
        }
    }

    fn next(self, world: &World) -> Result<Vec<World>, Wrong> {
        let mut all = Vec::new();
        for at in 0..self.nodes {
            match world.nodes[at].0.clone() {
                At::Begins => all.push(self.joins(world, at)),
                At::Waits => all.extend(self.waits(world, at)?),
                At::Runs(pile) => {
                    all.push(self.ends(world, at, pile.clone()));
                    all.extend(self.hands_in(world, at, pile.clone()));
                    all.extend(self.runs(world, at, pile));
                }
                At::Ends(rest) => all.push(self.ends(world, at, rest)),
                At::Left | At::Lost => continue,
            }
            let others = (0..self.nodes).filter(|other| *other != at);
            let mut others = others.map(|other| &world.nodes[other].0);
            if world.losses > 0 && others.any(|other| *other != At::Lost) {
                all.push(self.loses(world, at));
            }
        }
        Ok(all)
    }

    fn joins(self, world: &World, at: usize) -> World {
        let mut next = world.clone();
        next.ledger.join(NodeId::at(at));
        next.nodes[at].0 = At::Waits;
        next
    }

    fn waits(self, world: &World, at: usize) -> Result<Option<World>, Wrong> {
        let mut next = world.clone();
        let (ledger, is_empty) = (&mut next.ledger, world.ledger.waiting.is_empty());
        if self.mistake == Mistake::OverWithLease && is_empty {
            ledger.members.iter_mut().for_each(|it| it.lease = None);
        }
        if is_empty && !ledger.is_over() {
            return Ok(None);
        }
        next.nodes[at].0 = match ledger.lease(NodeId::at(at)) {
            Leased::Tasks(tasks) => At::Runs(tasks),
            Leased::Over => {
                let count: u8 = ledger.results().iter().map(|result| result[0]).sum();
                match count.cmp(&size(self.root)) {
                    std::cmp::Ordering::Less => return Err(Wrong::Lacks),
                    std::cmp::Ordering::Greater => return Err(Wrong::Twice),
                    std::cmp::Ordering::Equal => At::Left,
                }
            }
        };
        Ok(Some(next))
    }

    fn runs(self, world: &World, at: usize, mut pile: Pile<u8>) -> Option<World> {
        let mut next = world.clone();
        let task = pile.pop()?;
        children(task).iter().for_each(|child| pile.push(0, *child));
        let (is_at, ran) = &mut next.nodes[at];
        (*is_at, *ran) = (At::Runs(pile), *ran + 1);
        if self.mistake == Mistake::ResultEarly {
            next.ledger.members[at].result = vec![*ran];
        }
        Some(next)
    }

    fn hands_in(self, world: &World, at: usize, mut pile: Pile<u8>) -> Option<World> {
        let mut next = world.clone();
        if pile.len() < 2 {
            return None;
        }
        let half = pile.half();
        match self.mistake {
            Mistake::HandedInEarly => next.ledger.waiting.add(half),
            _ => next.ledger.hand_in(NodeId::at(at), half),
        }
        next.nodes[at].0 = At::Ends(pile);
        Some(next)
    }

    fn ends(self, world: &World, at: usize, rest: Pile<u8>) -> World {
        let mut next = world.clone();
        let (is_at, ran) = &mut next.nodes[at];
        *is_at = match next.ledger.end_lease(NodeId::at(at), rest, vec![*ran]) {
            Some(tasks) => At::Runs(tasks),
            None => At::Waits,
        };
        next
    }

    fn loses(self, world: &World, at: usize) -> World {
        let mut next = world.clone();
        if self.mistake == Mistake::LeaseLost {
            next.ledger.members[at].lease = None;
        }
        next.ledger.lost(NodeId::at(at));
        if self.mistake == Mistake::AwaitsLost {
            next.ledger.members[at].takes_part = TakesPart::NotYet;
        }
        next.nodes[at].0 = At::Lost;
        next.losses -= 1;
        next
    }

    /// Explores every run: how many states there are, and in how many a node is lost.
    fn explore(self) -> Result<(usize, usize), Wrong> {
        let (mut seen, mut open, mut lost) = (HashSet::new(), vec![self.first()], 0);
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            lost += usize::from(world.losses < self.losses);
            let next = self.next(&world)?;
            let is_over = |at: &At| matches!(at, At::Left | At::Lost);
            if next.is_empty() && !world.nodes.iter().all(|(at, _)| is_over(at)) {
                return Err(Wrong::Stuck);
            }
            open.extend(next);
        }
        Ok((seen.len(), lost))
    }
}

fn model(nodes: usize, root: u8, mistake: Mistake) -> Model {
    Model {
        nodes,
        losses: nodes as u8 - 1,
        root,
        mistake,
    }
}

#[test]
fn every_run_of_two_and_three_nodes_counts_each_task_once_whoever_is_lost() {
    for (nodes, root) in [(2, 1), (2, 2), (3, 1)] {
        let explored = model(nodes, root, Mistake::Nothing).explore();
        let (states, lost) = explored.unwrap_or_else(|wrong| panic!("{wrong:?}"));
        println!(
            "{nodes} nodes, {} tasks: {states} states, {lost} with losses",
            size(root)
        );
        assert!(lost > 100);
    }
}

#[test]
fn tasks_that_are_lost_with_their_node_are_caught() {
    let wrong = model(2, 1, Mistake::LeaseLost).explore();
    assert_eq!(wrong, Err(Wrong::Lacks));
}

#[test]
fn tasks_that_wait_before_their_maker_counts_are_caught() {
    let wrong = model(2, 1, Mistake::HandedInEarly).explore();
    assert_eq!(wrong, Err(Wrong::Twice));
}

#[test]
fn results_that_count_before_the_lease_ends_are_caught() {
    let wrong = model(2, 1, Mistake::ResultEarly).explore();
    assert_eq!(wrong, Err(Wrong::Twice));
}

#[test]
fn an_end_while_a_node_has_tasks_is_caught() {
    let wrong = model(2, 1, Mistake::OverWithLease).explore();
    assert_eq!(wrong, Err(Wrong::Lacks));
}

#[test]
fn a_lost_node_that_is_waited_for_is_caught() {
    let wrong = model(2, 1, Mistake::AwaitsLost).explore();
    assert_eq!(wrong, Err(Wrong::Stuck));
}

/// What a node makes beside its lease goes with the lease; a second round begins without results.
#[test]
fn rounds_follow_each_other() {
    let mut ledger = Ledger::<u8>::new(3, 2);
    let [zero, one, two] = [0, 1, 2].map(NodeId);
    assert_eq!(
        (ledger.push(zero, 0, 7), ledger.push(one, 0, 8)),
        (None, None)
    );
    assert_eq!(ledger.push(two, 0, 9), Some(2));
    ledger.lost(two);
    assert_eq!(ledger.lost_early(), Some(two));
    for node in [zero, one] {
        ledger.join(node);
        let leased = ledger.lease(node);
        assert!(matches!(leased, Leased::Tasks(tasks) if tasks.len() == 1));
    }
    assert!(!ledger.is_awaited());
    assert_eq!(ledger.push(one, 0, 3), None);
    assert!(ledger.waiting.is_empty() && !ledger.is_over());
    assert_eq!(ledger.end_lease(zero, Pile::default(), vec![1]), None);
    assert!(ledger.is_awaited());
    let next = ledger.end_lease(one, Pile::default(), vec![2]);
    assert_eq!(next.map(|tasks| tasks.len()), Some(1));
    assert_eq!(ledger.end_lease(one, Pile::default(), vec![3]), None);
    for node in [zero, one] {
        assert_eq!(ledger.lease(node), Leased::Over);
        assert_eq!(ledger.results(), [[1], [3]]);
    }
    assert!(!ledger.is_over());
    ledger.join(one);
    assert!(ledger.results().is_empty());
    // What no sound node says is dropped.
    assert_eq!(ledger.end_lease(NodeId(9), Pile::default(), vec![1]), None);
    ledger.hand_in(NodeId(9), Pile::default());
    ledger.join(NodeId(9));
}

/// Tasks that wait for the end of a lease are tasks that wait.
#[test]
fn what_is_made_beside_a_lease_is_bounded_before_the_lease_ends() {
    let mut ledger = Ledger::<u8>::new(2, 2);
    let [zero, one] = [0, 1].map(NodeId);
    assert_eq!(ledger.push(zero, 0, 7), None);
    for node in [zero, one] {
        ledger.join(node);
    }
    assert!(matches!(ledger.lease(one), Leased::Tasks(_)));
    assert_eq!(ledger.push(one, 0, 1), None);
    assert_eq!(ledger.push(one, 0, 2), None);
    assert_eq!(ledger.push(one, 0, 3), Some(2));
    assert_eq!(ledger.push(zero, 0, 3), Some(2));
    let next = ledger.end_lease(one, Pile::default(), vec![1]);
    assert_eq!(next.map(|tasks| tasks.len()), Some(1));
    assert_eq!(ledger.push(zero, 0, 3), None);
}
