//! What a worker does that has no task: it looks for one, or finds that none is left.

use dhole_model::NodeId;

use super::state::Counts;

/// The next step of a worker without a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// It takes from its own deque.
    Take,
    /// It steals from another node, and may hang on that.
    Steal { victim: NodeId, hangs: bool },
    /// It tells node 0 that it has nothing to do.
    Report(Counts),
    /// All that is known to be made may be done. It asks a node for what it has made.
    Ask(NodeId),
    /// All is done: it tells a node so.
    End(NodeId),
    /// It waits at its own deque; what it has told node 0.
    Wait(Counts),
}

/// The search of one worker for tasks.
///
/// It steals from a few nodes that chance names, and then from its *lifelines*: the nodes 1, 2, 4,
/// 8 .. places behind it. Of these it asks to give it tasks when they have some, so that it need
/// not ask again (Saraswat and others, "Lifeline-based global load balancing", 2011).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hunt {
    nodes: usize,
    victims: Vec<(NodeId, bool)>,
    /// What this node has made and done.
    counts: Counts,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Takes,
    Steals { next: usize },
    Asks { next: usize, made: u64, done: u64 },
    Ends { next: usize },
    Waits,
}

impl Hunt {
    /// `random` gives a number each time.
    pub fn new(me: NodeId, nodes: usize, mut random: impl FnMut() -> u64) -> Hunt {
        let behind = |places: usize| NodeId::at((me.index() + places) % nodes);
        let steps = (0..usize::BITS).map(|bit| 1_usize << bit);
        let lifelines = steps.take_while(|step| *step < nodes);
        let lifelines = lifelines.map(|step| (behind(step), true));
        // By chance one fewer: of two nodes each is the other's lifeline.
        let by_chance = lifelines.clone().skip(1);
        let by_chance = by_chance.map(|_| (behind(1 + random() as usize % (nodes - 1)), false));
        Hunt {
            nodes,
            victims: by_chance.chain(lifelines).collect(),
            counts: Counts::default(),
            at: At::Takes,
        }
    }

    /// What comes next.
    pub fn step(&self) -> Step {
        match self.at {
            At::Takes => Step::Take,
            At::Steals { next } => match self.victims.get(next) {
                Some(&(victim, hangs)) => Step::Steal { victim, hangs },
                None => Step::Report(self.counts),
            },
            At::Asks { next, .. } => Step::Ask(NodeId::at(next)),
            At::Ends { next } => Step::End(NodeId::at(next)),
            At::Waits => Step::Wait(self.counts),
        }
    }

    /// It has looked into its own deque; what this node has made and done.
    pub fn took(&mut self, counts: Counts) {
        self.counts = counts;
        self.at = At::Steals { next: 0 };
    }

    /// The victim has answered.
    pub fn stole(&mut self) {
        if let At::Steals { next } = &mut self.at {
            *next += 1;
        }
    }

    /// What node 0 said: how many tasks were done, if that is as many as were made.
    pub fn reported(&mut self, done: Option<u64>) {
        self.at = match done {
            Some(done) => At::Asks {
                next: 0,
                made: 0,
                done,
            },
            None => At::Waits,
        };
    }

    /// So many tasks the node has made.
    pub fn asked(&mut self, its: u64) {
        if let At::Asks { next, made, done } = self.at {
            let made = made + its;
            self.at = match (next + 1 < self.nodes, made == done) {
                (true, _) => At::Asks {
                    next: next + 1,
                    made,
                    done,
                },
                (false, true) => At::Ends { next: 0 },
                (false, false) => At::Waits,
            };
        }
    }

    /// The node was told.
    pub fn told(&mut self) {
        if let At::Ends { next } = self.at {
            self.at = match next + 1 < self.nodes {
                true => At::Ends { next: next + 1 },
                false => At::Waits,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifelines_of_all_nodes_lead_from_each_to_each() {
        for nodes in 1..=40 {
            let hunts: Vec<Hunt> = (0..nodes)
                .map(|me| Hunt::new(NodeId::at(me), nodes, || 5))
                .collect();
            let mut reached = vec![0];
            let mut next = 0;
            while let Some(node) = reached.get(next).copied() {
                next += 1;
                for (victim, hangs) in &hunts[node].victims {
                    assert!(victim.index() != node && victim.index() < nodes);
                    if *hangs && !reached.contains(&victim.index()) {
                        reached.push(victim.index());
                    }
                }
            }
            assert_eq!(reached.len(), nodes);
            let most = 2 * (usize::BITS - nodes.leading_zeros()) as usize;
            assert!(hunts[0].victims.len() <= most, "{nodes} nodes");
        }
    }
}
