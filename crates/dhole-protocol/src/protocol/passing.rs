//! Gates and conditions: what the worker asks for, and the messages that follow.

use dhole_model::{CallSite, NodeId, VectorTime};

use super::Protocol;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::gate::{Pass, Request};
use crate::lock::Acquired;
use crate::{ConditionId, Message, News, Passage, WaitingFor};

impl Protocol {
    pub(super) fn enter(
        &mut self,
        passage: Passage,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.gates.check_enter(passage, site)?;
        self.lazy.end_interval(out);
        let wait = self.wait_for.begin(WaitingFor::Gate(passage), site);
        self.gates.enter(passage, site, wait);
        let (manager, time) = (self.gates.manager(passage), self.lazy.time().clone());
        if manager == self.me {
            return self.gate_request(passage, self.me, wait, time, out);
        }
        let message = Message::GateRequest {
            passage,
            wait,
            time,
        };
        self.say(manager, message, out);
        Ok(())
    }

    pub(super) fn leave(
        &mut self,
        passage: Passage,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.gates.leave(passage, site)?;
        self.lazy.end_interval(out);
        let (manager, time) = (self.gates.manager(passage), self.lazy.time().clone());
        if manager == self.me {
            return self.gate_release(passage, self.me, &time, site, out);
        }
        let message = Message::GateRelease {
            passage,
            time,
            site,
        };
        self.say(manager, message, out);
        Ok(())
    }

    pub(super) fn gate_request(
        &mut self,
        passage: Passage,
        requester: NodeId,
        wait: u64,
        time: VectorTime,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let request = Request {
            passage,
            requester,
            wait,
            time,
        };
        let passes = self.gates.requested(request)?;
        self.let_pass(passes, out);
        Ok(())
    }

    pub(super) fn gate_release(
        &mut self,
        passage: Passage,
        from: NodeId,
        time: &VectorTime,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let passes = self.gates.released(passage, from, time, site)?;
        self.let_pass(passes, out);
        Ok(())
    }

    fn let_pass(&mut self, passes: Vec<Pass>, out: &mut Commands) {
        for Pass { request, sources } in passes {
            let parts = sources.len() as u32;
            if sources.is_empty() {
                self.pass_without_news(&request, out);
            }
            for source in sources {
                if source == self.me {
                    self.tell(&request, parts, out);
                    continue;
                }
                let message = Message::GateForward {
                    passage: request.passage,
                    requester: request.requester,
                    wait: request.wait,
                    time: request.time.clone(),
                    parts,
                };
                self.say(source, message, out);
            }
        }
    }

    fn pass_without_news(&mut self, request: &Request, out: &mut Commands) {
        if request.requester == self.me {
            if !self.over {
                self.lazy.acquired(out);
                self.gates.granted(1);
                self.go_on(out);
            }
            return;
        }
        let message = Message::GateGrant {
            passage: request.passage,
            wait: request.wait,
            parts: 1,
            news: Box::new(News {
                time: VectorTime::zero(request.time.nodes()),
                lamport: 0,
                intervals: Vec::new(),
            }),
        };
        self.say(request.requester, message, out);
    }

    /// Tells a node that may pass what it has not seen: this node's releases among it.
    pub(super) fn tell(&mut self, request: &Request, parts: u32, out: &mut Commands) {
        let message = Message::GateGrant {
            passage: request.passage,
            wait: request.wait,
            parts,
            news: Box::new(self.lazy.news_since(&request.time)),
        };
        self.say(request.requester, message, out);
    }

    pub(super) fn gate_grant(
        &mut self,
        from: NodeId,
        (passage, wait, parts): (Passage, u64, u32),
        news: &News,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.gates.check_grant(from, passage, wait, parts)?;
        let records = self.lazy.check(from, news)?;
        self.lazy.apply(news, records, out);
        if self.gates.granted(parts) {
            self.go_on(out);
        }
        Ok(())
    }

    pub(super) fn wait_on(
        &mut self,
        condition: ConditionId,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_lock_of(condition, "waiting on", site)?;
        self.locks.wait_on(condition);
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
        self.check_lock_of(condition, "notifying", site)?;
        for to in self.locks.notify(condition, all) {
            let message = Message::Notify { condition };
            out.push(Command::Send { to, message });
        }
        Ok(())
    }

    fn check_lock_of(
        &self,
        condition: ConditionId,
        doing: &'static str,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        match self.locks.holds(condition.lock) {
            true => Ok(()),
            false => Err(ProtocolError::WithoutLock {
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
        match self.locks.acquire(condition.lock, me.site)? {
            Acquired::Ask(manager) => {
                self.wait_for
                    .begin(WaitingFor::Lock(condition.lock), me.site);
                self.ask(condition.lock, manager, out)
            }
            Acquired::AtOnce => {
                self.go_on(out);
                Ok(())
            }
        }
    }
}
