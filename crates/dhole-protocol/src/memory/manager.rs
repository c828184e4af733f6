//! The manager of minipages: who has copies, one operation at a time, and the queue of the others.

use std::collections::VecDeque;

use dhole_model::NodeId;
use dhole_part::PartEffects;

use super::Millipage;
use super::command::{MemoryAct, MemoryEvent};
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::{Minipage, first_of_page};
use crate::node_set::NodeSet;

type Taken = Result<(), &'static str>;

/// What a manager knows of a minipage that some node has used.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Managed {
    minipage: Minipage,
    /// Who has copies.
    copies: NodeSet,
    /// Who had the only copy last.
    owner: NodeId,
    is_freed: bool,
    /// Nodes may write it together.
    is_released: bool,
    /// Who does: each has a twin of its copy.
    together: NodeSet,
    /// Counts the operations.
    number: u32,
    work: Option<Work>,
    queue: VecDeque<MemoryMessage>,
}

/// The operation that is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Work {
    request: MemoryMessage,
    /// Who sends its copy; the asker where its own is good.
    source: NodeId,
    /// Who is still to answer: that its copy is gone, or that it has what was pushed.
    awaited: NodeSet,
    /// Whether the asker, or those to whom is pushed, have yet to acknowledge.
    is_forwarded: bool,
}

impl Managed {
    /// The leader of the manager's domain has the only copy.
    fn new(minipage: Minipage, leader: NodeId, is_released: bool) -> Managed {
        let mut copies = NodeSet::default();
        copies.insert(leader);
        Managed {
            minipage,
            copies,
            owner: leader,
            is_freed: false,
            is_released,
            together: NodeSet::default(),
            number: 0,
            work: None,
            queue: VecDeque::new(),
        }
    }

    /// Queues an operation for which its node has not asked, unless the node has what it would get,
    /// or waits here for an operation; whether it is queued.
    pub(super) fn queue_brought(&mut self, request: MemoryMessage) -> bool {
        let MemoryMessage {
            asker, operation, ..
        } = request;
        let work = self.work.as_ref().map(|work| &work.request);
        let mut coming = self.queue.iter().chain(work);
        let comes = coming.any(|queued| queued.asker == asker);
        let lacks = !self.is_freed && !comes && !self.has(asker, operation);
        if lacks {
            self.queue.push_back(request);
        }
        lacks
    }

    /// Whether a node that asks for the minipage to write gets a copy beside those of others.
    fn writes_together(&self, asker: NodeId, operation: MemoryOperation) -> bool {
        let has_others = || self.copies.iter().any(|node| node != asker);
        self.is_released && operation == MemoryOperation::Write && has_others()
    }

    /// Whether it is one that nodes may write together.
    pub(super) fn is_released(&self) -> bool {
        self.is_released
    }

    /// Whether a message is about a diff that a node owes to the one that flushes.
    pub(super) fn awaits_diff(&self, of: NodeId, message: &MemoryMessage) -> bool {
        let work = self.work.as_ref();
        let is_same = |work: &&Work| {
            let request = &work.request;
            let same = (request.number, request.asker) == (message.number, message.asker);
            let flushes = request.operation == MemoryOperation::Flush;
            same && flushes && message.operation == MemoryOperation::Flush
        };
        let awaits = work.filter(is_same);
        let is_here = self.minipage.at == message.minipage.at;
        is_here
            && awaits.is_some_and(|work| work.awaited.contains(of))
            && self.together.contains(of)
    }

    /// Whether a node has what is to be brought to it.
    fn has(&self, node: NodeId, operation: MemoryOperation) -> bool {
        let is_only = self.owner == node && self.copies.iter().count() == 1;
        self.copies.contains(node) && (is_only || !operation.takes_copies())
    }

