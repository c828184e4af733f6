//! The model of minipages that nodes write together. It explores every run of a small program over
//! Millipage's machines, with messages that arrive in any order.
//!
//! A minipage holds a few words, each the number of its last write. Programs are free of races:
//! accesses to one word of which one is a write are ordered by what threads release and acquire.
//! So a read must return the last write. What threads release and acquire takes no time here: the
//! order that it makes is there at once.

mod explore;
mod findings;

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_protocol::memory::{
    Accessed, MemoryAct, MemoryEffect, MemoryFlush, MemoryKind, MemoryMessage, MemoryOperation,
    Millipage, Permission, RequestState,
};

use super::minipages::{OBJECT, carries, permits, revokes, sends};
use super::world::{self, ParcelOf, World};

pub use findings::{ReleaseBug, ReleaseFault, ReleaseSight};

/// Words of a minipage.
pub const WORDS: usize = 3;

/// A step of a thread. Minipages, their words, events and locks are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseOp {
    /// Reads a word of a minipage.
    Read(usize, usize),
    /// Writes it.
    Write(usize, usize),
    /// Releases: what happened before is over for each thread that acquires this event.
    Release(usize),
    /// Acquires: waits until a thread has released this event.
    Acquire(usize),
    /// Acquires a lock.
    Lock(usize),
    /// Releases it.
    Unlock(usize),
    /// Sends all others a copy.
    Push(usize),
    /// Holds a minipage to write it.
    Hold(usize),
    /// Holds it no more.
    LetGo(usize),
}

/// A program over minipages.
#[derive(Clone, Debug)]
pub struct ReleaseModel {
    /// Who manages each minipage.
    pub managers: Vec<usize>,
    /// By node: the leader of its domain. Each is its own where none is named.
    pub leaders: Vec<usize>,
    /// The steps of each thread of each node.
    pub nodes: Vec<Vec<Vec<ReleaseOp>>>,
    /// A mistake that the checker is to find.
    pub bug: Option<ReleaseBug>,
}

/// A word, if it comes with a message.
type Words = [Option<u8>; WORDS];

type Parcel = ParcelOf<ReleaseModel>;
type Moment = World<ReleaseModel>;
type Step<'a> = world::Step<'a, ReleaseModel>;

/// A thread of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Thread {
    done: usize,
    phase: Phase,
    /// It has gone on once without its access. A live node sees to it that this ends.
    slow: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Computes,
    /// It waits for what it has asked for, or joined.
    Waits,
    Woken,
    /// It waits for flushes, and was woken or not.
    Flushes(MemoryFlush, bool),
}

/// What a node has of a minipage. Words and twin are the domain's, and its leader has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Copy {
    permission: Permission,
    words: [u8; WORDS],
    twin: Option<[u8; WORDS]>,
}

#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Node {
    machine: Millipage,
    copies: Vec<Copy>,
    commands: VecDeque<MemoryEffect>,
    /// What came with the message whose commands these are.
    came: Words,
    threads: Vec<Thread>,
}

/// What no machine knows.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Ghosts {
    /// The number of the last write of each word.
    latest: Vec<[u8; WORDS]>,
    writes: u8,
    /// Which events were released, and which locks are held, by their numbers.
    events: u8,
    locks: u8,
}

