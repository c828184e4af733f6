//! What is set aside for new objects, which the worker allocates by itself.

use std::panic::Location;

use dhole_heap::{Monitor, Ref, Share, Token};
use dhole_model::{Coherence, NodeId, OidRange, Version};

use super::cluster;

const LAZY: Coherence = Coherence::Lazy;

fn node() -> Monitor<()> {
    let cluster = cluster(1);
    Monitor::new(&cluster, NodeId(0), ())
}

/// A place in the program.
fn here() -> &'static Location<'static> {
    static HERE: std::sync::OnceLock<&'static Location<'static>> = std::sync::OnceLock::new();
    HERE.get_or_init(Location::caller)
}

/// The objects that the heap hears of, in a call of the worker.
fn heard(node: &Monitor<()>, token: &mut Token<'_>) -> Vec<(OidRange, &'static str)> {
    let mut all = Vec::new();
    node.exclusive_call(token, |call| {
        let mut heap = call.split().0;
        heap.hear_of_born(|range, what| {
            assert_eq!(what.coherence, LAZY);
            all.push((range, what.info.name));
        });
    });
    all
}

fn set_aside<T: Share>(node: &Monitor<()>, token: &mut Token<'_>) {
    node.exclusive_call(token, |call| {
        let mut heap = call.split().0;
        heap.hear_of_born(|_, _| ());
        heap.set_aside::<T>(here());
    });
}

/// Allocates as many as are set aside.
fn bear<T: Share + Copy>(token: &mut Token<'_>, value: T) -> Vec<Ref<T>> {
    std::iter::from_fn(|| token.bear(LAZY, here(), value).ok()).collect()
}

#[test]
fn more_and_more_are_set_aside_until_they_are_a_chunk() {
    let node = node();
    node.lend(|mut token| {
        assert_eq!(token.bear(LAZY, here(), 7_u64), Err(7), "nothing is");
        let sizes = (0..9).map(|_| {
            set_aside::<u64>(&node, &mut token);
            bear(&mut token, 1_u64).len()
        });
        let sizes: Vec<usize> = sizes.collect();
        assert_eq!(sizes, [1, 1, 2, 4, 8, 16, 32, 64, 64]);
    })
    .unwrap();
}

#[test]
fn the_worker_reads_and_writes_what_the_heap_has_yet_to_hear_of() {
    let node = node();
    node.lend(|mut token| {
        (0..3).for_each(|_| {
            set_aside::<u64>(&node, &mut token);
            bear(&mut token, 0_u64);
        });
        set_aside::<u64>(&node, &mut token);
        let born = bear(&mut token, 5_u64);
        *token.get_mut(born[1]).unwrap() += 1;
        assert_eq!(*token.get(born[1]).unwrap(), 6);
        let first = born[0].oid();
        assert!(!node.lock().split().0.is_present(first), "not heard of");
        assert!(!node.lock().split().0.has_born(), "the worker computes");
        let count = born.len() as u32;
        let all = OidRange { first, count };
        assert_eq!(heard(&node, &mut token), [(all, "u64")]);
        assert_eq!(heard(&node, &mut token), [], "once");
        let mut guard = node.lock();
        let heap = guard.split().0;
        assert!(
            all.iter()
                .all(|oid| heap.is_present(oid) && heap.is_writable(oid))
        );
        drop(guard);
        assert_eq!(*token.get(born[1]).unwrap(), 6);
    })
    .unwrap();
}

#[test]
fn young_objects_become_clean_by_ranges() {
    let node = node();
    let (lamport, me) = (0, NodeId(0));
    let version = Version { lamport, node: me };
    node.lend(|mut token| {
        (0..8).for_each(|_| {
            set_aside::<u64>(&node, &mut token);
            bear(&mut token, 3_u64);
        });
        set_aside::<u64>(&node, &mut token);
        let born = bear(&mut token, 4_u64);
        let range = OidRange {
            first: born[10].oid(),
            count: 5,
        };
        assert!(node.lock().split().0.end_young(range, version).is_err());
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            heap.hear_of_born(|_, _| ());
            heap.end_young(range, version).unwrap();
        });
        let writable = born.iter().map(|r| token.get_mut(*r).is_ok());
        let clean: Vec<usize> = writable
            .enumerate()
            .filter_map(|(place, writable)| (!writable).then_some(place))
            .collect();
        assert_eq!(clean, [10, 11, 12, 13, 14]);
        assert_eq!(*token.get(born[12]).unwrap(), 4);
    })
    .unwrap();
}

#[test]
fn large_objects_are_set_aside_one_by_one() {
    let node = node();
    node.lend(|mut token| {
        for _ in 0..5 {
            set_aside::<[u64; 1500]>(&node, &mut token);
            let born = bear(&mut token, [9_u64; 1500]);
            assert_eq!(born.len(), 1);
            assert_eq!(token.get(born[0]).unwrap()[1499], 9);
        }
    })
    .unwrap();
}

#[test]
fn an_id_that_is_set_aside_has_no_storage_for_whoever_names_it() {
    let node = node();
    node.lend(|mut token| {
        set_aside::<u64>(&node, &mut token);
        let born = bear(&mut token, 1_u64);
        set_aside::<u64>(&node, &mut token);
        let next = born[0].oid().plus(1);
        node.exclusive_call(&mut token, |call| {
            assert!(call.split().0.make_room(next).is_err());
        });
        let r = token.bear(LAZY, here(), 2_u64).unwrap();
        assert_eq!(r.oid(), next);
        heard(&node, &mut token);
        assert_eq!(*token.get(r).unwrap(), 2);
    })
    .unwrap();
}

#[test]
fn an_id_that_was_named_before_its_time_is_not_set_aside() {
    let node = node();
    node.lend(|mut token| {
        set_aside::<u64>(&node, &mut token);
        let born = bear(&mut token, 1_u64);
        let next = born[0].oid().plus(1);
        node.exclusive_call(&mut token, |call| call.split().0.make_room(next).unwrap());
        set_aside::<u64>(&node, &mut token);
        let r = token.bear(LAZY, here(), 2_u64).unwrap();
        assert_ne!(r.oid(), next);
    })
    .unwrap();
}

#[test]
fn a_chunk_whose_ids_are_all_said_to_be_freed_gives_no_more_objects() {
    let node = node();
    node.lend(|mut token| {
        set_aside::<u64>(&node, &mut token);
        let born = bear(&mut token, 1_u64);
        let first = born[0].oid();
        let range = OidRange { first, count: 64 };
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            heap.hear_of_born(|_, _| ());
            heap.free(range).unwrap();
            // The record is another chunk's now.
            heap.alloc([7_u8; 3]).unwrap();
        });
        set_aside::<u64>(&node, &mut token);
        let r = token.bear(LAZY, here(), 2_u64).unwrap();
        assert!(!range.contains(r.oid()));
        heard(&node, &mut token);
        assert_eq!(*token.get(r).unwrap(), 2);
    })
    .unwrap();
}
