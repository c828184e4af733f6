//! Lazy flushing: which copies of objects at home elsewhere stay over acquires, and until when.

use crate::pack::{OBJECT, Pack, allocated_under, from, miss_under, site};
use dhole_model::{Coherence, MessageKind, OidRange};
use dhole_protocol::{Command, Event, FetchReply, Message, RegionCommand, RegionMessage};

/// A pack whose node 0 is home of an object.
fn pack() -> Pack {
    let mut pack = Pack::new(3);
    pack.local(0, allocated_under(OidRange::one(OBJECT), Coherence::Home));
    pack
}

fn read(pack: &mut Pack, node: usize) {
    pack.run(node, miss_under(OBJECT, 0, Coherence::Home));
}

fn write(pack: &mut Pack, node: usize) {
    let site = site(3);
    pack.local(node, Event::WriteFault { oid: OBJECT, site });
    pack.run(node, Event::Flush);
}

/// Node 1 reads the object in three phases.
fn kept() -> Pack {
    let mut pack = pack();
    for _ in 0..3 {
        read(&mut pack, 1);
        pack.done[1].clear();
        pack.barrier();
    }
    pack
}

fn drops(pack: &mut Pack, node: usize) -> bool {
    pack.done[node].clear();
    pack.barrier();
    pack.done[node].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)))
}

#[test]
fn what_is_fetched_for_the_third_time_unwritten_is_kept() {
    let mut pack = pack();
    for kept in [false, false, true, true] {
        read(&mut pack, 1);
        assert_eq!(drops(&mut pack, 1), !kept);
    }
    assert_eq!(pack.sent.get(&MessageKind::Fetch), Some(&3));
}

#[test]
fn a_write_between_starts_the_count_again() {
    let mut pack = pack();
    for _ in 0..4 {
        for _ in 0..2 {
            read(&mut pack, 1);
            assert!(drops(&mut pack, 1));
        }
        write(&mut pack, 0);
    }
    assert_eq!(pack.sent.get(&MessageKind::Outdated), None);
}

#[test]
fn a_flush_at_home_waits_until_those_that_keep_the_object_know() {
    let mut pack = kept();
    let site = site(3);
    pack.local(0, Event::WriteFault { oid: OBJECT, site });
    let begun = pack.begin(0, Event::Flush);
    assert!(!begun.contains(&Command::Done), "{begun:?}");
    pack.done[0].clear();
    pack.settle();
    assert_eq!(pack.done[0], [Command::Done]);
    assert!(drops(&mut pack, 1), "at the next acquire, and not before");
}

#[test]
fn a_flush_of_another_node_is_acknowledged_when_those_that_keep_the_object_know() {
    let mut pack = kept();
    read(&mut pack, 2);
    write(&mut pack, 2);
    let of_home = [
        MessageKind::Flush,
        MessageKind::FlushAck,
        MessageKind::Outdated,
        MessageKind::OutdatedAck,
    ];
    for kind in of_home {
        assert_eq!(pack.sent.get(&kind), Some(&1), "{kind:?}");
    }
    assert!(drops(&mut pack, 1));
}

#[test]
fn who_keeps_an_object_and_alone_writes_it_goes_on_keeping_it() {
    let mut pack = kept();
    for _ in 0..3 {
        write(&mut pack, 1);
        assert!(!drops(&mut pack, 1));
    }
    assert_eq!(pack.sent.get(&MessageKind::Outdated), None);
}

#[test]
fn what_is_outdated_before_it_comes_is_not_kept() {
    let mut pack = pack();
    for _ in 0..2 {
        read(&mut pack, 1);
        pack.barrier();
    }
    pack.begin(1, miss_under(OBJECT, 0, Coherence::Home));
    pack.deliver_next();
    let (_, _, reply) = pack.in_flight.pop_back().expect("a reply");
    assert!(matches!(
        reply,
        Message::FetchReply(FetchReply { keep: true, .. })
    ));
    write(&mut pack, 0);
    pack.begin(1, from(0, reply));
    assert!(drops(&mut pack, 1));
}

#[test]
fn nobody_knows_what_it_was_not_told() {
    let mut pack = pack();
    let error = pack.refuse(
        0,
        from(1, Message::Region(RegionMessage::OutdatedAck { number: 1 })),
    );
    assert!(
        error.to_string().contains("of which it was not told"),
        "{error}"
    );
}

#[test]
fn what_nobody_has_had_stays_writable_at_home() {
    let mut pack = pack();
    write(&mut pack, 0);
    let site = site(4);
    let fault = Event::WriteFault { oid: OBJECT, site };
    assert_eq!(pack.local(0, fault.clone()), []);
    assert!(!pack.nodes[0].has_unflushed());
    let served = pack.run(1, miss_under(OBJECT, 0, Coherence::Home));
    assert!(served.contains(&Command::Done));
    assert!(pack.done[0].contains(&Command::Objects(RegionCommand::MakeClean(OBJECT))));
    let pre_image = false;
    let made = Command::Objects(RegionCommand::MakeWritable {
        region: OBJECT,
        pre_image,
    });
    assert_eq!(pack.local(0, fault), [made], "no races are looked for");
}
