//! Calls of this node that another was asked to execute, and what is known of each to make it
//! again where the object has gone. Those that go together are known by the bytes that go.

use dhole_model::{NodeId, VectorTime};

use super::message::{Call, CallRef};
use super::numbered::Numbered;
use super::packed::PackedCalls;

/// The calls of this node that are under way at others.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedCalls {
    calls: Numbered<Asked>,
    /// Calls that go together, or went, until all are over.
    batches: Numbered<Together>,
    /// So many batches have begun.
    begun: u64,
}

#[derive(Clone, Debug)]
struct Asked {
    to: NodeId,
    again: Again,
    /// What its news told.
    time: Option<VectorTime>,
}

/// What a call is made of again.
#[derive(Clone, Debug)]
enum Again {
    Never,
    Call(Box<Call>),
    /// It is in the batch of this number.
    Batch(u64),
}

#[derive(Clone, Debug, Default)]
struct Together {
    calls: PackedCalls,
    /// As many of them are not over.
    left: usize,
}

impl AskedCalls {
    /// Whether none is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether this call is under way.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.calls.contains(number)
    }

    /// `to` is asked for this call, and was told this with it.
    pub fn insert(&mut self, to: NodeId, call: Call, time: Option<VectorTime>) {
        let (number, again) = (call.id.number, Again::Call(Box::new(call)));
        self.calls.insert(number, Asked { to, again, time });
    }

    /// `to` executes something of this number that is not to be asked for again.
    pub fn insert_once(&mut self, to: NodeId, number: u64, time: Option<VectorTime>) {
        let again = Again::Never;
        self.calls.insert(number, Asked { to, again, time });
    }

    /// The number of a new batch.
    pub fn begin_batch(&mut self) -> u64 {
        self.begun += 1;
        self.batches.insert(self.begun, Together::default());
        self.begun
    }

    /// `to` is asked for this call with others in a batch; with the arguments that are appended,
    /// if they can be; whether they could.
    #[inline]
    pub fn join<E>(
        &mut self,
        (batch, to): (u64, NodeId),
        call: CallRef<'_>,
        arguments: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> bool {
        let Some(together) = self.batches.get_mut(batch) else {
            return false;
        };
        let joined = together.calls.push_with(call, arguments);
        if joined {
            together.left += 1;
            let asked = Asked {
                to,
                again: Again::Batch(batch),
                time: None,
            };
            self.calls.insert(call.id.number, asked);
        }
        joined
    }

    /// The calls of a batch.
    #[inline]
    pub fn batch(&self, batch: u64) -> Option<&PackedCalls> {
        self.batches.get(batch).map(|together| &together.calls)
    }

    /// Whoever is asked for this call was told this with it.
    pub fn told(&mut self, number: u64, time: Option<VectorTime>) {
        if let Some(asked) = self.calls.get_mut(number) {
            asked.time = time;
        }
    }

    /// The call of this number, if it may be made again.
    pub fn call(&self, number: u64, node: NodeId) -> Option<Call> {
        match &self.calls.get(number)?.again {
            Again::Never => None,
            Again::Call(call) => Some(Call::clone(call)),
            Again::Batch(batch) => {
                let mut calls = self.batch(*batch)?.iter(node);
                calls.find(|call| call.id.number == number).map(Call::from)
            }
        }
    }

    /// This call is over, if it was under way: whether it was, and what whoever was asked for it
    /// was told with it, if it was `from`.
    #[inline]
    pub fn is_over(&mut self, number: u64, from: NodeId) -> (bool, Option<VectorTime>) {
        let Some(Asked { to, again, time }) = self.calls.remove(number) else {
            return (false, None);
        };
        if let Again::Batch(batch) = again
            && let Some(together) = self.batches.get_mut(batch)
        {
            together.left -= 1;
            if together.left == 0 {
                self.batches.forget(batch);
            }
        }
        (true, time.filter(|_| to == from))
    }

    /// This call is under way no longer.
    pub fn forget(&mut self, number: u64) {
        let _was_told = self.is_over(number, NodeId(0));
    }

    /// Those of which somebody is asked of whom this is true, each with whom.
    pub fn of(&self, is_it: impl Fn(NodeId) -> bool) -> Vec<(u64, NodeId)> {
        let calls = self.calls.iter().map(|(number, asked)| (number, asked.to));
        calls.filter(|(_, to)| is_it(*to)).collect()
    }
}
