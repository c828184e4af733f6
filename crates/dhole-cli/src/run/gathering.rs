//! How nodes join, lose each other and fail, according to their own reports.

use std::collections::{BTreeMap, BTreeSet};

use dhole::net::Loss;

use super::line::Word;

/// The nodes that began to join, that have joined, and that never will; the first that was lost,
/// and the first that reported its own failure. A node whose program is a script may join several
/// times, with one program after the other.
#[derive(Default)]
pub struct Gathering {
    /// The number of times that each node has begun to join, and has joined.
    meets: BTreeMap<u16, u32>,
    joined: BTreeMap<u16, u32>,
    /// The largest number of times that a node has begun to join.
    most_met: u32,
    /// The nodes that ended, in this order, and whether each succeeded.
    ended: Vec<(u16, bool)>,
    /// The first node that each node has lost, in the order of the reports.
    lost: Vec<Lost>,
    /// The nodes whose run has ended well, and that have not begun another, and when it ended.
    over: BTreeMap<u16, u64>,
    /// The nodes whose run goes on if others are lost.
    survives: BTreeSet<u16>,
    /// At most one failure of each node, in the order of the reports.
    failed: Vec<Failed>,
    /// The exit codes with which programs end the run: the first of each node, in the order of the
    /// reports.
    exits: Vec<(u16, u8)>,
}

/// A node that another one lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Which.
    pub node: u16,
    /// The first node that reported it.
    pub by: u16,
    /// In its words.
    pub how: String,
}

/// A node that failed by itself, and not because another had failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Which.
    pub node: u16,
    /// In its words.
    pub how: String,
    /// The number of nodes that had ended before it said so.
    pub after: usize,
}

/// A node that waits for another, which has ended, to join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InVain {
    /// The node that waits.
    pub waits: u16,
    /// The node that has ended.
    pub ended: u16,
}

impl Gathering {
    /// Takes a report of a node. Returns the nodes for which it waits in vain from here on.
    pub fn said(&mut self, node: u16, word: Word) -> Vec<InVain> {
        match word {
            Word::Meets { .. } => {
                self.survives.remove(&node);
                self.exits.retain(|(of, _)| *of != node);
                let met = self.meets.entry(node).or_default();
                *met += 1;
                self.most_met = self.most_met.max(*met);
                let ended = self.ended.iter().map(|(ended, _)| *ended);
                let waits = |ended| InVain { waits: node, ended };
                return ended.map(waits).filter(|it| self.is(*it)).collect();
            }
            Word::Joined => *self.joined.entry(node).or_default() += 1,
            Word::Lost { peer, how } => {
                let lost = Lost {
                    node: peer,
                    by: node,
                    how,
                };
                if self.lost.iter().all(|known| known.by != node) {
                    self.lost.push(lost);
                }
            }
            Word::Failed { how } => {
                let after = self.ended.len();
                self.failed.retain(|failed| failed.node != node);
                self.failed.push(Failed { node, how, after });
            }
            Word::Exits { code } => {
                if self.exits.iter().all(|(of, _)| *of != node) {
                    self.exits.push((node, code));
                }
            }
            // What follows on a failure that was taken may be heard before that it was.
            Word::GoesOn => {
                self.failed.retain(|failed| failed.node != node);
                self.over.remove(&node);
                self.survives.remove(&node);
            }
            Word::Survives => {
                self.survives.insert(node);
            }
            Word::Over { at_ns } => {
                self.over.insert(node, at_ns);
            }
            Word::Stopped(_) | Word::Resumed => {}
        }
        Vec::new()
    }

    /// Notes that a node has ended. Returns the nodes that wait for it in vain.
    pub fn ended(&mut self, node: u16, well: bool) -> Vec<InVain> {
        self.ended.push((node, well));
        self.who_waits_for(node).collect()
    }

    fn who_waits_for(&self, ended: u16) -> impl Iterator<Item = InVain> {
        // As a rule nobody, which is to be known at once: it is asked at every event.
        let some = self.most_met > count(&self.joined, ended);
        let all = some.then(|| self.meets.keys()).into_iter().flatten();
        let waits = all.map(move |waits| InVain {
            waits: *waits,
            ended,
        });
        waits.filter(|it| self.is(*it))
    }

