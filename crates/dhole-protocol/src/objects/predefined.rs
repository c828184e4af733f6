//! Objects that every node has from the start, and that no node makes. A node makes its replica
//! where it first needs one. So nothing is kept or sent in a run that uses none.

use dhole_model::ObjectId;

use super::bytes::Bytes;
use super::entry::{Entry, Place};
use super::host::Host;
use super::{Objects, ObjectsEvent};

/// An object that every node has from the start.
#[derive(Clone, Debug)]
pub struct Predefined {
    /// The object. No call of [`new_object`](Objects::new_object) gives it out.
    pub object: ObjectId,
    /// What tells its type from others.
    pub kind: u64,
    /// The state with which it begins.
    pub state: Bytes,
}

impl Objects {
    /// Every node has this object. All nodes say so before their first step.
    pub fn predefine(&mut self, object: Predefined) {
        self.predefined.push(object);
    }

    pub(super) fn is_predefined(&self, object: ObjectId) -> bool {
        self.predefined.iter().any(|it| it.object == object)
    }

    /// The call of an event that would move or free a predefined object: that is refused.
    pub(super) fn is_about_predefined(&self, event: &ObjectsEvent) -> Option<u64> {
        let (call, object) = match event {
            ObjectsEvent::Change { call, object, .. } | ObjectsEvent::Free { call, object } => {
                (call, object)
            }
            _ => return None,
        };
        self.is_predefined(*object).then_some(*call)
    }

    /// Makes the replica of a predefined object here, unless there is one. Whether it did.
    #[cold]
    pub(super) fn begin_predefined(&mut self, object: ObjectId, host: &mut dyn Host) -> bool {
        let found = self.predefined.iter().find(|it| it.object == object);
        let Some(Predefined { kind, state, .. }) = found else {
            return false;
        };
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        if entry.place != Place::Unknown {
            return false;
        }
        entry.place = match self.nodes {
            1 => Place::Here,
            _ => Place::Replicated,
        };
        if let Err(refusal) = host.create(object, *kind, state) {
            host.spoil(object, refusal);
        }
        true
    }
}
