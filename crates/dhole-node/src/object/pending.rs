//! Operations that are under way while their caller goes on.

use std::marker::PhantomData;
use std::panic::Location;

use dhole_heap::{self as heap, Tag};
use dhole_model::{CallSite, ObjectId, WaitCause};
use dhole_protocol::objects::{Bytes, Call, CallId, CallRef, MOST_CALLS, ObjectsEvent, Refusal};
use dhole_protocol::{Operation, WaitingFor};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::abandoned_calls;
use super::handle::{Object, id_of};
use super::invoke::{Wanted, malformed};
use super::kind::{self, Malformed, ObjectType, OperationInfo};
use super::step::ObjectsHere;
use crate::node::State;
use crate::object_error::ObjectError;
use crate::waits::Awaited;
use crate::worker::{Failure, Link, Worker};

/// Arguments of so many bytes may go with those of other calls whatever these have.
const FEW: usize = 1024;

/// So many calls join others until what has come meanwhile is taken, unless one is waited for.
const STARTS_A_LOOK: u64 = 64;

/// An operation that is under way: [`wait`](Pending::wait) brings its result. It takes effect at
/// some time between its start and that, as if another process had called it: operations that are
/// under way at once have no order among each other, nor with those that the caller calls
/// meanwhile. Dropped, it is executed all the same, before the next synchronisation of the node
/// (a barrier, `once`, a collective, a lock, a call of an operation, `spawn`, `join`, the end of
/// the run); should it fail, the run's report says so. Only where its guard is false then, it is
/// executed later, and before the run ends.
///
/// A node may have 1,024 under way or not looked after. Who starts another then waits until the
/// first is over whose handle was dropped; where all handles are kept, that is an error.
#[must_use = "whether the operation was executed is not known before `wait`"]
#[derive(Debug)]
pub struct Pending<R> {
    call: u64,
    /// The number by which the node that has begun it is told that nobody will look after it.
    told: u64,
    of: PhantomData<fn() -> R>,
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        abandoned_calls::abandon(self.told, self.call);
    }
}

impl<R: DeserializeOwned> Pending<R> {
    /// Waits until the operation was executed.
    ///
    /// # Errors
    /// [`ObjectError`], as the operation itself.
    #[track_caller]
    pub fn wait(self, w: &mut Worker<'_>) -> Result<R, ObjectError> {
        let site = Location::caller();
        if let Some(Some(result)) = w.quietly(|here| here.take_result(&self)) {
            std::mem::forget(self);
            return Ok(result);
        }
        let wanted = w.link.node.monitor.lock().split().1.here.wanted(&self);
        let Some(wanted) = wanted else {
            return Err(w.refused(
                Wanted::foreign(site.into()),
                Refusal::Malformed(FOREIGN.into()),
            ));
        };
        let mut waited = false;
        let outcome = w.in_turn(wanted, |link, call| {
            link.await_over(call, self.call, wanted)?;
            waited = true;
            let outcome = call.split().1.here.take_finished(self.call);
            Ok(match outcome.unwrap_or(Err(Refusal::Unknown)) {
                Ok(bytes) => kind::decode("the result", &bytes).map_err(malformed),
                Err(refusal) => Err(Box::new(refusal)),
            })
        });
        if waited {
            std::mem::forget(self);
        }
        outcome
    }
}

const FOREIGN: &str = "another node's worker has started it";

impl Worker<'_> {
    /// Has `f` do what touches nothing but the node's objects, if there is nothing else to be done
    /// here before or after an operation: nothing was written or is to be learnt, and nobody waits
    /// for a call of the worker's.
    #[inline]
    fn quietly<R>(&mut self, f: impl FnOnce(&mut ObjectsHere) -> R) -> Option<R> {
        let link = &self.link;
        if link.counts_moments || !link.dropped.borrow().is_empty() {
            return None;
        }
        let mut node = link.node.monitor.lock();
        let state = node.split().1;
        let quiet = state.is_quiescent() && !state.here.machine.is_acquire_due();
        quiet.then(|| f(&mut state.here))
    }
}

