//! What nodes say to each other about minipages. All of it has a fixed length, 32 bytes.

use dhole_model::{MessageKind, NodeId, Variants};
use dhole_part::PartMessage;
use dhole_wire::Wire;

use super::minipage::Minipage;

/// What a message about a minipage is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Variants, Wire)]
pub enum MemoryKind {
    /// A node asks the manager; it knows the address alone.
    Request,
    /// The manager asks a holder of a copy to send it to the asker.
    Forward,
    /// The manager takes a copy away.
    Invalidate,
    /// The holder has no copy any more.
    Invalidated,
    /// A copy for the asker. Its bytes are the payload.
    Data,
    /// The asker has what it asked for.
    Grant,
    /// The asker has it, and its thread goes on: the operation is over.
    Ack,
    /// Nothing is allocated at the address, or no longer.
    Gone,
    /// A push or a flush comes to nothing: the asker has no copy any more, or none that it wrote
    /// together with others. From a leader to a node of its domain: what that asked for is done.
    Dropped,
    /// What a node that has lost its copy to a flush wrote into it, for the node that flushes. The
    /// diff is the payload.
    Diff,
    /// The node that flushes has merged a diff. The ticket is the number of the node that wrote it.
    Merged,
}

/// What a node asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub enum MemoryOperation {
    /// A copy to read.
    Read,
    /// The only copy.
    Write,
    /// That all nodes get a copy to read.
    Push,
    /// That no node has the minipage any more.
    Free,
    /// Nothing: the manager brings the node a copy to read of a neighbour of what it reads.
    Bring,
    /// Nothing: the manager brings the node the only copy of a neighbour of what it writes.
    BringToWrite,
    /// New minipages, of the node that manages all.
    Allocate,
    /// The same, in groups.
    AllocateInGroups,
    /// What the manager makes of [`Write`](MemoryOperation::Write) where the minipage is release
    /// consistent, and other nodes have copies: one to write, beside theirs.
    WriteTogether,
    /// Before a release: that the writes of the asker, and of all that write together with it, are
    /// in the only copy.
    Flush,
}

impl MemoryOperation {
    /// Whether other nodes lose their copies, and the node for which it is has the only one then.
    pub(super) fn takes_copies(self) -> bool {
        matches!(
            self,
            MemoryOperation::Write | MemoryOperation::BringToWrite | MemoryOperation::Flush
        )
    }

    /// Whether a manager begins it for a node that has not asked.
    pub(super) fn is_brought(self) -> bool {
        matches!(self, MemoryOperation::Bring | MemoryOperation::BringToWrite)
    }

    /// Whether a node may ask for it. The manager makes the others.
    pub(super) fn is_asked_for(self) -> bool {
        !self.is_brought() && self != MemoryOperation::WriteTogether
    }

    /// Whether a node asks for new minipages.
    pub fn allocates(self) -> bool {
        matches!(
            self,
            MemoryOperation::Allocate | MemoryOperation::AllocateInGroups
        )
    }
}

/// Most bytes of words that come with a message ([`MemoryMessage::has_words`]).
pub const MOST_WORDS: u32 = 512;

/// A message about a minipage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct MemoryMessage {
    /// What it is.
    pub kind: MemoryKind,
    /// What was asked for.
    pub operation: MemoryOperation,
    /// The node that asked.
    pub asker: NodeId,
    /// The manager's number of the operation, of those on this minipage. In a leader's request, for
    /// which node of its domain that is, counted from 1.
    pub number: u32,
    /// The asker's number of its request.
    pub ticket: u32,
    /// The address for which it asked.
    pub address: u64,
    /// The minipage, once the manager has found it. Of a diff its bytes are those of the diff.
    pub minipage: Minipage,
}

impl PartMessage for MemoryMessage {
    fn kind(&self) -> MessageKind {
        match self.kind {
            MemoryKind::Request => MessageKind::MemoryRequest,
            MemoryKind::Forward => MessageKind::MemoryForward,
            MemoryKind::Invalidate => MessageKind::MemoryInvalidate,
            MemoryKind::Invalidated => MessageKind::MemoryInvalidated,
            MemoryKind::Data => MessageKind::MemoryData,
            MemoryKind::Grant => MessageKind::MemoryGrant,
            MemoryKind::Ack => MessageKind::MemoryAck,
            MemoryKind::Gone => MessageKind::MemoryGone,
            MemoryKind::Dropped => MessageKind::MemoryDropped,
            MemoryKind::Diff => MessageKind::MemoryDiff,
            MemoryKind::Merged => MessageKind::MemoryMerged,
        }
    }

    /// The bytes of the minipage, the diff, or words.
    fn has_payload(&self) -> bool {
        matches!(self.kind, MemoryKind::Data | MemoryKind::Diff) || self.has_words()
    }
}

impl MemoryMessage {
    /// Whether its payload is words for people: where minipages are allocated or freed, or were.
    /// Their length stands in place of the minipage's, which these messages do not name.
    pub fn has_words(&self) -> bool {
        let allocates = self.operation.allocates();
        let frees = self.operation == MemoryOperation::Free;
        match self.kind {
            MemoryKind::Gone => !allocates,
            MemoryKind::Request => allocates || frees,
            _ => false,
        }
    }

    /// Of a leader's request: the node of its domain for which it asks.
    pub fn asks_for(&self) -> Option<NodeId> {
        let is_request = self.kind == MemoryKind::Request && !self.operation.allocates();
        let number = self.number.checked_sub(1).filter(|_| is_request)?;
        u16::try_from(number).ok().map(NodeId)
    }

    /// Bytes of its payload.
    pub fn payload_bytes(&self) -> u64 {
        match self.kind {
            MemoryKind::Data | MemoryKind::Diff => self.minipage.bytes.into(),
            _ if self.has_words() => self.minipage.bytes.into(),
            _ => 0,
        }
    }

    /// What makes no sense in a cluster of `nodes`.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        match self.asker.index() < nodes {
            true => Ok(()),
            false => Err("a request of a node that is not in the cluster"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_32_bytes() {
        let message = MemoryMessage {
            kind: MemoryKind::Data,
            operation: MemoryOperation::Write,
            asker: NodeId(258),
            number: 3,
            ticket: 4,
            address: 5,
            minipage: Minipage { at: 6, bytes: 7 },
        };
        let bytes = message.to_bytes();
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[..8], [4, 1, 2, 1, 3, 0, 0, 0]);
        assert_eq!(MemoryMessage::parse(&bytes), Ok(message));
    }
}
