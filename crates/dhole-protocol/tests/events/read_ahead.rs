//! `Protocol::dense_around`, `reads_ahead`: which objects come ahead of a miss, where enough of
//! those around came from the same node before.

use std::ops::Range;

use dhole_model::{Coherence, Oid, OidRange};
use dhole_protocol::{Event, Fetch, Message, ReadAhead, Unread, WantedList};

use crate::pack::{Pack, acquire, allocated, miss, n, release};

/// Objects of node 0, of a chunk and more.
const FIRST: u64 = 128;
const COUNT: u64 = 80;

/// Blocks of 8 and up to 32, of which a smallest one comes once two of it came.
const AHEAD: ReadAhead = ReadAhead {
    block: 8,
    most: 32,
    least: 2,
    share: ReadAhead::QUARTER,
    first: FIRST,
    end: FIRST + COUNT,
};

fn unread(id: u64) -> Unread {
    let Event::ReadMiss(unread) = miss(Oid(FIRST + id), 0) else {
        unreachable!("a miss")
    };
    unread
}

fn pack() -> Pack {
    let mut pack = Pack::new(3);
    let (first, count) = (Oid(FIRST), COUNT as u32);
    pack.local(0, allocated(OidRange { first, count }));
    pack
}

/// Node 1 misses an object: the range that is dense around it, and what it asks for ahead.
fn misses(pack: &mut Pack, id: u64, ahead: &ReadAhead) -> (Option<Range<u64>>, Vec<u64>) {
    let dense = pack.nodes[1].dense_around(&unread(id), ahead);
    if let Some(range) = dense {
        pack.nodes[1].reads_ahead(range);
    }
    pack.begin(1, miss(Oid(FIRST + id), 0));
    let Some((_, _, Message::Fetch(Fetch { wanted, beside, .. }))) = pack.in_flight.front() else {
        panic!("a fetch")
    };
    let missed = wanted.len() - usize::from(*beside);
    assert_eq!((missed, wanted[0].region), (1, Oid(FIRST + id)));
    let asked = wanted[1..].iter().map(|wanted| wanted.region.0 - FIRST);
    let asked = asked.collect();
    pack.settle();
    let range = dense.map(|it| it.first.0 - FIRST..it.last().0 + 1 - FIRST);
    (range, asked)
}

fn others(range: Range<u64>, but: &[u64]) -> Vec<u64> {
    range.filter(|id| !but.contains(id)).collect()
}

#[test]
fn blocks_of_which_enough_came_are_read_ahead() {
    let mut pack = pack();
    let mut misses = |id| misses(&mut pack, id, &AHEAD);
    assert_eq!(misses(3), (None, vec![]), "the first");
    assert_eq!(misses(5), (None, vec![]), "the second");
    let of_8 = others(0..8, &[3, 5, 6]);
    assert_eq!(misses(6), (Some(0..8), of_8), "two of 8 came");
    assert_eq!(misses(20), (Some(0..32), others(8..32, &[20])), "8 of 32");
    assert_eq!(misses(40), (None, vec![]), "another 32");
    assert_eq!((misses(41), misses(72)), ((None, vec![]), (None, vec![])));
    let of_8 = others(40..48, &[40, 41, 44]);
    assert_eq!(misses(44), (Some(40..48), of_8), "two of 8 came");
    assert_eq!(misses(33).0, Some(32..64));
}

#[test]
fn nothing_comes_from_beyond_what_is_known() {
    let mut pack = pack();
    let known = ReadAhead {
        first: FIRST + 2,
        end: FIRST + 7,
        ..AHEAD
    };
    for id in [3, 5] {
        misses(&mut pack, id, &known);
    }
    assert_eq!(misses(&mut pack, 6, &known), (Some(2..7), vec![2, 4]));
}

#[test]
fn what_came_from_another_node_or_was_written_here_does_not_count() {
    let mut pack = pack();
    for (node, ids) in [(1, 0..2), (2, 2..4)] {
        for oid in ids.map(|id| Oid(FIRST + id)) {
            pack.run(node, miss(oid, 0));
            pack.write(node, oid);
        }
    }
    pack.barrier();
    for id in [2, 3] {
        pack.run(1, miss(Oid(FIRST + id), 0));
    }
    assert_eq!(misses(&mut pack, 5, &AHEAD), (None, vec![]));
    assert_eq!(misses(&mut pack, 6, &AHEAD), (None, vec![]));
    // Now two came from node 0. Those of node 2 are not asked for there.
    pack.run(2, miss(Oid(FIRST + 4), 0));
    pack.write(2, Oid(FIRST + 4));
    pack.barrier();
    assert_eq!(misses(&mut pack, 7, &AHEAD), (Some(0..8), vec![]));
}

#[test]
fn what_its_writer_is_writing_is_left_out_and_missed_later() {
    let mut pack = pack();
    for id in [0, 1] {
        misses(&mut pack, id, &AHEAD);
    }
    pack.write(0, Oid(FIRST + 4));
    let (_, asked) = misses(&mut pack, 2, &AHEAD);
    assert_eq!(asked, [3, 4, 5, 6, 7]);
    let wants = |pack: &mut Pack| -> WantedList {
        let (first, count) = (Oid(FIRST), 8);
        pack.nodes[1].wants_ahead(&unread(2), OidRange { first, count })
    };
    let lacks: Vec<u64> = wants(&mut pack)
        .iter()
        .map(|it| it.region.0 - FIRST)
        .collect();
    assert_eq!(lacks, [4]);
    // What was read ahead is old once its writer says so.
    pack.write(0, Oid(FIRST + 3));
    pack.run(0, acquire(1));
    pack.run(0, release(1));
    pack.run(1, acquire(1));
    pack.run(1, release(1));
    let lacks: Vec<u64> = wants(&mut pack)
        .iter()
        .map(|it| it.region.0 - FIRST)
        .collect();
    assert_eq!(lacks, [3, 4]);
    assert!(wants(&mut pack).iter().all(|it| it.need.node == n(0)));
}

#[test]
fn only_objects_under_the_lazy_protocol_are_read_ahead() {
    let mut pack = pack();
    for id in [0, 1] {
        misses(&mut pack, id, &AHEAD);
    }
    let of = |coherence| Unread {
        coherence,
        ..unread(2)
    };
    let node = &pack.nodes[1];
    assert!(node.dense_around(&of(Coherence::Lazy), &AHEAD).is_some());
    for coherence in [Coherence::Update, Coherence::Home] {
        assert!(node.dense_around(&of(coherence), &AHEAD).is_none());
    }
}