impl Worker<'_> {
    /// Nobody will look after a call that was started.
    ///
    /// # Errors
    /// [`ObjectError`] if it is known already that the call is refused.
    #[doc(hidden)]
    pub fn forget_unless_refused<R>(&mut self, pending: Pending<R>) -> Result<(), ObjectError> {
        let refused = self
            .link
            .node
            .monitor
            .lock()
            .split()
            .1
            .here
            .take_refusal(&pending);
        match refused {
            None => Ok(()),
            Some((wanted, cause)) => {
                std::mem::forget(pending);
                Err(self.refused(wanted, cause))
            }
        }
    }
}

impl ObjectsHere {
    /// Why a call has no result that was started here, if that is known. It is looked after then.
    fn take_refusal<R>(&mut self, pending: &Pending<R>) -> Option<(Wanted, Refusal)> {
        let wanted = self
            .wanted(pending)
            .filter(|_| self.has_failed(pending.call))?;
        Some((wanted, self.take_finished(pending.call)?.err()?))
    }

    /// Starts a call of the worker's, where it only joins others that wait to go together: its
    /// number.
    #[inline]
    fn start_quietly<T: ObjectType>(
        &mut self,
        called: StartedAs,
        (operation, writes): (u16, bool),
        arguments: &impl Arguments,
    ) -> Option<(u64, u64)> {
        if self.under_way() >= MOST_CALLS || self.has_unseen() {
            return None;
        }
        let object = called.object;
        let kind = self.meet::<T>(object);
        let id = self.machine.next_call();
        let call = CallRef {
            id,
            object,
            kind,
            operation,
            writes,
            started: true,
            chain: &[],
            arguments: &[],
        };
        let sent = &self.sent;
        let appended = |bytes: &mut Vec<u8>| {
            let begin = bytes.len();
            let encoded = arguments.append(called, sent, bytes);
            // What is said of any other is for who says it.
            encoded
                .ok()
                .filter(|()| bytes.len() - begin <= FEW)
                .ok_or(())
        };
        if !self.machine.begins_quietly(call, appended) {
            return None;
        }
        arguments.were_sent(called, &mut self.sent);
        self.machine.new_call();
        self.machine.count(object, writes);
        Some((id.number, self.begin(id.number, called)))
    }

    /// The result of a call that was started here, if it has one.
    #[inline]
    fn take_result<R: DeserializeOwned>(&mut self, pending: &Pending<R>) -> Option<R> {
        let bytes = self.result(pending.call);
        let bytes = bytes.filter(|_| self.is_told_as(pending.told))?;
        let result = kind::decode("the result", bytes).ok()?;
        self.forget(pending.call);
        Some(result)
    }

    /// What was started, if it was here.
    fn wanted<R>(&self, pending: &Pending<R>) -> Option<Wanted> {
        let wanted = self.started_as(pending.call);
        wanted.filter(|_| self.is_told_as(pending.told))
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
    start_with::<T, R>(w, tag, (operation, writes), &Plain(arguments))
}

/// Starts an operation of an object whose type the program does not know, with the [number](Sent)
/// of the call, and the line of the program if the call before it was made on another.
#[doc(hidden)]
#[track_caller]
pub fn start_numbered<T: ObjectType, A: Serialize, R: DeserializeOwned>(
    w: &mut Worker<'_>,
    object: Object<T>,
    operation: &'static str,
    arguments: impl Fn(u64, Option<CallSite>) -> A,
) -> Result<Pending<R>, ObjectError> {
    let mut all = T::OPERATIONS.iter();
    let number = all.position(|it| it.name == operation);
    let number = number.expect("the operation is one of the type's");
    let which = (number as u16, T::OPERATIONS[number].writes);
    start_with::<T, R>(w, (*object).into(), which, &Numbered(arguments))
}

/// How many calls of one object this node has started with a number, and where the last one.
pub(super) type Sent = FxHashMap<ObjectId, (u64, &'static Location<'static>)>;

/// Arguments of a call that is started.
trait Arguments {
    /// Appends their bytes.
    fn append(&self, called: StartedAs, sent: &Sent, to: &mut Vec<u8>) -> Result<(), Malformed>;

