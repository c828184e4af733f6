//! A node's copies: what it may do, what it is asked for, and what it gets.

use dhole_model::NodeId;
use dhole_part::PartEffects;

use super::ahead::Waits;
use super::command::{MemoryAct, Permission};
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::{MINIPAGE_PAGE, Minipage, first_of_page};
use super::{Answer, Held, Millipage};

type Taken = Result<(), &'static str>;

const MOST_COPIES: &str = "more copies of minipages than a node keeps";
const OVERLAPS: &str = "a minipage that has bytes in common with another one";

impl Millipage {
    /// The copy at an address, if there is one.
    pub(super) fn held_at(&self, address: u64) -> Option<Held> {
        let end = first_of_page(address).saturating_add(MINIPAGE_PAGE);
        let (_, held) = self.held.range(..end).next_back()?;
        Some(*held).filter(|held| held.minipage.covers(address))
    }

    pub(super) fn permit(
        &mut self,
        minipage: Minipage,
        permission: Permission,
        out: &mut impl PartEffects<Self>,
    ) {
        match permission {
            Permission::Nothing => {
                self.held.remove(&minipage.at);
                self.places.remove(&minipage.offset());
            }
            _ => self.has(minipage, permission),
        }
        out.act(MemoryAct::Permit {
            minipage,
            permission,
        });
    }

    /// This node manages a minipage that nobody has used, and has its only copy.
    pub(super) fn holds_unused(&mut self, minipage: Minipage) {
        self.has(minipage, Permission::Write);
    }

    /// This node has a copy of a minipage.
    fn has(&mut self, minipage: Minipage, permission: Permission) {
        let held = Held {
            minipage,
            permission,
        };
        self.held.insert(minipage.at, held);
        self.places.insert(minipage.offset(), minipage.bytes);
    }

    /// Whether a minipage has bytes in common with one of which this node has a copy, or a page of
    /// its view: of such a page there is one minipage, whose protection it has.
    fn overlaps(&self, minipage: Minipage) -> bool {
        let before = self.held.range(..minipage.end_of_pages()).next_back();
        if before.is_some_and(|(_, it)| it.minipage.end_of_pages() > minipage.first_page()) {
            return true;
        }
        let end = minipage.offset() + u64::from(minipage.bytes);
        let before = self.places.range(..end).next_back();
        before.is_some_and(|(start, bytes)| start + u64::from(*bytes) > minipage.offset())
    }

