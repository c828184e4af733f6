//! The lazy single-writer invalidate protocol (DOSA, sections 2 and 3.1).
//!
//! Nothing that a node writes is announced until another node acquires what it released. Then
//! the acquirer gets the *write notices* of all intervals that it has not seen, and its copies of
//! the objects named there become invalid. The first access to such an object fetches it from
//! its *last writer*, two messages. Versions are ordered by (Lamport time, node), which extends
//! happens-before: a notice invalidates only an older version, so of two racing writers exactly
//! one keeps its copy.
//!
//! Objects under the update protocol are written so too.

use dhole_model::{CallSite, Oid, OidRange};

use super::Protocols;
use crate::RegionCommand;
use crate::coherence::exclusive::Ahead;
use crate::coherence::expected::ExpectedWrites;
use crate::coherence::gates::Gates;
use crate::coherence::races::SiteId;
use crate::command::{Command, Commands};

/// What a node writes without a home.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Lazy {
    /// Objects written in the current interval, in the order of their first write, and where that
    /// was. Objects that were freed in it are among them, under whatever protocol.
    pub dirty: Vec<(Oid, SiteId)>,
    pub(super) ahead: Ahead,
    pub(super) expected: ExpectedWrites,
    /// What was written is found by comparing with twins.
    pub compares: bool,
    /// Others may read the clean objects here without a message.
    pub publishes: bool,
    /// Intervals in a row that write an object here while nobody reads it, before it is exclusive.
    pub exclusive_after: u8,
    /// Where others do, exclusive objects are behind gates.
    pub(super) gates: Gates,
    /// Exclusive objects can be withdrawn while the worker computes.
    pub withdraws: bool,
    /// The objects that were allocated young in this interval.
    pub young: Vec<OidRange>,
    /// The objects that have become exclusive, or writable as such, since somebody took these.
    pub written_alone: Vec<Oid>,
}

impl Lazy {
    /// The object is exclusive, and writable.
    pub(super) fn is_written_alone(&mut self, oid: Oid) {
        if self.withdraws {
            self.written_alone.push(oid);
        }
    }
}

impl Protocols {
    /// The worker writes an object, which write notices will name.
    pub(super) fn write_announced(&mut self, oid: Oid, site: CallSite, out: &mut Commands) {
        let object = self.objects.get_mut(oid);
        debug_assert!(object.is_valid(), "{oid}: only a valid copy is written");
        if self.lazy.compares && object.aggregates() {
            return self.make_page_writable(oid, site, out);
        }
        self.fetching.beside.clear();
        if object.dirty || object.exclusive {
            return;
        }
        let tells = self.races.is_looking() || self.lazy.compares || self.lazy.gates.are_kept;
        if !tells && object.may_be_exclusive(self.me, self.lazy.exclusive_after) {
            return self.write_exclusive(oid, out);
        }
        // At the time of its last version, if that is this node's.
        let written_before = object.is_held_by(self.me).then(|| object.newest());
        object.dirty = true;
        object.pre_image = object.is_served();
        self.lazy.dirty.push((oid, self.races.site(site)));
        out.push(Command::Objects(RegionCommand::MakeWritable {
            region: oid,
            pre_image: object.pre_image,
        }));
        if let Some(since) = written_before {
            self.expect_after(oid, since, out);
        }
    }
}
