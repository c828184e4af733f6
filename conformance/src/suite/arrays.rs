//! Arrays: plain slices, consistent element by element.

use dhole::{
    Array, ArrayError, BorrowError, Counters, Lock, RaceReport, Read, Result, Share, Worker, Write,
};

use super::{fail, has_home, has_member, keeps_pages, succeed};
use crate::{ByMessage, Platform};

/// Elements of `f64` in a block.
const BLOCK: usize = 512;

/// All nodes write elements of one block at once, each its own, and read all of them.
pub fn nodes_write_different_elements_of_one_block_at_once(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(40)))?;
        for round in 1..5 {
            let me = w.node().index();
            array
                .slice_mut(w, 10 * me..10 * (me + 1))
                .fill(round * 10 + me as u64);
            w.barrier()?;
            let sums: Vec<u64> = array
                .slice(w, ..)
                .chunks(10)
                .map(|c| c.iter().sum())
                .collect();
            let expected: Vec<u64> = (0..4).map(|node| 10 * (round * 10 + node)).collect();
            assert_eq!(sums, expected);
            w.barrier()?;
        }
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// A slice over many blocks, of which each node has written some, starting anywhere.
pub fn a_slice_over_many_blocks_is_one_slice(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let len = 5 * BLOCK + 77;
        let array = w.once(|w| Ok(w.alloc_array::<f64>(len)))?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let mine = len * me / nodes..len * (me + 1) / nodes;
        let values = array.slice_mut(w, mine.clone());
        values
            .iter_mut()
            .zip(mine)
            .for_each(|(value, i)| *value = i as f64);
        w.barrier()?;
        let all = array.slice(w, 100..len - 3);
        assert!(
            all.iter()
                .enumerate()
                .all(|(i, value)| *value == (100 + i) as f64)
        );
        assert_eq!(*array.get(w, len - 1), (len - 1) as f64);
        Ok(())
    });
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
enum Kind {
    Odd = 3,
    Even = 8,
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
struct Record {
    kind: Kind,
    letter: char,
    number: Option<std::num::NonZeroU16>,
    others: Array<u32>,
}

impl Record {
    fn new(i: usize, others: Array<u32>) -> Record {
        Record {
            kind: if i.is_multiple_of(2) {
                Kind::Even
            } else {
                Kind::Odd
            },
            letter: char::from_u32('a' as u32 + i as u32 % 500).expect("a letter"),
            number: std::num::NonZeroU16::new(i as u16),
            others,
        }
    }
}

/// Records with padding, letters, enums and references, in an array that refers to another one.
pub fn records_of_all_kinds_arrive_whole_in_an_array(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let records = w.once(|w| {
            let numbers = w.alloc_array_with(9, |i| i as u32);
            Ok(w.alloc_array_with(300, |i| Record::new(i, numbers)))
        })?;
        let me = w.node().index();
        assert_eq!(
            records.slice(w, 20 * me..20 * me + 5)[4].letter,
            Record::new(20 * me + 4, records.get(w, 0).others).letter
        );
        w.barrier()?;
        if me == 1 {
            let others = w.alloc_array_with(2, |_| 7);
            records
                .slice_mut(w, 100..200)
                .iter_mut()
                .enumerate()
                .for_each(|(i, record)| {
                    *record = Record::new(i + 1, others);
                });
        }
        w.barrier()?;
        let changed = *records.get(w, 150);
        assert_eq!(changed, Record::new(51, changed.others));
        assert_eq!(changed.others.slice(w, ..), [7, 7]);
        let kept = *records.get(w, 200);
        assert_eq!(kept, Record::new(200, kept.others));
        assert_eq!(kept.others.slice(w, 3..5), [3, 4]);
        Ok(())
    });
}

/// Nodes that write the same elements race. One of them wins on every node. Each pair is reported
/// with the elements that both wrote.
pub fn of_racing_writers_of_an_element_one_wins_everywhere(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 4, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(30)))?;
        let me = w.node().index();
        array.slice_mut(w, 5 * me..5 * me + 10).fill(me as u64 + 1);
        w.barrier()?;
        let all: Vec<u64> = array.slice(w, ..25).to_vec();
        for (i, winner) in all.iter().enumerate() {
            let of = (i / 5).saturating_sub(1)..=(i / 5).min(3);
            assert!(
                of.contains(&(*winner as usize - 1)),
                "element {i} is {winner}"
            );
        }
        let digest = w.once(|w| Ok(w.alloc_array::<u64>(25)))?;
        if me == 0 {
            digest.write_all(w, 0, &all);
        }
        w.barrier()?;
        assert_eq!(digest.slice(w, ..), all);
        Ok(())
    });
    if has_member(on) {
        return;
    }
    let overlaps = outcome
        .races
        .iter()
        .map(|race| race.elements.map(|e| e.range()));
    let expected = [5..10, 10..15, 15..20].map(Some);
    assert_eq!(
        overlaps.collect::<Vec<_>>(),
        expected,
        "each pair of neighbours"
    );
    let here = |race: &RaceReport| race.to_string().matches("arrays.rs:").count();
    assert!(outcome.races.iter().all(|race| here(race) == 3));
}

