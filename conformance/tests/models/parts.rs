//! The parts of a model: its history of writes, its heaps, and the order of operations.

use conformance::model::{Fault, Heap, History, Op, Presence, WriteId, explains};
use conformance::objects::Op as Do;

#[test]
fn a_write_before_the_release_must_be_seen_after_the_acquire() {
    let mut history = History::default();
    history.acquired(0, 0).unwrap();
    let first = history.write(0, 0, 1, WriteId::INITIAL);
    history.released(0, 0);
    history.read(1, 0, WriteId::INITIAL).unwrap();
    history.read(1, 0, first).unwrap();
    history.acquired(1, 0).unwrap();
    assert_eq!(history.read(1, 0, WriteId::INITIAL), Err(Fault::StaleRead));
    history.read(1, 0, first).unwrap();
    let second = history.write(1, 0, 1, first);
    assert_eq!(history.read(1, 0, first), Err(Fault::StaleRead));
    history.read(0, 0, first).unwrap();
    history.read(0, 0, second).unwrap();
    assert!(history.is_alone(1, 0) && !history.is_alone(0, 0));
}

#[test]
fn nobody_leaves_a_barrier_that_not_all_have_reached() {
    let mut history = History::default();
    let written = history.write(1, 3, 1, WriteId::INITIAL);
    history.arrived(0, 0);
    assert_eq!(history.departed(0, 0, 2), Err(Fault::LeftBarrierEarly));
    history.arrived(1, 0);
    history.departed(0, 0, 2).unwrap();
    assert_eq!(history.read(0, 3, WriteId::INITIAL), Err(Fault::StaleRead));
    history.read(0, 3, written).unwrap();
}

#[test]
fn a_lock_has_one_holder() {
    let mut history = History::default();
    history.acquired(0, 1).unwrap();
    assert_eq!(history.holder(1), Some(0));
    assert_eq!(history.acquired(1, 1), Err(Fault::TwoHolders));
}

#[test]
fn nothing_is_moved_under_a_computing_worker() {
    let mut heap = Heap::new(2);
    heap.allocate(0);
    for at in [Presence::Computing, Presence::Shared] {
        assert_eq!(heap.invalidate(0, at), Err(Fault::Presence));
        assert_eq!(heap.make_writable(0, false, at), Err(Fault::Presence));
    }
    heap.make_writable(0, false, Presence::Exclusive).unwrap();
    assert_eq!(heap.gather(0, Presence::Computing), Err(Fault::Presence));
    heap.gather(0, Presence::Shared).unwrap();
    assert_eq!(
        heap.make_clean(0, Presence::Computing),
        Err(Fault::Presence)
    );
    assert_eq!(
        heap.install(1, WriteId::INITIAL, Presence::Computing),
        Err(Fault::Presence)
    );
    heap.install(1, WriteId::INITIAL, Presence::Shared).unwrap();
}

#[test]
fn a_pre_image_keeps_the_bytes_from_before_the_write() {
    let (mut heap, mut history) = (Heap::new(1), History::default());
    heap.allocate(0);
    heap.make_writable(0, true, Presence::Exclusive).unwrap();
    heap.write(0, history.write(0, 0, 1, WriteId::INITIAL));
    assert_eq!(heap.gather_pre_image(0), Ok(WriteId::INITIAL));
    heap.make_clean(0, Presence::Exclusive).unwrap();
    assert_eq!(heap.gather_pre_image(0), Err(Fault::Heap));
}

#[test]
fn what_no_order_explains_is_told_from_what_one_does() {
    let (set, get) = (|c| Op::Call(c, Do::Add), |c| Op::Call(c, Do::Read));
    let buffering = [vec![set(0), get(1)], vec![set(1), get(0)]];
    for (told, so) in [([0, 0], false), ([0, 1], true), ([1, 1], true)] {
        let told = told.map(|read| vec![1, read]);
        assert_eq!(explains(&buffering, &told), so, "{told:?}");
    }
    let both = [get(0), get(1)];
    let turned = [get(1), get(0)];
    let independent = [vec![set(0)], vec![set(1)], both.to_vec(), turned.to_vec()];
    for (third, fourth, so) in [([1, 0], [1, 0], false), ([1, 0], [0, 1], true)] {
        let told = [vec![1], vec![1], third.to_vec(), fourth.to_vec()];
        assert_eq!(explains(&independent, &told), so, "{told:?}");
    }
}
