//! What the heap refuses, whatever order its methods are called in.

use std::panic::Location;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;

use dhole_heap::{
    AllocError, BindError, GatherError, InstallError, Miss, Monitor, ObjectRefusal, Presence, Ref,
    Token,
};
use dhole_model::NodeId;

use super::cluster;

fn one() -> Monitor<()> {
    Monitor::new(&cluster(1), NodeId(0), ())
}

/// Runs `f` as a worker that has allocated one object of 5.
fn worker(f: impl for<'id> FnOnce(&Monitor<()>, Token<'id>, Ref<u64>)) {
    let node = one();
    let r = node.lock().split().0.alloc(5_u64).unwrap();
    node.lend(|token| f(&node, token, r)).unwrap();
}

fn bytes(value: u64) -> [u8; 8] {
    value.to_ne_bytes()
}

#[test]
fn a_worker_that_computes_lets_nothing_change() {
    worker(|node, token, r| {
        let seen = token.get(r).unwrap();
        let mut guard = node.lock();
        let (mut heap, _) = guard.split();
        assert_eq!(heap.presence(), Presence::Computing);
        let refused = ObjectRefusal::Presence(Presence::Computing);
        assert_eq!(heap.invalidate(r.oid()).unwrap_err().refusal, refused);
        assert_eq!(
            heap.make_writable(r.oid(), false).unwrap_err().refusal,
            refused
        );
        assert_eq!(heap.make_clean(r.oid()).unwrap_err().refusal, refused);
        let installed = heap.install(r.oid(), &bytes(1));
        assert!(matches!(installed, Err(InstallError::Presence { .. })));
        assert!(matches!(
            heap.zero_fill(r.oid()),
            Err(InstallError::Presence { .. })
        ));
        assert!(matches!(heap.alloc(1_u8), Err(AllocError::Presence { .. })));
        assert!(matches!(
            heap.alloc_range(1, |i| i),
            Err(AllocError::Presence { .. })
        ));
        assert!(matches!(
            heap.alloc_rows::<u8>(1, 1),
            Err(AllocError::Presence { .. })
        ));
        assert_eq!(
            heap.gather(r.oid(), &mut Vec::new()),
            Ok(8),
            "clean objects are served"
        );
        drop(guard);
        assert_eq!(*seen, 5);
    });
}

#[test]
fn a_shared_call_takes_the_right_to_write_away() {
    worker(|node, mut token, r| {
        node.exclusive_call(&mut token, |call| {
            call.split().0.make_writable(r.oid(), false).unwrap();
        });
        *token.get_mut(r).unwrap() = 6;
        let seen = token.get(r).unwrap();
        node.shared_call(&token, |call| {
            call.split().0.make_clean(r.oid()).unwrap();
        });
        assert_eq!(*seen, 6);
        assert!(token.get_mut(r).is_err(), "the next write faults");
    });
}

#[test]
fn a_shared_call_installs_only_what_is_absent() {
    worker(|node, mut token, r| {
        let gone = node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            let gone = heap.alloc(7_u64).unwrap();
            heap.invalidate(gone.oid()).unwrap();
            gone
        });
        let seen = token.get(r).unwrap();
        node.shared_call(&token, |call| {
            let (mut heap, _) = call.split();
            let present = heap.install(r.oid(), &bytes(1));
            assert!(matches!(present, Err(InstallError::Present { .. })));
            let refused = ObjectRefusal::Presence(Presence::Shared);
            assert_eq!(heap.invalidate(r.oid()).unwrap_err().refusal, refused);
            assert_eq!(
                heap.make_writable(r.oid(), true).unwrap_err().refusal,
                refused
            );
            heap.install(gone.oid(), &bytes(8)).unwrap();
            let twice = heap.install(gone.oid(), &bytes(9));
            assert!(
                matches!(twice, Err(InstallError::Present { .. })),
                "it may be in use"
            );
            // The handle waits for the end of the call, which orders the bytes before it.
            assert!(heap.is_present(gone.oid()) && token.get(gone).is_err());
        });
        assert_eq!((*seen, *token.get(gone).unwrap()), (5, 8));
    });
}

#[test]
fn nested_shared_calls_restore_and_publish() {
    worker(|node, token, _| {
        node.shared_call(&token, |outer| {
            outer.unlock();
            let made = node.shared_call(&token, |call| call.split().0.alloc(1_u8).unwrap());
            assert_eq!(*token.get(made).unwrap(), 1);
            assert_eq!(outer.split().0.presence(), Presence::Shared);
        });
        assert_eq!(node.lock().presence(), Presence::Computing);
    });
}

#[test]
fn a_call_that_unwinds_restores_the_presence() {
    worker(|node, mut token, r| {
        for unlock in [false, true] {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                node.exclusive_call(&mut token, |call| {
                    if unlock {
                        call.unlock();
                    }
                    std::panic::resume_unwind(Box::new(()))
                })
            }));
            assert!(unwound.is_err());
            assert_eq!(node.lock().presence(), Presence::Computing);
            assert_eq!(*token.get(r).unwrap(), 5);
        }
    });
}