/// Elements that are overwritten are not fetched.
pub fn what_is_overwritten_whole_is_not_fetched(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(&ByMessage(on), 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array_with(2000, |i| i as u64)))?;
        if w.node().index() == 1 {
            array.write_all(w, 500, &[7; 1000]);
            assert_eq!(array.slice(w, 500..502), [7, 7]);
        }
        w.barrier()?;
        let around: Vec<u64> = array.slice(w, 499..1501).to_vec();
        assert_eq!(
            (around[0], around[1], around[1000], around[1001]),
            (499, 7, 7, 1500)
        );
        Ok(())
    });
    if has_member(on) {
        return;
    }
    let writer = &outcome.counters[1];
    // A home is asked for all that was read before, and so for what was overwritten.
    let fetched = if has_home(on) { 1002 } else { 2 };
    let bytes = writer.by_type["u64"].installed_bytes;
    assert_eq!(bytes, 8 * fetched, "the two neighbours");
}

/// An array is stored where it is touched, and a slice of nothing costs nothing.
pub fn an_array_is_stored_where_it_is_touched(on: &dyn Platform) {
    let outcome = succeed(on, 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u8>(1 << 30)))?;
        assert!(array.slice(w, 7..7).is_empty());
        assert!(array.slice_mut(w, 1 << 30..).is_empty());
        let none = Array::<u8>::empty();
        assert!(none.slice(w, ..).is_empty() && none.is_empty());
        if w.node().index() == 1 {
            array.slice_mut(w, 1 << 20..(1 << 20) + 5000).fill(1);
        }
        Ok(())
    });
    let [zero, one] = &outcome.counters[..] else {
        panic!("two nodes")
    };
    let at_home = if has_home(on) { 2 * 4096 } else { 0 };
    assert_eq!(zero.shared_bytes, at_home, "what was flushed, at most");
    let (misses, rounds) = match has_home(on) {
        true => (1, 1),
        // Two blocks to read at once, and then each of them to write.
        _ if has_member(on) => (4, 3),
        _ => (0, 0),
    };
    assert_eq!(
        (one.shared_bytes, one.misses, one.fetch_rounds),
        (2 * 4096, misses, rounds)
    );
}

/// Ranges that are not there, and overlaps, are errors that say which.
pub fn bad_ranges_are_errors_that_say_which(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u32>(100)))?;
        let words = |error: ArrayError<_>| error.to_string();
        for (range, says) in [
            (90..101, "90..101"),
            (std::ops::Range { start: 7, end: 3 }, "7..3"),
            (101..101, "101..101"),
        ] {
            let error = words(array.try_slice(w, range.clone()).unwrap_err());
            assert!(error.contains(says) && error.contains("100"), "{error}");
            assert_eq!(
                words(array.try_slice_mut(w, range).unwrap_err())
                    .split(" at ")
                    .next(),
                error.split(" at ").next()
            );
        }
        assert!(array.try_write_all(w, usize::MAX, &[1]).is_err());
        let overlap = w.borrow((Write(array.range(10..20)), Read(array.range(19..30))));
        assert!(
            matches!(overlap.map(drop), Err(BorrowError::Overlap { oid, .. }) if oid == array.oid())
        );
        let (low, high, also) = w.borrow((
            Write(array.range(10..20)),
            Write(array.range(20..30)),
            Read(array.range(15..15)),
        ))?;
        low.swap_with_slice(high);
        assert!(also.is_empty());
        Ok(())
    });
    let panics = |on: &dyn Platform| {
        fail(on, 2, |w| {
            let array = w.once(|w| Ok(w.alloc_array::<u32>(100)))?;
            array.slice(w, 3..200);
            Ok(())
        })
    };
    let words = panics(on).to_string();
    assert!(
        words.contains("3..200") && words.contains("an array of 100"),
        "{words}"
    );
}

/// More elements than a node has room for.
pub fn an_array_that_is_too_large_is_an_error(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        w.alloc_array::<f64>(1 << 40);
        Ok(())
    });
    let words = error.to_string();
    assert!(
        words.contains("more than a range names")
            && words.contains("f64")
            && words.contains("arrays.rs:"),
        "{words}"
    );
}

/// An element added to under a lock, in the middle of what others write.
pub fn elements_under_locks_beside_others_lose_nothing(on: &dyn Platform) {
    succeed(on, 4, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(9)))?;
        let me = w.node().index();
        for _ in 0..10 {
            *array.get_mut(w, 5 + me) += 1;
            Lock::numbered(3).with(w, |w| {
                *array.get_mut(w, 4) += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        assert_eq!(array.slice(w, 4..), [40, 10, 10, 10, 10]);
        Ok(())
    });
}

