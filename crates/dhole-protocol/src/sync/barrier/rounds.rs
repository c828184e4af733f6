//! The rounds of a dissemination barrier (Hensgen, Finkel and Manber): in round `k` each node tells
//! the node `2^k` places behind it that it is there, and hears so from the node `2^k` before it.
//! After `ceil(log2 n)` rounds a node has heard of all others, and none has told more than one at
//! a time.
//!
//! Each round also says whether its sender, or a node that it has heard of, has *news*: what others
//! may lack. Where the last round says that no node has, all go on. Else all arrive at the manager
//! as well, which tells them the news. So all nodes decide alike, and no message is taken back.
//!
//! Rounds that end so were in vain. The manager therefore says at each departure how many of the
//! next barriers begin with rounds: after a barrier with news as many as had none before it, after
//! one without news all that follow. A program with news at every barrier never has rounds.

use dhole_model::{CallSite, IntervalIndex, NodeId};
use dhole_wire::Wire;

use super::Barrier;
use crate::BarrierId;
use crate::error::ProtocolError;

/// So many places of a program are told once, and then by their numbers.
const MOST_PLACES: usize = 64;

/// How many rounds a barrier of so many nodes has.
pub(crate) fn rounds(nodes: usize) -> u32 {
    nodes.next_power_of_two().trailing_zeros()
}

/// What a node says in one round of a barrier of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
pub struct BarrierRound {
    /// The barrier's number.
    pub number: u64,
    /// The round, from 0.
    pub round: u8,
    /// Whether the sender, or a node of which it has heard, has news.
    pub news: bool,
    /// Where the sender is in the program: the number of the place among those that it told of.
    /// Round 0 says so, and the others nothing.
    pub place: u32,
    /// Which place that is, if it was not told before.
    pub site: Option<CallSite>,
}

/// What a node does at barriers that begin with rounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rounds {
    me: NodeId,
    nodes: usize,
    /// Whether the run has barriers with rounds.
    on: bool,
    /// How many of the next barriers of the program begin with rounds.
    left: u32,
    /// How many barriers of the program have had no news since the last with news.
    without_news: u32,
    /// This node's part in the rounds of the barrier that it waits at.
    part: Option<Part>,
    /// What was heard of the barrier that is next here, and of the one after it.
    heard: [Heard; 2],
    /// The places that this node has told of.
    told: Vec<CallSite>,
    /// The places of the node before it, by their numbers.
    known: Vec<Option<CallSite>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Part {
    /// How many rounds this node has told.
    told: u32,
    /// Whether it has news, or has heard in a round before its last that another node has.
    news: bool,
    /// The node waits for what the rounds come to. Otherwise it has arrived at the manager, and
    /// takes part so that others hear that there is news.
    waits: bool,
    site: CallSite,
}

/// What was heard of one barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Heard {
    /// A bit for each round.
    rounds: u32,
    /// The same, where the sender said that there is news.
    news: u32,
    /// Where the node before this one is, once round 0 was heard.
    site: Option<CallSite>,
}

