//! The worker's calls of operations.

use std::marker::PhantomData;

use dhole_heap::{MonitorCall, Tag};
use dhole_model::{CallSite, ObjectId, WaitCause};
use dhole_protocol::Event;
use dhole_protocol::objects::{self, Bytes, ObjectsEvent, Outcome, Place, Refusal};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::copies::{self, Copies};
use super::handle::{Object, id_of};
use super::kind::{Malformed, ObjectType, OperationInfo, decode_to, encode_arguments};
use super::step::ObjectsHere;
use crate::node::State;
use crate::object_error::ObjectError;
use crate::spawn::NO_PROCESSES;
use crate::waits::Awaited;
use crate::worker::{Failure, Link, Worker};

/// What the worker wants of which object, and where in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub object: ObjectId,
    pub name: &'static str,
    pub site: CallSite,
    /// What a wait for it is counted as.
    pub cause: WaitCause,
}

/// An operation that is called.
struct Asked<T> {
    object: ObjectId,
    operation: u16,
    writes: bool,
    site: CallSite,
    /// What a wait for it is told as, where that is not the name of the operation.
    words: Option<&'static str>,
    /// Whether what this node started before comes before it.
    settles: bool,
    of: PhantomData<fn(T)>,
}

impl<T: ObjectType> Asked<T> {
    #[inline]
    fn new(tag: Tag<T>, operation: u16, writes: bool, site: CallSite) -> Asked<T> {
        Asked {
            object: id_of(tag),
            operation,
            writes,
            site,
            words: None,
            settles: true,
            of: PhantomData,
        }
    }

    fn wanted(&self) -> Wanted {
        let info = &T::OPERATIONS[usize::from(self.operation)];
        Wanted {
            object: self.object,
            name: self.words.unwrap_or(info.name),
            site: self.site,
            cause: match info {
                _ if info.guarded => WaitCause::Guard,
                _ if self.writes => WaitCause::Write,
                _ => WaitCause::Read,
            },
        }
    }
}

/// Calls an operation that only reads. What code that `#[dhole::object]` writes calls.
#[track_caller]
#[inline]
pub fn read<T: ObjectType, A, R>(
    w: &mut Worker<'_>,
    tag: Tag<T>,
    operation: u16,
    arguments: A,
    guard: fn(&T, &A) -> bool,
    run: fn(&T, A) -> R,
    travel: Travel<A, R>,
) -> Result<R, ObjectError> {
    let site = CallSite::caller();
    let asked = Asked::new(tag, operation, false, site);
    let run = |state: &mut T, arguments| run(state, arguments);
    w.call(asked, arguments, guard, run, travel)
}

/// Calls an operation that may write. What code that `#[dhole::object]` writes calls.
#[track_caller]
#[inline]
pub fn write<T: ObjectType, A, R>(
    w: &mut Worker<'_>,
    tag: Tag<T>,
    operation: u16,
    arguments: A,
    guard: fn(&T, &A) -> bool,
    run: fn(&mut T, A) -> R,
    travel: Travel<A, R>,
) -> Result<R, ObjectError> {
    let site = CallSite::caller();
    let asked = Asked::new(tag, operation, true, site);
    w.call(asked, arguments, guard, run, travel)
}

/// How an operation is called of an object whose type the program does not know.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Calling {
    operation: &'static str,
    words: &'static str,
    settles: bool,
}

impl Calling {
    /// The operation of this name. A wait for it is told in these words.
    pub const fn of(operation: &'static str, words: &'static str) -> Calling {
        Calling {
            operation,
            words,
            settles: true,
        }
    }

    /// What this node has started before may take effect later. If the call waits, what was started
    /// goes out first.
    pub const fn unsettled(self) -> Calling {
        Calling {
            settles: false,
            ..self
        }
    }
}

