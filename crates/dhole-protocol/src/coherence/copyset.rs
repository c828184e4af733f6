//! Who reads what this node writes: the copysets of the update protocol.
//!
//! A node joins the copyset of an object when it fetches it here, and stays in it from push to
//! push until it says that it does not read any more, or another node writes the object.

use std::collections::BTreeMap;

use dhole_model::{NodeId, Oid};
use smallvec::SmallVec;

/// The readers of each object that is written here under the update protocol, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct CopySets {
    readers: BTreeMap<Oid, SmallVec<[NodeId; 4]>>,
}

impl CopySets {
    /// The nodes that a new version of the object is sent to.
    pub fn of(&self, oid: Oid) -> &[NodeId] {
        self.readers.get(&oid).map_or(&[], |readers| readers)
    }

    /// A node has fetched the object.
    pub fn join(&mut self, oid: Oid, reader: NodeId) {
        let readers = self.readers.entry(oid).or_default();
        if let Err(place) = readers.binary_search(&reader) {
            readers.insert(place, reader);
        }
    }

    /// A node does not read the object any more.
    pub fn leave(&mut self, oid: Oid, reader: NodeId) {
        if let Some(readers) = self.readers.get_mut(&oid) {
            readers.retain(|other| *other != reader);
            if readers.is_empty() {
                self.readers.remove(&oid);
            }
        }
    }

    /// Another node has written the object: its readers fetch it there.
    pub fn forget(&mut self, oid: Oid) {
        if !self.readers.is_empty() {
            self.readers.remove(&oid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_join_once_and_leave() {
        let (mut sets, oid) = (CopySets::default(), Oid(64));
        for reader in [2, 1, 2] {
            sets.join(oid, NodeId(reader));
        }
        assert_eq!(sets.of(oid), [NodeId(1), NodeId(2)]);
        sets.leave(oid, NodeId(1));
        sets.leave(oid, NodeId(1));
        assert_eq!(sets.of(oid), [NodeId(2)]);
        sets.leave(oid, NodeId(2));
        assert_eq!(sets, CopySets::default(), "an empty set takes no place");
    }
}
