//! One-sided reads through a port: an object is copied out of the *window* of a node whose memory
//! is not mapped here, as through a network adapter. That node does not take part.
//!
//! A read takes its time, so it needs no lock: the heap says what is to be read
//! ([`RemoteObject`]), and takes what came of it.

use std::sync::Arc;

use dhole_model::{NodeId, Oid, Version};
use dhole_space::{ReadRoom, RemoteMemory, Unreached, WindowRead, Windows};

use crate::neighbour::{PublishedObject, version_of};
use crate::{Cluster, HeapMut};

impl Cluster {
    /// From here on the node of this process publishes its objects in its window, and reads those
    /// of all others in theirs; whether it does. Called once the cluster has
    /// [settled](Cluster::settle), and before the node has a heap.
    pub fn publish_through(&self, memory: Arc<dyn RemoteMemory>) -> bool {
        let Some(multiprocess) = &self.multiprocess else {
            return false;
        };
        if self.is_paged() || self.neighbours.get().is_some() {
            return false;
        }
        let windows = Windows::new(memory, self.nodes(), multiprocess.me.index());
        let set = self.with_free_store(|_| self.windows.set(Arc::new(windows)).is_ok());
        set.unwrap_or(false)
    }
}

/// An object that is to be read in the window of another node.
pub struct RemoteObject {
    windows: Arc<Windows>,
    of: NodeId,
    oid: Oid,
    bytes: usize,
    room: ReadRoom,
}

/// What came of a read.
#[derive(Clone, Copy, Debug)]
pub enum RemoteRead {
    /// The bytes are whole, and of this version.
    Whole(Version),
    /// The object changed meanwhile.
    Changed,
    /// The node publishes nothing that is wanted.
    Absent,
}

impl RemoteObject {
    /// Reads it, in a version that is `wanted`, and marks it as read by this node.
    ///
    /// # Errors
    /// [`Unreached`].
    pub fn read(&mut self, wanted: impl Fn(Version) -> bool) -> Result<RemoteRead, Unreached> {
        let wanted = |version| wanted(version_of(version));
        let (of, id, room) = (self.of.index(), self.oid.0, &mut self.room);
        let read = self.windows.read(of, id, self.bytes, wanted, room)?;
        Ok(match read {
            WindowRead::Whole(version) => RemoteRead::Whole(version_of(version)),
            WindowRead::Changed => RemoteRead::Changed,
            WindowRead::Absent => RemoteRead::Absent,
        })
    }
}

impl HeapMut<'_> {
    /// Whether the objects of other nodes are read in their windows, not where they lie.
    pub fn reads_windows(&self) -> bool {
        self.heap.cluster.windows.get().is_some()
    }

    /// An object of another node, if that node's window is reached and this node knows how long
    /// the object is.
    pub fn remote(&mut self, of: NodeId, oid: Oid) -> Option<RemoteObject> {
        let heap = &mut *self.heap;
        let windows = heap.cluster.windows.get().filter(|_| of != heap.node)?;
        if !windows.reaches(of.index()) {
            return None;
        }
        let at = heap.place(oid)?;
        Some(RemoteObject {
            windows: Arc::clone(windows),
            of,
            oid,
            bytes: heap.chunks[at.chunk].binding.packed_bytes() as usize,
            room: std::mem::take(&mut heap.room),
        })
    }

    /// Takes the bytes that were read of an object, to be
    /// [installed](HeapMut::install_there), where they are whole and of this version.
    pub fn take_remote(
        &mut self,
        mut object: RemoteObject,
        version: Option<Version>,
    ) -> Option<PublishedObject> {
        let heap = &mut *self.heap;
        let (of, oid) = (object.of, object.oid);
        std::mem::swap(&mut heap.there, &mut object.room.bytes);
        heap.room = object.room;
        Some(PublishedObject::of_window(of, oid, version?))
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
