//! `Event::Array`: elements of arrays, each consistent for itself.

use std::ops::Range;

use crate::pack::{Pack, acquire, from, n, release, site};
use dhole_model::{Coherence, Elements, Oid, Version};
use dhole_protocol::{
    ArrayEvent, Command, Event, FetchReply, Message, ReadAhead, RegionCommand, Sent,
    UnreadElements, WorkerIs,
};
use proptest::prelude::*;

const ARRAY: Oid = Oid(128);

fn part(range: Range<u64>) -> Elements {
    Elements::new(ARRAY, range)
}

fn read_within(range: Range<u64>, within: Range<u64>) -> Event {
    let unread = UnreadElements {
        elements: part(range),
        within: part(within),
        creator: n(0),
        zero_ok: true,
        coherence: Coherence::Lazy,
        ahead: None,
    };
    Event::Array(ArrayEvent::Read([unread].into_iter().collect()))
}

fn read(range: Range<u64>) -> Event {
    read_within(range.clone(), range)
}

fn write(range: Range<u64>) -> Event {
    let (elements, site) = (part(range), site(1));
    Event::Array(ArrayEvent::Write { elements, site })
}

fn array(command: RegionCommand<Elements>) -> Command {
    Command::Array(command)
}

fn installed(range: Range<u64>, lamport: u64, node: usize) -> Command {
    let node = n(node);
    let version = Version { lamport, node };
    array(RegionCommand::Install(Sent {
        region: part(range),
        version,
    }))
}

/// A node reads and writes elements, and announces it.
fn touch(pack: &mut Pack, node: usize, range: Range<u64>) {
    pack.run(node, read(range.clone()));
    pack.local(node, write(range));
}

#[test]
fn zeros_that_nobody_wrote_are_made_here() {
    let mut pack = Pack::new(2);
    let zeros = array(RegionCommand::ZeroFill(part(10..20)));
    assert_eq!(pack.local(1, read(10..20)), [zeros, Command::Done]);
    let rest = array(RegionCommand::ZeroFill(part(20..25)));
    assert_eq!(pack.local(1, read(10..25)), [rest, Command::Done]);
}

#[test]
fn elements_come_from_their_last_writers_in_one_round() {
    let mut pack = Pack::new(3);
    touch(&mut pack, 0, 0..10);
    touch(&mut pack, 1, 10..20);
    pack.barrier();
    pack.messages();
    let begun = pack.begin(2, read(5..30));
    assert_eq!(begun, [array(RegionCommand::ZeroFill(part(20..30)))]);
    assert_eq!(pack.in_flight.len(), 2);
    pack.done[2].clear();
    pack.settle();
    let all = [
        installed(5..10, 1, 0),
        installed(10..20, 1, 1),
        Command::Done,
    ];
    assert_eq!(pack.done[2], all);
    assert_eq!(pack.messages(), 4);
}

#[test]
fn only_what_is_invalid_is_asked_for_and_what_was_written_with_it() {
    let mut pack = Pack::new(2);
    pack.local(1, read(0..100));
    touch(&mut pack, 0, 30..60);
    pack.barrier();
    assert!(pack.done[1].contains(&array(RegionCommand::Invalidate(part(30..60)))));
    pack.done[1].clear();
    pack.run(1, read(10..40));
    assert_eq!(pack.done[1], [installed(30..40, 1, 0), Command::Done]);
    pack.done[1].clear();
    pack.run(1, read_within(45..46, 20..50));
    assert_eq!(pack.done[1], [installed(40..50, 1, 0), Command::Done]);
}

#[test]
fn a_write_of_what_is_dirty_costs_nothing_and_neighbours_are_one_write() {
    let mut pack = Pack::new(1);
    pack.local(0, read(0..100));
    let writable = |range| {
        array(RegionCommand::MakeWritable {
            region: part(range),
            pre_image: false,
        })
    };
    assert_eq!(pack.local(0, write(10..20)), [writable(10..20)]);
    assert_eq!(pack.local(0, write(12..20)), []);
    assert_eq!(
        pack.local(0, write(5..25)),
        [writable(5..10), writable(20..25)]
    );
}

