//! Freed objects leave nothing: no bytes, no handles, no records.

use dhole_heap::{Cluster, Monitor, Refusal};
use dhole_model::{NodeId, Oid, OidRange};

fn node() -> Monitor<()> {
    let cluster = Cluster::new(1).expect("room for a node");
    Monitor::new(&cluster, NodeId(0), ())
}

#[test]
fn what_was_freed_is_absent_and_nothing_is_kept_of_it() {
    let node = node();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    for round in 0..10_000_u64 {
        let small = heap.alloc_range(64, |i| i + round).unwrap();
        let large = heap.alloc_range(3, |_| [round; 1000]).unwrap();
        let one = heap.alloc(round as u32).unwrap();
        for range in [small.oids(), large.oids()].into_iter().flatten() {
            let range = heap.cluster().with_rest(range);
            heap.free(range).unwrap();
            heap.cluster().free(range);
            assert!(!heap.is_present(range.first) && heap.is_freed(range.first));
        }
        heap.free(OidRange::one(one.oid())).unwrap();
    }
    assert!(
        heap.store_bytes() <= 4 * 4096,
        "{} bytes",
        heap.store_bytes()
    );
    assert!(heap.chunks_kept() <= 2, "{} chunks", heap.chunks_kept());
}

#[test]
fn a_stale_reference_finds_no_handle_and_another_object_takes_the_storage() {
    let node = node();
    let old = node.lock().split().0.alloc_range(64, |i| i).unwrap();
    let all = old.oids().unwrap();
    node.lock().split().0.free(all).unwrap();
    let new = node.lock().split().0.alloc_range(64, |i| 100 + i).unwrap();
    node.lend(|token| {
        assert!(old.iter().all(|r| token.get(r).is_err()));
        assert!(
            new.iter()
                .enumerate()
                .all(|(i, r)| *token.get(r).unwrap() == 100 + i as u64)
        );
    })
    .unwrap();
    assert_eq!(node.lock().split().0.store_bytes(), 4096);
}

#[test]
fn nothing_is_freed_under_a_reference() {
    let node = node();
    let range = node
        .lock()
        .split()
        .0
        .alloc_range(3, |i| i)
        .unwrap()
        .oids()
        .unwrap();
    node.lend(|mut token| {
        let refused = node.lock().split().0.free(range).unwrap_err();
        assert!(matches!(refused.refusal, Refusal::Presence(_)));
        node.shared_call(&token, |call| assert!(call.split().0.free(range).is_err()));
        node.exclusive_call(&mut token, |call| call.split().0.free(range).unwrap());
    })
    .unwrap();
}

#[test]
fn ids_that_nobody_has_may_be_named_and_are_never_given_out_then() {
    let node = node();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let first = heap.alloc(1_u64).unwrap().oid();
    let rest = OidRange {
        first: first.plus(1),
        count: 10,
    };
    heap.free(rest).unwrap();
    let next = heap.alloc(2_u64);
    assert!(next.is_ok_and(|next| !rest.iter().any(|oid| oid == next.oid())));
    heap.free(OidRange {
        first: Oid(1 << 30),
        count: 1000,
    })
    .unwrap();
}