impl Step<'_> {
    fn copy(&mut self, at: usize, of: usize, f: impl FnOnce(&mut Copy)) {
        self.node(at, |node| f(&mut node.copies[of]));
    }

    /// What the memory of a node holds, which is that of its domain.
    fn words(&mut self, at: usize, of: usize) -> &[u8; WORDS] {
        &self.moment.nodes[self.model.leader(at)].copies[of].words
    }

    /// Bytes of other nodes are written into the memory of a domain.
    fn fills(&mut self, at: usize, of: usize, f: impl FnOnce(&mut [u8; WORDS])) {
        let mut nodes = self.moment.nodes.iter().zip(&self.model.nodes).enumerate();
        let is_held = nodes.any(|(node, (now, ops))| {
            let mut threads = now.threads.iter().zip(ops);
            let holds = |(thread, ops): (&Thread, &Vec<ReleaseOp>)| {
                let done = ops[..thread.done].iter();
                let count = |op| done.clone().filter(|it| **it == op).count();
                count(ReleaseOp::Hold(of)) > count(ReleaseOp::LetGo(of))
            };
            self.model.leader(node) == at && threads.any(holds)
        });
        if is_held {
            self.fault(ReleaseFault::Held);
        }
        self.copy(at, of, |copy| f(&mut copy.words));
    }

    /// Changes a node, and carries out what its machine does.
    fn at(&mut self, at: usize, f: impl FnOnce(&mut Node, &mut Vec<MemoryEffect>)) {
        let mut out = Vec::new();
        self.node(at, |node| f(node, &mut out));
        self.tamper_with(&mut out);
        self.node(at, |node| node.commands.extend(out));
        self.goes_on(at);
    }

    /// Carries the commands of a node out. Its threads go on meanwhile where that matters: before a
    /// permission is taken away, behind what was sent, and behind a permission to write, before
    /// anything but a wake.
    fn goes_on(&mut self, at: usize) {
        while let Some(effect) = self.moment.nodes[at].commands.front() {
            let effect = effect.clone();
            let sent = matches!(effect, MemoryEffect::Send { .. });
            let opens = matches!(permits(&effect), Some(Permission::Write));
            self.carry_out(at, effect);
            let next = self.moment.nodes[at].commands.front();
            let revoked = next.is_some_and(revokes);
            let looks = next.is_some_and(|next| match next {
                MemoryEffect::Send { .. } => carries(next),
                MemoryEffect::Over(_) => false,
                MemoryEffect::Act(_) => true,
            });
            if sent && revoked || opens && looks {
                return;
            }
        }
        self.node(at, |node| node.came = [None; WORDS]);
    }

    /// What a bug makes of the commands of a step.
    fn tamper_with(&self, out: &mut [MemoryEffect]) {
        let pairs = 0..out.len().saturating_sub(1);
        for place in pairs {
            let (first, second) = (&out[place], &out[place + 1]);
            let swaps = match self.model.bug {
                Some(ReleaseBug::TwinLate) => {
                    let twins = matches!(first, MemoryEffect::Act(MemoryAct::Twin(_)));
                    twins && permits(second).is_some()
                }
                Some(ReleaseBug::DiffEarly) => {
                    permits(first).is_some() && sends(second, MemoryKind::Diff)
                }
                _ => false,
            };
            if swaps {
                out.swap(place, place + 1);
                return;
            }
        }
        let invalidated = out.iter().any(|it| sends(it, MemoryKind::Invalidated));
        if self.model.bug == Some(ReleaseBug::KeepCopy) && invalidated {
            for effect in out.iter_mut() {
                if let MemoryEffect::Act(MemoryAct::Permit { permission, .. }) = effect {
                    *permission = Permission::Read;
                }
            }
        }
    }

    /// Sends a message, or what a bug makes of it.
    fn send(&mut self, from: NodeId, to: NodeId, mut message: MemoryMessage, words: Words) {
        use MemoryOperation::{Flush, Write, WriteTogether};
        let forged = |from, to, message| Parcel {
            from,
            to,
            message,
            holds: [None; WORDS],
        };
        let leads = |leader: NodeId, node: NodeId| {
            leader != node && self.model.leader(node.index()) == leader.index()
        };
        match (self.model.bug, message.kind, message.operation) {
            (Some(ReleaseBug::ForgetMember), MemoryKind::Invalidate, _) if leads(from, to) => {
                let kind = MemoryKind::Invalidated;
                return self.put(forged(to, from, MemoryMessage { kind, ..message }));
            }
            (Some(ReleaseBug::AnswerEarly), MemoryKind::Request, Flush) if leads(to, from) => {
                let kind = MemoryKind::Dropped;
                self.put(forged(to, from, MemoryMessage { kind, ..message }));
            }
            (Some(ReleaseBug::AnswerEarly), MemoryKind::Dropped, Flush) if leads(from, to) => {
                return;
            }
            (Some(ReleaseBug::MemberAlone), MemoryKind::Grant, WriteTogether)
                if leads(from, to) =>
            {
                message.operation = Write;
            }
            // The manager takes each diff for merged that is only on its way.
            (Some(ReleaseBug::GrantEarly), MemoryKind::Diff, Flush) => {
                let manager = self.moment.nodes[0].machine.manager_of(message.address);
                let merged = MemoryMessage {
                    kind: MemoryKind::Merged,
                    ticket: from.0.into(),
                    ..message
                };
                let manager = manager.expect("a minipage has a manager");
                self.put(forged(message.asker, manager, merged));
            }
            (Some(ReleaseBug::GrantEarly), MemoryKind::Merged, _) => return,
            (Some(ReleaseBug::WriteAlone), MemoryKind::Grant | MemoryKind::Data, WriteTogether) => {
                message.operation = Write
            }
            (Some(ReleaseBug::WriteAlone), MemoryKind::Ack, Write) => {
                message.operation = WriteTogether;
            }
            _ => {}
        }
        let parcel = Parcel {
            from,
            to,
            message,
            holds: words,
        };
        self.put(parcel);
    }

    /// Carries out the first command of a node.
    fn carry_out(&mut self, at: usize, effect: MemoryEffect) {
        self.node(at, |node| {
            node.commands.pop_front();
        });
        let me = NodeId::at(at);
        let came = self.moment.nodes[at].came;
        let of = |minipage: dhole_protocol::memory::Minipage| self.model.minipage_of(minipage.at);
        let act = match effect {
            MemoryEffect::Send { to, message } => match message.kind {
                MemoryKind::Data => {
                    let words = self.moment.nodes[at].copies[of(message.minipage)].words;
                    return self.send(me, to, message, words.map(Some));
                }
                MemoryKind::Diff => return self.sends_diff(at, to, message),
                _ => return self.send(me, to, message, [None; WORDS]),
            },
            MemoryEffect::Over(address) => return self.wake(at, address),
            MemoryEffect::Act(act) => act,
        };
        match act {
            MemoryAct::Twin(minipage) => self.copy(at, of(minipage), |copy| {
                copy.twin = Some(copy.words);
            }),
            MemoryAct::DropTwin(minipage) => {
                self.copy(at, of(minipage), |copy| copy.twin = None);
            }
            MemoryAct::MergeDiff(minipage) => self.fills(at, of(minipage), |words| {
                for (word, came) in words.iter_mut().zip(came) {
                    *word = came.unwrap_or(*word);
                }
            }),
            MemoryAct::Install(minipage) => self.fills(at, of(minipage), |words| {
                *words = came.map(|word| word.expect("all words come"));
            }),
            MemoryAct::Permit {
                minipage,
                permission,
            } => {
                let of = of(minipage);
                self.copy(at, of, |copy| copy.permission = permission);
                self.look(of);
            }
            MemoryAct::Clear(_) | MemoryAct::Allocated(_) | MemoryAct::Owes => {}
        }
    }

    fn sends_diff(&mut self, at: usize, to: NodeId, mut message: MemoryMessage) {
        let of = self.model.minipage_of(message.minipage.at);
        let Copy { words, twin, .. } = self.moment.nodes[at].copies[of];
        self.copy(at, of, |copy| copy.twin = None);
        let Some(twin) = twin else {
            return self.fault(ReleaseFault::NoTwin);
        };
        let mut diff = [None; WORDS];
        for (place, word) in words.iter().enumerate() {
            let differs = match self.model.bug {
                Some(ReleaseBug::NoDiff) => false,
                Some(ReleaseBug::WholeDiff) => true,
                _ => *word != twin[place],
            };
            diff[place] = differs.then_some(*word);
        }
        message.minipage.bytes = diff.iter().flatten().count() as u32;
        self.send(NodeId::at(at), to, message, diff);
    }

    /// Whether a node writes a minipage without a twin of its domain while another domain has a
    /// copy, or may do more than its leader.
    fn look(&mut self, of: usize) {
        let nodes = &self.moment.nodes;
        let copy = |at: usize| &nodes[at].copies[of];
        let leader = |at: usize| self.model.leader(at);
        let all = || 0..nodes.len();
        let alone = |at: &usize| {
            copy(*at).permission == Permission::Write && copy(leader(*at)).twin.is_none()
        };
        let has = |at: &usize| copy(*at).permission > Permission::Nothing;
        let met = |at: usize| all().filter(has).any(|other| leader(other) != leader(at));
        let more = |at: usize| copy(at).permission > copy(leader(at)).permission;
        if all().filter(alone).any(met) || all().any(more) {
            self.fault(ReleaseFault::NotAlone);
        }
    }

    fn wake(&mut self, at: usize, address: u64) {
        let of = self.model.minipage_of(address);
        let ops = &self.model.nodes[at];
        self.node(at, |node| {
            // A thread that is woken by a flush looks, and waits on.
            let answered = node.machine.state(address) != RequestState::Waits;
            for (thread, ops) in node.threads.iter_mut().zip(ops) {
                match &mut thread.phase {
                    Phase::Waits if answered && minipage(ops[thread.done]) == Some(of) => {
                        thread.phase = Phase::Woken;
                    }
                    Phase::Flushes(_, woken) => *woken = true,
                    _ => {}
                }
            }
        });
    }

    fn compute(&mut self, at: usize, number: usize, at_once: bool) {
        let thread = self.moment.nodes[at].threads[number].clone();
        let op = self.model.nodes[at][number][thread.done];
        match op {
            ReleaseOp::Acquire(_) => return self.over(at, number),
            ReleaseOp::Lock(lock) => {
                self.moment.locks |= 1 << lock;
                return self.over(at, number);
            }
            ReleaseOp::Release(_) | ReleaseOp::Unlock(_) => return self.flushes(at, number),
            _ => {}
        }
        let of = minipage(op).expect("an access");
        let address = self.model.address(of);
        if thread.phase == Phase::Woken {
            if at_once {
                self.access(at, number, op);
            }
            self.at(at, |node, out| {
                node.machine.goes_on(address, out);
                let thread = &mut node.threads[number];
                thread.phase = Phase::Computes;
                thread.slow |= !at_once;
            });
            return;
        }
        if self.access(at, number, op) {
            return;
        }
        match op {
            ReleaseOp::Read(..) => self.asks(at, number, of, MemoryOperation::Read),
            ReleaseOp::Write(..) => self.asks(at, number, of, MemoryOperation::Write),
            ReleaseOp::Hold(_) if self.moment.nodes[at].machine.flushes_at(address) => {
                self.node(at, |node| node.threads[number].phase = Phase::Waits);
            }
            ReleaseOp::Hold(_) => self.asks(at, number, of, MemoryOperation::Write),
            ReleaseOp::LetGo(_) => {
                self.at(at, |node, out| {
                    let released = node.machine.release(address, true, out);
                    released.expect("what waited is sound");
                });
                self.over(at, number);
            }
            ReleaseOp::Push(_) => {
                self.at(at, |node, out| node.machine.push(address, out));
                self.over(at, number);
            }
            _ => {}
        }
    }

    /// A thread that is about to release takes a step.
    fn flushes(&mut self, at: usize, number: usize) {
        let phase = self.moment.nodes[at].threads[number].phase.clone();
        let (mut flush, begun) = match phase {
            Phase::Flushes(flush, _) => (flush, true),
            _ => (MemoryFlush::default(), false),
        };
        let is_member = self.model.leader(at) != at;
        let has_twin = |copy: &Copy| copy.twin.is_some();
        let has_twins = self.moment.nodes[at].copies.iter().any(has_twin);
        let (mut is_over, mut asked) = (false, false);
        self.at(at, |node, out| {
            is_over = node.machine.flush(&mut flush, out);
            asked = !out.is_empty();
        });
        is_over |= !begun
            && match self.model.bug {
                Some(ReleaseBug::ForgetOthers) => !asked,
                Some(ReleaseBug::ForgetTaken) => !has_twins,
                Some(ReleaseBug::MemberForgets) => is_member,
                _ => false,
            };
        if !is_over {
            let phase = Phase::Flushes(flush, false);
            return self.node(at, |node| node.threads[number].phase = phase);
        }
        match self.model.nodes[at][number][self.moment.nodes[at].threads[number].done] {
            ReleaseOp::Release(event) => self.moment.events |= 1 << event,
            ReleaseOp::Unlock(lock) => self.moment.locks &= !(1 << lock),
            _ => {}
        }
        self.node(at, |node| node.threads[number].phase = Phase::Computes);
        self.over(at, number);
    }

    /// A thread makes its access, if it may.
    fn access(&mut self, at: usize, number: usize, op: ReleaseOp) -> bool {
        let Some(of) = minipage(op) else {
            return false;
        };
        let permission = self.moment.nodes[at].copies[of].permission;
        match op {
            ReleaseOp::Read(_, word) if permission >= Permission::Read => {
                if self.words(at, of)[word] != self.moment.latest[of][word] {
                    self.fault(ReleaseFault::Stale);
                }
            }
            ReleaseOp::Write(_, word) if permission == Permission::Write => {
                self.moment.writes += 1;
                let value = self.moment.writes;
                self.moment.latest[of][word] = value;
                let leader = self.model.leader(at);
                self.copy(leader, of, |copy| copy.words[word] = value);
            }
            ReleaseOp::Hold(_) if self.moment.nodes[at].commands.is_empty() => {
                let address = self.model.address(of);
                let mut held = false;
                self.node(at, |node| held = node.machine.hold(address, true).is_ok());
                if !held {
                    return false;
                }
            }
            _ => return false,
        }
        self.over(at, number);
        true
    }

    /// A thread faults.
    fn asks(&mut self, at: usize, number: usize, of: usize, operation: MemoryOperation) {
        let address = self.model.address(of);
        self.at(at, |node, out| {
            if node.machine.access(address, operation, true, out) == Accessed::Permitted {
                // The permission is on its way to the threads.
                return;
            }
            node.threads[number].phase = match node.machine.state(address) {
                RequestState::Waits => Phase::Waits,
                RequestState::Over | RequestState::Gone => Phase::Woken,
            };
        });
    }

    fn over(&mut self, at: usize, number: usize) {
        self.node(at, |node| node.threads[number].done += 1);
    }
}

