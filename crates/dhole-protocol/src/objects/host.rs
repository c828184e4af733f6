//! What the machine of objects works with: the copies themselves, and what the worker has seen.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, VectorTime};

use super::bytes::Bytes;
use super::call::{Call, CallRef, Outcome, Refusal, Saved};
use crate::WriteNotices;

/// What trying an operation comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tried {
    /// It was executed, or never can be.
    Done(Outcome),
    /// Its guard is false; nothing has changed.
    Blocked,
}

/// How far a section has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ran {
    /// Not at all: it waits, and nothing has changed.
    Not,
    /// To its end.
    Whole,
    /// It goes on, under the same lock and as the same call, with another section: with `kind` and
    /// `arguments` in place of the call's. What it has written stays.
    Then {
        /// As in [`Call::kind`].
        kind: u64,
        /// As in [`Call::arguments`].
        arguments: Bytes,
    },
}

/// How a call of an object with a monitor is executed, once it holds the monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// As calls of other objects are, in the step.
    AtOnce,
    /// By a process of this node.
    ByProcess,
    /// Its guard is false.
    Blocked,
}

/// Keeps a node's copies of objects, and knows its intervals. The machine says what is to be done
/// with a copy and never sees one.
pub trait Host {
    /// Makes a copy of this state, or by a constructor of these arguments. Returns what comes back
    /// to the node that makes the object, which mostly is nothing.
    ///
    /// # Errors
    /// [`Refusal`] when the bytes are no state of the type, or the type is not known here.
    fn create(&mut self, object: ObjectId, kind: u64, state: &[u8]) -> Outcome;

    /// There should be a copy and is none: operations on it are refused so.
    fn spoil(&mut self, object: ObjectId, refusal: Refusal);

    /// Executes an operation on the copy here, if its guard is true.
    fn apply(&mut self, call: &Call) -> Tried;

    /// As [`apply`](Host::apply), with the bytes of the result behind those of `result`; whether it
    /// was executed, or its guard is false.
    ///
    /// # Errors
    /// [`Refusal`] when it never can be executed; then anything may be behind those of `result`.
    fn apply_to(&mut self, call: CallRef<'_>, result: &mut Vec<u8>) -> Result<bool, Refusal> {
        match self.apply(&call.into()) {
            Tried::Done(outcome) => {
                result.extend_from_slice(&outcome?);
                Ok(true)
            }
            Tried::Blocked => Ok(false),
        }
    }

    /// Runs a section, a call of the lock of an object at home here, and appends its result to
    /// `result` if it comes to its end. Its caller had seen `time`.
    ///
    /// # Errors
    /// [`Refusal`] when it never can be executed here; nothing has changed.
    fn apply_section(
        &mut self,
        call: CallRef<'_>,
        time: Option<&VectorTime>,
        result: &mut Vec<u8>,
    ) -> Result<Ran, Refusal> {
        let _ = (call, time, result);
        Err(Refusal::Unknown)
    }

    /// Whether sections wait for a lock from here on.
    fn sections_wait(&mut self, lock: ObjectId, wait: bool) {
        let _ = (lock, wait);
    }

    /// Whether the object here has a monitor, for some of its operations take a worker.
    fn has_monitor(&self, object: ObjectId) -> bool {
        let _ = object;
        false
    }

    /// Why the object here is kept as one copy, on the node on which it was made; none if it may be
    /// replicated and moved.
    fn stays(&self, object: ObjectId) -> Option<Refusal> {
        let _ = object;
        None
    }

    /// How a call of an object that has a monitor is executed.
    ///
    /// # Errors
    /// [`Refusal`] when it never can be executed.
    fn admits(&mut self, call: CallRef<'_>) -> Result<Admitted, Refusal> {
        let _ = call;
        Ok(Admitted::AtOnce)
    }

    /// Executes on the copy here what a loss of this node means for it: the number of that
    /// operation, if its type has one.
    fn lose(&mut self, object: ObjectId, node: NodeId) -> Option<u16> {
        let _ = (object, node);
        None
    }

    /// The type and the state of the copy here.
    ///
    /// # Errors
    /// [`Refusal`] when the state cannot be written, or the copy is poisoned.
    fn save(&mut self, object: ObjectId) -> Saved;

    /// Forgets the copy here.
    fn discard(&mut self, object: ObjectId);

    /// A digest of the state of the copy here.
    fn digest(&mut self, object: ObjectId) -> u64;

    /// The name of an operation.
    fn name_of(&self, object: ObjectId, operation: u16) -> Arc<str>;

    /// What the worker has seen; `None` while nobody has written anything.
    fn time(&self) -> Option<VectorTime>;

    /// Whether the worker has seen something that someone at `seen` has not.
    fn has_news_since(&self, seen: &VectorTime) -> bool {
        self.news_since(seen).is_some()
    }

    /// What the worker has seen and someone at `seen` has not; `None` if that is nothing.
    fn news_since(&self, seen: &VectorTime) -> Option<Arc<WriteNotices>>;
}
