//! Every run of few numbers on two and three nodes of which some are lost, and of mistakes that
//! must be found.

use std::collections::HashSet;

use super::*;

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    Nothing,
    /// The part of a lost node does not wait again.
    PartLost,
    /// The numbers that only a lost node may take do not wait.
    OwnLost,
    /// All counts as done while a node has a part.
    OverWithPart,
    /// A node that waits still has its part.
    PartKept,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    /// All counts as done, and a number is not.
    Lacks,
    /// Two nodes that are both there have done a number.
    Twice,
    /// Nodes wait, and nothing happens any more.
    Stuck,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum At {
    Begins,
    Waits,
    Has(Range<u64>),
    Left,
    Lost,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    parts: Parts,
    /// Where each node is, and the numbers of the parts that it has ended.
    nodes: Vec<(At, u64)>,
    /// So many more nodes may be lost.
    losses: u8,
}

#[derive(Clone, Copy)]
struct Model {
    nodes: usize,
    numbers: u64,
    schedule: Schedule,
    mistake: Mistake,
}

impl Model {
    fn first(self) -> World {
        World {
            parts: Parts::new(0..self.numbers, self.schedule, self.nodes),
            nodes: vec![(At::Begins, 0); self.nodes],
            losses: self.nodes as u8 - 1,
        }
    }

    fn next(self, world: &World) -> Result<Vec<World>, Wrong> {
        let mut all = Vec::new();
        for at in 0..self.nodes {
            match world.nodes[at].0.clone() {
                At::Begins => all.push(self.ends(world, at, 0..0)?),
                At::Waits => all.extend(self.waits(world, at)?),
                At::Has(part) => all.push(self.ends(world, at, part)?),
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

    fn ends(self, world: &World, at: usize, part: Range<u64>) -> Result<World, Wrong> {
        let mut next = world.clone();
        for number in part {
            let bit = 1 << number;
            let done = |(_, done): &(At, u64)| done & bit != 0;
            if next.nodes.iter().any(done) {
                return Err(Wrong::Twice);
            }
            next.nodes[at].1 |= bit;
        }
        let kept = next.parts.members[at].part.clone();
        next.nodes[at].0 = match next.parts.next_part(NodeId::at(at)) {
            Some(part) => At::Has(part),
            None => At::Waits,
        };
        if self.mistake == Mistake::PartKept && next.nodes[at].0 == At::Waits {
            next.parts.members[at].part = kept;
        }
        Ok(next)
    }

    fn waits(self, world: &World, at: usize) -> Result<Option<World>, Wrong> {
        let mut next = world.clone();
        let parts = &mut next.parts;
        if self.mistake == Mistake::OverWithPart {
            parts.members.iter_mut().for_each(|it| it.part = None);
        }
        if !parts.can_take() {
            return Ok(None);
        }
        next.nodes[at].0 = match parts.await_part(NodeId::at(at)) {
            Some(part) => At::Has(part),
            None => {
                let done = next.nodes.iter().fold(0, |all, (_, done)| all | done);
                if done != (1 << self.numbers) - 1 {
                    return Err(Wrong::Lacks);
                }
                At::Left
            }
        };
        Ok(Some(next))
    }

    fn loses(self, world: &World, at: usize) -> World {
        let mut next = world.clone();
        let member = &mut next.parts.members[at];
        match self.mistake {
            Mistake::PartLost => member.part = None,
            Mistake::OwnLost => member.own = None,
            _ => {}
        }
        next.parts.lost(NodeId::at(at));
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
            lost += usize::from(usize::from(world.losses) + 1 < self.nodes);
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

fn model(nodes: usize, schedule: Schedule, mistake: Mistake) -> Model {
    Model {
        nodes,
        numbers: 5,
        schedule,
        mistake,
    }
}

const SCHEDULES: [Schedule; 3] = [Schedule::Static, Schedule::Dynamic(2), Schedule::Guided];

#[test]
fn every_run_of_two_and_three_nodes_does_each_number_once_whoever_is_lost() {
    for nodes in [2, 3] {
        for schedule in SCHEDULES {
            let explored = model(nodes, schedule, Mistake::Nothing).explore();
            let (states, lost) = explored.unwrap_or_else(|wrong| panic!("{wrong:?}"));
            println!("{nodes} nodes, {schedule:?}: {states} states, {lost} with losses");
            assert!(lost > 10);
        }
    }
}

#[test]
fn parts_that_are_lost_with_their_node_are_caught() {
    for schedule in SCHEDULES {
        let wrong = model(2, schedule, Mistake::PartLost).explore();
        assert_eq!(wrong, Err(Wrong::Lacks), "{schedule:?}");
    }
    let wrong = model(2, Schedule::Static, Mistake::OwnLost).explore();
    assert_eq!(wrong, Err(Wrong::Lacks));
}

#[test]
fn an_end_while_a_node_has_a_part_is_caught() {
    for schedule in SCHEDULES {
        let wrong = model(2, schedule, Mistake::OverWithPart).explore();
        assert_eq!(wrong, Err(Wrong::Lacks), "{schedule:?}");
    }
}

#[test]
fn a_node_that_waits_with_its_part_is_caught() {
    for schedule in SCHEDULES {
        let wrong = model(2, schedule, Mistake::PartKept).explore();
        assert!(
            matches!(wrong, Err(Wrong::Twice | Wrong::Stuck)),
            "{schedule:?}: {wrong:?}"
        );
    }
}

/// Of a lost node's own numbers each other node takes as many as each other.
#[test]
fn what_a_lost_node_had_is_divided_among_the_others() {
    let mut parts = Parts::new(10..22, Schedule::Static, 3);
    let [zero, one, two] = [0, 1, 2].map(NodeId);
    assert_eq!(parts.next_part(zero), Some(10..14));
    assert_eq!(parts.next_part(one), Some(14..18));
    parts.lost(two);
    assert_eq!(parts.next_part(zero), Some(18..20));
    assert_eq!(parts.next_part(one), Some(20..21));
    assert_eq!(parts.next_part(zero), Some(21..22));
    assert_eq!((parts.next_part(zero), parts.can_take()), (None, false));
    assert_eq!((parts.next_part(one), parts.can_take()), (None, true));
    assert_eq!(parts.await_part(zero), None);
    // What no sound node says is dropped.
    assert_eq!(parts.next_part(NodeId(9)), None);
    let none = Parts::new(7..7, Schedule::Guided, 2);
    assert!(none.can_take());
}