/// The minipage that a step names.
fn minipage(op: ReleaseOp) -> Option<usize> {
    match op {
        ReleaseOp::Read(of, _)
        | ReleaseOp::Write(of, _)
        | ReleaseOp::Push(of)
        | ReleaseOp::Hold(of)
        | ReleaseOp::LetGo(of) => Some(of),
        _ => None,
    }
}

impl ReleaseModel {
    /// The address of a minipage, which is the only one of its manager.
    fn address(&self, of: usize) -> u64 {
        let window = (OBJECT / self.nodes.len() as u64) >> 12 << 12;
        self.managers[of] as u64 * window
    }

    /// The leader of a node's domain.
    fn leader(&self, node: usize) -> usize {
        self.leaders.get(node).copied().unwrap_or(node)
    }

    fn minipage_of(&self, address: u64) -> usize {
        let mut all = 0..self.managers.len();
        let found = all.find(|of| self.address(*of) == address);
        found.expect("a minipage of the program")
    }

    /// The nodes and ghosts at first.
    fn nodes_and_ghosts(&self) -> (Vec<Node>, Ghosts) {
        let nodes = self.nodes.len();
        let node = |me: usize| {
            let mut machine = Millipage::new(NodeId::at(me), nodes, OBJECT, 2);
            let leaders = (0..nodes).map(|node| NodeId::at(self.leader(node)));
            machine.set_leaders(&leaders.collect::<Vec<_>>());
            machine.allocate_released(true);
            for _ in self.managers.iter().filter(|manager| **manager == me) {
                machine.allocate(1, 8, 8).expect("there is room");
            }
            let copy = |manager: &usize| Copy {
                // What nobody has used is the leader's, as far as its manager says so.
                permission: match *manager == me && self.leader(me) == me {
                    true => Permission::Write,
                    false => Permission::Nothing,
                },
                words: [0; WORDS],
                twin: None,
            };
            let thread = Thread {
                done: 0,
                phase: Phase::Computes,
                slow: false,
            };
            Node {
                machine,
                copies: self.managers.iter().map(copy).collect(),
                commands: VecDeque::new(),
                came: [None; WORDS],
                threads: vec![thread; self.nodes[me].len()],
            }
        };
        let ghosts = Ghosts {
            latest: vec![[0; WORDS]; self.managers.len()],
            writes: 0,
            events: 0,
            locks: 0,
        };
        ((0..nodes).map(node).collect(), ghosts)
    }
}
