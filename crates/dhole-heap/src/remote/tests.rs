//! Two processes, played by this one, that reach each other's windows.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{Detector, OidRange};
use dhole_space::Put;

use super::*;
use crate::Monitor;

const OWNER: NodeId = NodeId(0);
const READER: NodeId = NodeId(1);
const WORDS: usize = 1 << 16;

/// The windows of both, as one of them reaches them.
struct Reached {
    windows: Arc<[Vec<AtomicU64>; 2]>,
    me: usize,
}

impl RemoteMemory for Reached {
    fn own(&self) -> &[AtomicU64] {
        &self.windows[self.me]
    }

    fn fence(&self) {}

    fn transfer(
        &self,
        node: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached> {
        let there = &self.windows[node];
        if let Some(Put { at, value }) = put {
            there[at].store(value, Ordering::Relaxed);
        }
        let words = gets.iter().flat_map(|range| &there[range.clone()]);
        into.clear();
        into.extend(words.map(|word| word.load(Ordering::Relaxed)));
        Ok(())
    }
}

/// Both nodes, the parts of their cluster, and their windows.
struct Pair {
    windows: Arc<[Vec<AtomicU64>; 2]>,
    parts: [Arc<Cluster>; 2],
    nodes: [Monitor<()>; 2],
}

fn pair(detector: Detector) -> Pair {
    static STAMP: AtomicU64 = AtomicU64::new(1 << 33);
    let part = |node| Cluster::part(2, node, detector).expect("room for a node");
    let parts = [OWNER, READER].map(part);
    let stamp = STAMP.fetch_add(1, Ordering::Relaxed);
    // Other tests of this process take ids meanwhile.
    let ids = loop {
        let ids = Cluster::window_of(parts[0].ids_left());
        if parts[0].settle(ids.clone(), stamp).is_ok() {
            break ids;
        }
    };
    parts[1].settle(ids, stamp).expect("the same ids");
    let window = || (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let windows = Arc::new([(); 2].map(|()| window()));
    for (me, part) in parts.iter().enumerate() {
        let windows = Arc::clone(&windows);
        assert!(part.publish_through(Arc::new(Reached { windows, me })));
    }
    let nodes = [OWNER, READER].map(|node| Monitor::new(&parts[node.index()], node, ()));
    Pair {
        windows,
        parts,
        nodes,
    }
}

fn version(lamport: u64) -> Version {
    let node = OWNER;
    Version { lamport, node }
}

impl Pair {
    fn with<R>(&self, node: NodeId, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
        f(&mut self.nodes[node.index()].lock().split().0)
    }

    /// An object of the owner's, published, of which the reader knows.
    fn published(&self) -> Oid {
        let oid = self.with(OWNER, |heap| {
            let oid = heap.alloc((7_u64, true)).unwrap().oid();
            heap.publish(oid, version(1));
            oid
        });
        let [owner, reader] = &self.parts;
        let mut announced = Vec::new();
        let announcement = owner.announce(READER, &mut announced);
        owner.announced(READER, announcement);
        reader.learn(OWNER, &announced).expect("sound");
        self.with(READER, |heap| heap.make_room(oid)).unwrap();
        oid
    }

    /// What comes of a read, and whether its bytes became a value.
    fn read(&self, oid: Oid) -> (Option<Version>, bool) {
        let object = self.with(READER, |heap| heap.remote(OWNER, oid));
        let mut object = object.expect("the owner is reached");
        let read = object.read(|_| true).expect("the owner is reached");
        let version = match read {
            RemoteRead::Whole(version) => Some(version),
            RemoteRead::Changed | RemoteRead::Absent => None,
        };
        let installed = self.with(READER, |heap| {
            let object = heap.take_remote(object, version);
            object.is_some_and(|object| heap.install_there(&object).is_ok())
        });
        (version, installed)
    }

    fn bytes(&self, node: NodeId, oid: Oid) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.with(node, |heap| heap.gather(oid, &mut bytes))
            .unwrap();
        bytes
    }

    fn readers(&self, oid: Oid) -> Vec<NodeId> {
        let readers = self.with(OWNER, |heap| heap.unpublish(oid));
        readers.of(2).collect()
    }
}

#[test]
fn an_object_is_read_through_a_port_and_its_reader_is_known() {
    for detector in [Detector::Check, Detector::Vm] {
        let pair = pair(detector);
        let oid = pair.published();
        assert_eq!(pair.read(oid), (Some(version(1)), true));
        assert_eq!(pair.bytes(READER, oid), pair.bytes(OWNER, oid));
        assert_eq!(pair.readers(oid), [READER]);
        assert_eq!(pair.read(oid), (None, false), "it may be written");
    }
}

/// Whatever changes an object's bytes makes it unpublished.
#[test]
fn no_byte_of_an_object_that_is_published_in_a_window_changes() {
    type Change = (&'static str, fn(&mut HeapMut<'_>, Oid));
    let changes: [Change; 4] = [
        ("write", |heap, oid| heap.make_writable(oid, true).unwrap()),
        ("expected write", |heap, oid| {
            heap.expect_write(oid, true).unwrap()
        }),
        ("invalidation", |heap, oid| heap.invalidate(oid).unwrap()),
        ("free", |heap, oid| heap.free(OidRange::one(oid)).unwrap()),
    ];
    for (what, change) in changes {
        let pair = pair(Detector::Check);
        let oid = pair.published();
        pair.with(OWNER, |heap| change(heap, oid));
        assert_eq!(pair.read(oid).0, None, "{what}");
    }
}

/// A neighbour writes what it likes where it can write: what it makes of an object is no value, or
/// another value of the same type, or nothing that can be read.
#[test]
fn bytes_that_a_neighbour_has_written_are_a_value_or_are_not_taken() {
    let pair = pair(Detector::Check);
    let oid = pair.published();
    let window = &pair.windows[OWNER.index()];
    // Bytes lie behind all records. The second part of the object is a truth value, 1.
    let is_seven = |at: &usize| window[*at].load(Ordering::Relaxed) == 7;
    let at = (0..WORDS).rev().find(is_seven).expect("its bytes");
    window[at + 1].store(2, Ordering::Relaxed);
    assert_eq!(pair.read(oid), (Some(version(1)), false));
    window[at + 1].store(0, Ordering::Relaxed);
    // Which of the records is the object's depends on its id.
    for word in window.iter().take(at) {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    assert_eq!(pair.read(oid), (None, false));
    // The owner relies on nothing of that.
    pair.readers(oid);
    pair.with(OWNER, |heap| heap.publish(oid, version(2)));
    assert_eq!(pair.read(oid), (Some(version(2)), true));
    assert_eq!(pair.bytes(READER, oid), pair.bytes(OWNER, oid));
}

#[test]
fn what_a_run_has_published_is_gone_with_its_heap() {
    let pair = pair(Detector::Check);
    let oid = pair.published();
    let [owner, reader] = pair.nodes;
    drop(owner);
    let mut object = reader.lock().split().0.remote(OWNER, oid).expect("reached");
    let read = object.read(|_| true).expect("reached");
    assert!(matches!(read, RemoteRead::Absent), "{read:?}");
}
