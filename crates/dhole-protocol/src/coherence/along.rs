//! Objects that travel with one that is asked for: those that it owns, and those to which the
//! references lead that the asker says are followed.
//!
//! Which objects an object names is written in its bytes, which the protocol does not see. So the
//! engine names them, once a reply is decided, and the protocol says which may go along; at the
//! asker it says which may stay. A pointee that stays behind, or is sent and not taken, is fetched
//! by itself when it is accessed. Under the home protocol all do: no notice would tell that a copy
//! which does not come from its home is old.

use dhole_model::{Coherence, NodeId, Oid};

use super::Protocols;
use crate::coherence::rules::rules;
use crate::command::{Along, Command, Commands, WorkerIs};
use crate::{Follow, RegionCommand, Sent};

impl Protocols {
    /// Whether a valid copy is here that nobody is writing. If so it counts as sent.
    pub fn send_along(&mut self, oid: Oid, to: NodeId, worker: WorkerIs) -> Option<Along> {
        let object = self.objects.get(oid);
        let version = object.held()?;
        let is_written = object.dirty || object.exclusive && worker == WorkerIs::Computing;
        if !object.is_valid() || is_written || !object.may_go_along() {
            return None;
        }
        rules(object.coherence).read_by(to, oid, &mut self.remembered);
        let object = self.objects.get_mut(oid);
        object.serve();
        let make_clean = std::mem::take(&mut object.exclusive);
        if make_clean && self.lazy.gates.are_kept {
            // Those beside it leave the gate when they are asked for.
            self.ends_gate(oid);
        } else if make_clean && self.lazy.publishes {
            object.stay_clean();
        }
        Some(Along {
            version,
            make_clean,
        })
    }

    /// This should come along with the object that the worker is about to miss.
    pub fn follow(&mut self, follow: Follow) {
        self.fetching.follow = follow;
    }

    /// How an object is kept consistent, which this node may meet for the first time.
    pub fn meet(&mut self, oid: Oid, allocated: Coherence) {
        let object = self.objects.get_mut(oid);
        object.coherence.get_or_insert(allocated);
    }

    /// Takes what came along: the copies that are missing here and are no older than what this
    /// node knows of.
    pub(super) fn take_along(&mut self, along: &[Sent], out: &mut Commands) {
        for &sent in along {
            if self.is_full() {
                out.push(Command::Objects(RegionCommand::Skip(sent)));
                continue;
            }
            let object = self.objects.get_mut(sent.region);
            let is_wanted = object.lacks(sent.version) && !object.freed;
            if is_wanted && object.may_go_along() {
                object.hold(sent.version);
                self.intervals.sees(sent.version.lamport);
                self.remembered.inbox.forget(sent.region, out);
                out.push(Command::InstallAlong(sent));
            } else {
                out.push(Command::Objects(RegionCommand::Skip(sent)));
            }
        }
    }
}