    pub(super) fn copies_at_rest(&self) -> Option<Vec<NodeId>> {
        let rests = self.work.is_none() && self.queue.is_empty();
        rests.then(|| self.copies.iter().collect())
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether a message is about the operation that is under way.
    fn is_about(&self, message: &MemoryMessage) -> bool {
        let of = |message: &MemoryMessage| {
            let MemoryMessage { number, ticket, .. } = *message;
            (number, ticket, message.asker, message.operation)
        };
        let work = self.work.as_ref();
        self.minipage == message.minipage
            && work.is_some_and(|work| of(&work.request) == of(message))
    }

    /// A node with a copy, the last owner if it has one.
    fn holder(&self) -> NodeId {
        let owner = Some(self.owner).filter(|owner| self.copies.contains(*owner));
        let holder = owner.or_else(|| self.copies.iter().next());
        holder.expect("a minipage that is not freed has a copy")
    }
}

/// What says whether two requests of a node are for the same.
fn queued_as(request: &MemoryMessage) -> (NodeId, u64, Option<MemoryOperation>) {
    let page = first_of_page(request.address);
    let other = match request.operation {
        MemoryOperation::Read | MemoryOperation::Write => None,
        other => Some(other),
    };
    (request.asker, page, other)
}

impl Millipage {
    /// What this node knows of a minipage that it manages.
    pub(super) fn managed_of(&mut self, minipage: Minipage) -> &mut Managed {
        let leader = self.leader();
        if !self.managed.contains_key(&minipage.at) && leader == self.me {
            self.holds_unused(minipage);
        }
        let is_released = self.table.is_released(minipage.at);
        let managed = || Managed::new(minipage, leader, is_released);
        self.managed.get_or_insert_with(minipage.at, managed)
    }

    /// A request, by its manager.
    pub(super) fn take_request(
        &mut self,
        from: NodeId,
        request: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if request.asker != from || self.manager_of(request.address) != Some(self.me) {
            return Err("a request for another node, or to one that does not manage the minipage");
        }
        if !request.operation.is_asked_for() {
            return Err("a request for what the manager alone begins");
        }
        out.happens(MemoryEvent::Translated);
        let Some(minipage) = self.table.find(request.address) else {
            self.refuse(request, out);
            return Ok(());
        };
        let managed = self.managed_of(minipage);
        let mut queued = managed.queue.iter();
        if queued.any(|queued| queued_as(queued) == queued_as(&request)) {
            return Err("a request for a minipage that waits already");
        }
        let other = managed.work.as_ref().map(|work| work.request.asker);
        if other.is_some() {
            out.happens(MemoryEvent::Competes);
        }
        let competes = other.is_some_and(|other| other != from);
        managed.queue.push_back(MemoryMessage {
            minipage,
            ..request
        });
        self.begin_next(minipage.at, out);
        let neighbours = self.learn_group(&request, competes);
        self.bring(neighbours, &request, out);
        Ok(())
    }

    /// Nothing is, or is left, where this was asked for.
    fn refuse(&mut self, request: MemoryMessage, out: &mut impl PartEffects<Self>) {
        let kind = match request.operation {
            operation if operation.is_brought() => return,
            MemoryOperation::Push | MemoryOperation::Flush => MemoryKind::Dropped,
            _ => MemoryKind::Gone,
        };
        // It names none: the node may have words for it.
        self.reply(request, kind, Minipage::NONE, out);
    }

    /// Begins with the next requests for a minipage, as long as none is under way.
    pub(super) fn begin_next(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        loop {
            let managed = self.managed.get_mut(&at);
            let managed = managed.expect("whoever begins has seen it");
            if managed.work.is_some() {
                return;
            }
            let Some(mut request) = managed.queue.pop_front() else {
                return;
            };
            let asker = request.asker;
            let has_copy = managed.copies.contains(asker);
            let is_push = request.operation == MemoryOperation::Push;
            if managed.writes_together(asker, request.operation) {
                request.operation = MemoryOperation::WriteTogether;
            }
            let operation = request.operation;
            let has = operation.is_brought() && managed.has(asker, operation);
            let is_flushed =
                operation == MemoryOperation::Flush && !managed.together.contains(asker);
            if managed.is_freed || has || is_flushed || is_push && !has_copy {
                self.refuse(request, out);
                continue;
            }
            managed.number = managed.number.wrapping_add(1);
            request.number = managed.number;
            let source = match has_copy {
                true => asker,
                false => managed.holder(),
            };
            let mut awaited = NodeSet::default();
            let keeps = |node: NodeId| match operation {
                MemoryOperation::Free => false,
                _ => !operation.takes_copies() || node == asker || node == source,
            };
            let taken = managed.copies.iter().filter(|node| !keeps(*node));
            taken.for_each(|node| awaited.insert(node));
            managed.work = Some(Work {
                request,
                source,
                awaited: awaited.clone(),
                is_forwarded: false,
            });
            let kind = MemoryKind::Invalidate;
            for node in awaited.iter() {
                self.send(node, MemoryMessage { kind, ..request }, out);
            }
            self.forward(at, out);
        }
    }