impl Rounds {
    pub fn new(me: NodeId, nodes: usize) -> Rounds {
        Rounds {
            me,
            nodes,
            on: false,
            left: 0,
            without_news: 0,
            part: None,
            heard: [Heard::default(); 2],
            told: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The node that this one tells in a round.
    fn to(&self, round: u32) -> NodeId {
        NodeId::at((self.me.index() + (1 << round)) % self.nodes)
    }

    /// The node that it hears in a round.
    fn from(&self, round: u32) -> NodeId {
        NodeId::at((self.me.index() + self.nodes - (1 << round)) % self.nodes)
    }

    /// A barrier or a collective is over.
    pub fn passed(&mut self) {
        self.part = None;
        self.heard = [self.heard[1], Heard::default()];
    }

    /// A barrier of the program is over at which the manager said how many of the next ones begin
    /// with rounds.
    pub fn told_next(&mut self, next: u32) {
        self.left = if self.on { next } else { 0 };
    }

    /// At the manager: a barrier of the program is over at which all have arrived; how many of the
    /// next ones begin with rounds.
    pub fn plan(&mut self, news: bool) -> u32 {
        if !self.on {
            return 0;
        }
        // Rounds came before, and somebody had news in them.
        if news || self.part.is_some() {
            return std::mem::take(&mut self.without_news);
        }
        self.without_news = self.without_news.saturating_add(1);
        u32::MAX
    }

    /// A barrier of the program is over at which no node had news.
    fn had_no_news(&mut self) {
        self.without_news = self.without_news.saturating_add(1);
        if self.left != u32::MAX {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// The number of a place, and the place if it is told for the first time.
    fn place_of(&mut self, site: CallSite) -> (u32, Option<CallSite>) {
        // Mostly the very same string.
        let is_it = |known: &CallSite| match std::ptr::eq(known.file, site.file) {
            true => (known.line, known.column) == (site.line, site.column),
            false => *known == site,
        };
        if let Some(place) = self.told.iter().position(is_it) {
            return (place as u32, None);
        }
        let place = self.told.len() as u32;
        if self.told.len() < MOST_PLACES {
            self.told.push(site);
        }
        (place, Some(site))
    }

    /// Where the node before this one is, as it says in round 0.
    fn site_of(&self, round: &BarrierRound) -> CallSite {
        let known = || self.known.get(round.place as usize).copied().flatten();
        let site = round.site.or_else(known);
        site.unwrap_or(CallSite::runtime("a barrier"))
    }

    /// The node before this one tells which place has this number, perhaps after later ones.
    fn learn(&mut self, place: u32, site: CallSite) {
        let place = place as usize;
        if place < MOST_PLACES {
            let known = self.known.len().max(place + 1);
            self.known.resize(known, None);
            self.known[place] = Some(site);
        }
    }
}

impl Barrier {
    /// The run has barriers with rounds, and so many of the first begin with them. From the
    /// beginning on.
    pub fn disseminate(&mut self, first: u32) {
        self.rounds.on = self.rounds.nodes > 1;
        self.rounds.told_next(first);
    }

    /// Whether the next barrier of the program begins with rounds, if no collective has let nodes
    /// run ahead of each other. All nodes say the same.
    pub fn begins_with_rounds(&self) -> bool {
        self.rounds.left > 0
    }

    /// The worker arrives at a barrier of the program that begins with rounds; `last` is the newest
    /// of its intervals.
    pub fn begin_rounds(&mut self, news: bool, last: IntervalIndex, site: CallSite) -> BarrierId {
        let barrier = BarrierId::Program(self.passed);
        self.waiting_at = Some(barrier);
        self.tells(last, site);
        self.rounds.part = Some(Part {
            told: 0,
            news,
            waits: true,
            site,
        });
        barrier
    }

    /// This node has arrived at the manager, and has heard of rounds at a barrier of the same
    /// number: it takes part in them, as one that has news. So those that wait there arrive as
    /// well, and the manager sees that they wait elsewhere.
    pub fn join_rounds(&mut self) {
        let heard = self.rounds.heard[0].rounds != 0;
        let (Some(site), Some(at)) = (self.site, self.waiting_at) else {
            return;
        };
        // The barrier behind a collection has the same number.
        let numbered = !matches!(at, BarrierId::Collection(_));
        if heard && numbered && self.rounds.part.is_none() {
            self.rounds.part = Some(Part {
                told: 0,
                news: true,
                waits: false,
                site,
            });
        }
    }

    /// What this node says next in the rounds, and to whom, if it has heard what goes before.
    #[inline]
    pub fn next_round(&mut self) -> Option<(NodeId, BarrierRound)> {
        let number = self.passed;
        let rounds = &mut self.rounds;
        let part = rounds.part.as_mut()?;
        let round = part.told;
        if round >= self::rounds(rounds.nodes) {
            return None;
        }
        if let Some(before) = round.checked_sub(1) {
            if rounds.heard[0].rounds & 1 << before == 0 {
                return None;
            }
            part.news |= rounds.heard[0].news & 1 << before != 0;
        }
        part.told += 1;
        let (news, site) = (part.news, part.site);
        let (place, site) = match round {
            0 => rounds.place_of(site),
            _ => (0, None),
        };
        let said = BarrierRound {
            number,
            round: round as u8,
            news,
            place,
            site,
        };
        Some((rounds.to(round), said))
    }

    /// What the rounds come to for which this node waits, once they are over: whether any node has
    /// news.
    pub fn end_of_rounds(&self) -> Option<bool> {
        let part = self.rounds.part.filter(|part| part.waits)?;
        let last = rounds(self.rounds.nodes).checked_sub(1)?;
        let over = part.told > last && self.rounds.heard[0].rounds & 1 << last != 0;
        over.then_some(part.news || self.rounds.heard[0].news & 1 << last != 0)
    }

    /// The same, once this was heard as well; it is not said yet.
    pub fn end_of_rounds_after(&self, said: &BarrierRound) -> Option<bool> {
        let part = self.rounds.part.filter(|part| part.waits)?;
        let (heard, bit) = (&self.rounds.heard[0], 1_u32.checked_shl(said.round.into())?);
        let all = (1 << rounds(self.rounds.nodes)) - 1;
        let over = said.number == self.passed && heard.rounds | bit == all;
        over.then_some(part.news || said.news || heard.news != 0)
    }

    /// Some node has news: this one waits for the manager's departure from here on.
    pub fn leave_rounds(&mut self) -> Option<(BarrierId, IntervalIndex, CallSite)> {
        let part = self.rounds.part.as_mut()?;
        part.waits = false;
        Some((self.waiting_at?, self.first_untold, part.site))
    }

    /// Whether this node waits for the end of rounds.
    pub fn is_in_rounds(&self) -> bool {
        self.rounds.part.is_some_and(|part| part.waits)
    }

    /// Whether another node may say this, and where in the program that node is.
    pub fn check_round(
        &self,
        from: NodeId,
        said: &BarrierRound,
        in_collective: bool,
    ) -> Result<CallSite, ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        let rounds = &self.rounds;
        let round = u32::from(said.round);
        if !rounds.on {
            return bad("a round of a barrier, in a run whose barriers have none");
        }
        if round >= self::rounds(rounds.nodes) || rounds.from(round) != from {
            return bad("a round of a barrier that is not for it to tell this node");
        }
        let ahead = match said.number.checked_sub(self.passed) {
            Some(0) => 0,
            Some(1) if self.is_waiting() || in_collective => 1,
            Some(_) => return bad("a round of a barrier that it cannot have reached"),
            None => return bad("a round of a barrier that is over"),
        };
        if rounds.heard[ahead].rounds & 1 << round != 0 {
            return bad("a round of a barrier, twice");
        }
        Ok(rounds.site_of(said))
    }

    /// Another node says this, and [may](Barrier::check_round).
    pub fn hear_round(&mut self, said: &BarrierRound) {
        if let Some(site) = said.site {
            self.rounds.learn(said.place, site);
        }
        let site = self.rounds.site_of(said);
        let ahead = usize::from(said.number != self.passed);
        let heard = &mut self.rounds.heard[ahead];
        heard.rounds |= 1 << said.round;
        heard.news |= u32::from(said.news) << said.round;
        if said.round == 0 {
            heard.site = Some(site);
        }
    }

    /// If the node before this one is at a barrier of the program that has the number of what this
    /// node calls next: which node, and where in the program.
    pub fn heard_before(&self) -> Option<(NodeId, CallSite)> {
        Some((self.rounds.from(0), self.rounds.heard[0].site?))
    }

    /// All are there, and none had news.
    pub fn depart_without_news(&mut self) {
        self.rounds.had_no_news();
        self.depart(self.told);
    }
}
