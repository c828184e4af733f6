//! Starting processes, and waiting for their end.

use dhole_model::{CallSite, NodeId};
use dhole_protocol::objects::{
    CallId, ClerkId, MOST_CALLS, ObjectsEvent, Outcome, Refusal, Start, Strategy,
};
use dhole_protocol::{AbortReason, Event};

use super::children::{Child, Children};
use super::op::{Decode, Op};
use crate::error::Result;
use crate::object::Malformed;
use crate::process_error::ProcessError;
use crate::sync_error::{RunEnded, SyncError};
use crate::worker::{Failure, Worker};

/// Why no process is started under TreadMarks.
pub(crate) const NO_PROCESSES: &str =
    "a run under treadmarks has no processes, for its nodes meet with whole pages";

/// The node on which to start a process: [`on`](crate::object::on) a named one, or [`anywhere`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Where(At);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    On(NodeId),
    Anywhere,
    Everywhere,
}

impl From<Strategy> for Where {
    fn from(strategy: Strategy) -> Where {
        Where(match strategy {
            Strategy::On(node) | Strategy::In(ClerkId { node, .. }) => At::On(node),
            Strategy::Replicated => At::Everywhere,
        })
    }
}

impl From<NodeId> for Where {
    fn from(node: NodeId) -> Where {
        Where(At::On(node))
    }
}

/// Chooses the node with the fewest unfinished processes started by this node. Of several it takes
/// the next one after this node.
pub const fn anywhere() -> Where {
    Where(At::Anywhere)
}

/// A process that was started. [`join`](Spawned::join) waits for its end and brings its result. If
/// the handle is dropped instead, the parent of the process waits for it before it ends itself, or
/// before it starts more processes than may be under way at a time. An error of the process is its
/// parent's then.
#[must_use = "what the process came to is not known before `join`"]
#[derive(Debug)]
pub struct Spawned<R> {
    call: u64,
    name: &'static str,
    on: NodeId,
    decode: Decode<R>,
    /// Those of the worker that started it, with which it stays.
    children: Children,
}

impl<R> Drop for Spawned<R> {
    fn drop(&mut self) {
        self.children.drop_handle(self.call);
    }
}

fn malformed(cause: Malformed) -> Refusal {
    Refusal::Malformed(cause.to_string().into())
}

impl<R> Spawned<R> {
    /// The node on which the process runs.
    pub fn node(&self) -> NodeId {
        self.on
    }

    /// Waits for the end of the process and returns its result. What the process wrote is visible
    /// then.
    ///
    /// # Errors
    /// [`ProcessError::Ended`] with its words when it panicked or returned an error;
    /// [`ProcessError::Sync`] with a deadlock when it cannot end any more;
    /// [`ProcessError::NotHere`] when another worker than `w` started it.
    #[track_caller]
    pub fn join(self, w: &mut Worker<'_>) -> Result<R, ProcessError> {
        let site = CallSite::caller();
        let is_here = w.link.children.are(&self.children);
        let child = is_here.then(|| self.children.take(self.call)).flatten();
        let Some(child) = child else {
            return Err(ProcessError::NotHere {
                name: self.name,
                node: w.node(),
                site,
            });
        };
        let bytes = w.end_of(self.call, child, site)?;
        let result = (self.decode)(&bytes).map_err(malformed);
        result.map_err(|cause| child.ended(w.node(), cause))
    }
}

