//! `Event::Flush`, and the messages `Flush` and `FlushAck`: what was written goes home.

use crate::pack::{OBJECT, Pack, from, n};
use dhole_model::{Coherence, OidRange};
use dhole_protocol::{
    Behind, Command, Event, Flush, Flushed, Message, ProtocolError, RegionCommand, RegionMessage,
    Unit, WorkerIs,
};

/// A pack whose node 0 is home of an object that node 1 has fetched and written.
fn written() -> Pack {
    let mut pack = Pack::new(3);
    pack.local(
        0,
        crate::pack::allocated_under(OidRange::one(OBJECT), Coherence::Home),
    );
    pack.run(1, crate::pack::miss_under(OBJECT, 0, Coherence::Home));
    let made = pack.local(
        1,
        Event::WriteFault {
            oid: OBJECT,
            site: crate::pack::site(3),
        },
    );
    let pre_image = true;
    assert_eq!(
        made,
        [Command::Objects(RegionCommand::MakeWritable {
            region: OBJECT,
            pre_image
        })],
        "a twin"
    );
    assert!(pack.nodes[1].has_unflushed());
    pack
}

fn flush(number: u32) -> Message {
    let flushed = [Flushed {
        region: OBJECT,
        bytes: 0,
    }];
    Message::Region(RegionMessage::Flush(Flush {
        number,
        flushed: flushed.into_iter().collect(),
        at: None,
    }))
}

#[test]
fn a_flush_is_over_when_its_home_has_merged_it() {
    let mut pack = written();
    let begun = pack.begin(1, Event::Flush);
    let [
        Command::SendUnits {
            ref to,
            message: Message::Region(RegionMessage::Flush(ref said)),
            ref units,
            what: Behind::Changes,
        },
        Command::Objects(RegionCommand::MakeClean(OBJECT)),
    ] = begun[..]
    else {
        panic!("{begun:?}")
    };
    assert_eq!(
        (&to[..], &units[..]),
        (&[n(0)][..], &[Unit::Object(OBJECT)][..])
    );
    assert_eq!(said.at, None, "no races are looked for");
    let number = said.number;
    let done = pack.begin(0, from(1, flush(number)));
    assert!(
        matches!(
            done[..],
            [Command::Objects(RegionCommand::MergeNext {
                region: OBJECT,
                ..
            })]
        ),
        "{done:?}"
    );
    assert_eq!(
        pack.begin(
            1,
            from(0, Message::Region(RegionMessage::FlushAck { number }))
        ),
        [Command::Done]
    );
    assert!(!pack.nodes[1].has_unflushed());
    let again = pack.refuse(
        1,
        from(0, Message::Region(RegionMessage::FlushAck { number })),
    );
    assert!(matches!(again, ProtocolError::BadMessage { .. }));
}

#[test]
fn a_home_whose_worker_may_hold_references_merges_at_its_next_call() {
    for worker in [WorkerIs::Computing, WorkerIs::Sharing] {
        let mut pack = written();
        let kept = pack.step(0, from(1, flush(1)), worker).unwrap();
        let (message, from) = (flush(1), n(1));
        let again = Event::DeliverAgain { from, message };
        let (message, from) = (flush(1), n(1));
        let keeps = Command::DeliverAgain { from, message };
        assert_eq!(kept, std::slice::from_ref(&keeps));
        assert!(
            pack.nodes[0].has_deferred() && pack.in_flight.is_empty(),
            "no acknowledgement"
        );
        let kept = pack.step(0, again.clone(), WorkerIs::Sharing).unwrap();
        assert_eq!(kept, [keeps]);
        let served = pack.step(0, again, WorkerIs::InCall).unwrap();
        assert!(
            matches!(
                served[..],
                [Command::Objects(RegionCommand::MergeNext {
                    region: OBJECT,
                    ..
                })]
            ),
            "{served:?}"
        );
        let (_, _, ack) = pack.in_flight.pop_front().unwrap();
        assert_eq!(ack, Message::Region(RegionMessage::FlushAck { number: 1 }));
    }
}

#[test]
fn a_second_flush_of_a_node_while_one_waits_is_refused() {
    let mut pack = written();
    pack.step(0, from(1, flush(1)), WorkerIs::Computing)
        .unwrap();
    let error = pack.refuse(0, from(1, flush(2)));
    assert!(error.to_string().contains("second flush"), "{error}");
}

#[test]
fn a_flush_to_a_node_that_is_not_home_is_refused() {
    let mut pack = written();
    for node in [1, 2] {
        let error = pack.refuse(node, from(0, flush(1)));
        assert!(error.to_string().contains("not at home here"), "{error}");
    }
}

#[test]
fn home_writes_in_place_and_sends_nothing() {
    let mut pack = written();
    let made = pack.local(
        0,
        Event::WriteFault {
            oid: OBJECT,
            site: crate::pack::site(3),
        },
    );
    let pre_image = false;
    assert_eq!(
        made,
        [Command::Objects(RegionCommand::MakeWritable {
            region: OBJECT,
            pre_image
        })]
    );
    let flushed = pack.local(0, Event::Flush);
    assert_eq!(
        flushed,
        [
            Command::Objects(RegionCommand::MakeClean(OBJECT)),
            Command::Done
        ]
    );
}

#[test]
fn copies_elsewhere_are_dropped_at_an_acquire_and_the_homes_stays() {
    let mut pack = written();
    pack.run(1, Event::Flush);
    pack.barrier();
    assert!(pack.done[1].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    assert!(!pack.done[0].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    let before = pack.in_flight.len();
    pack.begin(1, crate::pack::miss_under(OBJECT, 0, Coherence::Home));
    assert_eq!(pack.in_flight.len(), before + 1, "it asks its home again");
}

#[test]
fn what_is_written_at_home_elsewhere_costs_no_notice() {
    let mut pack = written();
    pack.run(1, Event::Flush);
    let arrived = pack.begin(1, crate::pack::arrive());
    assert!(!arrived.contains(&Command::IntervalEnded), "{arrived:?}");
}
