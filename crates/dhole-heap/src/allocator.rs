//! Which node allocates an id.

use dhole_model::unpoisoned::read;
use dhole_model::{NodeId, Oid};

use crate::cluster::{Owner, owner};
use crate::{Cluster, Foreign, ForeignKind};

impl Cluster {
    /// The node for which `oid` was set aside, which alone allocates it. It is the same on all
    /// nodes, and stays the same when the object is freed.
    ///
    /// # Errors
    /// [`Foreign`] when no node of this cluster may allocate it.
    pub fn allocator(&self, oid: Oid) -> Result<NodeId, Foreign> {
        match read(&self.parts).of(oid) {
            Some((node, _)) => Ok(node),
            None => Err(self.foreign(oid)),
        }
    }

    /// Why an id is not of this cluster.
    pub(crate) fn foreign(&self, oid: Oid) -> Foreign {
        let kind = match owner(oid) {
            Some(Owner {
                cluster: Some(other),
                ..
            }) => ForeignKind::OtherCluster {
                ordinal: other.ordinal,
            },
            Some(Owner { cluster: None, .. }) => ForeignKind::Ended,
            None => ForeignKind::Never,
        };
        Foreign { oid, kind }
    }
}