/// Calls an operation of an object whose type the program does not know. `guard` and `run` are
/// those of the operation.
#[doc(hidden)]
#[track_caller]
pub fn call_as<T: ObjectType, A: Serialize, R: DeserializeOwned>(
    w: &mut Worker<'_>,
    object: Object<T>,
    calling: Calling,
    arguments: A,
    guard: fn(&T, &A) -> bool,
    run: fn(&mut T, A) -> R,
) -> Result<R, ObjectError> {
    let mut all = T::OPERATIONS.iter();
    let number = all.position(|it| it.name == calling.operation);
    let number = number.expect("the operation is one of the type's");
    let tag = (*object).into();
    let writes = T::OPERATIONS[number].writes;
    let asked = Asked {
        words: Some(calling.words),
        settles: calling.settles,
        ..Asked::new(tag, number as u16, writes, CallSite::caller())
    };
    let travel = Travel {
        there: encode_arguments,
        back: decode_to,
    };
    w.call_in_turn(asked, Some((arguments, run)), guard, travel)
}

/// Calls an operation that takes a worker: a process of the object's node executes it, also where
/// that is the caller's. What code that `#[dhole::object]` writes calls.
#[track_caller]
pub fn call_by_process<T: ObjectType, A, R>(
    w: &mut Worker<'_>,
    tag: Tag<T>,
    operation: u16,
    arguments: A,
    travel: Travel<A, R>,
) -> Result<R, ObjectError> {
    let writes = T::OPERATIONS[usize::from(operation)].writes;
    let asked = Asked::new(tag, operation, writes, CallSite::caller());
    if w.is_paged() {
        let cause = Refusal::Malformed(NO_PROCESSES.into());
        return Err(w.refused(asked.wanted(), cause));
    }
    // Its guard is for the object's node to see, so it is never executed by the caller.
    let run = |_: &mut T, _: A| unreachable!("a process executes it");
    w.call_in_turn(asked, Some((arguments, run)), |_, _| false, travel)
}

/// What comes of an operation where nothing fails.
pub(crate) type Done<R> = Result<R, Box<Refusal>>;

/// How the arguments of an operation travel, and what comes of its reply.
pub struct Travel<A, R> {
    /// Appends the bytes of the arguments.
    pub there: There<A>,
    /// Takes the result from the bytes of the reply, and writes what comes back into what the
    /// caller has lent. It writes nothing if the bytes are not what they should be.
    pub back: Back<A, R>,
}

type There<A> = fn(&A, &mut Vec<u8>) -> Result<(), Malformed>;
type Back<A, R> = fn(A, &[u8], &mut Option<R>) -> Result<(), Malformed>;

/// Arguments, and what is done with them: gone once it was done.
type Pending<A, F> = Option<(A, F)>;

/// Tries an operation on the copy here, by itself and without making bytes of anything. The result
/// of what could be done lies in `result` then: moved along, it would be waited for, for it is
/// written in smaller pieces than it is read in.
#[inline]
fn try_here<T: ObjectType, A, R>(
    copies: &mut Copies,
    object: ObjectId,
    operation: u16,
    pending: &mut Pending<A, impl FnOnce(&mut T, A) -> R>,
    guard: fn(&T, &A) -> bool,
    result: &mut Option<R>,
) -> Result<(), Box<Refusal>> {
    let tried = copies.run(object, operation, |copy: &mut T| {
        let may = pending
            .as_ref()
            .is_some_and(|(arguments, _)| guard(copy, arguments));
        if let Some((arguments, run)) = pending.take_if(|_| may) {
            *result = Some(run(copy, arguments));
        }
    });
    tried.map_err(Box::new)
}

#[cold]
pub(super) fn malformed(cause: Malformed) -> Box<Refusal> {
    Box::new(Refusal::Malformed(cause.to_string().into()))
}

impl<'id> Worker<'id> {
    #[inline]
    fn call<T: ObjectType, A, R>(
        &mut self,
        asked: Asked<T>,
        arguments: A,
        guard: fn(&T, &A) -> bool,
        run: impl FnOnce(&mut T, A) -> R,
        travel: Travel<A, R>,
    ) -> Result<R, ObjectError> {
        let Asked {
            object, operation, ..
        } = asked;
        let mut pending = Some((arguments, run));
        if !asked.writes && self.link.dropped.borrow().is_empty() {
            match self.read_at_once(object, operation, &mut pending, guard) {
                Ok(Some(result)) => return Ok(result),
                Ok(None) => {}
                Err(cause) => return Err(self.refused(asked.wanted(), *cause)),
            }
        }
        self.call_in_turn(asked, pending, guard, travel)
    }

