//! What a process believes of what others announce, and what it announces.

use std::sync::Arc;

use dhole_model::{Detector, OidRange};

use super::*;
use crate::parts::FIRST_PER_NODE;
use crate::{ForeignKind, Monitor, Ref, Share};

/// Node 1 of a cluster of 3, which has settled on a window.
fn part() -> Arc<Cluster> {
    let cluster = Cluster::part(3, NodeId(1), Detector::Check).expect("room for a node");
    // Other tests of this process take ids meanwhile.
    let settled = || cluster.settle(Cluster::window_of(cluster.ids_left()), 1);
    while settled().is_err() {}
    cluster
}

/// The first id of the part with which a node begins.
fn first_of(cluster: &Cluster, node: u64) -> u64 {
    let parts = read(&cluster.parts);
    let first = parts.of_node(NodeId::at(node as usize)).next();
    first.expect("it is there from the beginning").start
}

fn name_of<T: Share>() -> u32 {
    TypeInfo::of::<T>().shipped.expect("a table of names")
}

fn objects(first: u64, ids: u64, ty: u32) -> RunRecord {
    RunRecord {
        first,
        ids,
        ty,
        len: 1,
        shape: Shape::Objects,
        coherence: Coherence::Lazy,
        site: 0,
    }
}

fn bytes(runs: Vec<RunRecord>) -> Vec<u8> {
    let sites = vec![CallSite::runtime("elsewhere")];
    postcard::to_allocvec(&(sites, runs)).unwrap()
}

fn learn(cluster: &Cluster, record: RunRecord) -> Result<(), LearnError> {
    cluster.learn(NodeId(2), &bytes(vec![record]))
}

#[test]
fn a_run_is_announced_to_every_process_but_its_own_and_the_one_it_came_from() {
    let cluster = part();
    let theirs = first_of(&cluster, 2);
    let u64s = name_of::<u64>();
    learn(&cluster, objects(theirs, 70, u64s)).unwrap();
    let oid = Oid(theirs + 69);
    assert_eq!(cluster.binding(oid).unwrap().info.name, "u64");
    assert_eq!(cluster.creator(oid), Ok(NodeId(2)));
    assert!(cluster.binding(Oid(theirs + 70)).is_err());
    let node = Monitor::new(&cluster, NodeId(1), ());
    let own = node.lock().split().0.alloc(5_u8).unwrap();
    let mut announced = Vec::new();
    assert!(cluster.has_to_announce(NodeId(2)));
    let announcement = cluster.announce(NodeId(2), &mut announced);
    let (_, runs): (Vec<CallSite>, Vec<RunRecord>) = postcard::from_bytes(&announced).unwrap();
    assert_eq!((runs.len(), runs[0].first), (1, own.oid().0));
    // It is announced again until it is on its way, and then no more.
    let mut again = Vec::new();
    assert_eq!(cluster.announce(NodeId(2), &mut again), announcement);
    assert_eq!(again, announced);
    assert!(cluster.has_to_announce(NodeId(2)));
    cluster.announced(NodeId(2), announcement);
    assert!(!announcement.more && !cluster.has_to_announce(NodeId(2)));
    again.clear();
    cluster.announce(NodeId(2), &mut again);
    assert!(again.is_empty());
    cluster.announce(NodeId(0), &mut again);
    let (_, runs): (Vec<CallSite>, Vec<RunRecord>) = postcard::from_bytes(&again).unwrap();
    assert_eq!(runs.len(), 2);
}

#[test]
fn many_runs_are_told_by_several_messages() {
    let cluster = part();
    let node = Monitor::new(&cluster, NodeId(1), ());
    let later = cluster.multiprocess.as_ref().unwrap().later().start;
    let ids = (MOST_RUNS as u64 + 16) * CHUNK;
    let taken = node.lock().split().0.take_ids(later..later + ids);
    taken.unwrap();
    for i in 0..MOST_RUNS as u64 + 9 {
        node.lock().split().0.alloc_range(1, |_| i).unwrap();
    }
    let (mut all, mut messages) = (0, 0);
    loop {
        let mut announced = Vec::new();
        let announcement = cluster.announce(NodeId(0), &mut announced);
        let (_, runs): (Vec<CallSite>, Vec<RunRecord>) = postcard::from_bytes(&announced).unwrap();
        (all, messages) = (all + runs.len(), messages + 1);
        cluster.announced(NodeId(0), announcement);
        if !announcement.more {
            break;
        }
    }
    assert_eq!((all, messages), (MOST_RUNS + 10, 2));
}

