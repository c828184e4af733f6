//! Sections: critical sections that run at the home of the lock's object (Jackal, section 6). The
//! engine runs them as operations of the lock, under the node lock. Here is what the lock and the
//! home have to say about it.

use dhole_model::{CallSite, NodeId, Oid, VectorTime};

use super::Protocol;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{RwLockId, SyncObject};

/// Whether a section may run here now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayRun {
    /// No node holds the lock.
    Now,
    /// A node holds the lock.
    Later,
    /// The section's caller has to run it: it has yet to see what was written under the lock, or
    /// all races are looked for.
    Elsewhere,
}

impl Protocol {
    /// Whether a section of a node that has seen `time` may run under a lock that this node
    /// manages.
    pub fn may_run_section(&mut self, lock: RwLockId, time: Option<&VectorTime>) -> MayRun {
        let finds_all_races = !self.coherence.races.allows_exclusive();
        if finds_all_races || !self.sync_objects.has_seen_releases(lock, time) {
            return MayRun::Elsewhere;
        }
        match self.sync_objects.is_free(lock) {
            true => MayRun::Now,
            false => MayRun::Later,
        }
    }

    /// Whether sections may read and write an object here: it is at home here, and not freed.
    pub fn is_for_sections(&self, oid: Oid) -> bool {
        self.coherence.is_for_sections(oid)
    }

    /// A section is to change these objects, which are at home here. The nodes that keep copies of
    /// them are told first, as `out` says. Whether none has yet to say that it knows: then they may
    /// change. Otherwise the section [is tried again](Command::TrySections) when all know.
    pub fn before_section(&mut self, objects: &[Oid], out: &mut Commands) -> bool {
        let before = out.len();
        let may = self.coherence.before_section(objects, out);
        self.count_sent(&out[before..]);
        may
    }

    /// A section of a node that had seen `time` ran under a lock that this node manages.
    pub fn section_ran(
        &mut self,
        lock: RwLockId,
        by: (NodeId, Option<&VectorTime>),
        wrote: bool,
        out: &mut Commands,
    ) {
        self.sync_objects.section_ran(lock, by, wrote);
        let before = out.len();
        self.pass_by(SyncObject::Write(lock), out);
        self.count_sent(&out[before..]);
    }

    /// Whether sections wait here for a lock. The lock's next release tries them.
    pub fn section_waits(&mut self, lock: RwLockId, waits: bool) {
        self.sections.wait(lock, waits);
    }

    /// The worker may use what a section would touch: the sections that wait are tried again at its
    /// next call that owns its token.
    pub fn defer_section(&mut self) {
        self.sections.defer();
    }

    /// The worker is in a call: the sections that waited for that are tried.
    pub(super) fn serve_sections(&mut self, worker: WorkerIs, out: &mut Commands) {
        if worker == WorkerIs::InCall && self.sections.undefer() {
            self.try_sections(out);
        }
    }

    /// All sections that wait are tried.
    pub(super) fn try_sections(&mut self, out: &mut Commands) {
        out.extend(self.sections.waiting().map(Command::TrySections));
    }

    /// Nodes may pass, for a release or an acknowledgement has come; sections that wait for the
    /// lock are tried before.
    pub(super) fn pass_after_sections(&mut self, sync_object: SyncObject, out: &mut Commands) {
        let lock = sync_object.rw_lock();
        let is_free = |lock: &RwLockId| self.sync_objects.is_free(*lock);
        match lock.filter(|lock| self.sections.is_waited_for(*lock) && is_free(lock)) {
            Some(lock) => out.push(Command::TrySections(lock)),
            None => self.pass_by(sync_object, out),
        }
    }

    /// Whether the worker may run a section under a lock.
    ///
    /// # Errors
    /// [`ProtocolError::AlreadyEntered`] when this node holds the lock.
    pub fn check_section(&self, lock: RwLockId, site: CallSite) -> Result<(), ProtocolError> {
        self.sync_objects.check_enter(SyncObject::Write(lock), site)
    }
}
