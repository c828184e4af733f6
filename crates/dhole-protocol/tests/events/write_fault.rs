//! `Event::WriteFault`: what the first write of an interval leads to, and what the end of the
//! interval does with it.

use crate::pack::{OBJECT, Pack, acquire, miss, release, site};
use dhole_model::{Oid, OidRange};
use dhole_protocol::{Command, Event, Message, RegionCommand};

fn writable(pre_image: bool) -> Vec<Command> {
    vec![Command::Objects(RegionCommand::MakeWritable {
        region: OBJECT,
        pre_image,
    })]
}

#[test]
fn the_first_write_makes_the_copy_writable_and_the_second_does_nothing() {
    let mut pack = Pack::with_object(2);
    assert_eq!(
        pack.local(
            0,
            Event::WriteFault {
                oid: OBJECT,
                site: site(3)
            }
        ),
        writable(false)
    );
    assert_eq!(
        pack.local(
            0,
            Event::WriteFault {
                oid: OBJECT,
                site: site(3)
            }
        ),
        []
    );
}

#[test]
fn an_object_that_was_sent_to_somebody_gets_a_pre_image() {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    assert_eq!(
        pack.local(
            0,
            Event::WriteFault {
                oid: OBJECT,
                site: site(3)
            }
        ),
        writable(true)
    );
}

#[test]
fn an_interval_ends_with_a_clean_object_and_one_notice() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    let done = pack.begin(0, acquire(1));
    assert_eq!(
        done,
        [
            Command::Objects(RegionCommand::MakeClean(OBJECT)),
            Command::IntervalEnded
        ]
    );
}

#[test]
fn an_interval_that_wrote_nothing_leaves_no_trace() {
    let mut pack = Pack::with_object(2);
    assert_eq!(pack.begin(0, acquire(1)), []);
    pack.settle();
    assert!(matches!(pack.done[0][..], [Command::Done]));
}

#[test]
fn neighbours_share_a_range_in_the_notice() {
    let mut pack = Pack::new(2);
    pack.local(
        0,
        crate::pack::allocated(OidRange {
            first: Oid(64),
            count: 10,
        }),
    );
    for oid in [67, 64, 66, 70, 65] {
        pack.write(0, Oid(oid));
    }
    pack.local(0, acquire(0));
    pack.local(0, release(0));
    pack.begin(1, acquire(0));
    pack.deliver_next();
    let Message::LockGrant { news, .. } = &pack.in_flight[0].2 else {
        panic!("a grant")
    };
    let ranges: Vec<(u64, u32)> = news.intervals[0]
        .written
        .iter()
        .map(|range| (range.first.0, range.count))
        .collect();
    assert_eq!(ranges, [(64, 4), (70, 1)]);
}

#[test]
fn of_two_racing_writers_one_keeps_its_copy() {
    let mut pack = Pack::with_object(3);
    for node in [1, 2] {
        pack.run(node, miss(OBJECT, 0));
    }
    for node in 0..3 {
        pack.write(node, OBJECT);
    }
    pack.barrier();
    let lost: Vec<usize> = (0..3)
        .filter(|node| {
            pack.done[*node].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)))
        })
        .collect();
    assert_eq!(
        lost,
        [0, 1],
        "the highest node of the same Lamport time wins"
    );
}