    /// Lets the asker have what it asked for, once no copy is left that must not be.
    fn forward(&mut self, at: u64, out: &mut impl PartEffects<Self>) {
        let all: Vec<NodeId> = self.domains().collect();
        let managed = self.managed.get_mut(&at);
        let managed = managed.expect("whoever forwards has seen it");
        let Some(work) = &mut managed.work else {
            return;
        };
        if work.is_forwarded || !work.awaited.is_empty() {
            return;
        }
        work.is_forwarded = true;
        let (request, source) = (work.request, work.source);
        let (to, kind) = match request.operation {
            MemoryOperation::Free => {
                managed.work = None;
                managed.is_freed = true;
                self.table.free(request.minipage);
                out.act(MemoryAct::Clear(request.minipage));
                (request.asker, MemoryKind::Grant)
            }
            MemoryOperation::Push => {
                let to_hear = all.into_iter().filter(|node| *node != source);
                to_hear.for_each(|node| work.awaited.insert(node));
                (source, MemoryKind::Forward)
            }
            _ if source == request.asker => (source, MemoryKind::Grant),
            _ => (source, MemoryKind::Forward),
        };
        self.send(to, MemoryMessage { kind, ..request }, out);
    }

    /// The operation that a message is about, which must be under way.
    fn under_way(&mut self, message: &MemoryMessage) -> Result<&mut Managed, &'static str> {
        let managed = self.managed.get_mut(&message.minipage.at);
        let managed = managed.filter(|managed| managed.is_about(message));
        managed.ok_or("a message about an operation that is not under way")
    }

    /// Whether another node gives this one bytes, or a permission, that the manager has it give:
    /// this node is the manager.
    pub(super) fn gives_its_own(&self, from: NodeId, message: &MemoryMessage) -> Taken {
        let managed = self.managed.get(&message.minipage.at);
        let work = managed.filter(|managed| managed.is_about(message));
        let work = work.and_then(|managed| managed.work.as_ref());
        match work.is_some_and(|work| work.is_forwarded && work.source == from) {
            true => Ok(()),
            false => Err("bytes of a minipage that its manager does not expect"),
        }
    }

    pub(super) fn take_invalidated(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let at = message.minipage.at;
        let managed = self.under_way(&message)?;
        if let Some(work) = &mut managed.work {
            if work.is_forwarded || !work.awaited.contains(from) {
                return Err("a copy is gone that was not taken away");
            }
            let flushes = work.request.operation == MemoryOperation::Flush;
            if flushes && managed.together.contains(from) {
                return Err("a copy is gone of which a diff is to be merged");
            }
            work.awaited.remove(from);
            managed.copies.remove(from);
            managed.together.remove(from);
        }
        self.forward(at, out);
        self.begin_next(at, out);
        Ok(())
    }

    /// The node that flushes has merged the diff of another one, which has no copy any more.
    pub(super) fn take_merged(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let at = message.minipage.at;
        let writer = u16::try_from(message.ticket).map(NodeId);
        let managed = self.managed.get_mut(&at).zip(writer.ok());
        let merged = managed.filter(|(managed, writer)| {
            from == message.asker
                && managed.minipage == message.minipage
                && managed.awaits_diff(*writer, &message)
        });
        let (managed, writer) = merged.ok_or("a diff is merged that is not awaited")?;
        managed.copies.remove(writer);
        managed.together.remove(writer);
        if let Some(work) = &mut managed.work {
            work.awaited.remove(writer);
        }
        self.forward(at, out);
        Ok(())
    }

    pub(super) fn take_ack(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let at = message.minipage.at;
        let managed = self.under_way(&message)?;
        let Some(work) = &mut managed.work else {
            return Ok(());
        };
        let is_push = work.request.operation == MemoryOperation::Push;
        let may = match is_push {
            true => work.awaited.contains(from),
            false => from == work.request.asker,
        };
        if !work.is_forwarded || !may {
            return Err("an operation is over for a node that has no part in it");
        }
        work.awaited.remove(from);
        managed.copies.insert(from);
        if work.request.operation.takes_copies() {
            managed.copies.retain_only(from);
            managed.owner = from;
            managed.together = NodeSet::default();
        }
        if work.request.operation == MemoryOperation::WriteTogether {
            managed.together.insert(from);
        }
        if work.awaited.is_empty() {
            managed.work = None;
            self.begin_next(at, out);
        }
        Ok(())
    }
}