#[test]
fn a_lie_is_an_error_and_changes_nothing() {
    let cluster = part();
    let (own, theirs) = (first_of(&cluster, 1), first_of(&cluster, 2));
    let (u64s, chars) = (name_of::<u64>(), name_of::<char>());
    let (pages, nothings) = (name_of::<[u64; 512]>(), name_of::<[u64; 0]>());
    learn(&cluster, objects(theirs, 64, u64s)).unwrap();
    let end = theirs + 4096;
    let not_theirs = [
        objects(own, 64, u64s),
        objects(end - 64, 65, u64s),
        objects(theirs, 0, u64s),
        objects(theirs, u64::MAX, u64s),
        objects(u64::MAX - 10, 64, u64s),
        objects(0, 64, u64s),
        objects(own - 64 - 4096, 64, u64s),
    ];
    for lie in not_theirs {
        let error = learn(&cluster, lie);
        assert!(matches!(error, Err(LearnError::Ids { .. })), "{error:?}");
    }
    let next = theirs + 64;
    let rows = |len, ty| RunRecord {
        len,
        shape: Shape::Rows,
        ..objects(next, 64, ty)
    };
    let array = |ids, len, ty, shape| RunRecord {
        len,
        shape,
        ..objects(next, ids, ty)
    };
    let impossible = [
        objects(next + 1, 10, u64s),
        RunRecord {
            len: 2,
            ..objects(next, 10, u64s)
        },
        rows(u64::MAX, u64s),
        rows(1 << 50, u64s),
        rows(4, chars),
        array(1, 0, u64s, Shape::Array),
        array(1, 513, u64s, Shape::Array),
        array(64, 5, u64s, Shape::Array),
        array(1, 5, chars, Shape::ArrayOfZeros),
        array(64, u64::MAX, pages, Shape::Array),
        array(64, u64::MAX, nothings, Shape::Array),
        rows(u64::MAX, nothings),
    ];
    for (i, lie) in impossible.into_iter().enumerate() {
        let error = learn(&cluster, lie);
        assert!(
            matches!(error, Err(LearnError::Impossible { .. })),
            "{i}: {error:?}"
        );
    }
    let clashes = [
        objects(theirs, 64, chars),
        objects(theirs, 63, u64s),
        RunRecord {
            shape: Shape::Array,
            ids: 1,
            ..objects(theirs + 3, 1, u64s)
        },
    ];
    for lie in clashes {
        let error = learn(&cluster, lie);
        assert!(matches!(error, Err(LearnError::Clash { .. })), "{error:?}");
    }
    let nothing = learn(&cluster, objects(next, 64, u32::MAX));
    assert!(matches!(nothing, Err(LearnError::Type(_))));
    let malformed = cluster.learn(NodeId(2), &[1, 2, 3]);
    assert!(matches!(malformed, Err(LearnError::Malformed(_))));
    let behind = [bytes(vec![objects(next, 64, u64s)]), vec![0]].concat();
    let malformed = cluster.learn(NodeId(2), &behind);
    assert!(matches!(malformed, Err(LearnError::Malformed(_))));
    assert!(cluster.binding(Oid(next)).is_err() && cluster.binding(Oid(own)).is_err());
    assert_eq!(cluster.binding(Oid(theirs)).unwrap().info.name, "u64");
    // What is true may be said again.
    learn(&cluster, objects(theirs, 64, u64s)).unwrap();
}

/// A part as node 2 announces it.
fn part_of(ids: Range<u64>, node: u16) -> RunRecord {
    RunRecord::part(Oid(ids.start), ids.end - ids.start, NodeId(node))
}