    /// Reads the copy here as if nothing else happened, where that may be, and its guard is true.
    #[inline]
    fn read_at_once<T: ObjectType, A, R>(
        &self,
        object: ObjectId,
        operation: u16,
        pending: &mut Pending<A, impl FnOnce(&mut T, A) -> R>,
        guard: fn(&T, &A) -> bool,
    ) -> Result<Option<R>, Box<Refusal>> {
        let link = &self.link;
        let (machine, id, counted) = (link.machine, link.node.id, link.counts_moments);
        if counted {
            machine.enter(id);
        }
        // For what operations of others have written meanwhile the worker is not woken, and for who
        // asks for something only after a while.
        machine.look(link.receivers, id);
        let mut node = link.node.monitor.lock();
        let state = node.split().1;
        let quiet = state.may_read_at_once();
        let ObjectsHere {
            machine: objects,
            copies,
            ..
        } = &mut state.here;
        let mut result = None;
        let tried = match objects.reads_here(object) {
            Some(reads) if quiet => {
                if counted {
                    machine.computes(id, true);
                }
                let tried = try_here(copies, object, operation, pending, guard, &mut result);
                if counted {
                    machine.computes(id, false);
                }
                *reads += u64::from(result.is_some());
                tried
            }
            _ => Ok(()),
        };
        drop(node);
        if counted {
            machine.leave(id);
        }
        tried.map(|()| result)
    }

    /// Calls an operation as a synchronisation: what was written before is told, and what happened
    /// before in the object's order is learnt.
    fn call_in_turn<T: ObjectType, A, R>(
        &mut self,
        asked: Asked<T>,
        mut pending: Pending<A, impl FnOnce(&mut T, A) -> R>,
        guard: fn(&T, &A) -> bool,
        travel: Travel<A, R>,
    ) -> Result<R, ObjectError> {
        let wanted = asked.wanted();
        let Asked {
            object,
            operation,
            writes,
            settles,
            ..
        } = asked;
        let mut looks = false;
        // It stays where it is written: moved along, it would be waited for.
        let mut result = None;
        let done = self.in_turn(wanted, |link, call| {
            if settles {
                link.settle_started(call)?;
            }
            let state = call.split().1;
            let kind = state.here.meet::<T>(object);
            state.here.machine.count(object, writes);
            if state.here.machine.is_local(object, writes) {
                // The operation is the program's, and takes the time that it takes.
                link.machine.computes(link.node.id, true);
                let tried = try_here(
                    &mut state.here.copies,
                    object,
                    operation,
                    &mut pending,
                    guard,
                    &mut result,
                );
                link.machine.computes(link.node.id, false);
                if tried.is_err() || result.is_some() {
                    if writes {
                        let wrote = ObjectsEvent::Wrote(object);
                        link.stepping(call, |state, step| state.step_objects(wrote, step))?;
                        link.send(call);
                    }
                    return Ok(tried);
                }
            }
            if state.must_not_wait_for(object, operation, T::OPERATIONS) {
                return Ok(Err(Box::new(Refusal::HoldsLock)));
            }
            if !settles {
                let goes = ObjectsEvent::SendBatches;
                link.stepping(call, |state, step| state.step_objects(goes, step))?;
                link.send(call);
            }
            let state = call.split().1;
            let Some((arguments, _)) = &pending else {
                return Ok(Err(Box::new(Refusal::Unknown)));
            };
            let bytes = &mut state.here.arguments;
            copies::empty(bytes);
            if let Err(cause) = (travel.there)(arguments, bytes) {
                return Ok(Err(malformed(cause)));
            }
            let called = objects::CallRef {
                id: state.here.machine.next_call(),
                object,
                kind,
                operation,
                writes,
                started: false,
                chain: &[],
                arguments: &[],
            };
            looks = writes && state.here.machine.place(object) == Some(Place::Replicated);
            let over = link.call(call, wanted, called)?;
            let Some((arguments, _)) = pending.take() else {
                return Ok(Err(Box::new(Refusal::Unknown)));
            };
            Ok(match over {
                Over::Answered => {
                    let bytes = &call.split().1.here.result;
                    (travel.back)(arguments, bytes, &mut result).map_err(malformed)
                }
                Over::Finished(outcome) => match *outcome {
                    Ok(bytes) => (travel.back)(arguments, &bytes, &mut result).map_err(malformed),
                    Err(refusal) => Err(Box::new(refusal)),
                },
            })
        });
        // Whoever writes on and on at the sequencer waits for nobody.
        if looks {
            self.looks();
        }
        done?;
        result.ok_or_else(|| self.refused(wanted, Refusal::Unknown))
    }

