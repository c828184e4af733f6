//! One-sided reads, by which a node takes what another one published, without a message.

use dhole_model::{NodeId, Oid, Version};

use super::Protocol;
use crate::command::{Commands, Unread};
use crate::message::check;
use crate::{Sent, Wanted};

impl Protocol {
    /// The version that a miss needs, if the object may be read in the memory of its last writer,
    /// who is `need.node`. Nothing is asked for.
    pub fn wants_there(&mut self, missed: &Unread) -> Option<Wanted> {
        match self.over {
            true => None,
            false => self.coherence.wants_there(missed),
        }
    }

    /// Whether what the last writer published is what is [wanted](Protocol::wants_there): a version
    /// that a sound node may have written, and no older one.
    pub fn is_wanted(&self, wanted: Wanted, version: Version) -> bool {
        let is_sound = check::may_be(version, self.coherence.intervals.time().nodes());
        is_sound && version.node == wanted.need.node && version >= wanted.need
    }

    /// A copy that [was wanted](Protocol::is_wanted) was read in the memory of its last writer, and
    /// is here now.
    pub fn read_there(&mut self, sent: Sent, out: &mut Commands) {
        self.coherence.read_there(sent, out);
    }

    /// The version in which others may read an object in this node's memory; `None` where it may be
    /// written, or somebody else wrote it last. Asked whenever an object becomes clean.
    pub fn published(&self, oid: Oid) -> Option<Version> {
        self.coherence.published(oid)
    }

    /// These other nodes may have read what this node wrote last of an object. Passed on when the
    /// object is not published any more: before its
    /// [`Event::WriteFault`](crate::Event::WriteFault), and before it becomes writable beside
    /// another one. Whether it stays clean instead, because it was to become writable without a
    /// notice.
    pub fn was_read(&mut self, oid: Oid, readers: impl Iterator<Item = NodeId>) -> bool {
        self.coherence.was_read(oid, readers)
    }
}
