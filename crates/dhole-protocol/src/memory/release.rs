//! Release consistency: nodes that write one minipage together, and what a node does before it
//! releases (eager release consistency, as in Munin, for minipages).
//!
//! A node that wants to write a release consistent minipage of which others have copies gets a copy
//! beside theirs. It makes a *twin* before it writes. Before a thread of the node releases anything
//! (a lock, a barrier), the node *flushes* what it wrote so: its manager takes all other copies
//! away, and a node that wrote its own sends the difference from its twin to the node that
//! flushes. When all are merged that node has the only copy. So a node that acquires afterwards has
//! no copy from before, and asks for one.
//!
//! A flush of a minipage that another node's flush took comes to nothing when that is over: the
//! writes are in the other's copy. A node remembers minipages to be flushed apart from twins. For
//! that its copy is taken does not yet say that the copies of others are.
//!
//! In a domain the leader makes the twin, of the pages that its nodes have in common, and flushes
//! what they all wrote. Another node remembers what it was lent to write beside copies of other
//! domains, and asks its leader to flush that before it releases. Meanwhile the leader lends none
//! of it. It withdraws what it has lent to nodes that have not asked for the flush: a thread of
//! those might hold the minipage when a diff is merged. A node that has asked holds it no more
//! until it has the answer ([`HoldRefusal::Flushes`](super::HoldRefusal::Flushes)), and goes on
//! writing.

use std::collections::BTreeSet;

use dhole_model::{NodeId, NodeMap, SortedMap};
use dhole_part::PartEffects;

use super::Millipage;
use super::command::{MemoryAct, MemoryEvent, Permission};
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::Minipage;
use crate::node_set::NodeSet;

type Taken = Result<(), &'static str>;

/// What a node writes together with others.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Released {
    /// By the addresses of minipages that it wrote since it asked for the last flush of them:
    /// whether the next one waits until none of its threads, and no node of its domain, holds it.
    dirty: SortedMap<u64, bool>,
    /// Those of minipages of which it has twins.
    twins: BTreeSet<u64>,
    /// By their addresses: minipages whose flush is under way.
    flushes: SortedMap<u64, Flush>,
    /// As a leader, by addresses: flushes for which other nodes of the domain have asked.
    members: SortedMap<u64, NodeMap<MemberFlush>>,
}

/// A flush for which a node of the domain waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct MemberFlush {
    request: MemoryMessage,
    /// The ticket of the leader's flush, once it has been asked for.
    waits: Option<u32>,
}

/// How a flush stands for which a release waits.
enum Owed {
    /// There is none, or not any more.
    Nothing,
    /// It is under way, with this ticket.
    Waits(u32),
    /// It is to be asked for, when another flush of the minipage is over, or the minipage is not
    /// held any more.
    Later,
}

/// A flush of a minipage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Flush {
    ticket: u32,
    /// Whose diffs are merged.
    merged: NodeSet,
}

/// The flushes for which a thread waits that is about to release.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryFlush {
    begun: bool,
    /// Under way, with their tickets.
    waits: Vec<(u64, u32)>,
    /// To be asked for, when another flush of the minipage is over, or a thread does not hold it
    /// any more.
    later: Vec<u64>,
}

impl MemoryFlush {
    /// The first minipage for whose flush it waits, if it does.
    pub fn first(&self) -> Option<u64> {
        let waits = self.waits.iter().map(|(at, _)| *at);
        waits.chain(self.later.iter().copied()).next()
    }
}

impl Released {
    pub fn has_twin(&self, minipage: Minipage) -> bool {
        self.twins.contains(&minipage.at)
    }

    /// Whether the flush of a minipage is under way.
    pub fn flushes(&self, minipage: Minipage) -> bool {
        self.flushes.contains_key(&minipage.at)
    }

    pub fn is_at_rest(&self) -> bool {
        self.twins.is_empty() && self.members.is_empty() && !self.owes()
    }

    /// Whether a flush of the minipage at an address waits until it is not held.
    pub fn wants(&self, at: u64) -> bool {
        self.dirty.get(&at).copied().unwrap_or_default()
    }

    /// Whether a flush of the minipage at an address waits until it is not held, or is under way.
    pub fn keeps(&self, at: u64) -> bool {
        self.wants(at) || self.flushes.contains_key(&at)
    }

    /// Whether a node of the domain waits for a flush: it holds the minipage no more until then.
    pub fn waits(&self, node: NodeId, at: u64) -> bool {
        let members = self.members.get(&at);
        members.is_some_and(|members| members.contains_key(&node))
    }

    fn is_under_way(&self, at: u64, ticket: u32) -> bool {
        let flush = self.flushes.get(&at);
        flush.is_some_and(|flush| flush.ticket == ticket)
    }

    fn owes(&self) -> bool {
        !self.dirty.is_empty() || self.flushes.iter().next().is_some()
    }
}

