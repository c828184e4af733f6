//! Ids, clusters beside clusters, and what a node stores.

use std::collections::BTreeSet;
use std::sync::Arc;

use dhole_heap::{
    Cluster, ForeignKind, Miss, Monitor, PAGE_BYTES, Refs, ReserveError, Row, Share, Token,
    TypeInfo,
};
use dhole_model::{NodeId, Oid};

fn node(cluster: &Arc<Cluster>, i: u16) -> Monitor<()> {
    Monitor::new(cluster, NodeId(i), ())
}

fn range<T: Share>(m: &Monitor<()>, count: u64, init: impl FnMut(u64) -> T) -> Refs<T> {
    m.lock().split().0.alloc_range(count, init).unwrap()
}

#[test]
fn ids_are_never_used_again() {
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        let cluster = Cluster::new(3).unwrap();
        for i in 0..3 {
            let m = node(&cluster, i);
            for r in range(&m, 100, |i| i).iter() {
                assert!(seen.insert(r.oid()), "{} was used before", r.oid());
            }
            assert!(seen.insert(m.lock().split().0.alloc(1_u8).unwrap().oid()));
        }
    }
    assert!(
        seen.iter().all(|oid| oid.0 >= 64),
        "the first chunk names nothing"
    );
}

#[test]
fn a_node_allocates_beyond_its_first_ids() {
    let cluster = Cluster::new(2).unwrap();
    let (a, b) = (node(&cluster, 0), node(&cluster, 1));
    let small = range(&a, 1000, |i| i);
    let large = range(&a, 100_000, |i| i as u32);
    let theirs = range(&b, 5000, |i| i as u16);
    for (refs, creator) in [(small.oids(), 0), (large.oids(), 0), (theirs.oids(), 1)] {
        for oid in refs.unwrap().iter() {
            assert_eq!(cluster.creator(oid), Ok(NodeId(creator)));
        }
    }
    let sum = a.lend(|t| {
        large
            .iter()
            .map(|r| u64::from(*t.get(r).unwrap()))
            .sum::<u64>()
    });
    assert_eq!(sum, Ok(99_999 * 50_000));
}