#[test]
fn what_is_written_is_served_at_the_next_call() {
    worker(|node, mut token, r| {
        assert!(token.get_mut(r).is_err(), "a clean object is not writable");
        node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            heap.make_writable(r.oid(), true).unwrap();
            assert!(matches!(
                heap.install(r.oid(), &bytes(1)),
                Err(InstallError::Writable { .. })
            ));
        });
        *token.get_mut(r).unwrap() = 6;
        let mut old = Vec::new();
        let refused = node.lock().split().0.gather(r.oid(), &mut old);
        assert!(matches!(refused, Err(GatherError::BeingWritten { .. })));
        node.lock()
            .split()
            .0
            .gather_pre_image(r.oid(), &mut old)
            .unwrap();
        assert_eq!(old, bytes(5));
        let mut new = Vec::new();
        node.shared_call(&token, |call| {
            call.split().0.gather(r.oid(), &mut new).unwrap()
        });
        assert_eq!(new, bytes(6));
        node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            heap.make_clean(r.oid()).unwrap();
            let kept = heap.gather_pre_image(r.oid(), &mut Vec::new());
            assert!(matches!(kept, Err(GatherError::NotStored { .. })));
        });
        assert!(token.get_mut(r).is_err() && *token.get(r).unwrap() == 6);
    });
}

#[test]
fn an_invalid_copy_is_still_served_and_not_written() {
    worker(|node, mut token, r| {
        node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            heap.make_writable(r.oid(), false).unwrap();
            heap.invalidate(r.oid()).unwrap();
            assert!(!heap.is_writable(r.oid()) && heap.has_storage(r.oid()));
            assert_eq!(
                heap.make_writable(r.oid(), false).unwrap_err().refusal,
                ObjectRefusal::Absent
            );
            assert_eq!(heap.gather(r.oid(), &mut Vec::new()), Ok(8));
        });
        assert!(token.get(r).is_err() && token.get_mut(r).is_err());
    });
}

#[test]
fn only_rows_are_filled_with_zeros() {
    worker(|node, mut token, r| {
        let row = node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            heap.invalidate(r.oid()).unwrap();
            assert!(matches!(
                heap.zero_fill(r.oid()),
                Err(InstallError::NotARow { .. })
            ));
            heap.alloc_rows::<i32>(1, 3).unwrap().row(0)
        });
        assert!(token.get(row).is_err());
        node.exclusive_call(&mut token, |call| {
            call.split().0.zero_fill(row.oid()).unwrap();
            call.split().0.make_writable(row.oid(), false).unwrap();
        });
        token.get_mut(row).unwrap()[1] = 4;
        assert_eq!(token.get(row).unwrap(), [0, 4, 0]);
    });
}

#[test]
fn the_token_is_lent_once_and_comes_back_by_unwinding_too() {
    let node = one();
    let twice = node.lend(|_token| node.lend(|_| ()).is_err()).unwrap();
    assert!(twice);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        node.lend(|_| std::panic::resume_unwind(Box::new(())))
    }));
    assert!(unwound.is_err());
    node.lend(|token| std::mem::forget(Box::new(token)))
        .unwrap();
    assert_eq!(node.lock().presence(), Presence::Exclusive);
    node.lend(|_| assert_eq!(node.lock().presence(), Presence::Computing))
        .unwrap();
}

/// Each of two workers gives the turn to the other; the one that was first is over first, by
/// unwinding, while the other waits for the turn.
#[test]
fn who_waits_for_the_turn_has_it_once_the_first_worker_is_over() {
    let node = one();
    let met = Barrier::new(2);
    let waits = || {
        let second = node.lend(|mut token| {
            node.exclusive_call(&mut token, |call| {
                call.give_turn(|| {
                    met.wait();
                    met.wait();
                });
            });
        });
        second.unwrap();
    };
    std::thread::scope(|scope| {
        let first = catch_unwind(AssertUnwindSafe(|| {
            node.lend(|mut token| {
                node.exclusive_call(&mut token, |call| {
                    call.give_turn(|| {
                        scope.spawn(waits);
                        met.wait();
                    });
                });
                std::panic::resume_unwind(Box::new(()));
            })
        }));
        assert!(first.is_err());
        met.wait();
    });
    assert_eq!(node.lock().presence(), Presence::Exclusive);
}

#[test]
#[should_panic(expected = "the token is not that of")]
fn a_token_of_another_monitor_is_refused() {
    let (a, b) = (one(), one());
    let _ = a.lend(|token| b.shared_call(&token, |_| ()));
}

#[test]
#[should_panic(expected = "has its monitor already")]
fn a_node_has_one_monitor() {
    let cluster = cluster(1);
    let _first = Monitor::new(&cluster, NodeId(0), ());
    let _second = Monitor::new(&cluster, NodeId(0), ());
}

#[test]
fn an_initialiser_that_panics_leaves_a_heap_that_works() {
    worker(|node, mut token, _| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            node.exclusive_call(&mut token, |call| {
                call.split().0.alloc_range(200, |i| {
                    assert!(i < 100, "no more");
                    i
                })
            })
        }));
        assert!(unwound.is_err());
        let range = node.exclusive_call(&mut token, |call| {
            call.split().0.alloc_range(200, |i| i).unwrap()
        });
        assert_eq!(
            range.iter().map(|r| *token.get(r).unwrap()).sum::<u64>(),
            199 * 100
        );
    });
}

#[test]
fn a_miss_that_lies_about_its_type_clashes() {
    worker(|node, _, r| {
        let mut guard = node.lock();
        let (mut heap, _) = guard.split();
        let miss = Miss::of(r, Location::caller());
        assert_eq!(heap.bind(&miss), Ok(()));
        let other = Miss {
            ty: dhole_heap::TypeRef::of::<i64>(),
            ..miss.clone()
        };
        assert!(matches!(
            heap.bind(&other),
            Err(BindError::TypeClash { .. })
        ));
        let longer = Miss {
            len: 2,
            ..miss.clone()
        };
        assert!(matches!(
            heap.bind(&longer),
            Err(BindError::TypeClash { .. })
        ));
        let row = Miss { row: true, ..miss };
        assert!(matches!(heap.bind(&row), Err(BindError::TypeClash { .. })));
    });
}