#[test]
fn a_part_is_another_nodes_once_it_is_told_of_and_is_told_on() {
    let cluster = part();
    let later = cluster.multiprocess.as_ref().unwrap().later();
    let theirs = later.start + 512..later.start + 1536;
    let of_it = || objects(theirs.start, 64, name_of::<u64>());
    let unknown = learn(&cluster, of_it());
    assert!(matches!(unknown, Err(LearnError::Ids { .. })));
    learn(&cluster, part_of(theirs.clone(), 2)).unwrap();
    learn(&cluster, of_it()).unwrap();
    assert_eq!(cluster.creator(Oid(theirs.start)), Ok(NodeId(2)));
    // What is true may be said again, and node 0 hears of it with what lies there.
    learn(&cluster, part_of(theirs.clone(), 2)).unwrap();
    let mut announced = Vec::new();
    cluster.announce(NodeId(0), &mut announced);
    let (_, runs): (Vec<CallSite>, Vec<RunRecord>) = postcard::from_bytes(&announced).unwrap();
    let firsts: Vec<_> = runs.iter().map(|run| (run.first, run.len)).collect();
    assert_eq!(firsts, [(theirs.start, 2), (theirs.start, 1)]);
    // And this node gets another one.
    let node = Monitor::new(&cluster, NodeId(1), ());
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    assert_eq!(heap.ids_wanted(4096), None);
    assert_eq!(heap.ids_wanted(4097), Some(4160));
    let few = heap.alloc_rows::<u64>(4097, 1).unwrap_err().to_string();
    assert!(few.contains("4160 more wanted"), "{few}");
    let mine = theirs.end..theirs.end + 8192;
    heap.take_ids(mine.clone()).unwrap();
    assert_eq!(heap.ids_wanted(8192), None);
    let rows = heap.alloc_rows::<u64>(4097, 1).unwrap();
    assert_eq!(rows.oids().unwrap().first.0, mine.start);
    // An id that is allocated twice would be of two types.
    let begun_with = first_of(&cluster, 1)..first_of(&cluster, 1) + 512;
    for again in [mine, begun_with] {
        let refused = heap.take_ids(again);
        assert!(matches!(refused, Err(LearnError::Part { .. })));
    }
}

#[test]
fn a_node_of_one_process_is_handed_no_ids() {
    let cluster = Cluster::new(1).expect("room for a node");
    let node = Monitor::new(&cluster, NodeId(0), ());
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let oid = heap.alloc(1_u64).unwrap().oid().0;
    for ids in [oid..oid + 4096, 1 << 40..(1 << 40) + 4096, 5..5] {
        let refused = heap.take_ids(ids);
        assert!(matches!(refused, Err(LearnError::Part { .. })));
    }
}

#[test]
fn ids_that_no_node_was_given_are_told_from_those_of_parts() {
    let cluster = part();
    let first = first_of(&cluster, 0);
    let given = |from, count| {
        let ids = OidRange {
            first: Oid(from),
            count,
        };
        let unknown = cluster.given_to_nobody([OidRange::one(Oid(first)), ids]);
        assert!(unknown.is_none_or(|unknown| unknown == ids));
        unknown.is_none()
    };
    let all = 3 * FIRST_PER_NODE as u32;
    assert!(given(first, all), "of several nodes");
    assert!(!given(first, all + 1) && !given(first - 1, 2) && !given(1 << 63, 2));
    let later = first + u64::from(all);
    learn(&cluster, part_of(later..later + 1024, 2)).unwrap();
    assert!(given(first, all + 1024) && !given(first, all + 1025));
    // In one process nothing is announced.
    let alone = Cluster::new(1).expect("room for a node");
    assert_eq!(alone.given_to_nobody([OidRange::one(Oid(1 << 63))]), None);
}

#[test]
fn parts_that_cannot_be_are_not_believed() {
    let cluster = part();
    let later = cluster.multiprocess.as_ref().unwrap().later();
    let start = later.start;
    learn(&cluster, part_of(start..start + 1024, 2)).unwrap();
    let lies = [
        part_of(start..start + 512, 0),
        part_of(start + 512..start + 2048, 2),
        part_of(start + 512..start + 2048, 0),
        part_of(start + 2048..start + 4096, 1),
        part_of(start + 2048..start + 4096, 3),
        part_of(start + 2048..start + 2049, 2),
        part_of(start + 2049..start + 4096, 2),
        part_of(start + 2048..start + 2048, 2),
        part_of(later.end - 512..later.end + 512, 2),
        part_of(start - 512..start, 0),
        part_of(start - 512..start + 512, 0),
        part_of(0..512, 2),
        RunRecord {
            len: 1 << 32,
            ..part_of(start + 2048..start + 4096, 2)
        },
        RunRecord {
            ids: u64::MAX,
            ..part_of(start + 2048..start + 4096, 2)
        },
    ];
    for (i, lie) in lies.into_iter().enumerate() {
        let error = learn(&cluster, lie);
        assert!(
            matches!(error, Err(LearnError::Part { .. })),
            "{i}: {error:?}"
        );
    }
    cluster.learn_at_most(1);
    let more = learn(&cluster, part_of(start + 2048..start + 4096, 0));
    assert!(matches!(more, Err(LearnError::TooMany { .. })));
}