    /// Whether one node has begun to join more often than the other has joined.
    fn is(&self, InVain { waits, ended }: InVain) -> bool {
        waits != ended && count(&self.meets, waits) > count(&self.joined, ended)
    }

    /// The first node that succeeded without having joined, while others want to join.
    pub fn stood_up(&self) -> Option<u16> {
        let mut well = self.ended.iter().filter(|(_, well)| *well);
        let waited_for = |node: u16| self.who_waits_for(node).next().is_some();
        well.find(|(node, _)| waited_for(*node))
            .map(|(node, _)| *node)
    }

    /// Of `nodes` nodes one that did not try to join. `first` did try, and failed before it had
    /// joined.
    pub fn never_came(&self, nodes: u16, first: u16) -> Option<u16> {
        let met = count(&self.meets, first);
        let in_vain = met > count(&self.joined, first);
        let mut missing = (0..nodes).filter(|node| count(&self.meets, *node) < met);
        missing.next().filter(|_| in_vain)
    }

    /// Whether this node has begun to join, and has not joined since.
    pub fn is_joining(&self, node: u16) -> bool {
        count(&self.meets, node) > count(&self.joined, node)
    }

    /// Whether this node has begun to join.
    pub fn has_met(&self, node: u16) -> bool {
        self.meets.contains_key(&node)
    }

    /// Whether this node has ever joined.
    pub fn has_joined(&self, node: u16) -> bool {
        self.joined.contains_key(&node)
    }

    /// Whether no node has tried to join.
    pub fn is_empty(&self) -> bool {
        self.meets.is_empty()
    }

    /// The node that was lost first. Reports of different nodes come in any order. So the report
    /// about a node that left because it had lost another may come before that about the other.
    pub fn lost(&self) -> Option<&Lost> {
        let mut lost = self.lost.first()?;
        let left = Loss::Left.to_string();
        for _ in 0..self.lost.len() {
            if lost.how != left {
                break;
            }
            let before = self.lost.iter().find(|it| it.by == lost.node);
            // Two that have lost each other are both to blame: whoever was heard first counts.
            match before.filter(|it| it.node != lost.by) {
                Some(before) => lost = before,
                None => break,
            }
        }
        Some(lost)
    }

    /// Whether the run of this node is over.
    pub fn is_over(&self, node: u16) -> bool {
        self.over.contains_key(&node)
    }

    /// When the run of this node was over, in nanoseconds of its machine's monotonic clock.
    pub fn over_at_ns(&self, node: u16) -> Option<u64> {
        self.over.get(&node).copied()
    }

    /// Whether the run that this node began goes on if it is lost.
    pub fn survives(&self, node: u16) -> bool {
        self.survives.contains(&node)
    }

    /// The nodes whose programs have ended the run with an exit code, and these.
    pub fn exits(&self) -> &[(u16, u8)] {
        &self.exits
    }

    /// The node that first reported its own failure.
    pub fn failed(&self) -> Option<&Failed> {
        self.failed.first()
    }
}

