//! Sections: calls of the lock of an object, which the lock's home executes on objects of the
//! shared space (Jackal, section 6).
//!
//! A section may go on with another one, as the same call: what it has written stays, and the other
//! one may wait.
//!
//! A section waits if its guard is false, a node holds the lock, the home's worker may use what the
//! section touches, or a node has yet to know that its copy is outdated. It has changed nothing
//! then, and why it waits makes no difference here: [`Objects::retry_sections`] tries those that
//! wait for a lock again, in the order of coming.

use dhole_model::{NodeId, ObjectId, VectorTime};

use super::call::{Call, CallRef, Refusal, Waiting};
use super::host::{Host, Ran};
use super::{Objects, ObjectsEffects};

impl Objects {
    /// The worker calls a section under a lock that `home` manages.
    pub(super) fn call_section(
        &mut self,
        home: NodeId,
        call: CallRef<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        if home != self.me {
            return match self.gone.contains_key(&home) {
                true => fx.finished(call.id.number, Err(Refusal::Lost(home))),
                false => self.ask(home, call, host, fx),
            };
        }
        self.hear_own(host);
        self.comes_to_lock(call, host, fx);
    }

    /// A section comes to the lock, which is managed here if a node has asked the right one.
    pub(super) fn comes_to_lock(
        &mut self,
        call: CallRef<'_>,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        let object = call.object;
        if object.lock().is_none_or(|(_, home)| home != self.me) {
            return self.finish(call.id, Err(Refusal::Unknown), fx);
        }
        let mut result = std::mem::take(&mut self.result);
        let time = match call.id.node == self.me {
            true => host.time(),
            false => self.told_by.get(&call.id.node).cloned(),
        };
        let ran = run(call, time.as_ref(), host, &mut result);
        if let Some(rest) = &ran.rest {
            self.wait(rest.by_ref(), fx);
        } else if ran.is_left {
            self.wait(call, fx);
        } else {
            self.section_is_over(call, ran.outcome.map(|()| &result[..]), fx);
        }
        if !ran.is_left || ran.rest.is_some() {
            self.try_again(object, host, fx);
        }
        self.keep_room(result);
        self.forget_idle_lock(object, host);
    }

    /// Something has changed that the sections which wait for a lock may have waited for.
    pub fn retry_sections(
        &mut self,
        lock: ObjectId,
        host: &mut dyn Host,
        fx: &mut impl ObjectsEffects,
    ) {
        self.try_again(lock, host, fx);
        self.forget_idle_lock(lock, host);
    }

    /// Tries the sections that wait, from the first on, until none can go on.
    fn try_again(&mut self, lock: ObjectId, host: &mut dyn Host, fx: &mut impl ObjectsEffects) {
        let mut next = 0;
        let mut result = std::mem::take(&mut self.result);
        loop {
            let entry = self.table.get_mut(&lock);
            let Some(waiting) = entry.and_then(|entry| entry.blocked.get(next)) else {
                return self.keep_room(result);
            };
            let Waiting { call, time } = waiting;
            let own = (call.id.node == self.me).then(|| host.time()).flatten();
            let time = own.as_ref().or(time.as_ref());
            let ran = run(call.by_ref(), time, host, &mut result);
            if ran.is_left && ran.rest.is_none() {
                next += 1;
                continue;
            }
            let entry = self.table.get_mut(&lock);
            match (ran.rest, entry) {
                (Some(rest), Some(entry)) => entry.blocked[next].call = rest,
                (None, Some(entry)) => {
                    if let Some(Waiting { call, .. }) = entry.blocked.remove(next) {
                        let outcome = ran.outcome.map(|()| &result[..]);
                        self.section_is_over(call.by_ref(), outcome, fx);
                    }
                }
                (_, None) => {}
            }
            next = 0;
        }
    }

    fn section_is_over(
        &mut self,
        call: CallRef<'_>,
        outcome: Result<&[u8], Refusal>,
        fx: &mut impl ObjectsEffects,
    ) {
        // It is an acquire of its caller. That of another node learns by the reply.
        self.acquire_due = true;
        self.finish(call.id, outcome, fx);
    }

    /// Nothing is kept of a lock for which no section waits.
    pub(super) fn forget_idle_lock(&mut self, lock: ObjectId, host: &mut dyn Host) {
        let entry = self.table.get(&lock);
        let waits = entry.is_some_and(|entry| !entry.blocked.is_empty());
        if entry.is_some() && !waits {
            self.table.remove(&lock);
        }
        host.sections_wait(lock, waits);
    }
}

/// The operation of a call that has run a part of its section.
const REST: u16 = 1;

/// How far a call of a section has come.
struct HowFar {
    /// Whether it waits.
    is_left: bool,
    /// The call in place of it, if a part has run.
    rest: Option<Call>,
    /// What it has come to, if it does not wait.
    outcome: Result<(), Refusal>,
}

/// Runs a section, and those with which it goes on. The bytes of the result are put into `result`.
fn run(
    call: CallRef<'_>,
    time: Option<&VectorTime>,
    host: &mut dyn Host,
    result: &mut Vec<u8>,
) -> HowFar {
    let mut rest: Option<Call> = None;
    loop {
        result.clear();
        let now = rest.as_ref().map_or(call, Call::by_ref);
        let is_rest = now.operation == REST;
        let outcome = match host.apply_section(now, time, result) {
            Ok(Ran::Then { kind, arguments }) => {
                rest = Some(Call {
                    kind,
                    operation: REST,
                    arguments,
                    ..Call::from(call)
                });
                continue;
            }
            Ok(Ran::Not) => {
                return HowFar {
                    is_left: true,
                    rest,
                    outcome: Ok(()),
                };
            }
            Ok(Ran::Whole) => Ok(()),
            Err(Refusal::Elsewhere) if is_rest => Err(Refusal::Rest {
                kind: now.kind,
                arguments: now.arguments.into(),
            }),
            Err(refusal) => Err(refusal),
        };
        return HowFar {
            is_left: false,
            rest: None,
            outcome,
        };
    }
}
