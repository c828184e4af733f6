//! How many objects around one are here, and which ids around it a node knows of.

use std::sync::Arc;

use dhole_heap::{Cluster, HeapMut, Monitor};
use dhole_model::{CHUNK, NodeId, Oid};

fn with<R>(node: &Monitor<()>, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
    f(&mut node.lock().split().0)
}

fn nodes(cluster: &Arc<Cluster>) -> [Monitor<()>; 2] {
    [0, 1].map(|node| Monitor::new(cluster, NodeId(node), ()))
}

#[test]
fn valid_copies_are_counted_across_chunks() {
    let cluster = Cluster::new(2).unwrap();
    let [owner, reader] = nodes(&cluster);
    let numbers = with(&owner, |heap| heap.alloc_range(200, |i| i).unwrap());
    let first = numbers.at(0).oid().0;
    for i in [0, 3, 63, 64, 130] {
        let oid = numbers.at(i).oid();
        with(&reader, |heap| heap.install(oid, &[7; 8])).unwrap();
    }
    let count = |heap: &mut HeapMut<'_>, ids: std::ops::Range<u64>| {
        heap.present_in(first + ids.start..first + ids.end)
    };
    with(&reader, |heap| {
        let counts = [0..64, 0..128, 0..256, 1..3, 3..4, 63..65, 65..130, 128..192];
        let counts = counts.map(|ids| count(heap, ids));
        assert_eq!(counts, [3, 4, 5, 0, 1, 2, 0, 1]);
        heap.invalidate(numbers.at(3).oid()).unwrap();
        assert_eq!(count(heap, 0..64), 2);
    });
    assert_eq!(with(&owner, |heap| count(heap, 0..256)), 200);
}

#[test]
fn a_node_knows_of_what_was_allocated_together_and_of_chunks_that_it_has_seen() {
    let cluster = Cluster::new(2).unwrap();
    let [owner, reader] = nodes(&cluster);
    let (numbers, alone, other) = with(&owner, |heap| {
        let numbers = heap.alloc_range(100, |i| i).unwrap();
        let alone: Vec<_> = (0..150_u32).map(|i| heap.alloc(i).unwrap()).collect();
        (numbers, alone, heap.alloc(7_u8).unwrap())
    });
    let around = |oid: Oid| {
        let within = oid.0.saturating_sub(4 * CHUNK)..oid.0 + 4 * CHUNK;
        with(&reader, |heap| {
            heap.make_room(oid).unwrap();
            heap.known_around(oid, within)
        })
    };
    let first = numbers.at(0).oid().0;
    assert_eq!(around(numbers.at(70).oid()), first..first + 100);
    // Objects that were allocated one by one, a chunk at a time: those of the chunk itself, and of
    // chunks of which this node has a record.
    let [begin, middle, end] = [0, 64, 149].map(|i| alone[i].oid());
    assert_eq!(around(middle), middle.0..middle.0 + CHUNK);
    assert_eq!(around(end), middle.0..middle.0 + 2 * CHUNK);
    assert_eq!(around(begin), begin.0..begin.0 + 3 * CHUNK);
    assert_eq!(around(other.oid()), other.oid().0..other.oid().0 + CHUNK);
    assert_eq!(around(end).end, middle.0 + 2 * CHUNK, "another type");
    let within = middle.0 + 3..middle.0 + 9;
    let narrow = with(&reader, |heap| heap.known_around(alone[70].oid(), within));
    assert_eq!(narrow, middle.0 + 3..middle.0 + 9);
}
