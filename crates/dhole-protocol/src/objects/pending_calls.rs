//! Calls of this node that another was asked to execute, and what is known of each to make it
//! again where the object has gone. Those that go together are known by the bytes that go.

use dhole_model::{NodeId, VectorTime};

use super::call::{Call, CallRef};
use super::packed::PackedCalls;
use super::sequence_map::SequenceMap;

/// The calls of this node that are under way at others.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingCalls {
    /// One that was asked for alone, mostly the only one: nothing is allocated for it.
    alone: Option<(u64, Alone)>,
    /// The others.
    calls: SequenceMap<PendingCall>,
    /// Calls that go together, or went, until all are over.
    batches: SequenceMap<Together>,
    /// So many batches have begun.
    begun: u64,
}

/// A call. What is known of one that goes with others is kept once for all of these: it is small.
#[derive(Clone, Debug)]
enum PendingCall {
    /// It is in the batch of this number.
    Together(u64),
    Alone(Box<Alone>),
}

#[derive(Clone, Debug)]
struct Alone {
    to: NodeId,
    /// What it is made of again, if it may be.
    again: Option<Call>,
    /// What its news told.
    time: Option<VectorTime>,
}

#[derive(Clone, Debug)]
struct Together {
    to: NodeId,
    calls: PackedCalls,
    /// As many of them are not over.
    left: usize,
    /// What the news of one of them told, with its number.
    told: Option<(u64, VectorTime)>,
}

impl PendingCalls {
    /// Whether none is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.alone.is_none() && self.calls.is_empty()
    }

    /// Whether this call is under way.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.is_alone(number) || self.calls.contains(number)
    }

    #[inline]
    fn is_alone(&self, number: u64) -> bool {
        matches!(&self.alone, Some((it, _)) if *it == number)
    }

    /// `to` is asked for this call, and was told this with it.
    pub fn insert(&mut self, to: NodeId, call: Call, time: Option<VectorTime>) {
        let (number, again) = (call.id.number, Some(call));
        self.insert_alone(number, Alone { to, again, time });
    }

    /// `to` executes something of this number that is not to be asked for again.
    pub fn insert_once(&mut self, to: NodeId, number: u64, time: Option<VectorTime>) {
        let again = None;
        self.insert_alone(number, Alone { to, again, time });
    }

    fn insert_alone(&mut self, number: u64, alone: Alone) {
        let is_known = self.calls.contains(number);
        match &mut self.alone {
            None if !is_known => self.alone = Some((number, alone)),
            Some((it, asked)) if *it == number => *asked = alone,
            _ => {
                let alone = PendingCall::Alone(Box::new(alone));
                self.calls.insert(number, alone);
            }
        }
    }

    /// The number of a new batch, for which `to` is asked.
    pub fn begin_batch(&mut self, to: NodeId) -> u64 {
        self.begun += 1;
        let together = Together {
            to,
            calls: PackedCalls::default(),
            left: 0,
            told: None,
        };
        self.batches.insert(self.begun, together);
        self.begun
    }

    /// This call is asked for with others in a batch; with the arguments that are appended, if
    /// they can be; whether they could.
    #[inline]
    pub fn join<E>(
        &mut self,
        batch: u64,
        call: CallRef<'_>,
        arguments: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> bool {
        let Some(together) = self.batches.get_mut(batch) else {
            return false;
        };
        let joined = together.calls.push_with(call, arguments);
        if joined {
            together.left += 1;
            self.calls
                .insert(call.id.number, PendingCall::Together(batch));
        }
        joined
    }

    /// The calls of a batch.
    #[inline]
    pub fn batch(&self, batch: u64) -> Option<&PackedCalls> {
        self.batches.get(batch).map(|together| &together.calls)
    }

    /// Whoever is asked for a batch was told this with it, of which an answer for this call of it
    /// says that it was heard.
    pub fn told(&mut self, batch: u64, call: u64, time: Option<VectorTime>) {
        if let Some(together) = self.batches.get_mut(batch) {
            together.told = time.map(|time| (call, time));
        }
    }

    /// The call of this number, if it may be made again.
    pub fn call(&self, number: u64, node: NodeId) -> Option<Call> {
        if let Some((_, alone)) = self.alone.as_ref().filter(|(it, _)| *it == number) {
            return alone.again.clone();
        }
        match self.calls.get(number)? {
            PendingCall::Alone(alone) => alone.again.clone(),
            PendingCall::Together(batch) => {
                let mut calls = self.batch(*batch)?.iter(node);
                calls.find(|call| call.id.number == number).map(Call::from)
            }
        }
    }

    /// This call is over, if it was under way: whether it was, and what whoever was asked for it
    /// was told with it, if it was `from`.
    #[inline]
    pub fn is_over(&mut self, number: u64, from: NodeId) -> (bool, Option<VectorTime>) {
        if let Some((_, alone)) = self.alone.take_if(|(it, _)| *it == number) {
            return (true, alone.time.filter(|_| alone.to == from));
        }
        let batch = match self.calls.remove(number) {
            None => return (false, None),
            Some(PendingCall::Together(batch)) => batch,
            Some(PendingCall::Alone(alone)) => {
                return (true, alone.time.filter(|_| alone.to == from));
            }
        };
        let mut told = None;
        if let Some(together) = self.batches.get_mut(batch) {
            let tells = |(call, _): &mut (u64, VectorTime)| *call == number;
            if let Some((_, time)) = together.told.take_if(tells) {
                told = Some(time).filter(|_| together.to == from);
            }
            together.left -= 1;
            if together.left == 0 {
                self.batches.forget(batch);
            }
        }
        (true, told)
    }

    /// This call is under way no longer.
    pub fn forget(&mut self, number: u64) {
        let _was_told = self.is_over(number, NodeId(0));
    }

    /// Those of which somebody is asked of whom this is true, each with whom.
    pub fn of(&self, is_it: impl Fn(NodeId) -> bool) -> Vec<(u64, NodeId)> {
        let calls = self.calls.iter().filter_map(|(number, asked)| {
            let to = match asked {
                PendingCall::Alone(alone) => alone.to,
                PendingCall::Together(batch) => self.batches.get(*batch)?.to,
            };
            Some((number, to))
        });
        let alone = self.alone.iter().map(|(number, alone)| (*number, alone.to));
        let mut all: Vec<_> = alone.chain(calls).filter(|(_, to)| is_it(*to)).collect();
        all.sort_unstable();
        all
    }
}
