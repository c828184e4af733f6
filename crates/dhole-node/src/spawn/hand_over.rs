//! Giving the turn away, and having it again.

use dhole_heap::MonitorCall;
use dhole_model::NodeId;
use dhole_protocol::objects::Refusal;
use dhole_protocol::{Event, Message, WriteNotices};

use super::scheduler::{Next, Parked};
use crate::ended::Ended;
use crate::machine::{Fiber, Woken};
use crate::node::State;
use crate::step::Step;
use crate::sync_error::RunEnded;
use crate::worker::{Failure, Link};

impl State {
    /// Whether somebody else goes on, or could, though the worker waits: then not all wait.
    pub(crate) fn others_go_on(&self) -> bool {
        self.scheduler.begins() || self.may_let_others()
    }

    /// Whether somebody else could go on while the worker waits: it is in a wait that may be set
    /// aside, and nobody waits for what it holds.
    pub(crate) fn may_let_others(&self) -> bool {
        self.scheduler.can_go_on() && self.protocol.may_park() && !self.holds_anything()
    }

    /// Whether the worker holds a lock or another object of synchronisation.
    pub(crate) fn holds_anything(&self) -> bool {
        self.protocol.held_locks().next().is_some()
            || self.protocol.held_sync_objects().next().is_some()
    }
}

