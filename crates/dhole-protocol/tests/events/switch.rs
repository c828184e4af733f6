//! `Event::Switch` and `Switched`: objects change protocol at a barrier.

use crate::pack::{OBJECT, Pack, site};
use dhole_model::{Coherence, OidRange};
use dhole_protocol::{Command, Event, Message, ProtocolError, RegionCommand, Unread};

fn switch(count: u32, to: Coherence, zero_ok: bool) -> Event {
    Event::Switch {
        range: OidRange {
            first: OBJECT,
            count,
        },
        creator: crate::pack::n(0),
        zero_ok,
        to,
        site: site(3),
    }
}

fn switched(to: Coherence) -> Event {
    let (range, creator) = (OidRange::one(OBJECT), crate::pack::n(0));
    let allocated = Coherence::Lazy;
    Event::Switched {
        range,
        creator,
        allocated,
        to,
    }
}

#[test]
fn the_last_writer_becomes_home_and_the_others_drop_their_copies() {
    let mut pack = Pack::with_object(3);
    for node in [1, 2] {
        pack.run(node, crate::pack::miss(OBJECT, 0));
    }
    pack.write(1, OBJECT);
    (0..3).for_each(|node| drop(pack.begin(node, switch(1, Coherence::Home, false))));
    pack.settle();
    assert!((0..3).all(|node| pack.done[node].contains(&Command::Done)));
    (0..3).for_each(|node| drop(pack.local(node, switched(Coherence::Home))));
    pack.begin(2, crate::pack::miss(OBJECT, 0));
    let (_, to, asked) = pack.in_flight.pop_back().unwrap();
    assert!(matches!(asked, Message::Fetch(_)) && to == crate::pack::n(1));
    pack.write(1, OBJECT);
    assert_eq!(
        pack.local(1, Event::Flush),
        [
            Command::Objects(RegionCommand::MakeClean(OBJECT)),
            Command::Done
        ]
    );
}

#[test]
fn rows_that_nobody_wrote_get_their_zeros_where_they_were_allocated() {
    let mut pack = Pack::new(2);
    let begun = pack.begin(0, switch(1, Coherence::Home, true));
    assert_eq!(begun, [Command::Objects(RegionCommand::ZeroFill(OBJECT))]);
    let begun = pack.begin(1, switch(1, Coherence::Home, true));
    assert_eq!(begun, []);
}

#[test]
fn a_row_freed_before_the_switch_stays_freed() {
    let mut pack = Pack::new(2);
    let site = site(4);
    let range = OidRange::one(OBJECT);
    pack.local(0, Event::Free { range, site });
    let refused = pack.refuse(0, switch(1, Coherence::Home, true));
    assert!(matches!(refused, ProtocolError::Freed(_)), "{refused}");
}

#[test]
fn what_one_node_alone_wrote_is_read_only_afterwards() {
    let mut pack = Pack::with_object(2);
    for _ in 0..2 {
        pack.write(0, OBJECT);
        pack.barrier();
    }
    (0..2).for_each(|node| drop(pack.begin(node, switch(1, Coherence::Update, false))));
    pack.settle();
    let done = pack.local(0, switched(Coherence::Update));
    assert_eq!(done, [Command::Objects(RegionCommand::MakeClean(OBJECT))]);
}

#[test]
fn nodes_that_do_not_agree_are_told_what_each_of_them_switches() {
    for (count, to) in [(2, Coherence::Home), (1, Coherence::Update)] {
        let mut pack = Pack::with_object(2);
        pack.begin(0, switch(1, Coherence::Home, false));
        pack.begin(1, switch(count, to, false));
        pack.settle();
        for node in 0..2 {
            let [Command::Deadlock(cycle)] = &pack.done[node][..] else {
                panic!("{:?}", pack.done[node])
            };
            let words = cycle.iter().map(ToString::to_string).collect::<String>();
            assert!(
                words.contains("switch of 1 ") && words.contains(to.name()),
                "{words}"
            );
        }
    }
}

#[test]
fn what_was_written_at_home_is_no_row_of_zeros_afterwards() {
    let mut pack = Pack::new(2);
    let zeros = Event::ReadMiss(Unread {
        oid: OBJECT,
        creator: crate::pack::n(0),
        zero_ok: true,
        coherence: Coherence::Home,
    });
    let home = crate::pack::allocated_under(OidRange::one(OBJECT), Coherence::Home);
    pack.local(0, home);
    pack.write(0, OBJECT);
    pack.local(0, Event::Flush);
    for node in 0..2 {
        let (range, creator) = (OidRange::one(OBJECT), crate::pack::n(0));
        let switched = Event::Switched {
            range,
            creator,
            allocated: Coherence::Home,
            to: Coherence::Lazy,
        };
        pack.local(node, switched);
    }
    pack.begin(1, zeros);
    assert_eq!(pack.in_flight.len(), 1, "asks node 0");
}