#[test]
fn a_notice_says_which_elements_in_order_and_joined() {
    let mut pack = Pack::new(2);
    pack.run(0, acquire(1));
    pack.local(0, read(0..100));
    for range in [40..50, 10..20, 50..60, 20..25] {
        pack.local(0, write(range));
    }
    pack.run(0, release(1));
    pack.begin(1, acquire(1));
    pack.deliver_next();
    let Message::LockGrant { news, .. } = &pack.in_flight[0].2 else {
        panic!("a grant")
    };
    assert_eq!(news.intervals.len(), 1);
    assert_eq!(news.intervals[0].elements, [part(10..25), part(40..60)]);
}

#[test]
fn of_racing_writers_the_greater_version_keeps_its_elements() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..10);
    touch(&mut pack, 1, 5..15);
    pack.barrier();
    assert!(pack.done[0].contains(&array(RegionCommand::Invalidate(part(5..10)))));
    let invalid = |c: &Command| matches!(c, Command::Array(RegionCommand::Invalidate(_)));
    assert!(!pack.done[1].iter().any(invalid), "node 1 has won");
    pack.done.iter_mut().for_each(Vec::clear);
    pack.run(0, read(0..15));
    assert_eq!(pack.done[0], [installed(5..15, 1, 1), Command::Done]);
    pack.run(1, read(0..15));
    assert_eq!(pack.done[1], [installed(0..5, 1, 0), Command::Done]);
}

#[test]
fn other_elements_are_served_at_once_while_some_are_written() {
    let mut pack = Pack::new(3);
    touch(&mut pack, 0, 0..20);
    pack.barrier();
    pack.local(0, write(10..20));
    for (node, range, waits) in [(1, 0..10, false), (2, 9..11, true)] {
        pack.begin(node, read(range));
        let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
        let done = pack.step(0, from(node, message), WorkerIs::Computing);
        assert_eq!(
            done,
            Ok(if waits {
                vec![Command::Deferred]
            } else {
                vec![]
            })
        );
        assert_eq!(pack.nodes[0].has_deferred(), waits);
        pack.settle();
    }
    pack.run(0, Event::Serve);
    assert!(pack.done[2].contains(&Command::Done));
}

#[test]
fn elements_written_alone_stay_writable_until_some_are_asked_for() {
    let mut pack = Pack::new(2);
    for _ in 0..2 {
        pack.run(0, acquire(0));
        touch(&mut pack, 0, 0..20);
        pack.run(0, release(0));
    }
    assert_eq!(pack.local(0, write(0..20)), [], "still writable");
    assert_eq!(pack.run(0, acquire(0)), [Command::Done]);
    assert_eq!(pack.run(0, release(0)), [], "and not announced");
    pack.pass(1, 0);
    pack.begin(1, read(5..8));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let done = pack.step(0, from(1, message.clone()), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![Command::Deferred]));
    let done = pack.run(0, Event::Serve);
    assert_eq!(done, [array(RegionCommand::MakeClean(part(5..8)))]);
    let writable = array(RegionCommand::MakeWritable {
        region: part(5..8),
        pre_image: false,
    });
    assert_eq!(
        pack.local(0, write(0..20)),
        [writable],
        "the others still are"
    );
}

#[test]
fn what_is_overwritten_is_not_asked_for() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 1, 0..20);
    pack.barrier();
    let elements = part(5..10);
    let event = ArrayEvent::Overwrite {
        elements,
        creator: n(0),
        coherence: Coherence::Lazy,
        site: site(1),
    };
    let writable = array(RegionCommand::MakeWritable {
        region: elements,
        pre_image: false,
    });
    assert_eq!(pack.local(0, Event::Array(event)), [writable]);
    pack.barrier();
    assert!(pack.done[1].contains(&array(RegionCommand::Invalidate(elements))));
}

