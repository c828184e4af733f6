//! Whether an operation need look at what was written, and at what is kept.

use crate::pack::{OBJECT, Pack, allocated_under, from, miss, miss_under, n};
use dhole_model::{Coherence, OidRange};
use dhole_protocol::{Event, WorkerIs};

/// What is quiescent stays as it is at the end of an interval, and when nothing is learnt.
fn is_quiescent(pack: &mut Pack, node: usize) -> bool {
    let quiescent = pack.nodes[node].is_quiescent();
    if quiescent {
        let before = pack.nodes[node].clone();
        assert_eq!(pack.local(node, Event::EndInterval), []);
        pack.local(node, Event::Learn(None));
        assert_eq!(pack.nodes[node], before);
    }
    quiescent
}

#[test]
fn what_was_written_is_told_before_an_operation() {
    let mut pack = Pack::with_object(2);
    assert!(is_quiescent(&mut pack, 0) && is_quiescent(&mut pack, 1));
    pack.write(0, OBJECT);
    assert!(!is_quiescent(&mut pack, 0));
    pack.local(0, Event::EndInterval);
    assert!(is_quiescent(&mut pack, 0));
}

#[test]
fn a_copy_of_what_is_at_home_elsewhere_is_dropped_after_an_operation_and_its_writes_go_home() {
    let mut pack = Pack::new(2);
    pack.local(0, allocated_under(OidRange::one(OBJECT), Coherence::Home));
    pack.run(1, miss_under(OBJECT, 0, Coherence::Home));
    assert!(!is_quiescent(&mut pack, 1));
    pack.local(1, Event::Learn(None));
    assert!(is_quiescent(&mut pack, 1));
    pack.run(1, miss_under(OBJECT, 0, Coherence::Home));
    pack.write(1, OBJECT);
    assert!(pack.nodes[1].has_unflushed());
    assert!(!is_quiescent(&mut pack, 1));
}

#[test]
fn who_waits_for_a_call_is_answered() {
    let mut pack = Pack::with_object(3);
    pack.write(0, OBJECT);
    pack.local(0, Event::EndInterval);
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, fetch) = pack.in_flight.pop_front().expect("a fetch");
    pack.write(0, OBJECT);
    let mut out = Vec::new();
    let request = from(1, fetch);
    pack.nodes[0]
        .step(request, WorkerIs::Computing, &mut out)
        .expect("a request");
    assert!(!is_quiescent(&mut pack, 0), "{} waits", n(1));
}
