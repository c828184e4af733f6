//! Objects written as wholes.

use dhole::{PutError, Ref, Share};

use super::{has_home, has_member, keeps_pages, succeed};
use crate::Platform;

#[derive(Share, Clone, Copy, PartialEq, Debug)]
struct Entry {
    letter: char,
    row: u8,
    next: Option<Ref<Entry>>,
}

/// What a node puts in the place of an object, here or not, all read after a barrier.
pub fn what_is_put_is_read_after_a_barrier(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        let (entries, number) = w.once(|w| {
            let entries = w.alloc_range(40, |i| Entry {
                letter: 'a',
                row: i as u8,
                next: None,
            });
            Ok((entries, w.alloc(0_u64)))
        })?;
        let (me, nodes) = (w.node().index(), w.nodes());
        for round in 1..8 {
            let entry = |i: usize| Entry {
                letter: char::from(b'a' + round as u8),
                row: (i + round) as u8,
                next: Some(entries.at((i + round) % 40)),
            };
            // Each node writes others in each round, of which it has read some.
            let first = (me + round) % nodes * 13;
            let values: Vec<Entry> = (first..first + 13).map(entry).collect();
            entries.put_all(w, first..first + 13, &values)?;
            if me == round % nodes {
                number.put(w, round as u64)?;
                assert_eq!(*number.get(w), round as u64);
                entries.at(39).put(w, entry(39))?;
                entries.at(39).get_mut(w).row = 200;
            }
            w.barrier()?;
            for i in (me..40).step_by(1 + round % 2) {
                let expected = match i {
                    39 => Entry {
                        row: 200,
                        ..entry(i)
                    },
                    _ => entry(i),
                };
                assert_eq!(*entries.at(i).get(w), expected, "{i} in round {round}");
            }
            assert_eq!(*number.get(w), round as u64);
            w.barrier()?;
        }
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// A node puts values in the place of what it has never had, and of what became invalid here,
/// without a message.
pub fn what_is_put_is_not_fetched(on: &dyn Platform) {
    if keeps_pages(on) || has_member(on) || has_home(on) {
        return;
    }
    succeed(on, 2, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(100, |i| i as u64)))?;
        let me = w.node().index();
        for round in 0..4 {
            if me == round % 2 {
                let (before, values) = (w.counters(), [round as u64; 50]);
                numbers.put_all(w, 25..75, &values)?;
                numbers.at(99).put(w, round as u64)?;
                let after = w.counters();
                assert_eq!(after.messages, before.messages, "in round {round}");
                assert_eq!(after.misses, before.misses, "in round {round}");
            }
            w.barrier()?;
            assert_eq!(*numbers.at(50).get(w), round as u64);
            assert_eq!(*numbers.at(99).get(w), round as u64);
            assert_eq!(*numbers.at(98).get(w), 98);
            w.barrier()?;
        }
        Ok(())
    });
}

/// Puts of what there is not, and too few values, are errors that say which. Nothing is written.
pub fn bad_puts_are_errors_that_say_which(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(10, |_| 7_u32)))?;
        let words = |error: PutError<_>| error.to_string();
        let text = words(numbers.put_all(w, 5..11, &[1; 6]).unwrap_err());
        assert!(text.contains("putting objects 5..11 of 10 at"), "{text}");
        assert!(text.contains("put.rs:"), "{text}");
        let text = words(numbers.put_all(w, 5.., &[1; 4]).unwrap_err());
        assert!(text.contains("putting 5 objects at"), "{text}");
        assert!(text.contains("there are 4 values"), "{text}");
        assert!(numbers.iter().all(|r| *r.get(w) == 7));
        Ok(numbers.put_all(w, 3..3, &[])?)
    });
}
