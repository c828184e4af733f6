//! The fetches that the worker waits for: one question to each node that has some of it, all asked
//! at once.

use dhole_model::NodeId;
use smallvec::SmallVec;

use crate::ProtocolError;
use crate::transfer::MOST_WANTED;

/// What one message asks for. One as a rule, and then nothing is allocated.
pub(crate) type Wants<W> = SmallVec<[W; 1]>;

/// A round of questions. Each question has a number of its own, so each reply counts once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PendingFetches<W> {
    /// The number of the last question.
    number: u32,
    /// What has yet to come and from whom, in order of the nodes.
    awaited: Vec<(NodeId, W)>,
    /// The questions that are open, one to a node at most.
    open: Vec<Question>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Question {
    to: NodeId,
    number: u32,
    wants: usize,
}

impl<W: Copy + Ord> PendingFetches<W> {
    pub fn new() -> PendingFetches<W> {
        PendingFetches {
            number: 0,
            awaited: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The nodes that have yet to answer.
    pub fn asked(&self) -> impl Iterator<Item = NodeId> {
        self.open.iter().map(|question| question.to)
    }

    /// A new round; replies to an earlier one are nobody's from now on.
    pub fn begin(&mut self) {
        self.awaited.clear();
        self.open.clear();
    }

    /// Adds to a round before it is [asked](PendingFetches::ask).
    pub fn want(&mut self, from: NodeId, what: W) {
        self.awaited.push((from, what));
    }

    /// Asks each node for what it has, unless it has yet to answer; `send` takes the node, the
    /// question's number, and what is wanted in ascending order.
    pub fn ask(&mut self, mut send: impl FnMut(NodeId, u32, Asked<'_, W>)) {
        if self.awaited.len() > 1 {
            self.awaited.sort_unstable();
            self.awaited.dedup();
        }
        let mut rest = &self.awaited[..];
        while let Some(&(to, _)) = rest.first() {
            let (of_node, behind) = rest.split_at(rest.partition_point(|(node, _)| *node == to));
            rest = behind;
            if self.open.iter().any(|question| question.to == to) {
                continue;
            }
            let asked = &of_node[..of_node.len().min(MOST_WANTED)];
            self.number = self.number.wrapping_add(1);
            self.open.push(Question {
                to,
                number: self.number,
                wants: asked.len(),
            });
            send(to, self.number, asked);
        }
    }

    /// What the question of this number asks for, if it is open.
    ///
    /// # Errors
    /// [`ProtocolError::BadMessage`] when another node than `from` was asked.
    pub fn question(
        &self,
        from: NodeId,
        number: u32,
    ) -> Result<Option<Asked<'_, W>>, ProtocolError> {
        let Some(question) = self.open.iter().find(|open| open.number == number) else {
            return Ok(None);
        };
        if question.to != from {
            let what = "a reply to another node's question";
            return Err(ProtocolError::BadMessage { from, what });
        }
        let first = self.first_of(from);
        Ok(Some(&self.awaited[first..first + question.wants]))
    }

    /// The open question to `from` is answered; asks for what is left there.
    pub fn answered(&mut self, from: NodeId, send: impl FnMut(NodeId, u32, Asked<'_, W>)) {
        let Some(at) = self.open.iter().position(|open| open.to == from) else {
            return;
        };
        let question = self.open.swap_remove(at);
        let first = self.first_of(from);
        self.awaited.drain(first..first + question.wants);
        self.ask(send);
    }

    /// Whether anything like this has yet to come.
    pub fn awaits(&self, is: impl Fn(&W) -> bool) -> bool {
        self.awaited.iter().any(|(_, what)| is(what))
    }

    fn first_of(&self, node: NodeId) -> usize {
        self.awaited.partition_point(|(other, _)| *other < node)
    }

    /// Whether all has come.
    pub fn is_over(&self) -> bool {
        self.awaited.is_empty()
    }
}

/// What a question asks for, each beside the node that was asked.
pub(crate) type Asked<'a, W> = &'a [(NodeId, W)];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fetches: &mut PendingFetches<u32>) -> Vec<(u16, u32, Vec<u32>)> {
        let mut asked = Vec::new();
        fetches.ask(|to, number, wants| {
            let wants = wants.iter().map(|(_, what)| *what).collect();
            asked.push((to.0, number, wants))
        });
        asked
    }

    #[test]
    fn each_node_is_asked_once_for_all_that_it_has() {
        let mut fetches = PendingFetches::new();
        for (node, what) in [(2, 7), (1, 5), (2, 6), (1, 5)] {
            fetches.want(NodeId(node), what);
        }
        assert_eq!(asked(&mut fetches), [(1, 1, vec![5]), (2, 2, vec![6, 7])]);
        assert!(
            fetches.question(NodeId(2), 1).is_err(),
            "node 1 was asked that"
        );
        assert_eq!(fetches.question(NodeId(1), 3), Ok(None));
        fetches.answered(NodeId(2), |_, _, _| panic!("nothing is left there"));
        assert_eq!(
            fetches.question(NodeId(2), 2),
            Ok(None),
            "a reply counts once"
        );
        assert!(!fetches.is_over());
        fetches.answered(NodeId(1), |_, _, _| panic!("nothing is left there"));
        assert!(fetches.is_over());
    }

    #[test]
    fn what_one_message_cannot_ask_for_is_asked_when_it_is_answered() {
        let mut fetches = PendingFetches::new();
        (0..2 * MOST_WANTED as u32 + 1).for_each(|what| fetches.want(NodeId(3), what));
        assert_eq!(asked(&mut fetches)[0].2.len(), MOST_WANTED);
        let mut more = Vec::new();
        for _ in 0..3 {
            fetches.answered(NodeId(3), |_, number, wants| {
                more.push((number, wants.len()))
            });
        }
        assert_eq!(more, [(2, MOST_WANTED), (3, 1)]);
        assert!(fetches.is_over());
    }
}