#[test]
fn ids_that_come_without_a_run_are_null_for_ever() {
    let cluster = part();
    let theirs = first_of(&cluster, 2);
    let node = Monitor::new(&cluster, NodeId(1), ());
    let u64s = name_of::<u64>();
    let packed = |oid: u64| oid.to_le_bytes();
    let named = |oid: u64| {
        node.lock()
            .split()
            .0
            .unpack::<Ref<u64>>(&packed(oid))
            .is_ok()
    };
    // Nobody else allocates for this node, and an id that no part has is nobody's.
    assert!(!named(first_of(&cluster, 1)) && !named(u64::MAX) && !named(1));
    assert!(named(theirs) && named(theirs + 7));
    assert!(cluster.is_freed(Oid(theirs)));
    learn(&cluster, objects(theirs, 8, u64s)).unwrap();
    assert!(cluster.is_freed(Oid(theirs + 7)) && !cluster.is_freed(Oid(theirs + 6)));
    let (_, freed) = cluster.hold(Oid(theirs)).unwrap();
    assert_eq!(freed, 1 | 1 << 7);
    // A run of which nothing is left is none.
    let gone = theirs + 64;
    assert!(named(gone));
    cluster.hear_freed(OidRange {
        first: Oid(gone),
        count: 64,
    });
    learn(&cluster, objects(gone, 64, u64s)).unwrap();
    let foreign = cluster.binding(Oid(gone)).unwrap_err();
    assert_eq!(foreign.kind, ForeignKind::Freed);
}

#[test]
fn a_freeing_that_is_heard_of_first_holds_for_what_is_told_later() {
    let cluster = part();
    let theirs = first_of(&cluster, 0);
    let range = OidRange {
        first: Oid(theirs + 2),
        count: 3,
    };
    cluster.hear_freed(range);
    learn(&cluster, objects(theirs, 10, name_of::<u64>())).unwrap();
    for place in 0..10 {
        let freed = cluster.is_freed(Oid(theirs + place));
        assert_eq!(freed, (2..5).contains(&place));
    }
    // What this node allocates itself is its own business.
    let own = first_of(&cluster, 1);
    cluster.hear_freed(OidRange {
        first: Oid(own),
        count: 64,
    });
    let node = Monitor::new(&cluster, NodeId(1), ());
    let one = node.lock().split().0.alloc(7_u64).unwrap();
    assert!(!cluster.is_freed(one.oid()));
}

/// Where one process plays several, what a value names is known to the part that made it, and was
/// not announced to the first one yet.
#[test]
fn a_reference_that_any_part_in_this_process_knows_is_taken_from_a_value() {
    let first = part();
    let second = Cluster::part(3, NodeId(2), Detector::Check).expect("room for a node");
    let window = first.multiprocess.as_ref().expect("a part").window();
    second.settle(window, 1).expect("the same window");
    let node = Monitor::new(&second, NodeId(2), ());
    let made = node.lock().split().0.alloc(5_u64).unwrap();
    let value = postcard::to_allocvec(&made).unwrap();
    assert_eq!(postcard::from_bytes::<Ref<u64>>(&value).unwrap(), made);
    assert!(postcard::from_bytes::<Ref<u8>>(&value).is_err());
    let mut announced = Vec::new();
    second.announce(NodeId(1), &mut announced);
    first
        .learn(NodeId(2), &announced)
        .expect("its ids are not taken for freed ones");
    assert_eq!(first.binding(made.oid()).unwrap().info.name, "u64");
}