    /// An operation that all objects know.
    pub(super) fn order(
        &mut self,
        wanted: Wanted,
        event: impl FnOnce(u64) -> ObjectsEvent,
    ) -> Result<Bytes, ObjectError> {
        self.in_turn(wanted, |link, call| {
            link.settle_started(call)?;
            let outcome = link.operate(call, wanted, event)?;
            Ok(outcome.map_err(Box::new))
        })
    }

    /// Runs `f` as a synchronisation.
    pub(crate) fn in_turn<R>(
        &mut self,
        wanted: Wanted,
        f: impl FnOnce(&Link<'id>, &mut MonitorCall<'_, State>) -> Result<Done<R>, Box<Failure>>,
    ) -> Result<R, ObjectError> {
        let called = self.exclusive(wanted.site, |link, call| {
            if !call.split().1.is_quiescent() {
                link.local(call, Some(Event::EndInterval))?;
            }
            let outcome = f(link, call)?;
            link.learn(call)?;
            Ok(outcome)
        });
        match called {
            Ok(outcome) => outcome.map_err(|cause| self.refused(wanted, *cause)),
            Err(failure) => Err(self.link.sync_error(*failure, wanted.site).into()),
        }
    }

    #[cold]
    pub(crate) fn refused(&self, wanted: Wanted, cause: Refusal) -> ObjectError {
        ObjectError::Refused {
            operation: wanted.name,
            object: wanted.object,
            node: self.node(),
            site: wanted.site,
            cause,
        }
    }
}

impl State {
    /// Whether the worker may read a copy that is here and go on as if nothing had happened: there
    /// is nothing to learn, and nobody waits for a call of the worker.
    #[inline]
    fn may_read_at_once(&self) -> bool {
        let quiet = self.ended().is_none() && !self.protocol.has_deferred();
        quiet && !self.here.machine.is_acquire_due() && self.here.is_settled()
    }

    /// Whether a call of an object here would wait for a process that cannot begin, because the
    /// caller holds a lock.
    fn must_not_wait_for(
        &self,
        object: ObjectId,
        operation: u16,
        operations: &[OperationInfo],
    ) -> bool {
        let Some(info) = operations.get(usize::from(operation)) else {
            return false;
        };
        let machine = &self.here.machine;
        machine.place(object) == Some(Place::Monitored)
            && self.holds_anything()
            && (info.takes_worker || !machine.would_begin(object, info.writes))
    }

    /// Whether there is nothing to be done here before an operation, or after one that tells
    /// nothing.
    pub(super) fn is_quiescent(&self) -> bool {
        self.ended().is_none() && self.gathered.is_empty() && self.protocol.is_quiescent()
    }
}

/// What a call that the worker has waited for has come to.
pub(crate) enum Over {
    /// A result, which is in `ObjectsHere::result`.
    Answered,
    /// It came otherwise, or there is none.
    Finished(Box<Outcome>),
}

