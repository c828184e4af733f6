//! Objects that nobody but their writer has: written again, they stay writable at once, and nobody
//! is told. Whoever knows of them knows that this node wrote them last, and asks it.
//!
//! An object that was announced by this node and then asked for by nobody is one. Where such
//! objects are written one after the other, as the rows of a matrix are, each fault makes twice as
//! many writable as the one before. Where races are looked for the second write is announced as
//! well, for most programs that race do it then, and the object becomes exclusive after it.
//!
//! Where others read what is clean here without a message, an exclusive object costs whoever wants
//! it a round trip, and a wait until the worker calls. So an object becomes exclusive only when
//! many intervals in a row have written it, and nobody has read it. From the third of them on each
//! makes it writable and clean again, and tells nobody. When an exclusive one is asked for, those
//! of its chunk are exclusive no longer, nor will they be. Where nodes learn, others read exclusive
//! objects too, behind [gates](super::gates), and objects are exclusive after few intervals.
//!
//! The worker writes an exclusive object without a call, so whoever asks for one would wait for its
//! next call, which may be far. But most are not being written when they are asked for. So they are
//! *expected* to be written from the end of an interval on, as others are (see
//! [`expected`](super::expected)), and the worker notes its first write. Before a request is taken
//! the engine *withdraws* what was not written: it makes the object clean, which is not exclusive
//! any more, and the request is answered at once. The bytes are those of the end of the interval.

use dhole_model::{CHUNK, Coherence, NodeId, Oid, OidRange};

use super::Protocols;
use crate::RegionCommand;
use crate::coherence::object_table::ObjectState;
use crate::command::{Command, Commands};
use crate::effects::Effects;

/// How far the last fault of an object that is written alone went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Ahead {
    /// The object behind the last that became writable.
    next: Oid,
    /// How many did.
    made: u32,
}

impl ObjectState {
    /// Whether nobody but `me` has what `me` wrote last, which was announced, or was not for so
    /// long. Where that is so the object is not being written, or is exclusive.
    pub(super) fn may_be_exclusive(&self, me: NodeId, after: u8) -> bool {
        let may = !self.is_served() && self.is_alone(after);
        may && self.is_valid() && self.last_written_by(me)
    }
}

impl Protocols {
    /// As a write, of an object that has no bytes: it may stay writable until somebody asks for it.
    pub fn touch(&mut self, oid: Oid, out: &mut Commands) {
        let object = self.objects.get_mut(oid);
        let known = object.coherence.map(Coherence::properties);
        let stays = known.is_none_or(|known| known.has_versions());
        if !object.exclusive || !stays {
            object.exclusive = stays;
            let pre_image = false;
            out.push(Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image,
            }));
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
            self.lazy.is_written_alone(oid);
            let pre_image = false;
            out.push(Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image,
            }));
            return self.expect_after(oid, since, out);
        }
        let follows = oid == self.lazy.ahead.next;
        let most = if follows { 2 * self.lazy.ahead.made } else { 1 };
        // Those of one chunk, whose states lie side by side.
        let rest = CHUNK as u32 - oid.slot() as u32;
        let range = OidRange {
            first: oid,
            count: most.clamp(1, rest),
        };
        let (mut made, after) = (0, self.lazy.exclusive_after);
        self.objects.for_each(&[range], |at, object| {
            let follows = at.0 - oid.0 == u64::from(made);
            if follows && object.may_be_exclusive(me, after) && !object.exclusive {
                made += 1;
                object.exclusive = true;
                let (oid, pre_image) = (at, false);
                out.push(Command::Objects(RegionCommand::MakeWritable {
                    region: oid,
                    pre_image,
                }));
            }
        });
        let next = oid.plus(u64::from(made));
        self.lazy.ahead = Ahead { next, made };
    }

    /// From now on exclusive objects can be withdrawn while the worker computes.
    pub fn withdraw_exclusive(&mut self) {
        self.lazy.withdraws = true;
    }

    /// Takes the objects that have become exclusive, or writable as such, since the last time: from
    /// the end of the interval on each that [is exclusive](Protocols::is_exclusive) is expected to
    /// be written.
    pub fn take_written_alone(&mut self) -> Vec<Oid> {
        std::mem::take(&mut self.lazy.written_alone)
    }

    /// Whether the worker may write the object without a call, and nobody is told.
    pub fn is_exclusive(&self, oid: Oid) -> bool {
        self.objects.get(oid).exclusive
    }

    /// An exclusive object is clean, which the worker had not written.
    pub fn withdrawn(&mut self, oid: Oid) {
        let is_left = self.lazy.publishes && !self.lazy.gates.are_kept;
        let object = self.objects.get_mut(oid);
        object.exclusive = false;
        if is_left {
            object.stay_clean();
        }
    }

    /// Whether those of its chunk are to be withdrawn with an exclusive object.
    pub fn withdraws_beside(&self) -> bool {
        self.lazy.publishes && !self.lazy.gates.are_kept
    }

    /// An exclusive object was asked for, by one of those who read what is clean here without a
    /// message. The worker is in a call.
    pub(super) fn end_exclusive_beside(&mut self, oid: Oid, fx: &mut impl Effects) {
        if self.lazy.gates.are_kept && !self.ends_gate(oid) {
            return;
        }
        let me = self.me;
        let chunk = OidRange {
            first: Oid(oid.0 - oid.slot() as u64),
            count: CHUNK as u32,
        };
        self.objects.for_each(&[chunk], |at, object| {
            if object.is_announced() && object.is_valid() && object.last_written_by(me) {
                object.stay_clean();
                if std::mem::take(&mut object.exclusive) {
                    fx.make_clean(at);
                }
            }
        });
    }
}