impl Link<'_> {
    /// While the worker waits, lets another process of this node go on that can; whether there was
    /// one.
    pub(crate) fn let_others(
        &self,
        call: &mut MonitorCall<'_, State>,
    ) -> Result<bool, Box<Failure>> {
        let state = call.split().1;
        if !state.may_let_others() {
            return Ok(false);
        }
        self.give_turn(call)
    }

    /// Lets others go on that can, one after the other, each until it waits or is over.
    pub(crate) fn yield_turn(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let state = call.split().1;
        if state.scheduler.can_go_on() && !state.holds_anything() {
            self.give_turn(call)?;
            // It parked without a wait, so that nothing has come for it.
            call.split().1.not_done();
        }
        Ok(())
    }

    fn give_turn(&self, call: &mut MonitorCall<'_, State>) -> Result<bool, Box<Failure>> {
        let Some(next) = call.split().1.scheduler.next() else {
            return Ok(false);
        };
        let (machine, id) = (self.machine, self.node.id);
        let to = match next {
            Next::Parked(fiber) => fiber,
            Next::New(fiber) => {
                call.unlock();
                if let Err(cause) = machine.begin(id, fiber) {
                    self.not_begun(call, cause.to_string())?;
                    return Ok(true);
                }
                fiber
            }
        };
        self.hand_over(call, to);
        self.go_on(call)?;
        Ok(true)
    }

    fn hand_over(&self, call: &mut MonitorCall<'_, State>, to: Fiber) {
        let me = self.fiber;
        let state = call.split().1;
        state.here.keep_answer();
        let awaited = state.here.awaited.take();
        let over = state.not_done();
        let at_barrier = awaited.is_none() && state.protocol.may_park();
        let wait = match over {
            true => None,
            false => state.protocol.park(),
        };
        let parked = Parked {
            wait,
            awaited,
            at_barrier,
        };
        // Who has the turn next computes.
        state.membership.waited();
        state.scheduler.park(me, parked);
        let (machine, id) = (self.machine, self.node.id);
        call.give_turn(|| machine.hand_over(id, me, to));
        let now_ns = machine.waited(id);
        call.split().1.counting.phases.ends(now_ns);
    }

    /// This fiber has the turn again.
    fn go_on(&self, call: &mut MonitorCall<'_, State>) -> Result<(), Box<Failure>> {
        let state = call.split().1;
        if state.scheduler.has_held() && self.fiber == Fiber::PROGRAM && state.ended().is_none() {
            // Whoever had the turn may have written meanwhile.
            let ended = self.local(call, Some(Event::EndInterval));
            if ended.is_err() {
                call.split().1.scheduler.unpark(self.fiber);
                return ended;
            }
        }
        let state = call.split().1;
        let Some(parked) = state.scheduler.unpark(self.fiber) else {
            return Ok(());
        };
        let held = match parked.at_barrier {
            true => state.scheduler.take_held(),
            false => Vec::new(),
        };
        if state.ended().is_some() {
            return Ok(());
        }
        state.here.awaited = parked.awaited;
        match parked.wait {
            None => state.woken(),
            Some(wait) => state.protocol.unpark(wait, true),
        }
        self.take_messages(call, held);
        self.send(call);
        Ok(())
    }

    fn take_messages(
        &self,
        call: &mut MonitorCall<'_, State>,
        held: Vec<(NodeId, Message, Vec<u8>)>,
    ) {
        for (from, message, payload) in held {
            self.stepping(call, |state, step| {
                let mut step = Step {
                    from,
                    heap: &mut *step.heap,
                    pool: step.pool,
                    out: &mut *step.out,
                    payload: &payload,
                    at_once: None,
                };
                state.take_message(from, message, &mut step);
            });
        }
    }

    /// A process that keeps the turn while it waits takes what is kept for the program, in the
    /// program's place: whom it waits for may wait at that barrier. Whether something was kept:
    /// then a lock may have come that the process waits for, and no message follows that wakes it.
    pub(crate) fn take_held(&self, call: &mut MonitorCall<'_, State>) -> bool {
        let state = call.split().1;
        // In other waits its interval may not have ended.
        let takes = state.scheduler.has_held() && state.protocol.wait().is_some();
        if takes {
            self.take_held_now(call);
        }
        takes
    }

    /// Before a process learns what rests on what was told at a barrier at which this node has
    /// arrived and that others have left: waits until that is told here too, which is on its way.
    pub(crate) fn after_the_barrier(
        &self,
        call: &mut MonitorCall<'_, State>,
        news: &WriteNotices,
    ) -> Result<(), Box<Failure>> {
        loop {
            let state = call.split().1;
            if !state.scheduler.program_is_at_barrier() || !state.protocol.lacks(news) {
                return Ok(());
            }
            if let Some(ended) = state.ended() {
                return Err(Box::new(Failure::Ended(ended.clone())));
            }
            if state.scheduler.has_held() {
                self.take_held_now(call);
                continue;
            }
            call.unlock();
            let (machine, id) = (self.machine, self.node.id);
            let woken = machine.wait_polling(self.receivers, id, self.suspect_after);
            if woken == Woken::ByTime && call.split().1.scheduler.has_held() {
                self.found_late(call, true);
            }
        }
    }

    fn take_held_now(&self, call: &mut MonitorCall<'_, State>) {
        let state = call.split().1;
        if !state.scheduler.has_held() || state.ended().is_some() {
            return;
        }
        let (mine, awaited) = (state.protocol.park(), state.here.awaited.take());
        let done = state.not_done();
        if let Some(wait) = state.scheduler.take_wait_of_program() {
            state.protocol.unpark(wait, true);
        }
        let held = state.scheduler.take_held();
        self.take_messages(call, held);
        let state = call.split().1;
        let over = state.not_done();
        let wait = state.protocol.park().filter(|_| !over);
        state.protocol.go_on_at_once();
        state.scheduler.program_waits(wait);
        state.here.awaited = awaited;
        if let Some(mine) = mine {
            state.protocol.unpark(mine, true);
        }
        if done {
            state.woken();
        }
        if !state.scheduler.program_is_at_barrier() {
            let grants = state.scheduler.take_grants();
            self.take_messages(call, grants);
        }
        // Not before: whoever sends gives up the lock, and the wait is the worker's own again.
        self.send(call);
    }

    /// There is no stack for the process that was to begin.
    fn not_begun(
        &self,
        call: &mut MonitorCall<'_, State>,
        cause: String,
    ) -> Result<(), Box<Failure>> {
        let Some(process) = call.split().1.scheduler.take_begins() else {
            return Ok(());
        };
        let ended = process.ended(Err(Refusal::Malformed(cause.into())));
        self.stepping(call, |state, step| state.step_objects(ended, step))?;
        self.send(call);
        Ok(())
    }

    /// The program is over, and with it the run on this node: lets all that still wait here find
    /// that out.
    pub(crate) fn end_others(&self, call: &mut MonitorCall<'_, State>, why: RunEnded) {
        loop {
            let state = call.split().1;
            let Some(fiber) = state.scheduler.any_parked() else {
                return;
            };
            state.end(Ended::Elsewhere(why.clone()));
            self.hand_over(call, fiber);
            call.split().1.scheduler.unpark(self.fiber);
        }
    }
}
