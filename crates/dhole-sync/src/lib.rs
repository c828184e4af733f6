//! Waiting: [locks that travel](TravellingLocks), [conditions](Conditions), what is
//! [kept at its manager](Turnstile), the wait-for graph of a run, and the [`Probe`]
//! that looks for deadlocks in it.
//!
//! # Deadlocks
//! A vertex is a *thread* of a node ([`ThreadOf`]). Thread 0 is the node's worker. Each part of a
//! node knows edges: which threads wait for it, and which threads keep what others wait for. A part
//! never names another part. The probe brings their edges together.
//!
//! A thread that has waited for long sends a probe round all nodes, twice.
//!
//! - In the first round each node adds its waits.
//! - In the second round each node adds its waits again. It also says which of its threads *keep*
//!   what the waits of the first round are for: it holds the lock, or has not come to the barrier.
//!
//! A wait that both rounds have found lasted the whole time between them. The second round begins
//! at one moment of that time. A thread that waits gives nothing up. So threads that wait for each
//! other in a circle, each for what the next one keeps, all did so at that moment, and wait for
//! ever.
//!
//! Any thread may end a wait for a permit or on a condition. Such a wait lasts for ever if, at that
//! moment, all threads of all nodes wait and no message is under way. The nodes add up how many
//! messages they have sent and received. Sums that are equal in both rounds belong to one moment
//! (Mattern's four counters).
#![forbid(unsafe_code)]

mod conditions;
mod travelling;
mod turnstile;

use std::fmt::Debug;

use dhole_model::{CallSite, NodeId};
use dhole_wire::Wire;

pub use conditions::Conditions;
pub use travelling::{
    Acquiring, MOST_IN_A_ROW, MOST_MANAGED, Passed, Passing, SWEEP_FROM, TravellingLocks, Travels,
};
pub use turnstile::{Mode, Request, Turnstile};

/// A thread of a node: a vertex of the wait-for graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct ThreadOf {
    /// The node.
    pub node: NodeId,
    /// The number of the thread. The worker is 0.
    pub thread: u64,
}

impl ThreadOf {
    /// The worker of a node.
    pub fn worker(node: NodeId) -> ThreadOf {
        ThreadOf { node, thread: 0 }
    }
}

/// A wait of a thread. Two waits that differ are not equal.
pub trait Wait: Copy + Ord + Debug + Wire {
    /// The thread that waits.
    fn thread(&self) -> ThreadOf;

    /// The same wait, which names the thread that keeps what it is for, and the line where that
    /// thread acquired it.
    fn kept_by(self, keeper: ThreadOf, since: CallSite) -> Self;
}

/// A thread that keeps what a wait is for: the wait does not end before the thread gives it up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Keeper {
    /// The place of the wait in the first round.
    pub wait: u32,
    /// The thread.
    pub by: ThreadOf,
    /// The line where the thread acquired it, if that is known.
    pub since: Option<CallSite>,
    /// The thread has ended, and gives nothing up any more.
    pub has_ended: bool,
}

/// What one round has found so far.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Round<W> {
    /// The waits.
    pub waits: Vec<W>,
    /// A thread does not wait.
    pub computes: bool,
    /// Messages that the nodes have sent, of those that may end a wait.
    pub sent: u64,
    /// Messages that they have received.
    pub received: u64,
}

impl<W> Default for Round<W> {
    fn default() -> Round<W> {
        Round {
            waits: Vec::new(),
            computes: false,
            sent: 0,
            received: 0,
        }
    }
}

/// A probe on its way round the nodes. It begins at the node whose thread asks, and ends there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Probe<W> {
    /// The wait that has lasted long.
    pub asker: W,
    /// The first round, once it is over.
    pub first: Option<Round<W>>,
    /// The first round has found a thread that keeps what the asker waits for, and that waits
    /// itself or has ended.
    pub is_kept: bool,
    /// The round that is under way.
    pub round: Round<W>,
    /// The threads that keep what the waits of the first round are for.
    pub keepers: Vec<Keeper>,
    /// The waits of the first round that end by a message that is under way.
    pub ending: Vec<u32>,
    /// The nodes that are lost: one that knows of others has no part in it.
    pub without: Vec<NodeId>,
    /// Both rounds are over.
    pub is_over: bool,
}

