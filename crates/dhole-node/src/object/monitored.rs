//! Executing operations that take a worker: a process of the object's node does so, outside of the
//! node's lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dhole_model::CallSite;
use dhole_protocol::objects::{Call, Outcome, Refusal};

use super::copies::Copies;
use crate::failure::{Failed, why};
use crate::worker::Worker;

/// The site of waits for the beginning of an operation that takes a worker.
pub(crate) const SITE: CallSite = CallSite::runtime("an operation that takes a worker");

impl Worker<'_> {
    /// Executes a call that takes a worker, as a process of this node.
    pub(crate) fn execute(&mut self, call: &Call) -> Outcome {
        let (lent, operation) = self.with_copies(|copies| {
            let lent = copies.lend(call)?;
            Ok((lent, copies.operation_name(call.object, call.operation)))
        })?;
        let callers = self.link.chain.take();
        self.link
            .chain
            .replace(callers.then(call.object, operation));
        let (mut state, mut result) = (lent, Vec::new());
        let run = || state.execute(self, call.operation, &call.arguments, &mut result);
        let ran = catch_unwind(AssertUnwindSafe(run));
        let joined = self.join_all();
        let outcome = match ran {
            Ok(Ok(ran)) => ran
                .and_then(|()| Ok(joined?))
                .map_err(|error| Refusal::Failed(error.to_string().into())),
            Ok(Err(malformed)) => Err(Refusal::Malformed(malformed.to_string().into())),
            Err(payload) => {
                // What unwinds leaves a state behind that is changed in part.
                let words = match why(payload) {
                    Failed::Panicked(words) => words,
                    Failed::Error(error) => error.to_string().into(),
                };
                Err(self.with_copies(|copies| copies.panicked(call, words)))
            }
        };
        let state = state.into_state();
        self.with_copies(|copies| copies.give_back(call.object, state));
        outcome.map(|()| result[..].into())
    }

    fn with_copies<R>(&self, f: impl FnOnce(&mut Copies) -> R) -> R {
        f(&mut self.link.node.monitor.lock().split().1.here.copies)
    }
}
