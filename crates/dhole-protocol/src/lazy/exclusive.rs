//! Objects that nobody but their writer has: written again, they stay writable at once, and nobody
//! is told. Whoever knows of them knows that this node wrote them last, and asks it.
//!
//! An object that was announced by this node and then asked for by nobody is one. Where such
//! objects are written one after the other, as the rows of a matrix are, each fault makes twice as
//! many writable as the one before. Where races are looked for the second write is announced as
//! well, for most programs that race do it then, and the object becomes exclusive after it.

use dhole_model::{CHUNK, Coherence, NodeId, Oid, OidRange};

use super::Lazy;
use crate::command::{Command, Commands};
use crate::object_table::ObjectState;

/// How far the last fault of an object that is written alone went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Ahead {
    /// The object behind the last that became writable.
    next: Oid,
    /// How many did.
    made: u32,
}

impl ObjectState {
    /// Whether nobody but `me` has what `me` wrote last, which was announced. Where that is so the
    /// object is not being written, or is exclusive.
    pub(super) fn is_only_at(&self, me: NodeId) -> bool {
        self.is_valid() && self.last_written_by(me) && !self.served
    }
}

impl Lazy {
    /// As a write, of an object that has no bytes: it may stay writable until somebody asks for it.
    pub fn touch(&mut self, oid: Oid, out: &mut Commands) {
        let object = self.objects.get_mut(oid);
        let of_member = object.coherence.and_then(Coherence::member).is_some();
        if !object.exclusive || of_member {
            object.exclusive = !of_member;
            let pre_image = false;
            out.push(Command::MakeWritable { oid, pre_image });
        }
    }

    /// The worker writes an object that nobody else has, and nobody has to be told. It stays
    /// writable, and so do those behind it of which the same is true, if it follows on what was
    /// written before.
    pub(super) fn write_exclusive(&mut self, oid: Oid, out: &mut Commands) {
        let me = self.me;
        if self.expects_writes() {
            let object = self.objects.get_mut(oid);
            let since = object.newest();
            object.exclusive = true;
            let pre_image = false;
            out.push(Command::MakeWritable { oid, pre_image });
            return self.expect_after(oid, since, out);
        }
        let follows = oid == self.ahead.next;
        let most = if follows { 2 * self.ahead.made } else { 1 };
        // Those of one chunk, whose states lie side by side.
        let rest = CHUNK as u32 - oid.slot() as u32;
        let range = OidRange {
            first: oid,
            count: most.clamp(1, rest),
        };
        let mut made = 0;
        self.objects.for_each(&[range], |at, object| {
            let follows = at.0 - oid.0 == u64::from(made);
            if follows && object.is_only_at(me) && !object.exclusive {
                made += 1;
                object.exclusive = true;
                let (oid, pre_image) = (at, false);
                out.push(Command::MakeWritable { oid, pre_image });
            }
        });
        let next = oid.plus(u64::from(made));
        self.ahead = Ahead { next, made };
    }
}
