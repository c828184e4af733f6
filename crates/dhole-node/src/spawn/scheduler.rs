//! Whose turn it is on a node.

use std::collections::{BTreeMap, VecDeque};

use dhole_model::NodeId;
use dhole_protocol::objects::{MOST_BEGUN, MOST_CALLS};
use dhole_protocol::{Message, Unbegun, Waiter, most_early};
use smallvec::SmallVec;

use super::process::Process;
use crate::machine::Fiber;

/// Who waits for the turn on a node, and for what.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// How many fibers the node has had beside the program's.
    made: u32,
    parked: BTreeMap<Fiber, Parked>,
    /// Those of them that can go on, the longest waiting first.
    ready: VecDeque<Fiber>,
    /// Processes that have not begun.
    queue: VecDeque<Process>,
    /// What the fiber runs that begins now.
    begins: Option<Process>,
    /// What would end the program's wait at a barrier, until it has the turn.
    held: Vec<(NodeId, Message, Vec<u8>)>,
    /// Locks that were given before what ends that wait has come, on which they rest.
    grants: Vec<(NodeId, Message, Vec<u8>)>,
    /// Somebody can go on who could not before.
    stirred: bool,
    /// Processes that this node has started somewhere, until they have ended.
    under_way: BTreeMap<u64, NodeId>,
}

/// A fiber that has given the turn away.
pub(super) struct Parked {
    /// Its wait, until that is over.
    pub wait: Option<Waiter>,
    /// The call that it waits for.
    pub awaited: Option<u64>,
    /// It waits at a barrier.
    pub at_barrier: bool,
}

/// Who goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Parked(Fiber),
    /// A process that has not begun, on a fiber that is new.
    New(Fiber),
}

impl Scheduler {
    /// A process was started here; whether there is room for it.
    pub fn take_in(&mut self, process: Process, nodes: usize) -> Result<(), Process> {
        if self.queue.len() >= MOST_CALLS * nodes {
            return Err(process);
        }
        self.queue.push_back(process);
        self.stirred = true;
        Ok(())
    }

    /// Whether no process was ever begun here: all turns are the program's.
    pub fn are_the_programs(&self) -> bool {
        self.made == 0
    }

    /// Whether somebody else could go on.
    #[inline]
    pub fn can_go_on(&self) -> bool {
        !self.ready.is_empty() || (!self.queue.is_empty() && self.parked.len() < MOST_BEGUN)
    }

    /// The processes that cannot begin, because as many have begun on this node as may.
    pub fn unbegun(&self, node: NodeId) -> Option<Waiter> {
        let first = self.queue.front()?;
        let unbegun = Unbegun {
            begun: self.parked.len() as u32,
            waiting: self.queue.len() as u32,
        };
        let is_full = self.parked.len() >= MOST_BEGUN;
        is_full.then(|| Waiter::unbegun(node, unbegun, first.site()))
    }

    /// Whether somebody is about to have the turn, for whom a stack is made.
    pub fn begins(&self) -> bool {
        self.begins.is_some()
    }

    /// Whether somebody can go on who could not when this was last asked.
    pub fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    pub(super) fn next(&mut self) -> Option<Next> {
        if let Some(fiber) = self.ready.pop_front() {
            return Some(Next::Parked(fiber));
        }
        if !self.can_go_on() {
            return None;
        }
        self.begins = self.queue.pop_front();
        self.made += 1;
        Some(Next::New(Fiber(self.made)))
    }

    /// What the fiber runs that has just begun, or has come to the end of what it ran.
    pub(super) fn take_begins(&mut self) -> Option<Process> {
        self.begins.take()
    }

    /// What a fiber runs next that has come to the end of a process; else who goes on: the
    /// program if nobody can, for it waits as long as others live.
    pub(super) fn after_end(&mut self, ended: bool) -> Result<Process, Fiber> {
        if ended {
            return Err(self.any_parked().unwrap_or(Fiber::PROGRAM));
        }
        if let Some(fiber) = self.ready.pop_front() {
            return Err(fiber);
        }
        match self.can_go_on() {
            true => self.queue.pop_front().ok_or(Fiber::PROGRAM),
            false => Err(Fiber::PROGRAM),
        }
    }

