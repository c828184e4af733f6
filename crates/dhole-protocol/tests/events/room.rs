//! What other nodes say to have written or freed: a node keeps so much of it in mind, and no more.

use dhole_model::{CHUNK, Elements, Oid, OidRange, VectorTime};
use dhole_protocol::{
    Attached, Fetch, FetchReply, Follow, Interval, LockId, LogLimits, MOST_ALONG, Message,
    ProtocolError, Sent, WorkerIs, WriteNotices,
};

use crate::pack::{OBJECT, Pack, acquire, from, miss, n};

/// How much is kept in these tests.
const MOST: usize = 8;

fn pack() -> Pack {
    let limits = LogLimits {
        most_heard: MOST,
        ..LogLimits::default()
    };
    Pack::with_limits(3, limits)
}

/// The next interval of node 1.
fn interval(index: u32) -> Interval {
    Interval {
        node: n(1),
        first: index,
        index,
        lamport: index.into(),
        written: vec![],
        elements: vec![],
        freed: vec![],
        attached: Attached::Nothing,
        base: None,
    }
}

/// What node 0 makes of a lock that node 1 grants it with this interval.
fn granted(pack: &mut Pack, interval: Interval) -> Result<(), ProtocolError> {
    let lock = 3 * u64::from(interval.index) + 1;
    pack.begin(0, acquire(lock));
    let mut time = VectorTime::zero(3);
    time.see(n(1), interval.index);
    let news = WriteNotices {
        time,
        lamport: interval.lamport,
        intervals: vec![interval.into()],
    };
    let grant = Message::LockGrant {
        lock: LockId(lock),
        news: Box::new(news),
        waiting: Default::default(),
    };
    pack.step(0, from(1, grant), WorkerIs::InCall).map(drop)
}

fn ids(first: u64, count: u32) -> OidRange {
    OidRange {
        first: Oid(first),
        count,
    }
}

fn too_many(first: u64, most: usize) -> Result<(), ProtocolError> {
    Err(ProtocolError::TooManyWritten {
        from: n(1),
        first: Oid(first),
        most,
    })
}

#[test]
fn a_notice_of_more_objects_than_a_node_keeps_in_mind_is_refused_and_its_sender_named() {
    let all = ids(1 << 40, u32::MAX);
    let told = |written| Interval {
        written,
        ..interval(1)
    };
    let beyond = (1 << 40) + MOST as u64 * CHUNK;
    assert_eq!(
        granted(&mut pack(), told(vec![all])),
        too_many(beyond, MOST)
    );
    // Without a limit of a test's own as well.
    let usual = LogLimits::default().most_heard;
    let beyond = (1 << 40) + usual as u64 * CHUNK;
    let refused = granted(&mut Pack::new(3), told(vec![all]));
    assert_eq!(refused, too_many(beyond, usual));
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("node 1") && said.contains("2097152 chunks"),
        "{said}"
    );
    // One object of each of so many chunks is not too many, and telling of them again neither.
    let each = |chunks: u64| {
        (0..chunks)
            .map(|chunk| ids((99 + chunk) * CHUNK, 1))
            .collect()
    };
    let (mut node, most) = (pack(), MOST as u64);
    assert_eq!(granted(&mut node, told(each(most))), Ok(()));
    let again = |chunks| Interval {
        written: each(chunks),
        ..interval(2)
    };
    assert_eq!(granted(&mut node, again(most)), Ok(()));
    let next = Interval {
        written: each(most + 1),
        ..interval(3)
    };
    assert_eq!(
        granted(&mut node, next),
        too_many((99 + most) * CHUNK, MOST)
    );
}

#[test]
fn freed_objects_here_and_there_are_bounded_too() {
    let here_and_there = (0..=MOST as u64).map(|i| ids(7 + 2 * i * CHUNK, 1));
    let told = Interval {
        freed: here_and_there.collect(),
        ..interval(1)
    };
    let beyond = 7 + 2 * MOST as u64 * CHUNK;
    assert_eq!(granted(&mut pack(), told), too_many(beyond, MOST));
}

#[test]
fn arrays_and_ranges_of_freed_ids_are_bounded_by_what_is_kept_before_a_message() {
    let elements = |i: u64| Elements::new(Oid(4096), 2 * i..2 * i + 1);
    let written = |index| Interval {
        elements: (0..MOST as u64).map(elements).collect(),
        ..interval(index)
    };
    let freed = |index| Interval {
        freed: (0..=MOST as u64).map(|i| ids(2 * i * CHUNK, 64)).collect(),
        ..interval(index)
    };
    for first in [written(1), freed(1)] {
        for (next, named) in [(written(3), 4096), (freed(3), 0)] {
            let mut node = pack();
            assert_eq!(granted(&mut node, first.clone()), Ok(()));
            assert_eq!(granted(&mut node, interval(2)), Ok(()), "of nothing");
            assert_eq!(granted(&mut node, next), too_many(named, MOST));
        }
    }
}

#[test]
fn a_question_for_what_nobody_has_leaves_no_trace() {
    let mut node = Pack::new(3).nodes.swap_remove(0);
    let before = node.clone();
    for oid in (1..1000).map(|chunk| Oid(chunk * CHUNK)) {
        let wanted = dhole_protocol::Wanted {
            region: oid,
            need: dhole_model::Version {
                lamport: 0,
                node: n(0),
            },
        };
        let question = Fetch {
            round: 1,
            wanted: [wanted].into(),
            beside: 0,
            follow: Follow::default(),
        };
        let mut out = Vec::new();
        let answer = node.fetch(n(1), question, WorkerIs::InCall, &mut out);
        assert!(answer.is_err() && out.is_empty());
    }
    assert_eq!(node.records_kept(), before.records_kept());
}

#[test]
fn what_comes_along_with_a_reply_is_left_where_much_is_kept() {
    let mut pack = pack();
    pack.begin(0, miss(OBJECT, 1));
    let (_, _, question) = pack.in_flight.pop_front().expect("a question");
    let Message::Fetch(Fetch { round, wanted, .. }) = question else {
        panic!("{question:?}");
    };
    let asked = Sent {
        region: OBJECT,
        version: wanted[0].need,
    };
    let along = (1..=MOST_ALONG as u64).map(|chunk| Sent {
        region: Oid((500 + chunk) * CHUNK),
        ..asked
    });
    let sent = [asked].into_iter().chain(along).collect();
    let reply = Message::FetchReply(FetchReply {
        round,
        sent,
        keep: false,
    });
    pack.step(0, from(1, reply), WorkerIs::InCall)
        .expect("a reply that was asked for");
    let [chunks, ..] = pack.nodes[0].records_kept();
    assert!(chunks <= MOST, "{chunks} chunks");
}
