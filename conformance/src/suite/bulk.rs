//! Elements of arrays by their indices.

use dhole::{Array, ArrayError, Result, Share, Worker};
use dhole_model::SplitMix64;

use super::{fail, has_home, has_member, keeps_pages, succeed};
use crate::{ByMessage, Platform};

/// Elements of three blocks, and some.
const LEN: usize = 1700;

/// What an element is after a round.
fn value(round: u64, i: usize) -> u64 {
    SplitMix64::after(round << 32 | i as u64)
}

/// The node that writes an element in a round.
fn writer(round: u64, i: usize, nodes: usize) -> usize {
    (value(round, i) >> 40) as usize % (nodes + 1)
}

/// So many indices that chance chooses, of which some are the same.
fn chosen(seed: u64, count: usize) -> Vec<usize> {
    let mut numbers = SplitMix64(seed);
    let all = (0..count).map(|_| numbers.below(LEN as u64) as usize);
    all.collect()
}

/// What all nodes scatter is what a plain vector has, at all indices that chance chooses.
pub fn what_is_scattered_is_gathered_as_from_a_plain_vector(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(LEN)))?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut plain = vec![0; LEN];
        for round in 1..6 {
            let mine: Vec<usize> = (0..LEN)
                .filter(|i| writer(round, *i, nodes) == me)
                .collect();
            // From the last to the first, and the first of them twice.
            let mut indices = vec![mine[0]];
            indices.extend(mine.iter().rev());
            let mut values: Vec<u64> = indices.iter().map(|i| value(round, *i)).collect();
            values[0] = 1;
            array.scatter(w, &indices, &values)?;
            assert_eq!(array.gather(w, &mine[..1]), [value(round, mine[0])]);
            w.barrier()?;
            for (i, element) in plain.iter_mut().enumerate() {
                if writer(round, i, nodes) < nodes {
                    *element = value(round, i);
                }
            }
            for count in [0, 1, 40, 3 * LEN] {
                let indices = chosen(round * 100 + (count + me) as u64, count);
                let expected: Vec<u64> = indices.iter().map(|i| plain[*i]).collect();
                assert_eq!(
                    array.gather(w, &indices),
                    expected,
                    "{count} in round {round}"
                );
            }
            w.barrier()?;
        }
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
struct Place {
    letter: char,
    row: u16,
    of: Array<u64>,
}

/// Elements with padding, letters and references are gathered and scattered too.
pub fn records_are_gathered_and_scattered_whole(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let record = |of, row: usize| Place {
            letter: char::from(b'a' + row as u8 % 26),
            row: row as u16,
            of,
        };
        let (records, numbers) = w.once(|w| {
            let numbers = w.alloc_array_with(3, |i| i as u64);
            Ok((w.alloc_array_with(500, |i| record(numbers, i)), numbers))
        })?;
        if w.node().index() == 1 {
            let indices = [3, 490, 491, 7];
            let values = indices.map(|i| record(numbers, i + 1));
            records.scatter(w, &indices, &values)?;
        }
        w.barrier()?;
        let expected = [4, 8, 5, 492, 4].map(|row| record(numbers, row));
        assert_eq!(records.gather(w, &[3, 7, 5, 491, 4]), expected);
        let of = records.gather(w, &[493])[0].of;
        assert_eq!(of.gather(w, &[2, 1, 2]), [2, 1, 2]);
        Ok(())
    });
}

/// What is gathered costs two messages for each node that has some of it, and nothing again. What
/// is scattered is not fetched.
pub fn a_gather_takes_two_messages_an_owner_and_a_scatter_none(on: &dyn Platform) {
    if keeps_pages(on) || has_member(on) {
        return;
    }
    let is_home = has_home(on);
    succeed(&ByMessage(on), 3, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(9000)))?;
        let me = w.node().index();
        let mine: Vec<usize> = (me..9000).step_by(3 * 60).collect();
        let before = w.counters().messages;
        array.scatter(w, &mine, &vec![me as u64; mine.len()])?;
        assert_eq!(w.counters().messages, before, "nothing is fetched");
        w.barrier()?;
        if me > 0 {
            return Ok(());
        }
        let indices: Vec<usize> = (0..9000).rev().filter(|i| i % 180 < 3).collect();
        let before = w.counters().messages;
        let expected: Vec<u64> = indices.iter().map(|i| *i as u64 % 180).collect();
        assert_eq!(array.gather(w, &indices), expected);
        // The home of all elements is the node that made the array.
        let asked = if is_home { 0 } else { 2 };
        assert_eq!(
            w.counters().messages - before,
            asked,
            "one question to each owner"
        );
        assert_eq!(array.gather(w, &indices), expected);
        assert_eq!(w.counters().messages - before, asked, "all is here");
        Ok(())
    });
}

fn words(error: ArrayError<dhole::AccessError>) -> String {
    error.to_string()
}

/// Indices that there are not, and too few values, are errors that say which. Nothing is written.
pub fn bad_indices_are_errors_that_say_which(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let array = w.once(|w| Ok(w.alloc_array::<u32>(4000)))?;
        let mut indices = vec![3999; 10];
        indices[3] = 4096;
        let says = |text: &str| {
            for says in [
                "index 3 of 10 is 4,096; the array has 4,000 elements",
                "bulk.rs:",
            ] {
                assert!(text.contains(says), "\"{says}\" is not in \"{text}\"");
            }
        };
        says(&words(array.try_gather(w, &indices).unwrap_err()));
        says(&words(array.scatter(w, &indices, &[7; 10]).unwrap_err()));
        let lengths = words(array.scatter(w, &[3999, 3998], &[7]).unwrap_err());
        assert!(lengths.contains("2 indices and 1 value:"), "{lengths}");
        assert_eq!(array.gather(w, &[3999, 3998]), [0, 0]);
        assert!(Array::<u32>::empty().gather(w, &[]).is_empty());
        Ok(array.scatter(w, &[], &[])?)
    });
    let error = fail(on, 2, |w: &mut Worker<'_>| -> Result<()> {
        let array = w.once(|w| Ok(w.alloc_array::<u32>(5)))?;
        array.gather(w, &[0, 5]);
        Ok(())
    });
    let text = error.to_string();
    assert!(
        text.contains("index 1 of 2 is 5; the array has 5 elements"),
        "{text}"
    );
}
