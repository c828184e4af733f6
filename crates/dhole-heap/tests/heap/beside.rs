//! Which objects lie on one page: those that were touched one after the other.

use dhole_heap::{Cluster, HeapMut, Monitor, PAGE_BYTES, Ref, Refs, Share, pack};
use dhole_model::{NodeId, Oid, OidRange};

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
struct Body([u64; 100]);

fn on<R>(node: u16, cluster: &std::sync::Arc<Cluster>, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
    let monitor = Monitor::new(cluster, NodeId(node), ());
    let mut guard = monitor.lock();
    f(&mut guard.split().0)
}

fn beside<T: Share>(heap: &HeapMut<'_>, of: Ref<T>) -> Vec<(Oid, bool)> {
    heap.beside(of.oid()).collect()
}

#[test]
fn pages_are_filled_in_the_order_of_first_access_and_not_in_that_of_ids() {
    let cluster = Cluster::new(2).unwrap();
    let bodies = on(0, &cluster, |heap| {
        heap.alloc_range(12, |i| Body([i; 100])).unwrap()
    });
    on(1, &cluster, |heap| {
        let order = [7, 2, 11, 0, 5, 6, 1];
        for i in order {
            heap.make_room(bodies.at(i).oid()).unwrap();
        }
        let mut packed = Vec::new();
        pack(&Body([3; 100]), &mut packed);
        heap.install(bodies.at(2).oid(), &packed).unwrap();
        let at = |i: usize| (bodies.at(i).oid(), i == 2);
        assert_eq!(
            beside(heap, bodies.at(11)),
            [7, 2, 0, 5].map(at),
            "five to a page"
        );
        assert_eq!(beside(heap, bodies.at(1)), [6].map(at));
        assert_eq!(beside(heap, bodies.at(4)), [], "it was never touched here");
        assert_eq!(heap.store_bytes(), 2 * PAGE_BYTES);
        let mut bytes = Vec::new();
        heap.gather(bodies.at(7).oid(), &mut bytes)
            .expect_err("room is no bytes");
        assert!(!heap.has_storage(bodies.at(7).oid()));
    });
}

#[test]
fn what_is_freed_lies_beside_nothing_and_its_page_is_used_again() {
    let cluster = Cluster::new(1).unwrap();
    on(0, &cluster, |heap| {
        let five = |heap: &mut HeapMut<'_>| heap.alloc_range(5, |i| Body([i; 100])).unwrap();
        let first: Refs<Body> = five(heap);
        let second = five(heap);
        heap.free(OidRange::one(first.at(1).oid())).unwrap();
        let left = [0, 3, 4].map(|i| (first.at(i).oid(), true));
        assert_eq!(beside(heap, first.at(2)), left);
        heap.free(first.oids().unwrap()).unwrap();
        let third = five(heap);
        assert_eq!(heap.store_bytes(), 2 * PAGE_BYTES, "the first page again");
        let others = [1, 2, 3, 4].map(|i| (third.at(i).oid(), true));
        assert_eq!(beside(heap, third.at(0)), others);
        assert_eq!(beside(heap, second.at(0)).len(), 4);
    });
}

#[test]
fn an_object_of_a_page_or_more_lies_alone() {
    let cluster = Cluster::new(1).unwrap();
    on(0, &cluster, |heap| {
        let rows = heap.alloc_rows::<f64>(2, 600).unwrap();
        heap.zero_fill(rows.row(0).oid()).unwrap();
        heap.zero_fill(rows.row(1).oid()).unwrap();
        assert_eq!(heap.beside(rows.row(0).oid()).count(), 0);
    });
}