    /// The copy of which the manager speaks.
    fn managed_copy(
        &mut self,
        from: NodeId,
        MemoryMessage {
            minipage, number, ..
        }: MemoryMessage,
    ) -> Result<Held, &'static str> {
        if self.asks(minipage.at) != Some(from) {
            return Err("what only the manager of a minipage says");
        }
        // Nobody has used it, and the first copy is the leader's.
        if number == 1 && self.leads(from) && !self.overlaps(minipage) {
            if self.held.len() >= self.most_held {
                return Err(MOST_COPIES);
            }
            self.holds_unused(minipage);
        }
        let held = self.held.get(&minipage.at).copied();
        held.filter(|held| held.minipage == minipage)
            .ok_or("a copy of a minipage is asked for, or taken away, where there is none")
    }

    pub(super) fn take_forward(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let minipage = message.minipage;
        let held = self.managed_copy(from, message)?;
        let (asker, operation) = (message.asker, message.operation);
        let is_push = operation == MemoryOperation::Push;
        let is_sent = !matches!(operation, MemoryOperation::Free | MemoryOperation::Flush);
        if self.is_member() || !is_sent || is_push != (asker == self.me) {
            return Err("a copy of a minipage is asked for whoever has it");
        }
        let is_twinned = self.released.has_twin(minipage);
        if is_twinned && operation.takes_copies() {
            return Err("a copy is taken away, with what a node wrote together with others");
        }
        // It is taken away, or made to stay as it is, before its bytes are read.
        let kept = match operation.takes_copies() {
            true => Permission::Nothing,
            false => Permission::Read,
        };
        if self.defers(from, &message, kept)? {
            self.withdraw(minipage.at, out);
            return Ok(());
        }
        // A node that writes together with others goes on.
        if held.permission != kept && !is_twinned {
            self.permit(minipage, kept, out);
        }
        let kind = MemoryKind::Data;
        let message = MemoryMessage { kind, ..message };
        if !is_push {
            out.send(asker, message);
            return Ok(());
        }
        self.pushing.remove(&minipage.at);
        let me = self.me;
        for to in self.domains().filter(|node| *node != me) {
            out.send(to, message);
        }
        Ok(())
    }

    pub(super) fn take_invalidate(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        self.managed_copy(from, message)?;
        // A leader may leave the other nodes of its domain to read.
        let operation = message.operation;
        let takes = operation.takes_copies() || operation == MemoryOperation::Free;
        let left = match operation {
            MemoryOperation::Read if self.is_member() => Permission::Read,
            _ if takes => Permission::Nothing,
            _ => return Err("a copy of a minipage is taken away for whoever reads it"),
        };
        if self.defers(from, &message, left)? {
            self.withdraw(message.minipage.at, out);
            return Ok(());
        }
        if self.released.has_twin(message.minipage) {
            self.loses_twin(from, message, out)?;
        } else {
            self.permit(message.minipage, left, out);
            let kind = MemoryKind::Invalidated;
            self.send(from, MemoryMessage { kind, ..message }, out);
        }
        // Nodes of the domain may have waited for a flush of what is gone.
        self.serve_all(message.minipage, out);
        Ok(())
    }

    /// This node gets a copy for which it has not asked.
    fn installs(
        &mut self,
        minipage: Minipage,
        permission: Permission,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if self.overlaps(minipage) {
            return Err(OVERLAPS);
        }
        if self.held.len() >= self.most_held {
            return Err(MOST_COPIES);
        }
        out.act(MemoryAct::Install(minipage));
        self.permit(minipage, permission, out);
        Ok(())
    }

    pub(super) fn take_data(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let MemoryMessage {
            operation,
            minipage,
            asker,
            ..
        } = message;
        if self.is_member() {
            return Err("bytes of a minipage for a node that has the memory of another");
        }
        let has_copy = self.held.contains_key(&minipage.at);
        if let Some(permission) = brought(operation) {
            if asker != self.me || from == self.me || has_copy {
                return Err("a minipage is brought to a node that has it, or to another one");
            }
            self.installs(minipage, permission, out)?;
            self.acknowledge(message, out);
            return Ok(());
        }
        let permission = match operation {
            MemoryOperation::Push if asker == from => {
                if !has_copy {
                    self.installs(minipage, Permission::Read, out)?;
                }
                self.acknowledge(message, out);
                return Ok(());
            }
            MemoryOperation::Read => Permission::Read,
            MemoryOperation::Write | MemoryOperation::WriteTogether => Permission::Write,
            _ => return Err("bytes of a minipage that nobody is to have"),
        };
        self.answered(&message)?;
        if has_copy || from == self.me {
            return Err("bytes of a minipage of which there is a copy");
        }
        if self.overlaps(minipage) {
            return Err(OVERLAPS);
        }
        out.act(MemoryAct::Install(minipage));
        if operation == MemoryOperation::WriteTogether {
            self.writes_together(minipage, out);
        }
        let asked = self.asked.get(&first_of_page(message.address));
        match asked.is_some_and(|asked| matches!(asked.waits, Waits::Round { .. })) {
            // The thread that waits for the round opens its minipages together.
            true => self.has(minipage, permission),
            false => self.permit(minipage, permission, out),
        }
        self.answer(message, Answer::Granted(message), out);
        Ok(())
    }

    pub(super) fn take_grant(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let minipage = message.minipage;
        if message.operation == MemoryOperation::BringToWrite {
            if self.is_member() || message.asker != self.me {
                return Err("a minipage is brought to a node that has the memory of another");
            }
            self.managed_copy(from, message)?;
            self.permit(minipage, Permission::Write, out);
            self.acknowledge(message, out);
            return Ok(());
        }
        if message.operation == MemoryOperation::Flush {
            return self.take_flushed(from, message, out);
        }
        self.answered(&message)?;
        let answer = match message.operation {
            MemoryOperation::Free if self.asks(minipage.at) == Some(from) => {
                Answer::Freed(minipage)
            }
            MemoryOperation::Read | MemoryOperation::Write | MemoryOperation::WriteTogether => {
                let is_lent = self.is_member() && !self.held.contains_key(&minipage.at);
                let before = match is_lent && self.asks(minipage.at) == Some(from) {
                    true if self.overlaps(minipage) => return Err(OVERLAPS),
                    true => Permission::Read,
                    false => self.managed_copy(from, message)?.permission,
                };
                let permission = match message.operation {
                    MemoryOperation::Read => before,
                    _ => Permission::Write,
                };
                match message.operation {
                    MemoryOperation::WriteTogether => self.writes_together(minipage, out),
                    MemoryOperation::Write => self.writes_alone(minipage, out),
                    _ => {}
                }
                self.permit(minipage, permission, out);
                Answer::Granted(message)
            }
            _ => return Err("a permission that nobody asks for, or not of the manager"),
        };
        self.answer(message, answer, out);
        if message.operation == MemoryOperation::Write {
            // There is nothing to flush any more.
            self.serve_flushed(minipage.at, out);
        }
        Ok(())
    }

    pub(super) fn take_gone(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let manager = self.asks(message.address).unwrap_or(self.me);
        self.answered(&message)?;
        if manager != from {
            return Err("what only the manager of a minipage says");
        }
        self.answer(message, Answer::Gone, out);
        Ok(())
    }

    pub(super) fn take_dropped(
        &mut self,
        from: NodeId,
        message: MemoryMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let is_manager = self.asks(message.address) == Some(from);
        if message.operation == MemoryOperation::Flush {
            if !is_manager || !self.flushed(&message, out) {
                return Err("a flush has come to nothing that there was not");
            }
            self.serve_flushed(message.address, out);
            return Ok(());
        }
        match is_manager && self.pushing.remove(&message.address) {
            true => Ok(()),
            false => Err("a push has come to nothing that there was not"),
        }
    }

    /// Whether a message answers a request of this node.
    fn answered(&self, message: &MemoryMessage) -> Taken {
        let asked = self.asked.get(&first_of_page(message.address));
        let is_answer = asked.is_some_and(|asked| {
            // The manager may let nodes write together.
            let operation = match message.operation {
                MemoryOperation::WriteTogether => MemoryOperation::Write,
                operation => operation,
            };
            let same = (asked.ticket, asked.operation) == (message.ticket, operation);
            same && asked.answer.is_none() && message.asker == self.me
        });
        match is_answer {
            true => Ok(()),
            false => Err("an answer about a minipage to a question that was not asked"),
        }
    }

    /// A request of this node has its answer. Where no thread waits for it, it is over.
    fn answer(&mut self, message: MemoryMessage, answer: Answer, out: &mut impl PartEffects<Self>) {
        let page = first_of_page(message.address);
        let Some(asked) = self.asked.get_mut(&page) else {
            return;
        };
        let (waits, address) = (asked.waits, message.address);
        if waits == Waits::Thread {
            asked.answer = Some(answer);
            out.over(address);
            self.serve(page, out);
            return;
        }
        self.asked.remove(&page);
        self.uncount_ahead(waits);
        if let Answer::Granted(message) = answer {
            self.acknowledge(message, out);
        }
        if matches!(waits, Waits::Round { .. }) {
            out.over(address);
        }
        self.serve(page, out);
    }

    /// The manager hears that an operation is over for this node.
    pub(super) fn acknowledge(&mut self, message: MemoryMessage, out: &mut impl PartEffects<Self>) {
        let kind = MemoryKind::Ack;
        if let Some(asked) = self.asks(message.minipage.at) {
            self.send(asked, MemoryMessage { kind, ..message }, out);
        }
    }
}

/// The permission that comes with a minipage that is brought.
fn brought(operation: MemoryOperation) -> Option<Permission> {
    match operation {
        MemoryOperation::Bring => Some(Permission::Read),
        MemoryOperation::BringToWrite => Some(Permission::Write),
        _ => None,
    }
}