#[test]
fn what_is_written_over_what_was_seen_is_newer_though_nobody_told_of_it() {
    let mut late = Pack::new(2);
    touch(&mut late, 0, 0..10);
    late.barrier();
    late.begin(1, read(0..10));
    let (_, _, message) = late.in_flight.pop_front().expect("a fetch");
    late.run(0, acquire(1));
    touch(&mut late, 0, 0..10);
    late.run(0, release(1));
    late.in_flight.push_back((n(1), n(0), message));
    late.settle();
    assert!(late.done[1].contains(&installed(0..10, 2, 0)));
    late.local(1, write(0..10));
    late.barrier();
    assert!(
        late.done[0].contains(&array(RegionCommand::Invalidate(part(0..10)))),
        "version 3"
    );
}

#[test]
fn replies_and_requests_that_make_no_sense_are_refused() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..20);
    pack.barrier();
    pack.begin(1, read(5..10));
    let (_, _, message) = pack.in_flight[0].clone();
    let Message::FetchElements {
        round,
        wanted,
        beside,
    } = message.clone()
    else {
        panic!("a fetch of elements")
    };
    let reply = |range, lamport| {
        let version = Version {
            lamport,
            node: n(0),
        };
        let elements = part(range);
        let sent = [Sent {
            region: elements,
            version,
        }]
        .into_iter()
        .collect();
        let keep = false;
        from(0, Message::ElementsReply(FetchReply { round, sent, keep }))
    };
    pack.refuse(1, reply(5..11, 1));
    pack.refuse(1, reply(4..10, 1));
    pack.refuse(1, reply(5..10, 0));
    for range in [100..200, 15..25] {
        let mut wanted = wanted.clone();
        wanted[0].region = part(range);
        pack.refuse(
            0,
            from(
                1,
                Message::FetchElements {
                    round,
                    wanted,
                    beside,
                },
            ),
        );
    }
    let mut none = wanted.clone();
    none[0].region.count = 0;
    pack.refuse(
        0,
        from(
            1,
            Message::FetchElements {
                round,
                wanted: none,
                beside,
            },
        ),
    );
    let mut endless = wanted;
    endless[0].region.count = u64::MAX;
    pack.refuse(
        0,
        from(
            1,
            Message::FetchElements {
                round,
                wanted: endless.clone(),
                beside,
            },
        ),
    );
    let wanted = endless;
    let beside = 2;
    pack.refuse(
        0,
        from(
            1,
            Message::FetchElements {
                round,
                wanted,
                beside,
            },
        ),
    );
    pack.settle();
    assert!(
        pack.done[1].contains(&Command::Done),
        "the true reply is still awaited"
    );
}

/// As [`read`], of an array of 40 elements in blocks of 8 and up to 32, read ahead.
fn read_ahead(range: Range<u64>) -> Event {
    let Event::Array(ArrayEvent::Read(mut unread)) = read(range) else {
        unreachable!("an event of arrays")
    };
    unread[0].ahead = Some(ReadAhead {
        block: 8,
        most: 32,
        least: 1,
        share: ReadAhead::QUARTER,
        first: 0,
        end: 40,
    });
    Event::Array(ArrayEvent::Read(unread))
}

/// One range of elements.
fn one(range: Range<u64>) -> Vec<Range<u64>> {
    vec![range]
}

/// What a node asks for: the elements that it waits for, and those beside.
fn asks(pack: &mut Pack, node: usize, event: Event) -> [Vec<Range<u64>>; 2] {
    pack.begin(node, event);
    let Some((_, _, Message::FetchElements { wanted, beside, .. })) = pack.in_flight.front() else {
        panic!("a fetch of elements")
    };
    let ranges = wanted.iter().map(|wanted| wanted.region.range());
    let mut missed: Vec<_> = ranges.collect();
    let beside = missed.split_off(missed.len() - usize::from(*beside));
    pack.settle();
    [missed, beside]
}

#[test]
fn blocks_of_which_enough_came_before_are_read_ahead() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..40);
    pack.barrier();
    let mut asks = |range| asks(&mut pack, 1, read_ahead(range));
    assert_eq!(asks(2..3), [one(2..3), vec![]], "the first miss");
    assert_eq!(asks(4..6), [one(4..6), vec![0..2, 3..4, 6..8]], "8");
    let of_32 = "32, of which a quarter came";
    assert_eq!(asks(9..10), [one(9..10), vec![8..9, 10..32]], "{of_32}");
    assert_eq!(asks(36..37), [one(36..37), vec![]], "8, of which none came");
    assert_eq!(
        asks(33..34),
        [one(33..34), vec![32..33, 34..36, 37..40]],
        "8"
    );
}

