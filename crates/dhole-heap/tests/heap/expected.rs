//! Objects that are expected to be written: the worker notes its first write by itself.

use std::panic::Location;

use dhole_heap::{Miss, Monitor, ObjectRefusal, Presence, Ref};
use dhole_model::NodeId;

use super::cluster;

fn miss(r: Ref<u64>) -> Miss {
    Miss::of(r, Location::caller())
}

#[test]
fn a_write_is_noted_by_the_worker_itself_and_once() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let (r, other) = {
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        (heap.alloc(5_u64).unwrap(), heap.alloc(6_u64).unwrap())
    };
    let lent = node.lend(|mut token| {
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            heap.expect_write(r.oid(), true).unwrap();
            heap.expect_write(other.oid(), true).unwrap();
            assert!(heap.is_writable(r.oid()) && heap.is_untouched(r.oid()));
        });
        assert_eq!(*token.get(r).unwrap(), 5);
        assert!(token.get_mut(r).is_err(), "it is to be noted first");
        let at = Location::caller();
        assert!(token.note_write(&Miss::of(r, at)));
        assert!(!token.note_write(&Miss::of(r, at)), "it is noted");
        *token.get_mut(r).unwrap() = 7;
        {
            // A request is answered from what was there before, whether it is written or not.
            let mut guard = node.lock();
            let mut heap = guard.split().0;
            for (of, value) in [(r, 5_u64), (other, 6)] {
                let mut bytes = Vec::new();
                heap.gather_pre_image(of.oid(), &mut bytes).unwrap();
                assert_eq!(bytes, value.to_ne_bytes());
            }
            let refused = heap.take_noted().unwrap_err().refusal;
            assert_eq!(refused, ObjectRefusal::Presence(Presence::Computing));
        }
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            assert!(!heap.is_untouched(r.oid()) && heap.is_untouched(other.oid()));
            assert_eq!(heap.take_noted().unwrap(), [(r.oid(), at)]);
            assert_eq!(heap.take_noted().unwrap(), []);
            heap.make_clean(other.oid()).unwrap();
            assert!(!heap.is_untouched(other.oid()));
        });
        assert!(!token.note_write(&miss(other)), "it is clean");
        assert_eq!(*token.get(r).unwrap(), 7);
    });
    lent.unwrap();
}

#[test]
fn what_is_not_expected_cannot_be_noted() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let r = node.lock().split().0.alloc(5_u64).unwrap();
    let lent = node.lend(|mut token| {
        assert!(!token.note_write(&miss(r)));
        let mut beyond = miss(r);
        beyond.oid = dhole_model::Oid(u64::MAX);
        assert!(!token.note_write(&beyond));
        node.exclusive_call(&mut token, |call| {
            call.split().0.make_writable(r.oid(), true).unwrap();
        });
        assert!(!token.note_write(&miss(r)));
        assert!(token.get_mut(r).is_ok());
    });
    lent.unwrap();
}

#[test]
fn what_is_expected_and_not_written_is_withdrawn_while_the_worker_computes() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let (r, written) = {
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        (heap.alloc(5_u64).unwrap(), heap.alloc(6_u64).unwrap())
    };
    let lent = node.lend(|mut token| {
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            for oid in [r.oid(), written.oid()] {
                heap.make_writable(oid, false).unwrap();
                assert!(!heap.withdraw(oid), "it may be written without a note");
                heap.expect_again(oid).unwrap();
                assert!(heap.is_untouched(oid));
            }
        });
        assert!(token.note_write(&miss(written)));
        *token.get_mut(written).unwrap() = 7;
        {
            let mut guard = node.lock();
            let mut heap = guard.split().0;
            assert!(heap.withdraw(r.oid()) && !heap.is_writable(r.oid()));
            assert!(!heap.withdraw(r.oid()), "it is clean");
            assert!(!heap.withdraw(written.oid()) && heap.is_writable(written.oid()));
            let mut bytes = Vec::new();
            heap.gather(r.oid(), &mut bytes).unwrap();
            assert_eq!(bytes, 5_u64.to_ne_bytes());
            let refused = heap.expect_again(written.oid()).unwrap_err().refusal;
            assert_eq!(refused, ObjectRefusal::Presence(Presence::Computing));
        }
        assert!(!token.note_write(&miss(r)) && token.get_mut(r).is_err());
        node.exclusive_call(&mut token, |call| {
            let mut heap = call.split().0;
            heap.expect_again(r.oid()).unwrap();
            assert!(!heap.is_untouched(r.oid()), "it is clean");
            heap.expect_again(written.oid()).unwrap();
            assert!(heap.withdraw(written.oid()));
        });
        assert_eq!(*token.get(written).unwrap(), 7);
    });
    lent.unwrap();
}

/// The worker notes a write while another thread withdraws the object: one of them succeeds.
#[test]
fn an_object_is_either_written_or_withdrawn() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let r = node.lock().split().0.alloc(0_u64).unwrap();
    let barrier = std::sync::Barrier::new(2);
    let lent = node.lend(|mut token| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut withdrawn = Vec::new();
                for _ in 0..ROUNDS {
                    barrier.wait();
                    {
                        let mut guard = node.lock();
                        let mut heap = guard.split().0;
                        let is_mine = heap.withdraw(r.oid());
                        let mut bytes = Vec::new();
                        assert_eq!(heap.gather(r.oid(), &mut bytes).is_ok(), is_mine);
                        withdrawn.push(is_mine);
                    }
                    barrier.wait();
                }
                withdrawn
            });
            let mut noted = Vec::new();
            for round in 0..ROUNDS {
                node.exclusive_call(&mut token, |call| {
                    let mut heap = call.split().0;
                    heap.make_writable(r.oid(), false).unwrap();
                    heap.expect_again(r.oid()).unwrap();
                });
                barrier.wait();
                let is_mine = token.note_write(&miss(r));
                if is_mine {
                    *token.get_mut(r).unwrap() = round.into();
                }
                noted.push(is_mine);
                barrier.wait();
            }
            let withdrawn = other.join().unwrap();
            let both = noted.iter().zip(&withdrawn);
            assert!(both.clone().all(|(noted, withdrawn)| noted != withdrawn));
        });
    });
    lent.unwrap();
}