impl Link<'_> {
    /// Calls an operation, whose arguments are in `ObjectsHere::arguments`, and waits until the
    /// call is over.
    pub(crate) fn call(
        &self,
        call: &mut MonitorCall<'_, State>,
        wanted: Wanted,
        called: objects::CallRef<'static>,
    ) -> Result<Over, Box<Failure>> {
        let mut number = None;
        let made = self.acts(call, |state, step| {
            let State { protocol, here, .. } = &mut *state;
            protocol.awaits(wanted.awaits(), wanted.site);
            let id = here.machine.new_call();
            here.awaited = Some(id.number);
            number = here.awaited;
            let arguments = std::mem::take(&mut here.arguments);
            let chain = self.chain_at(wanted.site);
            let whole = objects::CallRef {
                id,
                chain: &chain,
                arguments: &arguments,
                ..called
            };
            let stepped = state.objects_directly(step, |machine, host, fx| {
                machine.call(whole, host, fx);
                Ok(())
            });
            state.here.arguments = arguments;
            stepped
        });
        self.awaits(Awaited::operation(wanted.cause, wanted.name));
        match number {
            Some(number) => {
                self.limits(call, (number, wanted.object));
                let over = self.over_of(call, number, made);
                self.limits_no_more(call, number);
                over
            }
            None => made.map(|()| Over::Finished(Box::new(Err(Refusal::Unknown)))),
        }
    }

    /// The chain of operations in progress that go with a call from this line; none go with the
    /// program's.
    #[inline]
    pub(crate) fn chain_at(&self, site: CallSite) -> Bytes {
        let chain = self.chain.borrow();
        match chain.is_empty() {
            true => Bytes::default(),
            false => chain.calling_at(site),
        }
    }

    /// As [`outcome_of`](Link::outcome_of), where the result may lie in `ObjectsHere::result`.
    pub(super) fn over_of(
        &self,
        call: &mut MonitorCall<'_, State>,
        number: u64,
        made: Result<(), Box<Failure>>,
    ) -> Result<Over, Box<Failure>> {
        let waited = made.and_then(|()| self.outcome(call));
        let here = &mut call.split().1.here;
        here.awaited = None;
        let over = match here.takes_answer(number) {
            true => Over::Answered,
            false => {
                let finished = here.take_finished(number);
                Over::Finished(Box::new(finished.unwrap_or(Err(Refusal::Unknown))))
            }
        };
        waited.map(|_| over)
    }

    /// Has an event about objects, and waits until the call that it makes is over.
    pub(crate) fn operate(
        &self,
        call: &mut MonitorCall<'_, State>,
        wanted: Wanted,
        event: impl FnOnce(u64) -> ObjectsEvent,
    ) -> Result<Outcome, Box<Failure>> {
        self.step(call, None)?;
        let State { protocol, here, .. } = call.split().1;
        protocol.awaits(wanted.awaits(), wanted.site);
        let number = here.machine.new_call().number;
        here.awaited = Some(number);
        let event = event(number);
        let stepped = self.stepping(call, |state, step| state.step_objects(event, step));
        self.outcome_of(call, number, stepped.map_err(Box::from))
    }

    /// Waits until a call is over that was made, if it was.
    pub(super) fn outcome_of(
        &self,
        call: &mut MonitorCall<'_, State>,
        number: u64,
        made: Result<(), Box<Failure>>,
    ) -> Result<Outcome, Box<Failure>> {
        let waited = made.and_then(|()| self.outcome(call));
        let state = call.split().1;
        state.here.awaited = None;
        let outcome = state.here.take_finished(number);
        waited?;
        Ok(outcome.unwrap_or(Err(Refusal::Unknown)))
    }

    /// Learns what operations told this node.
    pub(crate) fn learn(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let state = call.split().1;
        if !state.here.machine.take_acquire_due() {
            return Ok(());
        }
        if !state.here.machine.has_heard(state.protocol.seen()) && state.is_quiescent() {
            return Ok(());
        }
        state
            .here
            .machine
            .forget_up_to(state.protocol.seen_by_all());
        let news = state.here.machine.unlearned(state.protocol.seen());
        if news.is_none() && state.is_quiescent() {
            return Ok(());
        }
        if state.membership.cut().is_err() {
            return self.local(call, Some(Event::Learn(news)));
        }
        if let Some(news) = &news {
            self.after_the_barrier(call, news)?;
        }
        self.begin(call, Event::Learn(news)).map(drop)
    }
}
