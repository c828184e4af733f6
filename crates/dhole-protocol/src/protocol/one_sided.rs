//! One-sided reads, by which a node takes what another one published, without a message.

use dhole_model::{Elements, NodeId, Oid, Version};
use smallvec::SmallVec;

use super::Protocol;
use crate::array_event::UnreadElements;
use crate::coherence::HeldElements;
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
    pub fn is_wanted<R>(&self, wanted: Wanted<R>, version: Version) -> bool {
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

    /// Which elements a miss wants that may be read in the memory of their last writers, who are
    /// the `need.node`s: those that are missed, and with them others of their blocks, which
    /// `whole_blocks` names, and of blocks around. Nothing is asked for.
    pub fn wants_elements_there(
        &mut self,
        missed: &UnreadElements,
        whole_blocks: Elements,
    ) -> SmallVec<[Wanted<Elements>; 1]> {
        match self.over {
            true => SmallVec::new(),
            false => self.coherence.arrays.wants_there(missed, whole_blocks),
        }
    }

    /// Whether elements are missed as they [were](Protocol::wants_elements_there).
    pub fn still_wants_elements(&self, wanted: Wanted<Elements>, creator: NodeId) -> bool {
        !self.over && self.coherence.arrays.still_wants(wanted, creator)
    }

    /// Elements that are [still wanted](Protocol::still_wants_elements) were read in the memory of
    /// their last writer, and are here now. No byte of their blocks was newer than `newest`.
    pub fn read_elements_there(
        &mut self,
        wanted: Wanted<Elements>,
        newest: Version,
        out: &mut Commands,
    ) {
        self.coherence.read_elements_there(wanted, newest, out);
    }

    /// What this node holds of elements; nothing where others do not read them in its memory.
    pub fn held_elements(&self, elements: Elements) -> SmallVec<[HeldElements; 4]> {
        self.coherence.arrays.held(elements)
    }

    /// Other nodes may have read elements of a block that this node wrote last. Passed on when the
    /// block is not published any more, before the end of the interval that writes in it.
    pub fn elements_were_read(&mut self, block: Elements) {
        self.coherence.arrays.were_read(block);
    }

    /// Others read a block here, of which some elements are exclusive: none is from here on. The
    /// worker must be in a call.
    pub fn keep_elements_clean(&mut self, block: Elements, out: &mut Commands) {
        self.coherence.arrays.stay_clean(block, out);
    }
}