impl Millipage {
    /// Whether nodes may write together what this node, or another one that it manages for,
    /// allocates next; whether they might what it allocated last.
    pub fn allocate_released(&mut self, releases: bool) -> bool {
        std::mem::replace(&mut self.table.releases, releases)
    }

    /// Whether a thread that releases waits for a [flush](Millipage::flush).
    pub fn owes_flushes(&self) -> bool {
        self.released.owes()
    }

    /// Whether a flush of the minipage at an address is under way.
    pub fn flushes_at(&self, address: u64) -> bool {
        let held = self.held_at(address);
        held.is_some_and(|held| self.released.flushes(held.minipage))
    }

    /// A thread is about to release. All that threads of this node wrote together with others is
    /// flushed first. The node sends all requests before the thread waits. Whether nothing is left
    /// to wait for; otherwise the thread is woken at each answer, and calls this again.
    pub fn flush(&mut self, flush: &mut MemoryFlush, out: &mut impl PartEffects<Self>) -> bool {
        if !flush.begun {
            flush.begun = true;
            let under_way = self.released.flushes.iter();
            flush.waits = under_way.map(|(at, it)| (*at, it.ticket)).collect();
            flush.later = self.released.dirty.keys().copied().collect();
        }
        let waits = &mut flush.waits;
        flush.later.retain(|at| match self.owed(*at, out) {
            Owed::Nothing => false,
            Owed::Waits(ticket) => {
                waits.push((*at, ticket));
                false
            }
            Owed::Later => true,
        });
        self.own_messages(out);
        let released = &self.released;
        flush
            .waits
            .retain(|(at, ticket)| released.is_under_way(*at, *ticket));
        flush.waits.is_empty() && flush.later.is_empty()
    }

    /// How the flush of a minipage stands. It is asked for where that can be.
    fn owed(&mut self, at: u64, out: &mut impl PartEffects<Self>) -> Owed {
        let begun = self.released.flushes.get(&at).map(|it| it.ticket);
        match (self.released.dirty.contains_key(&at), begun) {
            // Another thread has asked for it since.
            (false, Some(ticket)) => Owed::Waits(ticket),
            (false, None) => Owed::Nothing,
            (true, Some(_)) => Owed::Later,
            (true, None) if self.is_held(at) => {
                self.released.dirty.insert(at, true);
                self.withdraw(at, out);
                Owed::Later
            }
            (true, None) => Owed::Waits(self.begin_flush(at, out)),
        }
    }

    fn begin_flush(&mut self, at: u64, out: &mut impl PartEffects<Self>) -> u32 {
        let ticket = self.next_ticket();
        self.released.dirty.remove(&at);
        let merged = NodeSet::default();
        self.released.flushes.insert(at, Flush { ticket, merged });
        out.happens(MemoryEvent::Flushes);
        self.ask(at, MemoryOperation::Flush, ticket, out);
        ticket
    }

    /// A thread, or another node of the domain, holds this no more, for which a flush may have
    /// waited.
    pub(super) fn may_flush(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        if !self.released.dirty.contains_key(&at) {
            return;
        }
        match self.is_held(at) {
            true if self.released.wants(at) => self.withdraw(at, out),
            true => {}
            false => {
                out.over(at);
                self.serve_flushes(at, out);
            }
        }
    }

    /// Another node of the domain is about to release, and has written this.
    pub(super) fn take_members_flush(
        &mut self,
        request: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let (from, at) = (request.asker, request.address);
        if self.released.waits(from, at) {
            return Err("a request for a flush that waits already");
        }
        self.keeps_request(from)?;
        let waits = None;
        let members = self.released.members.get_or_default(at);
        members.insert(from, MemberFlush { request, waits });
        self.serve_flushes(at, out);
        Ok(())
    }

    /// Answers nodes of the domain that wait for flushes of a minipage, as far as those are over,
    /// and asks for the rest.
    fn serve_flushes(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        // First those that go on, which may hold the minipage then.
        let over = |released: &Released, waits: Option<u32>| {
            waits.is_some_and(|ticket| !released.is_under_way(at, ticket))
        };
        self.answer_flushes(at, over, out);
        if !self.released.members.contains_key(&at) {
            return;
        }
        match self.owed(at, out) {
            Owed::Later => {}
            Owed::Nothing => self.answer_flushes(at, |_, _| true, out),
            Owed::Waits(ticket) => {
                let members = self.released.members.get_or_default(at);
                members.values_mut().for_each(|member| {
                    member.waits.get_or_insert(ticket);
                });
            }
        }
    }