    pub(super) fn park(&mut self, fiber: Fiber, parked: Parked) {
        if parked.wait.is_none() {
            self.ready.push_back(fiber);
        }
        self.parked.insert(fiber, parked);
    }

    /// The fiber has the turn again.
    pub(super) fn unpark(&mut self, fiber: Fiber) -> Option<Parked> {
        self.ready.retain(|ready| *ready != fiber);
        self.parked.remove(&fiber)
    }

    /// Whoever has given the turn away.
    pub(super) fn any_parked(&self) -> Option<Fiber> {
        self.parked.keys().next_back().copied()
    }

    /// A call is over: all who have waited for it without the turn can go on, and no longer wait.
    pub fn finished(&mut self, call: u64) -> SmallVec<[Waiter; 1]> {
        self.under_way.remove(&call);
        let mut waits = SmallVec::new();
        for (fiber, parked) in &mut self.parked {
            if parked.awaited != Some(call) {
                continue;
            }
            parked.awaited = None;
            self.ready.push_back(*fiber);
            self.stirred = true;
            waits.extend(parked.wait.take());
        }
        waits
    }

    /// Whether this must wait until the program has the turn: it ends a wait of the program's that
    /// only who has the turn can end.
    pub fn holds(&self, message: &Message) -> bool {
        let ends_it = match message {
            Message::BarrierArrive { .. }
            | Message::BarrierDepart { .. }
            | Message::BarrierRound(_)
            | Message::Collective(_) => true,
            Message::Gossiped { carrier, .. } => matches!(**carrier, Message::Collective(_)),
            _ => false,
        };
        ends_it && self.program_is_at_barrier()
    }

    /// Whether the program waits at a barrier or in a collective, without the turn.
    #[inline]
    pub fn program_is_at_barrier(&self) -> bool {
        let program = self.parked.get(&Fiber::PROGRAM);
        program.is_some_and(|program| program.at_barrier && program.wait.is_some())
    }

    /// Keeps a lock that was given until that wait is over; whether there is room.
    pub fn hold_grant(
        &mut self,
        from: NodeId,
        message: Message,
        payload: &[u8],
        nodes: usize,
    ) -> bool {
        if self.grants.len() > 2 * nodes {
            return false;
        }
        self.grants.push((from, message, payload.to_vec()));
        true
    }

    pub(super) fn take_grants(&mut self) -> Vec<(NodeId, Message, Vec<u8>)> {
        std::mem::take(&mut self.grants)
    }

    /// Keeps it until then; whether there is room.
    pub fn hold(&mut self, from: NodeId, message: Message, payload: &[u8], nodes: usize) -> bool {
        if self.held.len() > 2 * nodes + most_early(nodes) {
            return false;
        }
        self.held.push((from, message, payload.to_vec()));
        if !self.ready.contains(&Fiber::PROGRAM) {
            self.ready.push_back(Fiber::PROGRAM);
        }
        self.stirred = true;
        true
    }

    /// Whether something is kept for the program.
    #[inline]
    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The wait of the program at a barrier, for whoever takes what is kept in its place.
    pub(super) fn take_wait_of_program(&mut self) -> Option<Waiter> {
        self.ready.retain(|ready| *ready != Fiber::PROGRAM);
        self.parked.get_mut(&Fiber::PROGRAM)?.wait.take()
    }

    /// Whether that wait is over: then the program can go on.
    pub(super) fn program_waits(&mut self, wait: Option<Waiter>) {
        if wait.is_none() {
            self.ready.push_back(Fiber::PROGRAM);
            self.stirred = true;
        }
        if let Some(program) = self.parked.get_mut(&Fiber::PROGRAM) {
            program.wait = wait;
        }
    }

    pub(super) fn take_held(&mut self) -> Vec<(NodeId, Message, Vec<u8>)> {
        std::mem::take(&mut self.held)
    }

    /// This node has started a process.
    pub fn started(&mut self, call: u64, on: NodeId) {
        self.under_way.insert(call, on);
    }

    /// Processes that this node has started and that have not ended.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// As many of them are on this node.
    pub fn started_on(&self, node: NodeId) -> usize {
        self.under_way.values().filter(|on| **on == node).count()
    }
}
