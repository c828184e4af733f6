//! A process of as many nodes as there can be: its first cluster decides how many slots there are.

use dhole_heap::{AllocError, Cluster, HeapMut, Monitor, ReserveError};
use dhole_model::{MAX_NODES, NodeId};

/// Allocates ids alone, and frees them.
fn rows(heap: &mut HeapMut<'_>, count: u64) -> Result<u64, AllocError> {
    let rows = heap.alloc_rows::<u64>(count, 1)?;
    let range = heap.cluster().with_rest(rows.oids().expect("some rows"));
    heap.free(range).expect("no worker computes");
    heap.cluster().free(range);
    Ok(range.first.0)
}

#[test]
fn one_node_of_many_may_have_nearly_all_ids_and_the_others_the_rest() {
    let cluster = Cluster::new(MAX_NODES).expect("room for the nodes");
    let [busy, late] = [5, 700].map(|node| Monitor::new(&cluster, NodeId(node), ()));
    let (mut guard, mut late) = (busy.lock(), late.lock());
    let (mut heap, mut late) = (guard.split().0, late.split().0);
    let ids = cluster.ids_left();
    let all = ids.end - ids.start;
    let equal = all / MAX_NODES as u64;
    // What follows on each other never comes twice.
    let (mut had, mut last) = (0, 0);
    let error = loop {
        match rows(&mut heap, 1 << 20) {
            Ok(first) => assert!(std::mem::replace(&mut last, first) < first),
            Err(error) => break error,
        }
        had += 1 << 20;
    };
    assert!(
        had > 500 * equal && had > all / 10 * 9,
        "{had} of {all} ids"
    );
    let AllocError::Ids { node, error, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(node, NodeId(5));
    let words = error.to_string();
    let ReserveError::Ids { ids, left, .. } = error else {
        panic!("{words}");
    };
    assert!(ids == 1 << 20 && left < ids, "{words}");
    assert!(words.contains("keep objects and change them"), "{words}");
    assert!(rows(&mut late, 4096).is_ok() && rows(&mut late, 64).is_ok());
}
