//! Sections: calls of the lock of an object, which the lock's home executes on objects of the
//! shared space (Jackal, section 6).
//!
//! A section waits if its guard is false, a node holds the lock, the home's worker may use what the
//! section touches, or a node has yet to know that its copy is outdated. It has changed nothing
//! then, and why it waits makes no difference here: [`Objects::retry_sections`] tries those that
//! wait for a lock again, in the order of coming.

use dhole_model::{NodeId, ObjectId};

use super::call::{CallRef, Refusal, Waiting};
use super::host::Host;
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
        result.clear();
        let time = match call.id.node == self.me {
            true => host.time(),
            false => self.told_by.get(&call.id.node).cloned(),
        };
        match host.apply_section(call, time.as_ref(), &mut result) {
            Ok(false) => self.wait(call, fx),
            executed => {
                self.section_is_over(call, executed.map(|_| &result[..]), fx);
                self.try_again(object, host, fx);
            }
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
        loop {
            let mut result = std::mem::take(&mut self.result);
            result.clear();
            let entry = self.table.get_mut(&lock);
            let Some(waiting) = entry.and_then(|entry| entry.blocked.get(next)) else {
                return self.keep_room(result);
            };
            let Waiting { call, time } = waiting;
            let own = (call.id.node == self.me).then(|| host.time()).flatten();
            let time = own.as_ref().or(time.as_ref());
            match host.apply_section(call.by_ref(), time, &mut result) {
                Ok(false) => next += 1,
                executed => {
                    let entry = self.table.get_mut(&lock);
                    let taken = entry.and_then(|entry| entry.blocked.remove(next));
                    if let Some(Waiting { call, .. }) = taken {
                        let executed = executed.map(|_| &result[..]);
                        self.section_is_over(call.by_ref(), executed, fx);
                    }
                    next = 0;
                }
            }
            self.keep_room(result);
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
