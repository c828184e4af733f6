//! Elements that their owners combine with updates of all nodes.

use dhole::{Array, Lock, Result, Worker};
use dhole_model::SplitMix64;

use super::succeed;
use crate::Platform;

/// Elements of two blocks, and some.
const LEN: usize = 1100;

/// The updates of a node in a round, of which some are of the same elements.
fn updates(round: u64, node: usize) -> (Vec<usize>, Vec<u64>) {
    let mut numbers = SplitMix64(round << 8 | node as u64);
    let count = [0, 1, 300, 4000][numbers.below(4) as usize];
    let all = (0..count).map(|_| (numbers.below(LEN as u64) as usize, numbers.below(1000)));
    all.unzip()
}

/// What elements are after the updates of all nodes and rounds so far.
struct Plain {
    sums: Vec<u64>,
    least: Vec<i16>,
    most: Vec<f32>,
    bits: Vec<u8>,
}

impl Plain {
    fn take(&mut self, (indices, values): (Vec<usize>, Vec<u64>)) {
        for (i, value) in indices.into_iter().zip(values) {
            self.sums[i] = self.sums[i].wrapping_add(value);
            self.least[i] = self.least[i].min(-(value as i16));
            self.most[i] = self.most[i].max(value as f32 / 3.0);
            self.bits[i] |= value as u8;
        }
    }
}

/// What all nodes add, lower, raise and set is read everywhere after a barrier, whichever node
/// wrote the elements last.
pub fn updates_of_all_nodes_are_read_after_a_barrier(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let (sums, least, most, bits) = w.once(|w| {
            let sums = w.alloc_array::<u64>(LEN);
            let least = w.alloc_array_with(LEN, |_| 5_i16);
            Ok((
                sums,
                least,
                w.alloc_array::<f32>(LEN),
                w.alloc_array::<u8>(LEN),
            ))
        })?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut plain = Plain {
            sums: vec![0; LEN],
            least: vec![5; LEN],
            most: vec![0.0; LEN],
            bits: vec![0; LEN],
        };
        for round in 0..8 {
            let (indices, values) = updates(round, me);
            let before = sums.gather(w, &indices);
            sums.add_all(w, &indices, &values)?;
            let lower: Vec<i16> = values.iter().map(|value| -(*value as i16)).collect();
            least.min_all(w, &indices, &lower)?;
            let raised: Vec<f32> = values.iter().map(|value| *value as f32 / 3.0).collect();
            most.max_all(w, &indices, &raised)?;
            let set: Vec<u8> = values.iter().map(|value| *value as u8).collect();
            bits.or_all(w, &indices, &set)?;
            assert_eq!(sums.gather(w, &indices), before, "nothing is seen before");
            w.barrier()?;
            (0..nodes).for_each(|node| plain.take(updates(round, node)));
            assert_eq!(sums.slice(w, ..), plain.sums, "in round {round}");
            assert_eq!(least.slice(w, ..), plain.least, "in round {round}");
            assert_eq!(most.slice(w, ..), plain.most, "in round {round}");
            assert_eq!(bits.slice(w, ..), plain.bits, "in round {round}");
            w.barrier()?;
            // Another node is the last writer of every third element from now on.
            let writer = round as usize % nodes;
            let new = |i: usize| (i as u64) << 40;
            let third = (writer..LEN).step_by(3);
            if me == (writer + 1) % nodes {
                let values: Vec<u64> = third.clone().map(new).collect();
                sums.scatter(w, &third.clone().collect::<Vec<_>>(), &values)?;
            }
            third.for_each(|i| plain.sums[i] = new(i));
            w.barrier()?;
        }
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// What a node adds under a lock is what the next holder of the lock reads.
pub fn updates_under_a_lock_are_read_under_it(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let (counts, entries) =
            w.once(|w| Ok((w.alloc_array::<u64>(LEN), w.alloc_array::<u64>(1))))?;
        let lock = Lock::numbered(3);
        for _ in 0..10 {
            lock.with(w, |w| {
                let before = entries.slice(w, ..)[0];
                assert_eq!(counts.gather(w, &[7, LEN - 1]), [before, 2 * before]);
                counts.add_all(w, &[7, LEN - 1, LEN - 1], &[1, 1, 1])?;
                entries.slice_mut(w, ..)[0] += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        assert_eq!(counts.gather(w, &[7, 8, LEN - 1]), [30, 0, 60]);
        Ok(())
    });
}

/// What is added before a collective is read after it.
pub fn updates_before_a_collective_are_read_after_it(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let counts = w.once(|w| Ok(w.alloc_array::<u32>(9)))?;
        for round in 1..6 {
            counts.add_all(w, &[2, 3, 2], &[1, 2, 3])?;
            w.all_gather(round)?;
            if w.node().index() == 1 {
                assert_eq!(counts.gather(w, &[2, 3, 4]), [12 * round, 6 * round, 0]);
            }
            w.barrier()?;
        }
        Ok(())
    });
}

/// The most updates that one message has are more than those of a block.
pub fn many_updates_take_several_messages(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let len = 150_000;
        let counts = w.once(|w| Ok(w.alloc_array::<u32>(len)))?;
        let indices: Vec<usize> = (0..len).rev().collect();
        let values: Vec<u32> = indices.iter().map(|i| *i as u32).collect();
        counts.add_all(w, &indices, &values)?;
        w.barrier()?;
        let all = counts.slice(w, ..).iter().enumerate();
        assert!(all.into_iter().all(|(i, count)| *count == 2 * i as u32));
        Ok(())
    });
}

/// Updates of elements that there are not are errors that say why.
pub fn updates_that_cannot_be_are_errors_that_say_why(on: &dyn Platform) {
    succeed(on, 2, |w: &mut Worker<'_>| -> Result<()> {
        let array: Array<i64> = w.once(|w| Ok(w.alloc_array(4000)))?;
        let error = array
            .add_all(w, &[7, 4000], &[1, 1])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("index 1 of 2 is 4,000; the array has 4,000"),
            "{error}"
        );
        let error = array.max_all(w, &[7, 8], &[1]).unwrap_err().to_string();
        assert!(error.contains("2 indices and 1 value:"), "{error}");
        array.or_all(w, &[], &[])?;
        w.barrier()?;
        assert_eq!(array.gather(w, &[7, 8]), [0, 0]);
        Ok(())
    });
}
