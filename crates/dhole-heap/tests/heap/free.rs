//! Freed objects leave nothing: no bytes, no handles, no records.

use std::sync::Arc;

use dhole_heap::{BindError, Monitor, ObjectRefusal, Ref, Share, UnpackError};
use dhole_model::{NodeId, Oid, OidRange};

use super::cluster;

fn node() -> Monitor<()> {
    let cluster = cluster(1);
    Monitor::new(&cluster, NodeId(0), ())
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
        assert!(matches!(refused.refusal, ObjectRefusal::Presence(_)));
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

/// The reference that these bytes of an id are taken for.
fn named<T: Share>(node: &Monitor<()>, oid: Oid) -> Result<Ref<T>, UnpackError> {
    node.lock().split().0.unpack(&oid.0.to_ne_bytes())
}

fn is_clash<T>(named: Result<Ref<T>, UnpackError>) -> bool {
    matches!(
        named,
        Err(UnpackError::Reference(BindError::TypeClash { .. }))
    )
}

#[test]
fn who_frees_what_is_no_object_makes_no_reference_to_it() {
    let node = node();
    let array = node
        .lock()
        .split()
        .0
        .alloc_array_with(10, |_| 2_u8)
        .unwrap();
    for oid in [Oid(1 << 60), Oid(u64::MAX), array.oid()] {
        let range = OidRange {
            first: oid,
            count: 3,
        };
        node.lock().split().0.cluster().free(range);
        let refused = named::<bool>(&node, oid);
        assert!(matches!(
            refused,
            Err(UnpackError::Reference(BindError::Foreign(_)))
        ));
        assert!(!node.lock().split().0.is_freed(oid));
    }
}

#[test]
fn a_freed_object_keeps_its_type_until_no_node_can_reach_it() {
    let cluster = cluster(2);
    let [a, b] = [0, 1].map(|i| Monitor::new(&Arc::clone(&cluster), NodeId(i), ()));
    let one = a.lock().split().0.alloc_range(1, |_| 7_u32).unwrap().at(0);
    let all = cluster.with_rest(OidRange::one(one.oid()));
    cluster.free(all);
    assert!(b.lock().split().0.is_freed(one.oid()));
    assert!(
        is_clash(named::<[u64; 512]>(&b, one.oid())),
        "it would be followed on `a`"
    );
    assert!(named::<u32>(&b, one.oid()).is_ok());
    assert!(a.lend(|token| *token.get(one).unwrap() == 7).unwrap());
    a.lock().split().0.free(all).unwrap();
    let other = named::<[u64; 512]>(&b, one.oid()).expect("what leads nowhere may be named");
    assert!(a.lend(|token| token.get(other).is_err()).unwrap());
}
