//! Fetches under way. The worker waits for its own: one question to each node that has some of it,
//! all asked at once. Others wait here until what they ask for is not being written.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use dhole_model::{NodeId, OidRange};

use crate::coherence::region::Region;
use crate::transfer::MOST_WANTED;
use crate::{Follow, ProtocolError, Sent, SentList, Wanted, WantedList};

/// What a round asks a node for: first what the worker waits for, then what lies beside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Want<R> {
    /// It is asked for because of its place, and may be left out.
    pub beside: bool,
    pub wanted: Wanted<R>,
}

/// A round of questions. Each question has a number of its own, so each reply counts once.
#[derive(Clone, Debug)]
pub(crate) struct PendingFetches<W> {
    /// The number of the last question.
    number: u32,
    /// What has to come and from whom, in order of the nodes from the first question on. None of it
    /// goes before all has come: a round of many questions would move the rest for each reply.
    awaited: Vec<(NodeId, W)>,
    /// What of that has yet to come, by node, from the first question on.
    left: Vec<(NodeId, Range<usize>)>,
    /// The questions that are open, one to a node at most.
    open: Vec<Question>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Question {
    to: NodeId,
    number: u32,
    wants: usize,
}

/// What has come is no part of a node's state.
impl<W: PartialEq> PartialEq for PendingFetches<W> {
    fn eq(&self, other: &PendingFetches<W>) -> bool {
        (self.number, &self.open) == (other.number, &other.open) && self.rest().eq(other.rest())
    }
}

impl<W: Eq> Eq for PendingFetches<W> {}

impl<W: Hash> Hash for PendingFetches<W> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.rest().for_each(|awaited| awaited.hash(state));
        self.open.hash(state);
    }
}

impl<W> PendingFetches<W> {
    /// What has yet to come, and from whom.
    fn rest(&self) -> impl Iterator<Item = &(NodeId, W)> {
        let all = match self.left.is_empty() {
            true => &self.awaited[..],
            false => &[],
        };
        let left = self.left.iter();
        let left = left.flat_map(|(_, rest)| &self.awaited[rest.clone()]);
        all.iter().chain(left)
    }
}

impl<W> Default for PendingFetches<W> {
    fn default() -> Self {
        PendingFetches {
            number: 0,
            awaited: Vec::new(),
            left: Vec::new(),
            open: Vec::new(),
        }
    }
}

impl<W: Ord + Copy> PendingFetches<W> {
    /// The nodes that have yet to answer.
    pub fn asked(&self) -> impl Iterator<Item = NodeId> {
        self.open.iter().map(|question| question.to)
    }

    /// A new round; replies to an earlier one are nobody's from now on.
    pub fn begin(&mut self) {
        self.awaited.clear();
        self.left.clear();
        self.open.clear();
    }

    /// Adds to a round before it is [asked](PendingFetches::ask).
    #[inline]
    pub fn add(&mut self, from: NodeId, want: W) {
        debug_assert!(self.left.is_empty(), "the round has begun");
        self.awaited.push((from, want));
    }

