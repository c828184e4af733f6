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
