//! One-sided reads: a node copies a clean object out of the memory of its last writer, without a
//! message.
//!
//! The protocol says which objects a node may publish, which a reader may take, and what follows.
//! The heap keeps reader and owner apart, by one word an object. What matters here:
//!
//! - An object is published only while nobody writes it, with the version of its bytes.
//! - A reader asks the last writer it knows of, and takes no version older than the one it needs.
//! - An owner that keeps an object for itself ([exclusive](super::exclusive)) must know of every
//!   reader. So the engine makes an object unpublished before its write fault is taken, and before
//!   it becomes writable beside another one, and passes on who has read. If somebody has, an object
//!   that was to become exclusive stays clean.

use dhole_model::{Elements, NodeId, Oid, Version};

use super::Protocols;
use crate::coherence::rules::rules;
use crate::command::{Commands, Unread};
use crate::{Sent, Wanted};

impl Protocols {
    /// What a miss needs, if the object may be read in the memory of its last writer.
    pub fn wants_there(&mut self, missed: &Unread) -> Option<Wanted> {
        let &Unread {
            oid,
            creator,
            zero_ok,
            coherence,
        } = missed;
        self.check_not_freed(oid).ok()?;
        let object = self.objects.get_mut(oid);
        let coherence = *object.coherence.get_or_insert(coherence);
        if !coherence.properties().has_versions() {
            return None;
        }
        let need = object.known(creator);
        let has_home = object.had_home || coherence.properties().has_home;
        let is_zero = need.lamport == 0 && zero_ok && !has_home;
        let is_there = need.node != self.me && !object.is_valid() && !is_zero;
        (is_there && !self.remembered.inbox.has(oid)).then_some(Wanted { region: oid, need })
    }

    /// A copy of this version was read in the memory of its last writer, and is here now.
    pub fn read_there(&mut self, sent: Sent, out: &mut Commands) {
        // What this node writes next must be newer than what it sees, told of it or not.
        self.intervals.sees(sent.version.lamport);
        let object = self.objects.get_mut(sent.region);
        object.hold(sent.version);
        let rules = rules(object.coherence);
        rules.brought(sent.region, false, &mut self.remembered, out);
    }

    /// Elements in the version needed, or a newer one, were read in the memory of their last
    /// writer. No byte of their blocks was newer than `newest`.
    pub fn read_elements_there(
        &mut self,
        wanted: Wanted<Elements>,
        newest: Version,
        out: &mut Commands,
    ) {
        self.intervals.sees(newest.lamport);
        self.arrays.read_there(wanted);
        let coherence = self.arrays.table.coherence(wanted.region.array);
        let remembered = &mut self.arrays.remembered;
        rules(coherence).brought(wanted.region, false, remembered, out);
    }

    /// The version in which others may read an object here without a message; `None` where it may
    /// be written, or somebody else wrote it last.
    pub fn published(&self, oid: Oid) -> Option<Version> {
        let object = self.objects.get(oid);
        let is_clean = !object.dirty && !object.exclusive && !object.freed;
        object
            .held()
            .filter(|_| is_clean && object.is_held_by(self.me))
    }

    /// These nodes may have read the version of an object that this node wrote last. Whether the
    /// object had become exclusive: it is not, and must stay clean until it is written.
    pub fn was_read(&mut self, oid: Oid, readers: impl Iterator<Item = NodeId>) -> bool {
        let object = self.objects.get_mut(oid);
        object.serve();
        let rules = rules(object.coherence);
        readers.for_each(|reader| rules.read_by(reader, oid, &mut self.remembered));
        std::mem::take(&mut object.exclusive)
    }
}