/// What a part of a node adds to a probe that visits the node.
pub trait Edges<W: Wait> {
    /// The waits that this part knows of on its node.
    fn add_waits(&self, waits: &mut Vec<W>);

    /// The threads of this node that keep what a wait is for, by this part.
    fn add_keepers(&self, wait: &W, keeps: &mut dyn FnMut(ThreadOf, Option<CallSite>, bool));

    /// Whether the end of a wait is under way, by what this part knows.
    fn is_ending(&self, wait: &W) -> bool {
        let _ = wait;
        false
    }
}

impl<W: Wait> Probe<W> {
    /// A probe of a thread that has waited for long.
    pub fn begin(asker: W) -> Probe<W> {
        Probe {
            asker,
            first: None,
            is_kept: false,
            round: Round::default(),
            keepers: Vec::new(),
            ending: Vec::new(),
            without: Vec::new(),
            is_over: false,
        }
    }

    /// A part of the node that the probe visits adds what it knows. All parts of the node do,
    /// before the probe [goes on](Probe::pass).
    pub fn visit(&mut self, part: &impl Edges<W>) {
        if self.is_over {
            return;
        }
        part.add_waits(&mut self.round.waits);
        let asked = match &self.first {
            Some(first) => &first.waits[..],
            None => std::slice::from_ref(&self.asker),
        };
        for (wait, place) in asked.iter().zip(0..) {
            let keepers = &mut self.keepers;
            part.add_keepers(wait, &mut |by, since, has_ended| {
                let wait = place;
                keepers.push(Keeper {
                    wait,
                    by,
                    since,
                    has_ended,
                });
            });
            if self.first.is_some() && part.is_ending(wait) {
                self.ending.push(place);
            }
        }
    }

    /// The node that the probe visits has a thread that does not wait.
    pub fn finds_computing(&mut self) {
        self.round.computes = true;
    }

    /// The node has sent and received so many messages, of those that may end a wait.
    pub fn adds_traffic(&mut self, sent: u64, received: u64) {
        self.round.sent = self.round.sent.wrapping_add(sent);
        self.round.received = self.round.received.wrapping_add(received);
    }

    /// The node `me` passes the probe on to the `next` one, which is the asker's after the last.
    /// The nodes in `without` are lost. Whether the probe goes on: it ends early where it can find
    /// nothing any more.
    pub fn pass(&mut self, me: NodeId, next: NodeId, without: &[NodeId]) -> bool {
        let worker = ThreadOf::worker(me);
        if self.round.waits.iter().all(|it| it.thread() != worker) {
            self.finds_computing();
        }
        let asker = self.asker.thread().node;
        if me == asker && self.first.is_none() {
            self.without = without.to_vec();
        }
        if self.without != without || me == asker && !self.round.waits.contains(&self.asker) {
            return false;
        }
        let goes_on = match self.first {
            Some(_) => self.ends_second_visit(me, next == asker),
            None => self.ends_first_visit(next == asker),
        };
        if self.round.computes {
            // The sums of messages say nothing any more.
            let rounds = [Some(&mut self.round), self.first.as_mut()];
            for round in rounds.into_iter().flatten() {
                (round.sent, round.received) = (0, 0);
            }
        }
        goes_on
    }

    /// After the `last` visit of the first round the second one begins, if there may be a deadlock.
    fn ends_first_visit(&mut self, last: bool) -> bool {
        let waits = &self.round.waits;
        let waits = |by: ThreadOf| waits.iter().any(|wait| wait.thread() == by);
        let mut keepers = self.keepers.drain(..);
        self.is_kept |= keepers.any(|keeper| keeper.has_ended || waits(keeper.by));
        drop(keepers);
        if last {
            let computes = self.round.computes || self.round.sent != self.round.received;
            if computes && !self.is_kept {
                return false;
            }
            self.first = Some(std::mem::take(&mut self.round));
            self.round.computes = computes;
        }
        true
    }