    /// Asks each node for what it has, unless it has yet to answer; `send` takes the node, the
    /// question's number, and what is wanted in ascending order.
    pub fn ask(&mut self, mut send: impl FnMut(NodeId, u32, Asked<'_, W>)) {
        if self.left.is_empty() {
            self.group();
        }
        for (to, left) in &self.left {
            if self.open.iter().any(|question| question.to == *to) {
                continue;
            }
            let asked = &self.awaited[left.clone()];
            let asked = &asked[..asked.len().min(MOST_WANTED)];
            self.number = self.number.wrapping_add(1);
            self.open.push(Question {
                to: *to,
                number: self.number,
                wants: asked.len(),
            });
            send(*to, self.number, asked);
        }
    }

    /// The round is complete: finds what each node is to be asked for.
    fn group(&mut self) {
        if self.awaited.len() > 1 {
            self.awaited.sort_unstable();
            self.awaited.dedup();
        }
        let mut first = 0;
        let of_one = |(a, _): &(NodeId, W), (b, _): &(NodeId, W)| a == b;
        for of_node in self.awaited.chunk_by(of_one) {
            let end = first + of_node.len();
            self.left.push((of_node[0].0, first..end));
            first = end;
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
        let left = self.left.iter().find(|(node, _)| *node == from);
        let first = left.map_or(0, |(_, left)| left.start);
        Ok(Some(&self.awaited[first..first + question.wants]))
    }

    /// The open question to `from` is answered. What is left there is asked for next.
    pub fn answered(&mut self, from: NodeId) {
        let Some(at) = self.open.iter().position(|open| open.to == from) else {
            return;
        };
        let question = self.open.swap_remove(at);
        let Some(at) = self.left.iter().position(|(node, _)| *node == from) else {
            return;
        };
        let left = &mut self.left[at].1;
        left.start += question.wants;
        if left.start == left.end {
            self.left.remove(at);
        }
        if self.left.is_empty() {
            self.awaited.clear();
        }
    }

    /// Whether all has come.
    pub fn is_over(&self) -> bool {
        self.awaited.is_empty()
    }
}

impl<R: Region> PendingFetches<Want<R>> {
    /// How much is wanted so far.
    pub fn wanted(&self) -> usize {
        self.awaited.len()
    }

    /// As [`add`](PendingFetches::add). A region that follows on the one added last and needs the
    /// same version is joined to that, if that is none of so many `before`.
    #[inline]
    pub fn want(&mut self, before: usize, beside: bool, wanted: Wanted<R>) {
        let last = self.awaited[before..]
            .last_mut()
            .map(|(_, last)| &mut last.wanted);
        let last = last.filter(|last| last.need == wanted.need);
        match last.and_then(|last| Some((last.region.join(wanted.region)?, last))) {
            Some((joined, last)) => last.region = joined,
            None => self.add(wanted.need.node, Want { beside, wanted }),
        }
    }

    /// The node that has all that is wanted so far, if there is one such node.
    pub fn only_one(&self) -> Option<NodeId> {
        let (first, _) = self.awaited.first()?;
        let is_first = self.awaited.iter().all(|(node, _)| node == first);
        is_first.then_some(*first)
    }

    /// Whether some of a region has yet to come.
    pub fn awaits(&self, region: R) -> bool {
        let mut rest = self.rest();
        rest.any(|(_, want)| want.wanted.region.meets(region))
    }
}

/// What a question asks for, each beside the node that was asked.
pub(crate) type Asked<'a, W> = &'a [(NodeId, W)];

/// Regions of one kind that are asked for, here and of this node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Fetching<R> {
    /// What the worker waits for, and from whom.
    pub fetches: PendingFetches<Want<R>>,
    /// What lies on the page of the object that is missed next.
    pub beside: Vec<R>,
    /// What is read ahead with it.
    pub ahead: Option<OidRange>,
    /// What should come along with it.
    pub follow: Follow,
    pub spare: SpareLists<R>,
}

impl<R> Default for Fetching<R> {
    fn default() -> Self {
        Fetching {
            fetches: PendingFetches::default(),
            beside: Vec::new(),
            ahead: None,
            follow: Follow::default(),
            spare: SpareLists::default(),
        }
    }
}

/// Lists of questions and replies that are used again. A reply goes in the list that its question
/// came in, and the asker keeps it for the next question: so a warm miss allocates nothing,
/// however much it brings.
#[derive(Debug)]
pub(crate) struct SpareLists<R>(Vec<WantedList<R>>);

impl<R> Default for SpareLists<R> {
    fn default() -> Self {
        SpareLists(Vec::new())
    }
}

impl<R: Region> SpareLists<R> {
    /// More are not kept: as many nodes may be asked at once without allocating.
    const MOST: usize = 64;

    /// What a node is asked for in a round, and how much of it nobody waits for.
    pub fn question(&mut self, asked: Asked<'_, Want<R>>) -> (WantedList<R>, u16) {
        if let [(_, want)] = asked {
            return (WantedList::from_buf([want.wanted]), u16::from(want.beside));
        }
        let mut wanted = self.0.pop().unwrap_or_default();
        wanted.extend(asked.iter().map(|(_, want)| want.wanted));
        let beside = asked.iter().filter(|(_, want)| want.beside).count() as u16;
        (wanted, beside)
    }

    /// The list of a reply, filled with what `sent` makes of the question.
    pub fn reply(
        wanted: WantedList<R>,
        mut sent: impl FnMut(Wanted<R>) -> Option<Sent<R>>,
    ) -> SentList<R> {
        if let [wanted] = wanted[..] {
            return sent(wanted).map_or_else(SentList::new, |sent| SentList::from_buf([sent]));
        }
        match wanted.spilled() {
            true => SentList::from_vec(wanted.into_vec().into_iter().filter_map(sent).collect()),
            false => wanted.into_iter().filter_map(sent).collect(),
        }
    }

