//! The model of raw memory. It explores every run of a small program over Millipage's machines,
//! with messages that arrive in any order.
//!
//! A minipage holds one number, that of its last write. An access is one step: the permission is
//! tested and the access made together. That a permission is taken away is a step of its own where
//! a machine does anything before it.

mod allocating;
mod domains;
mod explore;
mod fetching;
mod findings;
mod holding;
mod resting;

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_protocol::memory::{
    Accessed, MemoryAct, MemoryEffect, MemoryKind, MemoryMessage, MemoryOperation, Millipage,
    Permission, RequestState, VIEW_BITS, WantedHold,
};
use dhole_protocol::part::NodePart as _;

use super::minipages::{Happening, OBJECT, permits, revokes, sends};
use super::world::{self, ParcelOf, Scene, World};
use crate::model::Sealed;

pub use findings::{MemoryBug, MemoryFault, MemorySight};

/// Most minipages of a program.
const MOST_MINIPAGES: usize = 2;

/// A step of a thread. Minipages are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryOp {
    /// Reads a minipage.
    Read(usize),
    /// Writes it.
    Write(usize),
    /// Asks for a copy to read, and does not wait.
    Prefetch(usize),
    /// Fetches a copy to read, of a round of one, and waits.
    Fetch(usize),
    /// Sends all others a copy.
    Push(usize),
    /// Frees it.
    Free(usize),
    /// Allocates it again, after it was freed: on its manager, or where one node manages all.
    Allocate(usize),
    /// Holds it, to read it or to write.
    Hold(usize, bool),
    /// Holds it no more. A thread that held it to write has written it.
    Release(usize, bool),
    /// Takes its lock in the memory of the node's domain, which is one for all nodes of the domain:
    /// to read it or to write. A thread of a domain does so before it holds anything.
    Lock(usize, bool),
    /// Gives the lock up.
    Unlock(usize),
}

/// A program over minipages.
#[derive(Clone, Debug)]
pub struct MemoryModel {
    /// Who manages each minipage.
    pub managers: Vec<usize>,
    /// By node: the leader of its domain. Each is its own where none is named.
    pub leaders: Vec<usize>,
    /// The steps of each thread of each node.
    pub nodes: Vec<Vec<Vec<MemoryOp>>>,
    /// The nodes that manage all minipages, and that the others ask for new ones; none where each
    /// node manages what it allocates.
    pub chosen: Vec<usize>,
    /// Whether minipages of one manager come in groups.
    pub groups: bool,
    /// A mistake that the checker is to find.
    pub bug: Option<MemoryBug>,
}

type Parcel = ParcelOf<MemoryModel>;
type Moment = World<MemoryModel>;
type Step<'a> = world::Step<'a, MemoryModel>;

/// A thread of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Thread {
    done: usize,
    phase: Phase,
    /// It has gone on once without its access. A live node sees to it that this ends.
    slow: bool,
    /// Of its request for new minipages.
    ticket: u32,
    /// What it is about to hold.
    holding: Option<WantedHold>,
    /// Of each minipage that it holds the number of its last write.
    held: [Option<u8>; MOST_MINIPAGES],
    /// Whether it has the lock of each in its domain, and to write it.
    locked: [Option<bool>; MOST_MINIPAGES],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Computes,
    /// It waits for what it has asked for, or joined.
    Waits {
        asked: bool,
    },
    Woken {
        asked: bool,
    },
}

#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Node {
    machine: Millipage,
    /// What threads may do with each minipage, and what it holds.
    copies: Vec<(Permission, u8)>,
    commands: VecDeque<MemoryEffect>,
    /// What came with the message whose commands these are.
    came: Option<u8>,
    threads: Vec<Thread>,
    /// Minipages that it asked for without a thread that waits, or to write with a copy.
    prefetched: u8,
    upgrading: u8,
}

/// What no machine knows.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Ghosts {
    /// The number of the last write of each minipage, and whether it was freed.
    latest: Vec<(u8, bool)>,
    writes: u8,
    /// Bytes of an operation that is over, kept for [`MemoryBug::LateData`].
    late: Option<Sealed<Parcel>>,
}