    /// Only waits of the first round count in the second. A wait of `me` that is new or over says
    /// that threads go on.
    fn ends_second_visit(&mut self, me: NodeId, last: bool) -> bool {
        let Probe { first, round, .. } = self;
        let first = first.iter().flat_map(|first| &first.waits);
        let all = round.waits.len();
        round
            .waits
            .retain(|wait| first.clone().any(|it| it == wait));
        let is_new = round.waits.len() < all;
        let mut own = first.filter(|it| it.thread().node == me);
        round.computes |= is_new || own.any(|wait| !round.waits.contains(wait));
        self.is_over = last;
        !last || self.found().is_some()
    }

    /// Once both rounds are over: the waits that never end, the asker's among them, if there are
    /// some. In a circle each is for what the thread of the next one keeps. Where others are in a
    /// circle and the asker is not, there are none: the threads of the circle find it.
    pub fn found(&self) -> Option<Vec<W>> {
        let first = self.first.as_ref().filter(|_| self.is_over)?;
        let round = &self.round;
        let is_asker = |wait: &W| *wait == self.asker && round.waits.contains(wait);
        let asker = first.waits.iter().position(is_asker)?;
        if let Some(path) = self.circle(asker, first) {
            let named = path.into_iter().map(|(place, keeper)| {
                let wait = first.waits[place];
                match keeper.since {
                    Some(since) => wait.kept_by(keeper.by, since),
                    None => wait,
                }
            });
            return Some(named.collect());
        }
        let is_quiet = (first.sent, first.received) == (round.sent, round.received);
        let mut places = 0..first.waits.len();
        if !is_quiet || round.computes || places.any(|at| self.circle(at, first).is_some()) {
            return None;
        }
        let mut all = first.waits.clone();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// The waits of a circle that begins with this one, each with the keeper that leads on; or this
    /// one alone, if it is for what a thread keeps that has ended.
    fn circle<'a>(&'a self, asker: usize, first: &Round<W>) -> Option<Vec<(usize, &'a Keeper)>> {
        let mut keepers: Vec<&Keeper> = self.keepers.iter().collect();
        keepers.sort_unstable();
        let keepers_of = |wait: usize| {
            let from = keepers.partition_point(|keeper| (keeper.wait as usize) < wait);
            let of = keepers[from..].iter().copied();
            let is_ending = self.ending.iter().any(|ending| *ending as usize == wait);
            of.take_while(move |keeper| !is_ending && keeper.wait as usize == wait)
        };
        if let Some(ended) = keepers_of(asker).find(|keeper| keeper.has_ended) {
            return Some(vec![(asker, ended)]);
        }
        // The wait of a keeper that was in it in both rounds. One that seems to wait twice goes on.
        let wait_of = |keeper: &Keeper| {
            let waits = first.waits.iter().enumerate();
            let mut own = waits.filter(|(_, wait)| wait.thread() == keeper.by && !keeper.has_ended);
            let (place, wait) = own.next()?;
            (own.next().is_none() && self.round.waits.contains(wait)).then_some(place)
        };
        let mut seen = vec![false; first.waits.len()];
        let mut path: Vec<(usize, &Keeper)> = Vec::new();
        let mut next = vec![(asker, keepers_of(asker))];
        while let Some((at, keepers)) = next.last_mut() {
            let at = *at;
            let Some(keeper) = keepers.next() else {
                next.pop();
                path.pop();
                continue;
            };
            let Some(place) = wait_of(keeper) else {
                continue;
            };
            if place == asker {
                path.push((at, keeper));
                return Some(path);
            }
            if !std::mem::replace(&mut seen[place], true) {
                path.push((at, keeper));
                next.push((place, keepers_of(place)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