    /// Keeps the list of a reply.
    pub fn keep(&mut self, sent: SentList<R>) {
        if sent.spilled() && self.0.len() < Self::MOST {
            let mut sent = sent.into_vec();
            sent.clear();
            let none = |sent: Sent<R>| Wanted {
                region: sent.region,
                need: sent.version,
            };
            // As long as both have one layout, the library keeps the buffer.
            self.0
                .push(WantedList::from_vec(sent.into_iter().map(none).collect()));
        }
    }
}

/// Empty lists are no part of a node's state.
impl<R> PartialEq for SpareLists<R> {
    fn eq(&self, _: &SpareLists<R>) -> bool {
        true
    }
}

impl<R> Eq for SpareLists<R> {}

impl<R> std::hash::Hash for SpareLists<R> {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl<R> Clone for SpareLists<R> {
    fn clone(&self) -> SpareLists<R> {
        SpareLists::default()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use dhole_model::{Elements, Oid, Version};

    use super::*;

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// A place whose comparisons are counted.
    #[derive(Clone, Copy, Debug)]
    struct Counted(u64);

    impl Ord for Counted {
        fn cmp(&self, other: &Counted) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Counted) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Counted {}

    fn want(fetches: &mut PendingFetches<Want<Oid>>, node: u16, oid: u64) {
        let (lamport, node) = (0, NodeId(node));
        let need = Version { lamport, node };
        let region = Oid(oid);
        fetches.want(0, false, Wanted { region, need });
    }

    fn asked(fetches: &mut PendingFetches<Want<Oid>>) -> Vec<(u16, u32, Vec<u64>)> {
        let mut asked = Vec::new();
        fetches.ask(|to, number, wants| {
            let oids = wants.iter().map(|(_, want)| want.wanted.region.0);
            asked.push((to.0, number, oids.collect()))
        });
        asked
    }

    #[test]
    fn each_node_is_asked_once_for_all_that_it_has() {
        let mut fetches = PendingFetches::default();
        for (node, oid) in [(2, 7), (1, 5), (2, 6), (1, 5)] {
            want(&mut fetches, node, oid);
        }
        assert_eq!(asked(&mut fetches), [(1, 1, vec![5]), (2, 2, vec![6, 7])]);
        assert!(
            fetches.question(NodeId(2), 1).is_err(),
            "node 1 was asked that"
        );
        assert_eq!(fetches.question(NodeId(1), 3), Ok(None));
        fetches.answered(NodeId(2));
        assert_eq!(
            fetches.question(NodeId(2), 2),
            Ok(None),
            "a reply counts once"
        );
        assert!(!fetches.is_over());
        fetches.answered(NodeId(1));
        assert!(fetches.is_over());
        assert_eq!(asked(&mut fetches), [], "nothing is left");
    }

    #[test]
    fn what_one_message_cannot_ask_for_is_asked_when_it_is_answered() {
        let mut fetches = PendingFetches::default();
        (0..2 * MOST_WANTED as u64 + 1).for_each(|oid| want(&mut fetches, 3, oid));
        assert_eq!(asked(&mut fetches)[0].2.len(), MOST_WANTED);
        let mut more = Vec::new();
        for _ in 0..3 {
            fetches.answered(NodeId(3));
            let asked = asked(&mut fetches);
            more.extend(
                asked
                    .into_iter()
                    .map(|(_, number, oids)| (number, oids.len())),
            );
        }
        assert_eq!(more, [(2, MOST_WANTED), (3, 1)]);
        assert!(fetches.is_over());
    }

    /// What is left of a round is neither sorted nor searched again, however much it is.
    #[test]
    fn after_a_round_has_begun_its_replies_compare_nothing() {
        const WANTS: u64 = 64 * MOST_WANTED as u64;
        let mut fetches = PendingFetches::default();
        for place in 0..WANTS {
            fetches.add(NodeId(1), Counted(2 * place));
        }
        let mut asked = 0;
        fetches.ask(|_, _, wants| asked += wants.len() as u64);
        COMPARED.set(0);
        while !fetches.is_over() {
            fetches.answered(NodeId(1));
            fetches.ask(|_, _, wants| asked += wants.len() as u64);
        }
        assert_eq!((asked, COMPARED.get()), (WANTS, 0));
    }

    #[test]
    fn elements_that_follow_on_each_other_are_one_region_of_a_miss() {
        let mut fetches = PendingFetches::default();
        let mut want = |before, lamport, range| {
            let (node, region) = (NodeId(1), Elements::new(Oid(64), range));
            let need = Version { lamport, node };
            fetches.want(before, false, Wanted { region, need });
            fetches.wanted()
        };
        assert_eq!(want(0, 3, 0..2), 1);
        assert_eq!(want(0, 3, 2..5), 1);
        assert_eq!(want(0, 4, 5..6), 2, "it needs another version");
        assert_eq!(want(2, 4, 6..7), 3, "another miss");
    }
}