    /// The call is under way.
    fn were_sent(&self, called: StartedAs, sent: &mut Sent);
}

struct Plain<A>(A);

impl<A: Serialize> Arguments for Plain<A> {
    #[inline]
    fn append(&self, _: StartedAs, _: &Sent, to: &mut Vec<u8>) -> Result<(), Malformed> {
        kind::encode_to("the arguments", &self.0, to)
    }

    #[inline]
    fn were_sent(&self, _: StartedAs, _: &mut Sent) {}
}

struct Numbered<F>(F);

impl<A: Serialize, F: Fn(u64, Option<CallSite>) -> A> Arguments for Numbered<F> {
    fn append(&self, called: StartedAs, sent: &Sent, to: &mut Vec<u8>) -> Result<(), Malformed> {
        let (number, site) = match sent.get(&called.object) {
            Some((number, last)) if *last == called.site => (*number, None),
            Some((number, _)) => (*number, Some(called.site.into())),
            None => (0, Some(called.site.into())),
        };
        kind::encode_to("the arguments", &(self.0)(number, site), to)
    }

    fn were_sent(&self, called: StartedAs, sent: &mut Sent) {
        let (number, site) = sent.entry(called.object).or_insert((0, called.site));
        *number += 1;
        *site = called.site;
    }
}

#[track_caller]
#[inline]
fn start_with<T: ObjectType, R>(
    w: &mut Worker<'_>,
    tag: Tag<T>,
    which: (u16, bool),
    arguments: &impl Arguments,
) -> Result<Pending<R>, ObjectError> {
    let called = StartedAs {
        object: id_of(tag),
        operation: &T::OPERATIONS[usize::from(which.0)],
        site: Location::caller(),
    };
    // An operation's call takes its chain along.
    let is_chained = !w.link.chain.borrow().is_empty();
    let begun = match is_chained {
        true => None,
        false => w.quietly(|here| here.start_quietly::<T>(called, which, arguments)),
    };
    let (call, told) = match begun.flatten() {
        Some(begun) => {
            // More would look in vain, or have the next batch go before it is one.
            if begun.0.is_multiple_of(STARTS_A_LOOK) {
                w.looks();
            }
            begun
        }
        None => start_in_turn::<T>(w, called, which, arguments)?,
    };
    Ok(Pending {
        call,
        told,
        of: PhantomData,
    })
}

/// The same, with all that there is to be done before and after it. The number of the call, and
/// that of this node.
fn start_in_turn<T: ObjectType>(
    w: &mut Worker<'_>,
    called: StartedAs,
    (operation, writes): (u16, bool),
    arguments: &impl Arguments,
) -> Result<(u64, u64), ObjectError> {
    let node = w.node();
    let wanted = called.wanted();
    w.in_turn(wanted, |link, call| {
        let state = call.split().1;
        state.report_unseen();
        let here = &mut state.here;
        let kind = here.meet::<T>(wanted.object);
        if here.under_way() >= MOST_CALLS && !link.make_room(call)? {
            return Ok(Err(Box::new(Refusal::TooManyStarted(MOST_CALLS))));
        }
        let here = &mut call.split().1.here;
        let mut bytes = Vec::new();
        if let Err(cause) = arguments.append(called, &here.sent, &mut bytes) {
            return Ok(Err(malformed(cause)));
        }
        arguments.were_sent(called, &mut here.sent);
        here.machine.count(wanted.object, writes);
        let number = here.machine.new_call().number;
        let told = here.begin(number, called);
        let begun = Call {
            id: CallId { node, number },
            object: wanted.object,
            kind,
            operation,
            writes,
            started: true,
            chain: link.chain_at(wanted.site),
            arguments: Bytes::from(&bytes[..]),
        };
        let begin = ObjectsEvent::Begin(begun);
        link.stepping(call, |state, step| state.step_objects(begin, step))?;
        link.send(call);
        // For what the sequencer says of large ones that were started before, nobody is woken.
        call.unlock();
        link.machine.look(link.receivers, node);
        Ok(Ok((number, told)))
    })
}

impl Link<'_> {
    /// Waits until a call that was started is over.
    fn await_over(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
        number: u64,
        wanted: Wanted,
    ) -> Result<(), Box<Failure>> {
        if !call.split().1.here.is_under_way(number) {
            return Ok(());
        }
        self.limits(call, (number, wanted.object));
        let mut waited = Ok(());
        while waited.is_ok() && call.split().1.here.is_under_way(number) {
            waited = self.await_started(call, number, wanted);
        }
        self.limits_no_more(call, number);
        waited
    }

