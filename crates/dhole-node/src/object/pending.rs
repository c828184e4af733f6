//! Operations that are under way while their caller goes on.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole_heap::Tag;
use dhole_model::CallSite;
use dhole_protocol::Event;
use dhole_protocol::objects::{Call, CallId, MOST_CALLS, ObjectsEvent, Refusal};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ObjectError;
use super::handle::id_of;
use super::invoke::{Wanted, malformed};
use super::kind::{self, ObjectType};
use crate::worker::Worker;

/// An operation that is under way: [`wait`](Pending::wait) brings its result. It takes effect at
/// some time between its start and that, as if another process had called it: operations that are
/// under way at once have no order among each other, nor with those that the caller calls
/// meanwhile. Dropped, it is executed all the same; should it fail, the run's report says so.
#[must_use = "whether the operation was executed is not known before `wait`"]
#[derive(Debug)]
pub struct Pending<R> {
    call: u64,
    wanted: Wanted,
    dropped: Arc<AtomicBool>,
    of: PhantomData<fn() -> R>,
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl<R: DeserializeOwned> Pending<R> {
    /// Waits until the operation was executed.
    ///
    /// # Errors
    /// [`ObjectError`], as the operation itself.
    pub fn wait(self, w: &mut Worker<'_>) -> Result<R, ObjectError> {
        w.in_turn(self.wanted, |link, call| {
            let here = &mut call.split().1.here;
            if !here.is_finished(self.call) {
                here.awaited = Some(self.call);
                let await_it = link.step(call, Some(self.wanted.awaits()));
                let waited = await_it.and_then(|()| link.outcome(call));
                call.split().1.here.awaited = None;
                waited?;
            }
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
        here.meet::<T>(wanted.object);
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
        let invoke = ObjectsEvent::Invoke(Call {
            id: CallId { node, number },
            object: wanted.object,
            operation,
            writes,
            arguments,
        });
        link.stepping(call, |state, step| state.step_objects(invoke, step))?;
        link.send(call);
        Ok(Ok(Pending {
            call: number,
            wanted,
            dropped,
            of: PhantomData,
        }))
    })
}

impl Wanted {
    /// That the worker waits for it.
    pub(super) fn awaits(self) -> Event {
        let operation = dhole_protocol::Operation {
            object: self.object,
            name: CallSite::runtime(self.name),
        };
        let site = self.site;
        Event::Await { operation, site }
    }
}
