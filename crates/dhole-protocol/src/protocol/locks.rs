//! Locks and their conditions: what the worker asks for, and the messages that follow.

use dhole_model::{CallSite, NodeId};
use dhole_sync::{Acquiring, Conditions, Passed, Passing};

use super::Protocol;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::sync::lock::WorkerLocks;
use crate::{ConditionId, LockId, Message, WaitingFor, WriteNotices};

impl Protocol {
    pub(super) fn acquire(
        &mut self,
        lock: LockId,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        match self.wants(lock, site)? {
            Acquiring::Has => out.push(Command::Done),
            Acquiring::Waits | Acquiring::Asks => {
                self.coherence.end_interval(out);
                self.wait_for.begin(WaitingFor::Lock(lock), site);
                self.ask(lock, out)?;
            }
        }
        Ok(())
    }

    fn wants(&mut self, lock: LockId, site: CallSite) -> Result<Acquiring, ProtocolError> {
        let locks = &mut self.locks;
        match locks.holder(lock).or_else(|| locks.waits(lock)) {
            Some(held_since) => Err(ProtocolError::AlreadyHeld {
                lock,
                site,
                held_since,
            }),
            None => Ok(locks.want(lock, site, false)),
        }
    }

    /// Asks a lock's manager, which may be here, for the lock.
    fn ask(&mut self, lock: LockId, out: &mut Commands) -> Result<(), ProtocolError> {
        let time = self.coherence.intervals.time().clone();
        let passed = self.locks.ask(lock, (), time);
        self.pass(lock, self.me, passed, out)
    }

    /// Carries out what is to be done about a lock; `from` has led to it.
    pub(super) fn pass(
        &mut self,
        lock: LockId,
        from: NodeId,
        passed: Passed<WorkerLocks>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let bad = |what| ProtocolError::BadMessage { from, what };
        for passing in passed.map_err(bad)? {
            let (to, message) = match passing {
                Passing::Request(to, time) => (to, Message::LockRequest { lock, time }),
                Passing::Forward(to, requester, time) => {
                    let forward = Message::LockForward {
                        lock,
                        requester,
                        time,
                    };
                    (to, forward)
                }
                Passing::Grant(to, time, waiting) => {
                    let news = Box::new(self.coherence.intervals.since(&time));
                    let grant = Message::LockGrant {
                        lock,
                        news,
                        waiting,
                    };
                    (to, grant)
                }
                Passing::NoRoom(..) => {
                    let what = "a request for one lock more than a node manages (2^22)";
                    return Err(bad(what));
                }
                Passing::Again => return self.ask(lock, out),
                Passing::Queued(..) | Passing::Has(_) => continue,
            };
            self.say(to, message, out);
        }
        Ok(())
    }

    pub(super) fn lock_grant(
        &mut self,
        from: NodeId,
        lock: LockId,
        news: &WriteNotices,
        waiting: Conditions<u64, NodeId>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let records = self.coherence.check(from, news)?;
        let passed = self.locks.granted(lock, waiting);
        self.pass(lock, from, passed, out)?;
        self.coherence.apply(news, records, out);
        self.go_on(out);
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        lock: LockId,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let holder = self.locks.holder(lock);
        let passed = holder.and_then(|holder| self.locks.release(lock, holder));
        let passed = passed.ok_or(ProtocolError::NotHeld { lock })?;
        self.coherence.end_interval(out);
        self.pass(lock, self.me, Ok(passed), out)
    }

    pub(super) fn wait_on(
        &mut self,
        condition: ConditionId,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let me = self.me;
        let waiting = self.waiting_on(condition, "waiting on", site)?;
        waiting.wait(condition.number, me);
        self.release(condition.lock, out)?;
        self.wait_for.begin(WaitingFor::Condition(condition), site);
        Ok(())
    }

    pub(super) fn notify(
        &mut self,
        condition: ConditionId,
        all: bool,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let waiting = self.waiting_on(condition, "notifying", site)?;
        for to in waiting.wake(condition.number, if all { usize::MAX } else { 1 }) {
            let message = Message::Notify { condition };
            out.push(Command::Send { to, message });
        }
        Ok(())
    }

    /// The nodes that wait on the conditions of a lock, which has to be held here.
    fn waiting_on(
        &mut self,
        condition: ConditionId,
        doing: &'static str,
        site: CallSite,
    ) -> Result<&mut Conditions<u64, NodeId>, ProtocolError> {
        match self.locks.holder(condition.lock) {
            Some(_) => Ok(self.locks.carried(condition.lock)),
            None => Err(ProtocolError::WithoutLock {
                doing,
                condition,
                site,
            }),
        }
    }

    /// This node waits on a condition, and is woken: it wants the lock again.
    pub(super) fn notified(
        &mut self,
        from: NodeId,
        condition: ConditionId,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let waits = WaitingFor::Condition(condition);
        let Some(me) = self.wait_for.current().filter(|me| me.waiting_for == waits) else {
            let what = "a notification of a condition that this node does not wait on";
            return Err(ProtocolError::BadMessage { from, what });
        };
        let lock = condition.lock;
        match self.wants(lock, me.site)? {
            Acquiring::Has => self.go_on(out),
            Acquiring::Waits | Acquiring::Asks => {
                self.wait_for.begin(WaitingFor::Lock(lock), me.site);
                self.ask(lock, out)?;
            }
        }
        Ok(())
    }
}