#[test]
fn a_block_is_read_ahead_that_is_larger_than_what_is_missed_only() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..40);
    pack.barrier();
    let mut asks = |range| asks(&mut pack, 1, read_ahead(range));
    assert_eq!(asks(0..12)[1], [], "the first miss");
    let over = asks(14..18);
    assert_eq!(
        over,
        [one(14..18), vec![12..14, 18..32]],
        "over the end of a block"
    );
}

#[test]
fn what_a_node_wrote_itself_says_nothing_of_what_it_reads() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..8);
    pack.barrier();
    touch(&mut pack, 1, 0..4);
    pack.barrier();
    touch(&mut pack, 0, 4..8);
    pack.barrier();
    let asked = asks(&mut pack, 1, read_ahead(5..6));
    assert_eq!(asked, [one(5..6), vec![]]);
}

#[test]
fn zeros_that_were_filled_in_here_say_nothing_either() {
    let mut pack = Pack::new(2);
    pack.local(1, read(0..6));
    touch(&mut pack, 0, 6..8);
    pack.barrier();
    let asked = asks(&mut pack, 1, read_ahead(6..7));
    assert_eq!(asked, [one(6..7), vec![]]);
}

#[test]
fn of_what_is_read_ahead_a_reply_leaves_out_what_is_being_written() {
    let mut pack = Pack::new(2);
    touch(&mut pack, 0, 0..8);
    pack.barrier();
    pack.run(1, read(0..1));
    pack.local(0, write(6..7));
    pack.begin(1, read_ahead(3..4));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    pack.done[1].clear();
    let done = pack.step(0, from(1, message), WorkerIs::Computing);
    assert_eq!(done, Ok(vec![]), "answered at once");
    pack.settle();
    let came = [installed(3..4, 1, 0), installed(1..3, 1, 0), Command::Done];
    assert_eq!(pack.done[1], came);
}

#[test]
fn elements_that_others_have_written_are_not_read_ahead() {
    let mut pack = Pack::new(3);
    touch(&mut pack, 0, 0..8);
    pack.barrier();
    touch(&mut pack, 2, 4..6);
    pack.barrier();
    pack.run(1, read(0..1));
    let asked = asks(&mut pack, 1, read_ahead(2..3));
    assert_eq!(asked, [one(2..3), vec![1..2, 3..4, 6..8]]);
}

/// What each of two nodes knows of each element, kept one by one.
const PLACES: usize = 12;

proptest! {
    /// Two nodes write parts in turn under a lock and read parts: what is fetched is just what
    /// a naive count of versions says is stale.
    #[test]
    fn what_is_fetched_is_what_is_stale_element_by_element(
        turns in prop::collection::vec(
            (0..2_usize, 0..PLACES as u64, 1..6_u64, any::<bool>()), 1..40)
    ) {
        let mut pack = Pack::new(2);
        let (mut newest, mut held) = ([0_u64; PLACES], [[u64::MAX; PLACES]; 2]);
        for (time, (node, start, count, writes)) in (1..).zip(turns) {
            let range = start..(start + count).min(PLACES as u64);
            prop_assert!(pack.run(node, acquire(0)).contains(&Command::Done));
            let done = pack.run(node, read(range.clone()));
            let mut brought = [false; PLACES];
            for command in &done {
                let elements = match command {
                    Command::Array(RegionCommand::Install(sent)) => sent.region,
                    Command::Array(RegionCommand::ZeroFill(elements)) => *elements,
                    _ => continue,
                };
                elements.range().for_each(|place| brought[place as usize] = true);
            }
            for place in range.clone().map(|place| place as usize) {
                let stale = held[node][place] != newest[place];
                prop_assert_eq!(brought[place], stale, "place {} in turn {}", place, time);
                held[node][place] = newest[place];
            }
            if writes {
                pack.local(node, write(range.clone()));
                for place in range.map(|place| place as usize) {
                    (newest[place], held[node][place]) = (time, time);
                }
            }
            pack.run(node, release(0));
        }
    }
}
