//! Hits and warm installs allocate nothing, counted by an allocator.

#![allow(
    clippy::disallowed_macros,
    reason = "each test counts its own thread's allocations"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dhole_heap::{Cluster, Monitor, Ref, Share};
use dhole_model::NodeId;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; the counter is a plain cell of the
// thread, without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    f();
    ALLOCATIONS.with(Cell::get) - before
}

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
struct Body {
    at: [f64; 3],
    fixed: bool,
    next: Option<Ref<Body>>,
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_hit_allocates_nothing() {
    let cluster = Cluster::new(1).unwrap();
    let node = Monitor::new(&cluster, NodeId(0), ());
    let refs = node.lock().split().0.alloc_range(100, |i| i).unwrap();
    node.lend(|mut token| {
        node.exclusive_call(&mut token, |call| {
            call.split()
                .0
                .make_writable(refs.at(0).oid(), true)
                .unwrap();
        });
        let counted = allocations(|| {
            let sum: u64 = refs.iter().map(|r| *token.get(r).unwrap()).sum();
            *token.get_mut(refs.at(0)).unwrap() = sum;
        });
        assert_eq!(counted, 0);
    })
    .unwrap();
}

#[test]
fn a_warm_install_allocates_nothing() {
    let cluster = Cluster::new(2).unwrap();
    let (a, b) = (
        Monitor::new(&cluster, NodeId(0), ()),
        Monitor::new(&cluster, NodeId(1), ()),
    );
    let first = Body {
        at: [1.0; 3],
        fixed: false,
        next: None,
    };
    let head = a.lock().split().0.alloc(first).unwrap();
    let body = a
        .lock()
        .split()
        .0
        .alloc(Body {
            next: Some(head),
            ..first
        })
        .unwrap();
    let mut bytes = Vec::new();
    let mut round = |token: &mut dhole_heap::Token<'_>| {
        b.exclusive_call(token, |call| {
            let (mut heap, _) = call.split();
            heap.invalidate(body.oid()).unwrap();
        });
        bytes.clear();
        a.lock().split().0.gather(body.oid(), &mut bytes).unwrap();
        b.shared_call(token, |call| {
            call.split().0.install(body.oid(), &bytes).unwrap()
        });
        b.exclusive_call(token, |call| {
            call.split().0.make_writable(body.oid(), true).unwrap();
            call.split().0.make_clean(body.oid()).unwrap();
        });
        assert_eq!(token.get(body).unwrap().next, Some(head));
    };
    b.lend(|mut token| {
        round(&mut token);
        assert_eq!(allocations(|| (0..10).for_each(|_| round(&mut token))), 0);
    })
    .unwrap();
}
