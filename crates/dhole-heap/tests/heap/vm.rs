//! The same under the detector `vm`, and what is its own: what may not be touched faults.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::duplicate_mod, reason = "the same tests for another cluster")]

#[path = "access.rs"]
mod access;
#[path = "arrays.rs"]
mod arrays;
#[path = "borrow.rs"]
mod borrow;
#[path = "diff.rs"]
mod diff;
#[path = "free.rs"]
mod free;
#[path = "presence.rs"]
mod presence;
#[path = "threads.rs"]
mod threads;

use std::sync::Arc;

use dhole_heap::{Cluster, Monitor, PAGE_BYTES, Ref, Token};
use dhole_model::{Detector, Elements, NodeId};

fn cluster(nodes: usize) -> Arc<Cluster> {
    Cluster::with_detector(nodes, Detector::Vm).expect("views")
}

fn one() -> Monitor<()> {
    Monitor::new(&cluster(1), NodeId(0), ())
}

/// The end of an interval that wrote it.
fn end_interval(node: &Monitor<()>, token: &mut Token<'_>, r: Ref<u64>) {
    node.exclusive_call(token, |call| call.split().0.make_clean(r.oid()).unwrap());
}

fn make_writable(node: &Monitor<()>, token: &mut Token<'_>, r: Ref<u64>) {
    node.exclusive_call(token, |call| {
        call.split().0.make_writable(r.oid(), false).unwrap();
    });
}

#[test]
fn a_handle_selects_the_view_that_allows_as_much_as_the_worker_may() {
    let node = one();
    let objects = node.lock().split().0.alloc_range(600, |i| i).unwrap();
    let lent = node.lend(|mut token| {
        let r = objects.at(599);
        for value in 1000..1010 {
            assert!(token.get_mut(r).is_err(), "a first write faults");
            let clean: *const u64 = token.get(r).unwrap();
            make_writable(&node, &mut token, r);
            *token.get_mut(r).unwrap() = value;
            let dirty: *const u64 = token.get(r).unwrap();
            assert_ne!(
                clean, dirty,
                "reads go through the view that is written, too"
            );
            assert_eq!(token.get(r).copied().unwrap(), value);
            end_interval(&node, &mut token, r);
            assert_eq!(std::ptr::from_ref(token.get(r).unwrap()), clean);
            assert_eq!(token.get(r).copied().unwrap(), value, "it is one memory");
            let others = objects.iter().take(599).enumerate();
            assert!(
                others
                    .clone()
                    .all(|(i, r)| *token.get(r).unwrap() == i as u64)
            );
        }
        node.exclusive_call(&mut token, |call| {
            call.split().0.invalidate(r.oid()).unwrap();
        });
        assert!(token.get(r).is_err() && token.get_mut(r).is_err());
        assert!(!token.is_readable(&token.get(r).unwrap_err()));
        node.exclusive_call(&mut token, |call| {
            call.split()
                .0
                .install(r.oid(), &7_u64.to_ne_bytes())
                .unwrap();
        });
        assert_eq!(token.get(r).copied().unwrap(), 7);
    });
    lent.unwrap();
}

#[test]
fn a_call_that_shares_the_token_ends_a_write_too() {
    let node = one();
    let r = node.lock().split().0.alloc(5_u64).unwrap();
    let lent = node.lend(|mut token| {
        make_writable(&node, &mut token, r);
        *token.get_mut(r).unwrap() = 6;
        let seen = token.get(r).unwrap();
        node.shared_call(&token, |call| call.split().0.make_clean(r.oid()).unwrap());
        assert_eq!(*seen, 6);
        assert!(token.get_mut(r).is_err());
    });
    lent.unwrap();
}

#[test]
fn an_object_larger_than_a_page_is_protected_whole() {
    let node = one();
    let len = 5 * PAGE_BYTES / 8 + 3;
    let row = node
        .lock()
        .split()
        .0
        .alloc_rows::<u64>(1, len)
        .unwrap()
        .row(0);
    let lent = node.lend(|mut token| {
        assert!(token.get(row).is_err());
        let oid = row.oid();
        node.exclusive_call(&mut token, |call| call.split().0.zero_fill(oid).unwrap());
        assert!(token.get(row).unwrap().iter().all(|&x| x == 0));
        assert!(token.get_mut(row).is_err());
        node.exclusive_call(&mut token, |call| {
            call.split().0.make_writable(oid, true).unwrap();
        });
        token.get_mut(row).unwrap().fill(9);
        node.exclusive_call(&mut token, |call| call.split().0.make_clean(oid).unwrap());
        assert!(token.get_mut(row).is_err());
        assert!(token.get(row).unwrap().iter().all(|&x| x == 9));
    });
    lent.unwrap();
}

#[test]
fn of_an_array_each_block_is_protected_for_itself_and_a_part_of_one_too() {
    let node = one();
    let block = PAGE_BYTES as usize / 8;
    let array = node
        .lock()
        .split()
        .0
        .alloc_array::<u64>(8 * block as u64)
        .unwrap();
    let part = |range: std::ops::Range<usize>| {
        Elements::new(array.oid(), range.start as u64..range.end as u64)
    };
    let lent = node.lend(|mut token| {
        let whole = part(block..3 * block);
        let some = part(4 * block + 5..4 * block + 9);
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            for elements in [whole, some] {
                heap.zero_fill_elements(elements).unwrap();
            }
            heap.make_elements_writable(part(2 * block..3 * block))
                .unwrap();
        });
        let (node, home) = (&node, &node);
        let mut w = access::Worker { token, node, home };
        array
            .try_slice_mut(&mut w, 2 * block..3 * block)
            .unwrap()
            .fill(4);
        let both = array.try_slice(&w, block..3 * block).unwrap();
        assert_eq!(both.iter().sum::<u64>(), 4 * block as u64, "over two views");
        assert_eq!(
            array.try_slice(&w, 4 * block + 5..4 * block + 9).unwrap(),
            [0; 4]
        );
    });
    lent.unwrap();
}