/// Ranges may meet, lie within each other and be named twice; so may objects.
pub fn what_is_prefetched_twice_at_once_comes_once(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let (array, objects) = w.once(|w| {
            let array = w.alloc_array_with(2 * BLOCK, |i| i as u64);
            Ok((array, w.alloc_range(4, |i| i as u64)))
        })?;
        if w.node().index() == 1 {
            let ranges = [4..9, 0..2, 1..3, 20..30, 22..25, 0..2, 29..BLOCK + 5, 8..9];
            let ranges = ranges.map(|range| array.range(range));
            w.prefetch((&ranges[..], objects, objects.at(2)))?;
            let before = w.counters().messages;
            for range in ranges {
                let first = range.places().start as u64;
                assert!(
                    range
                        .get(w)
                        .iter()
                        .copied()
                        .eq(first..first + range.len() as u64)
                );
            }
            assert_eq!(*objects.at(2).get(w), 2);
            assert_eq!(w.counters().messages, before, "all is here");
        }
        Ok(w.barrier()?)
    });
}

/// A range whose parts some nodes wrote is fetched in one round.
pub fn a_slice_costs_two_messages_a_writer(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let is_home = has_home(on);
    let outcome = succeed(&ByMessage(on), 4, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<f64>(4 * BLOCK)))?;
        let me = w.node().index();
        if me > 0 {
            array.slice_mut(w, 300 * me..300 * (me + 1)).fill(me as f64);
        }
        w.barrier()?;
        if me == 0 {
            let asked = if is_home { 0 } else { 3 };
            let before = w.counters().messages;
            let sum: f64 = array.slice(w, ..).iter().sum();
            assert_eq!(sum, 300.0 * (1 + 2 + 3) as f64);
            let messages = w.counters().messages - before;
            assert_eq!(messages, asked, "one to each writer");
            w.prefetch((array, array.range(5..6)))?;
            assert_eq!(w.counters().messages - before, asked, "all is here");
        }
        Ok(())
    });
    if has_member(on) {
        return;
    }
    let Counters {
        misses,
        fetch_rounds,
        zero_fills,
        ..
    } = &outcome.counters[0];
    if is_home {
        assert_eq!(
            (*misses, *fetch_rounds, *zero_fills),
            (0, 0, 0),
            "it is home"
        );
        return;
    }
    assert_eq!((*misses, *fetch_rounds), (3, 1));
    assert_eq!(*zero_fills, 2, "what nobody wrote, before and behind");
}

/// Only the elements that were written become invalid, and only they are fetched.
pub fn only_the_elements_written_are_fetched_again(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(&ByMessage(on), 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<f64>(BLOCK)))?;
        let read = |w: &Worker<'_>| array.slice(w, ..).iter().sum::<f64>();
        assert_eq!(read(w), 0.0);
        w.barrier()?;
        if w.node().index() == 0 {
            array.slice_mut(w, 10..13).fill(1.0);
            array.get_mut(w, 400).clone_from(&4.0);
        }
        w.barrier()?;
        assert_eq!(read(w), 7.0);
        Ok(())
    });
    if has_member(on) {
        return;
    }
    let reader = &outcome.counters[1];
    let counted = (reader.misses, reader.fetch_rounds);
    let bytes = reader.by_type["f64"].installed_bytes;
    if has_home(on) {
        assert_eq!(counted, (2, 2), "the home is asked at each read");
        assert_eq!(bytes, 2 * 8 * BLOCK as u64);
        return;
    }
    assert_eq!((reader.invalidations, counted), (2, (2, 1)));
    assert_eq!(bytes, 4 * 8);
}

/// Elements that only one node writes need no notices after the second interval.
pub fn elements_that_one_node_alone_writes_cost_nothing(on: &dyn Platform) {
    if keeps_pages(on) {
        return;
    }
    let outcome = succeed(on, 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(100)))?;
        let me = w.node().index();
        for round in 0..10 {
            array.slice_mut(w, 50 * me..50 * (me + 1))[round] = 1;
            w.barrier()?;
        }
        assert_eq!(array.slice(w, ..).iter().sum::<u64>(), 20);
        Ok(())
    });
    if has_member(on) {
        return;
    }
    if has_home(on) {
        let misses = outcome.counters.iter().map(|node| node.misses);
        let misses: Vec<_> = misses.collect();
        assert_eq!(misses, [0, 4], "what was fetched three times is kept");
        return;
    }
    for node in &outcome.counters {
        assert!(
            node.intervals <= 2,
            "{} intervals: two are enough",
            node.intervals
        );
        assert_eq!(node.misses, 1);
    }
}

/// A node that has sums of its own in an array takes part in what others compute.
pub fn a_node_that_writes_elements_serves_their_neighbours(on: &dyn Platform) {
    succeed(on, 2, |w| -> Result<()> {
        let array = w.once(|w| Ok(w.alloc_array_with(64, |i| i as u64)))?;
        if w.node().index() == 0 {
            let mine = array.slice_mut(w, 32..);
            mine.fill(1);
            w.work(100_000);
            w.pause()?;
        } else {
            w.work(10_000);
            assert_eq!(array.slice(w, ..32)[31], 31);
        }
        w.barrier()?;
        Ok(())
    });
}
