//! Operations that are under way while their caller goes on.

use std::marker::PhantomData;
use std::sync::Arc;

use dhole_heap::{self as heap, Tag};
use dhole_model::CallSite;
use dhole_protocol::WaitingFor;
use dhole_protocol::objects::{Call, CallId, MOST_CALLS, ObjectsEvent, Refusal};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ObjectError;
use super::handle::id_of;
use super::invoke::{Wanted, malformed};
use super::kind::{self, ObjectType};
use super::step::Dropped;
use crate::node::State;
use crate::worker::{Failure, Link, Worker};

/// An operation that is under way: [`wait`](Pending::wait) brings its result. It takes effect at
/// some time between its start and that, as if another process had called it: operations that are
/// under way at once have no order among each other, nor with those that the caller calls
/// meanwhile. Dropped, it is executed all the same, before the run ends; should it fail, the run's
/// report says so.
#[must_use = "whether the operation was executed is not known before `wait`"]
#[derive(Debug)]
pub struct Pending<R> {
    call: u64,
    wanted: Wanted,
    dropped: Arc<Dropped>,
    waited: bool,
    of: PhantomData<fn() -> R>,
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        if !self.waited {
            self.dropped.add(self.call);
        }
    }
}

impl<R: DeserializeOwned> Pending<R> {
    /// Waits until the operation was executed.
    ///
    /// # Errors
    /// [`ObjectError`], as the operation itself.
    pub fn wait(mut self, w: &mut Worker<'_>) -> Result<R, ObjectError> {
        w.in_turn(self.wanted, |link, call| {
            link.await_started(call, self.call, self.wanted)?;
            self.waited = true;
            let outcome = call.split().1.here.take_finished(self.call);
            let bytes = outcome.unwrap_or(Err(Refusal::Unknown));
            Ok(bytes.and_then(|bytes| kind::decode("the result", &bytes).map_err(malformed)))
        })
    }
}

/// Starts an operation. What code that `#[dhole::object]` writes calls.
#[track_caller]
pub fn start<T: ObjectType, A: Serialize, R: DeserializeOwned>(
    w: &mut Worker<'_>,
    tag: Tag<T>,
    operation: u16,
    writes: bool,
    arguments: A,
) -> Result<Pending<R>, ObjectError> {
    let wanted = Wanted {
        object: id_of(tag),
        name: T::OPERATIONS[usize::from(operation)].name,
        site: CallSite::caller(),
    };
    let node = w.node();
    w.in_turn(wanted, |link, call| {
        let state = call.split().1;
        state.report_unseen();
        let here = &mut state.here;
        let kind = here.meet::<T>(wanted.object);
        if here.under_way() >= MOST_CALLS {
            return Ok(Err(Refusal::TooMany(MOST_CALLS)));
        }
        let arguments = match kind::encode("the arguments", &arguments) {
            Ok(arguments) => arguments,
            Err(cause) => return Ok(Err(malformed(cause))),
        };
        here.machine.count(wanted.object, writes);
        let number = here.machine.new_call().number;
        let dropped = here.begin(number, wanted);
        let begin = ObjectsEvent::Begin(Call {
            id: CallId { node, number },
            object: wanted.object,
            kind,
            operation,
            writes,
            arguments,
        });
        link.stepping(call, |state, step| state.step_objects(begin, step))?;
        link.send(call);
        // For what the sequencer says of large ones that were started before, nobody is woken.
        call.unlock();
        link.machine.look(link.receivers, node);
        Ok(Ok(Pending {
            call: number,
            wanted,
            dropped,
            waited: false,
            of: PhantomData,
        }))
    })
}

impl Link<'_> {
    /// Waits until a call that was started is over.
    fn await_started(
        &self,
        call: &mut heap::Call<'_, State>,
        number: u64,
        wanted: Wanted,
    ) -> Result<(), Failure> {
        let here = &mut call.split().1.here;
        if here.is_finished(number) {
            return Ok(());
        }
        here.awaited = Some(number);
        let stepped = self.step(call, None);
        let waited = stepped.and_then(|()| {
            let protocol = &mut call.split().1.protocol;
            protocol.awaits(wanted.awaits(), wanted.site);
            self.outcome(call)
        });
        call.split().1.here.awaited = None;
        waited.map(drop)
    }

    /// Waits until all calls that were started are over: those too that nobody looks after.
    pub(crate) fn await_all_started(
        &self,
        call: &mut heap::Call<'_, State>,
    ) -> Result<(), Failure> {
        while let Some((number, wanted)) = call.split().1.here.unfinished() {
            self.await_started(call, number, wanted)?;
        }
        Ok(())
    }
}

impl Wanted {
    /// That the worker waits for it.
    pub(super) fn awaits(self) -> WaitingFor {
        let operation = dhole_protocol::Operation {
            object: self.object,
            name: CallSite::runtime(self.name),
        };
        WaitingFor::Operation(operation)
    }
}