fn count(of: &BTreeMap<u16, u32>, node: u16) -> u32 {
    of.get(&node).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEETS: Word = Word::Meets { process: 1 };

    #[test]
    fn who_ends_before_it_joined_is_missed_only_where_others_meet() {
        let mut nodes = Gathering::default();
        assert_eq!(nodes.ended(1, true), []);
        assert!(nodes.is_empty() && nodes.stood_up().is_none());
        let (waits, ended) = (0, 1);
        assert_eq!(nodes.said(0, MEETS), [InVain { waits, ended }]);
        assert_eq!(nodes.stood_up(), Some(1));

        let mut nodes = Gathering::default();
        for node in 0..3 {
            nodes.said(node, MEETS);
        }
        for node in 0..3 {
            nodes.said(node, Word::Joined);
        }
        assert_eq!(nodes.ended(1, true), []);
        assert!(!nodes.is_empty() && nodes.stood_up().is_none());

        let mut nodes = Gathering::default();
        nodes.said(1, MEETS);
        assert_eq!(nodes.ended(1, true), []);
        assert!(nodes.stood_up().is_none(), "nobody waits for it");
    }

    #[test]
    fn who_joins_with_a_second_program_waits_in_vain_for_who_ended_after_the_first() {
        let mut nodes = Gathering::default();
        for node in 0..2 {
            nodes.said(node, MEETS);
            nodes.said(node, Word::Joined);
        }
        assert_eq!(nodes.ended(1, true), []);
        assert_eq!(nodes.stood_up(), None);
        let (waits, ended) = (0, 1);
        assert_eq!(nodes.said(0, MEETS), [InVain { waits, ended }]);
        assert_eq!(nodes.stood_up(), Some(1));
    }

    #[test]
    fn who_waited_in_vain_is_not_to_blame_for_who_never_came() {
        let mut nodes = Gathering::default();
        nodes.said(0, MEETS);
        nodes.said(2, MEETS);
        assert_eq!(nodes.never_came(3, 0), Some(1));
        assert_eq!(nodes.never_came(3, 1), None, "it failed by itself");
        nodes.said(1, MEETS);
        assert_eq!(nodes.never_came(3, 0), None);
    }

    #[test]
    fn of_the_exit_codes_of_a_node_the_first_is_kept_until_it_meets_again() {
        let mut nodes = Gathering::default();
        for (node, code) in [(1, 3), (0, 4), (1, 5)] {
            nodes.said(node, Word::Exits { code });
        }
        assert_eq!(nodes.exits(), [(1, 3), (0, 4)]);
        nodes.said(1, MEETS);
        assert_eq!(nodes.exits(), [(0, 4)]);
    }

    #[test]
    fn a_run_is_over_until_the_next_one_begins() {
        let mut nodes = Gathering::default();
        nodes.said(1, Word::Over { at_ns: 7 });
        assert_eq!([0, 1].map(|node| nodes.is_over(node)), [false, true]);
        assert_eq!(nodes.over_at_ns(1), Some(7));
        nodes.said(1, Word::GoesOn);
        assert!(!nodes.is_over(1));
    }

    #[test]
    fn the_first_loss_and_the_first_failure_are_the_ones_that_count() {
        let mut nodes = Gathering::default();
        for (node, peer) in [(2, 1), (0, 2)] {
            let how = "silence".to_owned();
            nodes.said(node, Word::Lost { peer, how });
        }
        let lost = nodes.lost().unwrap();
        assert_eq!((lost.node, lost.by, &lost.how[..]), (1, 2, "silence"));
        // The same in the other order, and where two have lost each other.
        let left = Loss::Left.to_string();
        for (said, how, first) in [
            ([(0, 2), (2, 1)], &left[..], 1),
            ([(0, 1), (1, 0)], &left[..], 1),
            // Who was silent may have been stopped, and have lost the others since.
            ([(0, 1), (1, 2)], "silence", 1),
        ] {
            let mut nodes = Gathering::default();
            for (node, peer) in said {
                let how = how.to_owned();
                nodes.said(node, Word::Lost { peer, how });
            }
            assert_eq!(nodes.lost().unwrap().node, first, "{said:?}");
        }
        nodes.ended(0, false);
        for node in [1, 2] {
            let how = "it panicked".to_owned();
            nodes.said(node, Word::Failed { how });
        }
        let failed = nodes.failed().unwrap();
        assert_eq!((failed.node, failed.after), (1, 1));
        nodes.said(1, Word::GoesOn);
        assert_eq!(nodes.failed().map(|failed| failed.node), Some(2));
        nodes.said(2, Word::GoesOn);
        assert_eq!(nodes.failed(), None);
    }

    #[test]
    fn a_run_survives_until_the_node_begins_another() {
        let mut nodes = Gathering::default();
        nodes.said(1, MEETS);
        assert!(!nodes.survives(1));
        for next in [Word::GoesOn, MEETS] {
            nodes.said(1, Word::Survives);
            assert!(nodes.survives(1) && !nodes.survives(0));
            nodes.said(1, next);
            assert!(!nodes.survives(1));
        }
    }
}
