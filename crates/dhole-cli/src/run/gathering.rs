//! What is known of how nodes find each other and lose each other, by what they say themselves.

use std::collections::BTreeSet;

use super::line::Word;

/// Who meets, who has joined, who never will, and who was lost first.
#[derive(Default)]
pub struct Gathering {
    meets: BTreeSet<u16>,
    joined: BTreeSet<u16>,
    /// Ended as if nothing were wrong, and had not joined.
    left: Vec<u16>,
    lost: Option<Lost>,
}

/// A node that another one lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Which.
    pub node: u16,
    /// Who said so first.
    pub by: u16,
    /// In its words.
    pub how: String,
}

impl Gathering {
    /// Takes what a node says.
    pub fn said(&mut self, node: u16, word: Word) {
        match word {
            Word::Meets { .. } => drop(self.meets.insert(node)),
            Word::Joined => drop(self.joined.insert(node)),
            Word::Lost { peer, how } => {
                let lost = Lost {
                    node: peer,
                    by: node,
                    how,
                };
                self.lost.get_or_insert(lost);
            }
        }
    }

    /// Takes that a node has ended. Returns whether the others wait for it in vain, if they do.
    pub fn ended(&mut self, node: u16, well: bool) -> bool {
        let missing = !self.joined.contains(&node);
        if missing && well {
            self.left.push(node);
        }
        missing
    }

    /// Who ended without having joined, where others want to join: the first one.
    pub fn stood_up(&self) -> Option<u16> {
        let first = *self.left.first()?;
        self.meets
            .iter()
            .any(|node| *node != first)
            .then_some(first)
    }

    /// Who of so many nodes did not even try to join, where `first`, which did, failed before it
    /// had.
    pub fn never_came(&self, nodes: u16, first: u16) -> Option<u16> {
        let in_vain = self.meets.contains(&first) && !self.joined.contains(&first);
        let mut missing = (0..nodes).filter(|node| !self.meets.contains(node));
        missing.next().filter(|_| in_vain)
    }

    /// Whether this node has begun to join.
    pub fn has_met(&self, node: u16) -> bool {
        self.meets.contains(&node)
    }

    /// Whether no node has tried to join.
    pub fn is_empty(&self) -> bool {
        self.meets.is_empty()
    }

    /// Who was lost first.
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_before_it_joined_is_missed_only_where_others_meet() {
        let mut nodes = Gathering::default();
        assert!(nodes.ended(1, true));
        assert!(nodes.is_empty() && nodes.stood_up().is_none());
        nodes.said(0, Word::Meets { process: 1 });
        assert_eq!(nodes.stood_up(), Some(1));

        let mut nodes = Gathering::default();
        for node in 0..3 {
            nodes.said(node, Word::Meets { process: 1 });
            nodes.said(node, Word::Joined);
        }
        assert!(!nodes.ended(1, true));
        assert!(!nodes.is_empty() && nodes.stood_up().is_none());

        let mut nodes = Gathering::default();
        nodes.said(1, Word::Meets { process: 1 });
        assert!(nodes.ended(1, true));
        assert!(nodes.stood_up().is_none(), "nobody waits for it");
    }

    #[test]
    fn who_waited_in_vain_is_not_to_blame_for_who_never_came() {
        let mut nodes = Gathering::default();
        nodes.said(0, Word::Meets { process: 1 });
        nodes.said(2, Word::Meets { process: 1 });
        assert_eq!(nodes.never_came(3, 0), Some(1));
        assert_eq!(nodes.never_came(3, 1), None, "it failed by itself");
        nodes.said(1, Word::Meets { process: 1 });
        assert_eq!(nodes.never_came(3, 0), None);
    }

    #[test]
    fn the_first_loss_is_the_one_that_counts() {
        let mut nodes = Gathering::default();
        for (node, peer) in [(2, 1), (0, 2)] {
            let how = "silence".to_owned();
            nodes.said(node, Word::Lost { peer, how });
        }
        let lost = nodes.lost().unwrap();
        assert_eq!((lost.node, lost.by, &lost.how[..]), (1, 2, "silence"));
    }
}