impl Step<'_> {
    /// Changes a node, and carries out what its machine does.
    fn at(&mut self, at: usize, f: impl FnOnce(&mut Node, &mut Vec<MemoryEffect>)) {
        let mut out = Vec::new();
        self.node(at, |node| f(node, &mut out));
        if out.is_empty() {
            return self.node(at, |node| node.came = None);
        }
        self.tamper_with(at, &mut out);
        self.node(at, |node| node.commands.extend(out));
        self.goes_on(at);
    }

    /// Carries the commands of a node out. What threads do before the first command they could have
    /// done before the step, and what they do after one that only permits, after the step. So there
    /// is one place in which it matters that they go on meanwhile: before a permission is taken
    /// away, behind what was sent.
    fn goes_on(&mut self, at: usize) {
        while let Some(effect) = self.moment.nodes[at].commands.front() {
            let sent = matches!(effect, MemoryEffect::Send { .. });
            self.carry_out(at, effect.clone());
            let next = self.moment.nodes[at].commands.front();
            if sent && next.is_some_and(revokes) {
                return;
            }
        }
        self.node(at, |node| node.came = None);
    }

    /// What a bug makes of the commands of a step.
    fn tamper_with(&self, at: usize, out: &mut Vec<MemoryEffect>) {
        let is_member = self.model.leader(at) != at;
        let invalidated = |it: &MemoryEffect| sends(it, MemoryKind::Invalidated);
        let serves = |it: &MemoryEffect| sends(it, MemoryKind::Data);
        let pairs = 0..out.len().saturating_sub(1);
        for place in pairs {
            let swaps = match self.model.bug {
                Some(MemoryBug::AnswerBeforeRevoking) => invalidated(&out[place + 1]),
                Some(MemoryBug::MemberAnswersEarly) => invalidated(&out[place + 1]) && is_member,
                Some(MemoryBug::ReadBeforeRevoking) => serves(&out[place + 1]),
                _ => false,
            };
            if swaps && revokes(&out[place]) {
                out.swap(place, place + 1);
            }
        }
        match self.model.bug {
            Some(MemoryBug::SkipInvalidation) if out.iter().any(invalidated) => {
                out.retain(|it| !revokes(it));
            }
            Some(MemoryBug::MemberKeeps) if is_member && out.iter().any(invalidated) => {
                out.retain(|it| !revokes(it));
            }
            Some(MemoryBug::StayWritable) if out.iter().any(serves) => {
                let reads = Permission::Read;
                out.retain(|it| permits(it) != Some(reads));
            }
            Some(MemoryBug::InstallWritable)
                if matches!(out.first(), Some(MemoryEffect::Act(MemoryAct::Install(_)))) =>
            {
                for effect in out {
                    if let MemoryEffect::Act(MemoryAct::Permit { permission, .. }) = effect {
                        *permission = Permission::Write;
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends a message, or what a bug makes of it.
    fn send(&mut self, from: NodeId, to: NodeId, message: MemoryMessage, value: Option<u8>) {
        use MemoryOperation::{Free, Push, Write};
        let MemoryMessage {
            kind,
            operation,
            asker,
            ..
        } = message;
        let forged = |from, to, kind| Parcel {
            from,
            to,
            message: MemoryMessage { kind, ..message },
            holds: None,
        };
        let waits_not = self.moment.nodes[asker.index()].prefetched != 0;
        let early = match self.model.bug {
            Some(MemoryBug::ServeTwo | MemoryBug::SkipAck) => true,
            Some(MemoryBug::ForgetPushed) => operation == Push,
            Some(MemoryBug::ForgetPrefetch) => waits_not,
            Some(MemoryBug::ForgetBrought) => matches!(
                operation,
                MemoryOperation::Bring | MemoryOperation::BringToWrite
            ),
            _ => false,
        };
        let parcel = Parcel {
            from,
            to,
            message,
            holds: value,
        };
        let is_first = message.ticket == 1;
        let leads = |leader: NodeId, node: NodeId| {
            leader != node && self.model.leader(node.index()) == leader.index()
        };
        match (self.model.bug, kind) {
            (Some(MemoryBug::ForgetMember), MemoryKind::Invalidate) if leads(from, to) => {
                return self.put(forged(to, from, MemoryKind::Invalidated));
            }
            // The leader takes the acknowledgement of what is on its way: once, for a node that
            // always loses what it gets never ends.
            (Some(MemoryBug::WithdrawEarly), MemoryKind::Grant) if leads(from, to) && is_first => {
                self.put(forged(to, from, MemoryKind::Ack));
            }
            (Some(MemoryBug::WithdrawEarly), MemoryKind::Ack) if leads(to, from) && is_first => {
                return;
            }
            (Some(MemoryBug::ForgetReader), MemoryKind::Invalidate) if operation == Write => {
                return self.put(forged(to, from, MemoryKind::Invalidated));
            }
            (Some(MemoryBug::FreeWithCopy), MemoryKind::Invalidate) if operation == Free => {
                return self.put(forged(to, from, MemoryKind::Invalidated));
            }
            (Some(MemoryBug::GrantWithoutCopy), MemoryKind::Forward)
                if self.moment.nodes[asker.index()].upgrading != 0 =>
            {
                return self.put(forged(from, asker, MemoryKind::Grant));
            }
            (Some(MemoryBug::LoseAllocation), MemoryKind::Grant) if operation.allocates() => {
                return;
            }
            (Some(MemoryBug::LateData), MemoryKind::Data) => {
                self.moment.late = Some(Sealed::new(parcel.clone()));
            }
            (Some(MemoryBug::LateData), MemoryKind::Request) => {
                if let Some(late) = self.moment.late.take()
                    && late.message.asker == from
                {
                    let mut late = Parcel::clone(&late);
                    late.message.ticket = message.ticket;
                    late.message.operation = operation;
                    self.put(late);
                }
            }
            // Its manager takes the acknowledgement with the bytes that are only on their way.
            (_, MemoryKind::Data) if early && (from != asker || operation == Push) => {
                let acked = if operation == Push { to } else { asker };
                let manager = self.moment.nodes[0].machine.manager_of(message.address);
                if let Some(manager) = manager.filter(|manager| *manager != acked) {
                    self.put(forged(acked, manager, MemoryKind::Ack));
                }
            }
            (Some(bug), MemoryKind::Ack) if early && bug != MemoryBug::ServeTwo => return,
            _ => {}
        }
        self.put(parcel);
    }

    /// Carries out the first command of a node.
    fn carry_out(&mut self, at: usize, effect: MemoryEffect) {
        self.node(at, |node| {
            node.commands.pop_front();
        });
        let act = match effect {
            MemoryEffect::Send { to, message } => {
                let carries = message.kind == MemoryKind::Data;
                let of = self.model.minipage_of(message.minipage.at);
                let value = of.filter(|_| carries).map(|of| self.value(at, of));
                return self.send(NodeId::at(at), to, message, value);
            }
            MemoryEffect::Over(address) => return self.wake(at, address),
            MemoryEffect::Act(act) => act,
        };
        match act {
            MemoryAct::Install(minipage) => {
                let of = self.model.minipage_of(minipage.at);
                let came = self.moment.nodes[at].came;
                if let (Some(of), Some(value)) = (of, came) {
                    self.set_value(at, of, value);
                }
            }
            MemoryAct::Allocated(run) => self.was_allocated(run),
            MemoryAct::Clear(minipage) => {
                let of = self.model.minipage_of(minipage.at);
                let skips = self.model.bug == Some(MemoryBug::ReuseDirty);
                if let (Some(of), false) = (of, skips) {
                    self.node(at, |node| node.copies[of].1 = 0);
                }
            }
            MemoryAct::Permit {
                minipage,
                permission,
            } => {
                if let Some(of) = self.model.minipage_of(minipage.at) {
                    self.node(at, |node| node.copies[of].0 = permission);
                    self.look(of);
                }
            }
            // Minipages that nodes write together have a model of their own (`release`).
            MemoryAct::Owes | MemoryAct::Twin(_) => {}
            MemoryAct::DropTwin(_) | MemoryAct::MergeDiff(_) => {}
        }
    }

    fn wake(&mut self, at: usize, address: u64) {
        let of = self.model.minipage_of(address);
        let one = self.model.bug == Some(MemoryBug::WakeOne);
        let ops = &self.model.nodes[at];
        self.node(at, |node| {
            if let Some(of) = of {
                node.upgrading &= !(1 << of);
                node.prefetched &= !(1 << of);
            }
            let mut woken = 0;
            for (thread, ops) in node.threads.iter_mut().zip(ops) {
                if let Phase::Waits { asked } = thread.phase
                    && of == Some(minipage(ops[thread.done]))
                    && (woken == 0 || !one)
                {
                    thread.phase = Phase::Woken { asked };
                    woken += 1;
                }
            }
        });
    }

    fn compute(&mut self, at: usize, number: usize, at_once: bool) {
        let Thread { done, phase, .. } = self.moment.nodes[at].threads[number];
        let op = self.model.nodes[at][number][done];
        let of = minipage(op);
        let address = self.model.address(of);
        match (op, phase) {
            (MemoryOp::Fetch(_), Phase::Woken { .. }) => return self.opens(at, number),
            (MemoryOp::Allocate(_), Phase::Woken { .. }) => return self.has_allocated(at, number),
            (MemoryOp::Hold(_, writes), _) => return self.holds(at, number, writes),
            (MemoryOp::Lock(_, writes), _) => return self.locks(at, number, Some(writes)),
            (MemoryOp::Unlock(_), _) => return self.locks(at, number, None),
            _ => {}
        }
        if let Phase::Woken { asked } = phase {
            let state = self.moment.nodes[at].machine.state(address);
            let gone = state == RequestState::Gone;
            if gone && !self.is_freeing(of) {
                self.fault(MemoryFault::WrongFree);
            }
            let freed = asked && matches!(op, MemoryOp::Free(_));
            if freed && !gone {
                self.frees(of);
            }
            if at_once && !gone {
                self.access(at, number, op);
            }
            self.at(at, |node, out| {
                node.machine.goes_on(address, out);
                let thread = &mut node.threads[number];
                thread.phase = Phase::Computes;
                thread.slow |= !at_once;
                thread.done += usize::from(gone || freed);
            });
            return;
        }
        if self.access(at, number, op) {
            return;
        }
        match op {
            MemoryOp::Read(_) => self.asks(at, number, MemoryOperation::Read),
            MemoryOp::Write(_) => self.asks(at, number, MemoryOperation::Write),
            MemoryOp::Free(_) => self.asks(at, number, MemoryOperation::Free),
            // They are above.
            MemoryOp::Hold(..) | MemoryOp::Lock(..) | MemoryOp::Unlock(_) => {}
            MemoryOp::Release(_, writes) => self.releases(at, number, writes),
            MemoryOp::Prefetch(_) => {
                self.at(at, |node, out| {
                    let read = MemoryOperation::Read;
                    if node.machine.access(address, read, false, out) == Accessed::Asked {
                        node.prefetched |= 1 << of;
                    }
                });
                self.over(at, number);
            }
            MemoryOp::Fetch(_) => self.fetches(at, number),
            MemoryOp::Allocate(_) => self.allocates(at, number),
            MemoryOp::Push(_) => {
                self.at(at, |node, out| node.machine.push(address, out));
                self.over(at, number);
            }
        }
    }

    /// A thread reads or writes, if it may.
    fn access(&mut self, at: usize, number: usize, op: MemoryOp) -> bool {
        let of = minipage(op);
        let permission = self.moment.nodes[at].copies[of].0;
        let value = self.value(at, of);
        match op {
            MemoryOp::Read(_) if permission >= Permission::Read => {
                if value != self.moment.latest[of].0 {
                    self.fault(MemoryFault::Stale);
                }
            }
            MemoryOp::Write(_) if permission == Permission::Write => {
                self.moment.writes += 1;
                let value = self.moment.writes;
                self.moment.latest[of].0 = value;
                self.set_value(at, of, value);
            }
            _ => return false,
        }
        self.over(at, number);
        true
    }

    /// A thread faults.
    fn asks(&mut self, at: usize, number: usize, operation: MemoryOperation) {
        let of = minipage(self.model.nodes[at][number][self.moment.nodes[at].threads[number].done]);
        let address = self.model.address(of);
        self.at(at, |node, out| {
            let accessed = node.machine.access(address, operation, true, out);
            let asked = match accessed {
                // The permission is on its way to the threads.
                Accessed::Permitted => return,
                accessed => accessed == Accessed::Asked,
            };
            let writes = operation == MemoryOperation::Write;
            let has_copy = node.copies[of].0 == Permission::Read;
            node.upgrading |= u8::from(asked && writes && has_copy) << of;
            let state = node.machine.state(address);
            node.threads[number].phase = match state {
                RequestState::Waits => Phase::Waits { asked },
                RequestState::Over | RequestState::Gone => Phase::Woken { asked },
            };
        });
    }

    /// Whether some thread frees a minipage, or has.
    fn is_freeing(&self, of: usize) -> bool {
        let mut nodes = self.moment.nodes.iter().zip(&self.model.nodes);
        nodes.any(|(node, ops)| {
            let mut threads = node.threads.iter().zip(ops);
            threads.any(|(thread, ops)| {
                let begun = thread.done + usize::from(thread.phase != Phase::Computes);
                ops[..begun].contains(&MemoryOp::Free(of))
            })
        })
    }

    fn frees(&mut self, of: usize) {
        self.moment.latest[of].1 = true;
        let has = |node: &Sealed<Node>| node.copies[of].0 != Permission::Nothing;
        if self.moment.nodes.iter().any(has) {
            self.fault(MemoryFault::WrongFree);
        }
    }

    fn over(&mut self, at: usize, number: usize) {
        self.node(at, |node| node.threads[number].done += 1);
    }
}

fn minipage(op: MemoryOp) -> usize {
    match op {
        MemoryOp::Read(of)
        | MemoryOp::Write(of)
        | MemoryOp::Prefetch(of)
        | MemoryOp::Fetch(of)
        | MemoryOp::Push(of)
        | MemoryOp::Free(of)
        | MemoryOp::Allocate(of)
        | MemoryOp::Hold(of, _)
        | MemoryOp::Release(of, _)
        | MemoryOp::Lock(of, _)
        | MemoryOp::Unlock(of) => of,
    }
}

impl MemoryModel {
    /// The address of a minipage: each is the only one of its manager's window, or the next on its
    /// page.
    fn address(&self, of: usize) -> u64 {
        let manager = self.managers[of];
        let before = self.managers[..of].iter().filter(|it| **it == manager);
        let (parts, place) = match self.chosen.iter().position(|it| *it == manager) {
            Some(place) => (self.chosen.len(), place),
            None => (self.nodes.len(), manager),
        };
        let window = (OBJECT / parts as u64) >> 12 << 12;
        place as u64 * window + before.count() as u64 * ((1 << VIEW_BITS) + 8)
    }

    /// The leader of a node's domain.
    fn leader(&self, node: usize) -> usize {
        self.leaders.get(node).copied().unwrap_or(node)
    }

    /// Allocates the minipages of a manager, one by one or as a group.
    fn allocate(&self, me: usize, machine: &mut Millipage) {
        let own = || (0..self.managers.len()).filter(|of| self.managers[*of] == me);
        let count = own().count() as u64;
        if !self.groups {
            for of in own() {
                let run = machine.allocate(1, 8, 8).expect("there is room");
                assert_eq!(run.at, self.address(of));
            }
        } else if count > 0 {
            let run = machine.allocate_in_groups(count, 8, 8);
            let run = run.expect("there is room");
            let all = (0..count).filter_map(|index| run.minipage(index));
            assert!(all.map(|it| it.at).eq(own().map(|of| self.address(of))));
        }
    }

    fn minipage_of(&self, address: u64) -> Option<usize> {
        (0..self.managers.len()).find(|of| self.address(*of) == address)
    }
}

impl Scene for MemoryModel {
    type Message = MemoryMessage;
    type Node = Node;
    type Holds = Option<u8>;
    type Ghosts = Ghosts;
    type Happens = Happening;
    type Fault = MemoryFault;
    type Sight = MemorySight;

    fn first(&self) -> (Vec<Node>, Ghosts) {
        let nodes = self.nodes.len();
        let node = |me: usize| {
            let mut machine = Millipage::new(NodeId::at(me), nodes, OBJECT, 2);
            if !self.chosen.is_empty() {
                let managers = self.chosen.iter().map(|node| NodeId::at(*node));
                machine = machine.with_managers(&managers.collect::<Vec<_>>());
            }
            let leaders = (0..nodes).map(|node| NodeId::at(self.leader(node)));
            machine.set_leaders(&leaders.collect::<Vec<_>>());
            self.allocate(me, &mut machine);
            // What nobody has used is the leader's, as far as its manager says so.
            let leads = self.leader(me) == me;
            let copy = |manager: &usize| match *manager == me && leads {
                true => (Permission::Write, 0),
                false => (Permission::Nothing, 0),
            };
            let copies = self.managers.iter().map(copy).collect();
            let thread = Thread {
                done: 0,
                phase: Phase::Computes,
                slow: false,
                ticket: 0,
                holding: None,
                held: [None; MOST_MINIPAGES],
                locked: [None; MOST_MINIPAGES],
            };
            Node {
                machine,
                copies,
                commands: VecDeque::new(),
                came: None,
                threads: vec![thread; self.nodes[me].len()],
                prefetched: 0,
                upgrading: 0,
            }
        };
        let ghosts = Ghosts {
            latest: vec![(0, false); self.managers.len()],
            writes: 0,
            late: None,
        };
        ((0..nodes).map(node).collect(), ghosts)
    }

    fn happenings(&self, moment: &Moment, actions: &mut Vec<Happening>) {
        for (at, node) in moment.nodes.iter().enumerate() {
            if let Some(command) = node.commands.front() {
                actions.push(Happening::CarryOut(at, command.clone()));
            }
            for (number, thread) in node.threads.iter().enumerate() {
                let Some(op) = self.nodes[at][number].get(thread.done) else {
                    continue;
                };
                let permission = node.copies[minipage(*op)].0;
                let hits = match op {
                    MemoryOp::Read(_) => permission >= Permission::Read,
                    MemoryOp::Write(_) => permission == Permission::Write,
                    _ => false,
                };
                // A thread that is to hold something looks when its node is woken for anything.
                let looks = matches!(op, MemoryOp::Hold(..));
                if self.is_locked_out(moment, at, number) {
                    continue;
                }
                // The machine takes one step after the other.
                let goes_on = match thread.phase {
                    Phase::Computes => hits || node.commands.is_empty(),
                    Phase::Woken { .. } => node.commands.is_empty(),
                    Phase::Waits { .. } => looks && node.commands.is_empty(),
                };
                if goes_on {
                    actions.push(Happening::Compute(at, number, true));
                }
                let at_once = matches!(
                    op,
                    MemoryOp::Hold(..) | MemoryOp::Fetch(_) | MemoryOp::Allocate(_)
                );
                let is_woken = matches!(thread.phase, Phase::Woken { .. });
                if goes_on && is_woken && !thread.slow && !at_once {
                    actions.push(Happening::Compute(at, number, false));
                }
            }
        }
    }

    fn takes(&self, moment: &Moment, node: usize) -> bool {
        moment.nodes[node].commands.is_empty()
    }

    fn happen(step: &mut Step<'_>, what: Happening) {
        match what {
            Happening::Compute(at, thread, at_once) => step.compute(at, thread, at_once),
            Happening::CarryOut(at, _) => step.goes_on(at),
        }
    }

    fn deliver(step: &mut Step<'_>, parcel: Parcel) {
        let world::Parcel {
            from,
            to,
            message,
            holds: value,
        } = parcel;
        let payload = message.payload_bytes() as usize;
        let mut refused = false;
        step.at(to.index(), |node, out| {
            node.came = value;
            let taken = node.machine.deliver(from, message, payload, out);
            refused = taken.is_err();
        });
        if refused {
            step.fault(MemoryFault::Refused);
        }
    }

    fn at_rest(&self, moment: &Moment) -> Option<MemoryFault> {
        self.wrong_at_rest(moment)
    }

    fn shows(&self, moment: &Moment, sight: MemorySight) -> bool {
        self.sees(moment, sight)
    }
}