#[test]
fn single_objects_of_a_type_share_chunks() {
    let cluster = Cluster::new(1).unwrap();
    let m = node(&cluster, 0);
    let mut guard = m.lock();
    let (mut heap, _) = guard.split();
    let oids: Vec<(Oid, Oid)> = (0..65)
        .map(|i| {
            (
                heap.alloc(i as u64).unwrap().oid(),
                heap.alloc(i as u8).unwrap().oid(),
            )
        })
        .collect();
    let chunks = |of: fn(&(Oid, Oid)) -> Oid| {
        oids.iter()
            .map(|pair| of(pair).chunk())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!((chunks(|p| p.0).len(), chunks(|p| p.1).len()), (2, 2));
    assert!(chunks(|p| p.0).is_disjoint(&chunks(|p| p.1)));
}

#[test]
fn a_reference_to_another_cluster_misses_and_creator_says_why() {
    let (ours, theirs) = (Cluster::new(1).unwrap(), Cluster::new(2).unwrap());
    let (here, there) = (node(&ours, 0), node(&theirs, 1));
    let r = there.lock().split().0.alloc(9_u32).unwrap();
    let miss: Miss = here.lend(|t| t.get(r).unwrap_err()).unwrap();
    assert_eq!(
        (miss.oid, miss.ty.id()),
        (r.oid(), TypeInfo::of::<u32>().type_id)
    );
    let kind = |oid| ours.creator(oid).unwrap_err().kind;
    let ForeignKind::OtherCluster { ordinal } = kind(r.oid()) else {
        panic!("{}", kind(r.oid()))
    };
    assert_eq!(
        format!("{theirs:?}"),
        format!("cluster {ordinal} of 2 nodes")
    );
    assert!(here.lock().split().0.bind(&miss).is_err());
    drop((there, theirs));
    assert_eq!(kind(r.oid()), ForeignKind::Ended);
    assert_eq!(kind(Oid(u64::MAX)), ForeignKind::Never);
    assert_eq!(kind(Oid(1)), ForeignKind::Never);
    let mine = here.lock().split().0.alloc(1_u8).unwrap().oid();
    assert_eq!(ours.creator(mine), Ok(NodeId(0)));
    assert_eq!(
        kind(mine.plus(64)),
        ForeignKind::NotYet { creator: NodeId(0) }
    );
    assert!(
        here.lend(|t| t.get(r).is_err()).unwrap(),
        "a stale reference misses too"
    );
}

#[test]
fn slots_are_used_again_and_start_empty() {
    let mut old = Vec::new();
    for round in 0..200_u64 {
        let cluster = Cluster::new(3).unwrap();
        let m = node(&cluster, 2);
        assert_eq!(m.lock().split().0.store_bytes(), 0);
        let refs = range(&m, 300, |i| i + round);
        m.lend(|t| {
            assert!(old.iter().all(|&r| t.get(r).is_err()));
            assert!(
                refs.iter()
                    .enumerate()
                    .all(|(i, r)| *t.get(r).unwrap() == i as u64 + round)
            );
        })
        .unwrap();
        old.push(refs.at(0));
    }
}

#[test]
fn too_many_nodes_are_a_typed_error() {
    assert!(matches!(
        Cluster::new(0),
        Err(ReserveError::Nodes { nodes: 0 })
    ));
    assert!(matches!(
        Cluster::new(1025),
        Err(ReserveError::Nodes { .. })
    ));
    // The first cluster of this process has decided: whichever test it was of, it was small.
    let _first = Cluster::new(1).unwrap();
    match Cluster::new(65) {
        Err(
            error @ ReserveError::Slots {
                nodes: 65,
                most: 64,
                ..
            },
        ) => {
            assert!(error.to_string().contains("first cluster decides"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_stores_what_it_touched() {
    let cluster = Cluster::new(2).unwrap();
    let (a, b) = (node(&cluster, 0), node(&cluster, 1));
    let refs = range(&a, 10_000, |i| i);
    assert_eq!(
        a.lock().split().0.store_bytes(),
        10_000_u64.div_ceil(512) * PAGE_BYTES
    );
    assert_eq!(b.lock().split().0.store_bytes(), 0);
    // In the order of first access, far apart as the ids may be.
    for i in (0..512).map(|i| i * 19) {
        let mut bytes = Vec::new();
        a.lock()
            .split()
            .0
            .gather(refs.at(i).oid(), &mut bytes)
            .unwrap();
        b.lock()
            .split()
            .0
            .install(refs.at(i).oid(), &bytes)
            .unwrap();
    }
    assert_eq!(
        b.lock().split().0.store_bytes(),
        PAGE_BYTES,
        "512 numbers are one page"
    );
    let places: Vec<usize> = b
        .lend(|t| {
            (0..512)
                .map(|i| std::ptr::from_ref(t.get(refs.at(i * 19)).unwrap()).addr())
                .collect()
        })
        .unwrap();
    assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 8));
}

/// Whoever reads the rows of one matrix and writes those of another reads and writes at different
/// places of the pages.
#[test]
fn rows_of_two_matrices_lie_at_different_places_of_their_pages() {
    let cluster = Cluster::new(1).unwrap();
    let m = node(&cluster, 0);
    let matrices = [(); 2].map(|()| m.lock().split().0.alloc_rows::<f64>(20, 1025).unwrap());
    for row in matrices
        .iter()
        .flat_map(|rows| (0..20).map(|row| rows.row(row)))
    {
        m.lock().split().0.zero_fill(row.oid()).unwrap();
    }
    let place = |t: &Token<'_>, row: Row<f64>| {
        let at = t.get(row).unwrap().as_ptr().addr() as u64;
        at % PAGE_BYTES
    };
    m.lend(|t| {
        let [red, black] = matrices;
        for row in 0..20 {
            let [red, black] = [red, black].map(|rows| place(&t, rows.row(row)));
            assert_eq!(black, (red + 25 * 64) % PAGE_BYTES);
        }
    })
    .unwrap();
}

#[test]
fn rows_have_no_storage_until_they_are_touched() {
    let cluster = Cluster::new(1).unwrap();
    let m = node(&cluster, 0);
    let mut guard = m.lock();
    let (mut heap, _) = guard.split();
    let rows = heap.alloc_rows::<f64>(1000, 100_000).unwrap();
    assert_eq!(heap.store_bytes(), 0);
    assert!(!heap.is_present(rows.row(7).oid()) && !heap.has_storage(rows.row(7).oid()));
    heap.zero_fill(rows.row(7).oid()).unwrap();
    assert_eq!(heap.store_bytes(), 800_000_u64.next_multiple_of(PAGE_BYTES));
    assert_eq!(heap.bytes_of(rows.row(7).oid()), Some(800_000));
}

#[test]
fn what_is_too_large_is_a_typed_error() {
    let cluster = Cluster::new(1).unwrap();
    let m = node(&cluster, 0);
    let mut guard = m.lock();
    let (mut heap, _) = guard.split();
    assert!(heap.alloc_rows::<f64>(1, u64::MAX).is_err());
    assert!(heap.alloc_rows::<f64>(1, 1 << 60).is_err());
    assert!(heap.alloc_rows::<u8>(u64::MAX, 1).is_err());
    assert!(heap.alloc_range(u64::MAX, |i| i).is_err());
    assert!(heap.alloc(1_u8).is_ok());
}

#[test]
fn objects_of_no_bytes_are_objects() {
    let cluster = Cluster::new(1).unwrap();
    let m = node(&cluster, 0);
    let units = range(&m, 3, |_| ());
    assert!(m.lend(|t| units.iter().all(|r| t.get(r).is_ok())).unwrap());
    let mut out = Vec::new();
    assert_eq!(
        m.lock().split().0.gather(units.at(2).oid(), &mut out),
        Ok(0)
    );
}