    /// Before a synchronisation of the worker's: waits until all calls that were started before,
    /// and that nobody will look after, were executed, or had a false guard.
    #[inline]
    pub(crate) fn settle_started(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
    ) -> Result<(), Box<Failure>> {
        if call.split().1.here.is_settled() {
            return Ok(());
        }
        self.await_unsettled(call)
    }

    #[cold]
    fn await_unsettled(&self, call: &mut heap::MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        // It is what the synchronisation waits for, later.
        let awaited = self.awaited.take();
        call.split().1.report_unseen();
        while let Some((number, wanted)) = call.split().1.here.unsettled() {
            self.await_started(call, number, wanted)?;
        }
        call.split().1.report_unseen();
        self.awaits(awaited);
        Ok(())
    }

    /// Waits until a call that was started is over, or, where nobody will look after it, its guard
    /// is false.
    fn await_started(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
        number: u64,
        wanted: Wanted,
    ) -> Result<(), Box<Failure>> {
        if !call.split().1.here.is_under_way(number) {
            return Ok(());
        }
        self.step(call, None)?;
        let State { protocol, here, .. } = call.split().1;
        if !here.is_under_way(number) {
            return Ok(());
        }
        protocol.awaits(wanted.awaits(), wanted.site);
        here.awaited = Some(number);
        self.awaits(Awaited::operation(WaitCause::Pending, wanted.name));
        let waited = self.outcome(call);
        call.split().1.here.awaited = None;
        waited.map(drop)
    }

    /// Waits until the first call is over that nobody will look after, so that there is room for
    /// another; whether there is.
    fn make_room(&self, call: &mut heap::MonitorCall<'_, State>) -> Result<bool, Box<Failure>> {
        let here = &call.split().1.here;
        let Some((number, wanted)) = here.abandoned_under_way() else {
            return Ok(false);
        };
        self.await_over(call, number, wanted)?;
        let state = call.split().1;
        state.report_unseen();
        Ok(state.here.under_way() < MOST_CALLS)
    }

    /// Waits until all calls that were started are over: those too that nobody looks after.
    pub(crate) fn await_all_started(
        &self,
        call: &mut heap::MonitorCall<'_, State>,
    ) -> Result<(), Box<Failure>> {
        while let Some((number, wanted)) = call.split().1.here.unfinished() {
            self.await_over(call, number, wanted)?;
        }
        Ok(())
    }
}

/// What was started where.
#[derive(Clone, Copy)]
pub(super) struct StartedAs {
    pub object: ObjectId,
    pub operation: &'static OperationInfo,
    pub site: &'static Location<'static>,
}

impl StartedAs {
    pub fn wanted(self) -> Wanted {
        Wanted {
            object: self.object,
            name: self.operation.name,
            site: self.site.into(),
            cause: WaitCause::Pending,
        }
    }
}

impl Wanted {
    /// What another node has started, of which nothing is known here.
    fn foreign(site: CallSite) -> Wanted {
        Wanted {
            object: Operation::NO_OBJECT,
            name: "waiting",
            site,
            cause: WaitCause::Operation,
        }
    }

    /// That the worker waits for it.
    pub(super) fn awaits(self) -> WaitingFor {
        let operation = Operation {
            object: self.object,
            name: CallSite::runtime(self.name),
            made: None,
        };
        WaitingFor::Operation(operation)
    }
}
