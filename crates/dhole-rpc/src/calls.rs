use std::collections::hash_map::Entry;

use dhole_model::NodeId;
use rustc_hash::FxHashMap;

use super::RpcRefusal;
use dhole_net::Loss;

/// What came of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Answer(Vec<u8>),
    Refused(RpcRefusal),
    Lost(Loss),
}

struct Waiting {
    peer: NodeId,
    outcome: Option<Outcome>,
    /// Nobody waits any more, but the peer has not answered.
    abandoned: bool,
}

/// The calls of this node that the others have not answered, or whose answer nobody took.
pub(super) struct Calls {
    next: u64,
    /// By number, which this node gives itself: nobody can have them collide.
    waiting: FxHashMap<u64, Waiting>,
    /// Unanswered, by peer.
    unanswered: Vec<usize>,
    lost: Vec<Option<Loss>>,
}

impl Calls {
    pub fn new(nodes: usize) -> Calls {
        Calls {
            next: 1,
            waiting: FxHashMap::default(),
            unanswered: vec![0; nodes],
            lost: vec![None; nodes],
        }
    }

    /// Begins a call, unless as many as `most` are unanswered.
    pub fn begin(&mut self, peer: NodeId, most: usize) -> Option<u64> {
        let lost = self.lost(peer);
        // Who is lost, or does not exist, owes no answer.
        if lost.is_none()
            && let Some(unanswered) = self.unanswered.get_mut(peer.index())
        {
            if *unanswered >= most {
                return None;
            }
            *unanswered += 1;
        }
        let call = self.next;
        self.next += 1;
        let waiting = Waiting {
            peer,
            outcome: lost.map(Outcome::Lost),
            abandoned: false,
        };
        self.waiting.insert(call, waiting);
        Some(call)
    }

    /// Notes what came of a call, unless it is none of that peer; whether somebody waits for it.
    pub fn end(&mut self, peer: NodeId, call: u64, outcome: Outcome) -> bool {
        let waiting = self.waiting.get_mut(&call);
        let Some(waiting) = waiting.filter(|w| w.peer == peer && w.outcome.is_none()) else {
            return false;
        };
        self.unanswered[peer.index()] -= 1;
        if waiting.abandoned {
            self.waiting.remove(&call);
            return false;
        }
        waiting.outcome = Some(outcome);
        true
    }

    /// The answer to a call is where it belongs, so there is nothing to keep.
    pub fn landed(&mut self, peer: NodeId, call: u64) {
        if self
            .waiting
            .remove(&call)
            .is_some_and(|w| w.outcome.is_none())
        {
            self.unanswered[peer.index()] -= 1;
        }
    }

    /// How a peer was lost.
    pub fn lost(&self, peer: NodeId) -> Option<Loss> {
        self.lost.get(peer.index()).cloned().flatten()
    }

    /// Takes what came of a call, if it has come.
    pub fn take(&mut self, call: u64) -> Option<Outcome> {
        let Entry::Occupied(waiting) = self.waiting.entry(call) else {
            return None;
        };
        // Looked at before it is removed: as a rule it has not come.
        waiting.get().outcome.as_ref()?;
        waiting.remove().outcome
    }

    /// Whether there are none.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.unanswered.iter().all(|unanswered| *unanswered == 0)
    }

    pub fn is_over(&self, call: u64) -> bool {
        self.waiting.get(&call).is_none_or(|w| w.outcome.is_some())
    }

    /// Nobody waits for it any more. One that was never sent is not answered either.
    pub fn abandon(&mut self, call: u64, was_sent: bool) {
        let Some(waiting) = self.waiting.get_mut(&call) else {
            return;
        };
        let peer = waiting.peer;
        match waiting.outcome {
            None if was_sent => waiting.abandoned = true,
            None => {
                self.waiting.remove(&call);
                if let Some(unanswered) = self.unanswered.get_mut(peer.index()) {
                    *unanswered -= 1;
                }
            }
            Some(_) => drop(self.waiting.remove(&call)),
        }
    }

    /// A peer is lost, and so are all calls of it.
    pub fn lose(&mut self, peer: NodeId, loss: &Loss) {
        self.lost[peer.index()].get_or_insert_with(|| loss.clone());
        self.unanswered[peer.index()] = 0;
        self.waiting.retain(|_, w| w.peer != peer || !w.abandoned);
        for waiting in self.waiting.values_mut().filter(|w| w.peer == peer) {
            waiting
                .outcome
                .get_or_insert_with(|| Outcome::Lost(loss.clone()));
        }
    }
}