impl Worker<'_> {
    /// Starts a process: on the node that `place` says, `op` runs with `arguments` and a worker of
    /// its own as soon as no other process of that node has the turn. It sees what was written
    /// before it was started.
    ///
    /// # Errors
    /// [`ProcessError::NotStarted`] when there is no such node, when the arguments cannot be
    /// written as bytes, or when 1,024 processes that this node started have not ended and this
    /// worker keeps the handles of all that are its own: where it has dropped some, it waits for
    /// the first of these instead. [`ProcessError::Sync`] when the run has ended.
    #[track_caller]
    pub fn spawn<A, R>(
        &mut self,
        place: impl Into<Where>,
        arguments: A,
        op: Op<A, R>,
    ) -> Result<Spawned<R>, ProcessError> {
        let (name, node, site) = (op.name(), self.node(), CallSite::caller());
        let refused = |cause| ProcessError::NotStarted {
            name,
            node,
            site,
            cause,
        };
        let (what, arguments) = self.may_start(op, &arguments).map_err(refused)?;
        self.settle_dropped();
        if !self.make_room_for_a_child(site)? {
            return Err(refused(Refusal::TooManyProcesses(MOST_CALLS)));
        }
        let At::On(on) = self.place(place.into()).map_err(refused)? else {
            return Err(refused(Refusal::Unknown));
        };
        let called = self.exclusive(site, |link, call| {
            link.settle_started(call)?;
            link.local(call, Some(Event::EndInterval))?;
            let state = call.split().1;
            let number = state.here.machine.new_call().number;
            state.scheduler.started(number, on);
            let start = Start {
                by: CallId { node, number },
                what,
                arguments,
                site,
                time: None,
                chain: link.chain_at(site),
            };
            let spawn = ObjectsEvent::Spawn { start, to: on };
            link.stepping(call, |state, step| state.step_objects(spawn, step))?;
            link.send(call);
            Ok(number)
        });
        let call = called.map_err(|failure| self.link.sync_error(*failure, site))?;
        let child = Child { on, name, site };
        self.link.children.started(call, child);
        Ok(Spawned {
            call,
            name,
            on,
            decode: op.decode,
            children: self.link.children.clone(),
        })
    }

    /// Forgets the children whose handles were dropped, the first of them as far as they have
    /// ended.
    fn settle_dropped(&self) {
        let children = &self.link.children;
        while let Some(call) = children.first_dropped() {
            let mut node = self.link.node.monitor.lock();
            let here = &mut node.split().1.here;
            if !here.is_finished(call) {
                return;
            }
            let outcome = here.take_finished(call);
            drop(node);
            if let (Some((_, child)), Some(outcome)) = (children.take_dropped(), outcome)
                && let Err(error) = child.came_to(self.node(), outcome)
            {
                children.has_failed(error);
            }
        }
    }

    /// Waits for children whose handles were dropped, until this node may start another process;
    /// whether it may.
    fn make_room_for_a_child(&mut self, site: CallSite) -> Result<bool, SyncError> {
        while self
            .link
            .node
            .monitor
            .lock()
            .split()
            .1
            .scheduler
            .under_way()
            >= MOST_CALLS
        {
            let Some((call, child)) = self.link.children.take_dropped() else {
                return Ok(false);
            };
            match self.end_of(call, child, site) {
                Ok(_) => {}
                Err(ProcessError::Sync(over)) => return Err(over),
                Err(error) => self.link.children.has_failed(error),
            }
        }
        Ok(true)
    }

    /// What is said of a process that may be started.
    fn may_start<A, R>(
        &self,
        op: Op<A, R>,
        arguments: &A,
    ) -> Result<(u32, dhole_protocol::objects::Bytes), Refusal> {
        let refuse = |why: &str| Refusal::Malformed(why.into());
        if self.is_paged() {
            return Err(refuse(NO_PROCESSES));
        }
        let no_table = || refuse("functions have no names in this build, on this system");
        let what = op.place().ok_or_else(no_table)?;
        let bytes = (op.encode)(arguments).map_err(malformed)?;
        Ok((what, bytes))
    }

    fn place(&self, place: Where) -> Result<At, Refusal> {
        let (me, nodes) = (self.node().index(), self.nodes());
        let on = match place.0 {
            At::On(node) if self.is_gone(node) => return Err(Refusal::NoNode(node)),
            At::On(node) if node.index() < nodes => node,
            At::On(node) => {
                let what = format!("{node} is not one of {nodes} nodes");
                return Err(Refusal::Malformed(what.into()));
            }
            At::Everywhere => {
                let what = "a process runs on one node, and cannot be replicated";
                return Err(Refusal::Malformed(what.into()));
            }
            At::Anywhere => {
                let mut guard = self.link.node.monitor.lock();
                let state = guard.split().1;
                let scheduler = &state.scheduler;
                let others = (1..=nodes).map(|far| NodeId::at((me + far) % nodes));
                let others = others.filter(|node| !state.membership.is_gone(*node));
                // Of several the first.
                let least = others.min_by_key(|node| scheduler.started_on(*node));
                least.unwrap_or(self.node())
            }
        };
        Ok(At::On(on))
    }

    fn is_gone(&self, node: NodeId) -> bool {
        self.link
            .node
            .monitor
            .lock()
            .split()
            .1
            .membership
            .is_gone(node)
    }

    /// Waits for the end of a process; its result.
    fn end_of(
        &mut self,
        number: u64,
        child: Child,
        site: CallSite,
    ) -> Result<dhole_protocol::objects::Bytes, ProcessError> {
        let called: Result<Outcome, Box<Failure>> = self.exclusive(site, |link, call| {
            link.settle_started(call)?;
            link.local(call, Some(Event::EndInterval))?;
            let here = &mut call.split().1.here;
            if !here.is_finished(number) {
                here.awaited = Some(number);
                let await_it = link.step(call, Some(child.awaited(site)));
                let waited = await_it.and_then(|()| link.outcome(call));
                call.split().1.here.awaited = None;
                waited?;
            }
            let outcome = call.split().1.here.take_finished(number);
            link.learn(call)?;
            Ok(outcome.unwrap_or(Err(Refusal::Unknown)))
        });
        match called {
            Ok(outcome) => child.came_to(self.node(), outcome),
            Err(failure) => Err(self.link.sync_error(*failure, site).into()),
        }
    }

    /// Waits for the end of all processes that this worker has started and not waited for.
    ///
    /// # Errors
    /// Of the first that did not come to a good end.
    pub(crate) fn join_all(&mut self) -> Result<(), ProcessError> {
        let site = CallSite::runtime("the end of the process that started it");
        let mut joined = self.link.children.take_failed().map_or(Ok(()), Err);
        loop {
            let Some((call, child)) = self.link.children.take_first() else {
                return joined;
            };
            let ended = self.end_of(call, child, site).map(drop);
            let is_over = matches!(ended, Err(ProcessError::Sync(_)));
            joined = joined.and(ended);
            if is_over {
                return joined;
            }
        }
    }

    /// Whether this is the node's program, and no process that it has started is under way.
    #[doc(hidden)]
    pub fn is_alone(&self) -> bool {
        let mut node = self.link.node.monitor.lock();
        let is_program = self.link.fiber == crate::machine::Fiber::PROGRAM;
        is_program && node.split().1.scheduler.under_way() == 0
    }

    /// The program is over, early: whoever still waits here finds out.
    pub(crate) fn end_others(&mut self, reason: AbortReason) {
        let why = RunEnded {
            on: self.node(),
            reason,
        };
        // Releasing them would fail, and who holds what does not matter any more.
        self.link.dropped.borrow_mut().clear();
        let _over = self.exclusive(CallSite::runtime("the end of the run"), |link, call| {
            link.end_others(call, why);
            Ok(())
        });
    }

    /// Refuses what only the program may do, in which all nodes take part.
    pub(crate) fn only_the_program(
        &self,
        what: &'static str,
        site: CallSite,
    ) -> Result<(), SyncError> {
        let node = self.node();
        if let Some(outer) = self.link.by_itself {
            return Err(SyncError::InTask {
                what,
                node,
                site,
                outer,
            });
        }
        if self.link.fiber != crate::machine::Fiber::PROGRAM {
            return Err(SyncError::InProcess { what, node, site });
        }
        Ok(())
    }
}