    fn answer_flushes(
        &mut self,
        at: u64,
        is_over: impl Fn(&Released, Option<u32>) -> bool,
        out: &mut impl PartEffects<Self>,
    ) {
        let Some(members) = self.released.members.get(&at) else {
            return;
        };
        let over = members
            .values()
            .filter(|it| is_over(&self.released, it.waits));
        let over: Vec<MemoryMessage> = over.map(|it| it.request).collect();
        for request in over {
            let members = self.released.members.get_or_default(at);
            members.remove(&request.asker);
            if members.is_empty() {
                self.released.members.remove(&at);
            }
            self.forgets_request(request.asker);
            self.reply(request, MemoryKind::Dropped, Minipage::NONE, out);
        }
    }

    /// A flush of a minipage is over, or none is wanted any more: what waited for that goes on.
    pub(super) fn serve_flushed(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        self.serve_flushes(at, out);
        if let Some(held) = self.held.get(&at) {
            self.serve_all(held.minipage, out);
        }
    }

    /// This node may write a minipage of which others have copies.
    pub(super) fn writes_together(&mut self, minipage: Minipage, out: &mut impl PartEffects<Self>) {
        self.released.dirty.get_or_default(minipage.at);
        out.act(MemoryAct::Owes);
        // The twin of its domain is the leader's.
        if !self.is_member() && self.released.twins.insert(minipage.at) {
            out.act(MemoryAct::Twin(minipage));
        }
    }

    /// This node has the only copy of a minipage: other nodes lack nothing of it.
    pub(super) fn writes_alone(&mut self, minipage: Minipage, out: &mut impl PartEffects<Self>) {
        self.released.dirty.remove(&minipage.at);
        if self.released.twins.remove(&minipage.at) {
            out.act(MemoryAct::DropTwin(minipage));
        }
    }

    /// The manager takes a copy away that this node wrote together with others.
    pub(super) fn loses_twin(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let minipage = message.minipage;
        let flushes = match message.operation {
            MemoryOperation::Flush if message.asker != self.me => true,
            MemoryOperation::Free => false,
            _ => return Err("a copy is taken away, with what a node wrote together with others"),
        };
        self.released.twins.remove(&minipage.at);
        // Its bytes are compared when threads write them no more.
        self.permit(minipage, Permission::Nothing, out);
        if flushes {
            let (kind, to) = (MemoryKind::Diff, message.asker);
            let message = MemoryMessage { kind, ..message };
            out.send(to, message);
            return Ok(());
        }
        out.act(MemoryAct::DropTwin(minipage));
        let kind = MemoryKind::Invalidated;
        self.send(from, MemoryMessage { kind, ..message }, out);
        Ok(())
    }

    /// What another node wrote together with this one, which flushes.
    pub(super) fn take_diff(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        const UNASKED: &str = "a diff of a minipage that is not flushed";
        let at = message.minipage.at;
        let held = self.held.get(&at).copied();
        let is_held = self.is_held(at);
        let held = held.filter(|held| !is_held && self.released.twins.contains(&held.minipage.at));
        let flush = self.released.flushes.get_mut(&at);
        let flush = flush.filter(|flush| {
            let is_flush = message.operation == MemoryOperation::Flush;
            is_flush && message.asker == self.me && flush.ticket == message.ticket
        });
        let (held, flush) = held.zip(flush).ok_or(UNASKED)?;
        if flush.merged.contains(from) || from == self.me {
            return Err(UNASKED);
        }
        let minipage = held.minipage;
        if self.manager_of(at) == Some(self.me) {
            let managed = self.managed.get(&at);
            if !managed.is_some_and(|managed| managed.awaits_diff(from, &message)) {
                return Err(UNASKED);
            }
        }
        if let Some(flush) = self.released.flushes.get_mut(&at) {
            flush.merged.insert(from);
        }
        out.act(MemoryAct::MergeDiff(minipage));
        let merged = MemoryMessage {
            kind: MemoryKind::Merged,
            ticket: from.0.into(),
            minipage,
            ..message
        };
        if let Some(manager) = self.asks(at) {
            self.send(manager, merged, out);
        }
        Ok(())
    }

    /// This node has flushed a minipage, and has the only copy.
    pub(super) fn take_flushed(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let minipage = message.minipage;
        let held = self.held.get(&minipage.at);
        let has_twin = self.released.has_twin(minipage);
        let is_held = has_twin && held.is_some_and(|held| held.minipage == minipage);
        if !is_held || self.asks(minipage.at) != Some(from) || !self.flushed(&message, out) {
            return Err("a flush is over that there was not");
        }
        self.writes_alone(minipage, out);
        self.acknowledge(message, out);
        self.serve_flushed(minipage.at, out);
        Ok(())
    }

    /// A flush is over, if it was under way.
    pub(super) fn flushed(
        &mut self,
        message: &MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> bool {
        let at = message.address;
        let flush = self.released.flushes.get(&at);
        let is_over =
            flush.is_some_and(|flush| flush.ticket == message.ticket) && message.asker == self.me;
        if is_over {
            self.released.flushes.remove(&at);
            out.over(at);
        }
        is_over
    }
}
