//! Objects of all kinds, and references among them.

use dhole::{AccessError, NodeId, Read, Ref, Result, Row, Share, Worker, Write};

use super::succeed;
use crate::Platform;

/// Each node frees a part of what another allocated; all learn of it, and other objects stay.
pub fn a_freed_object_is_an_error_on_every_node_that_learns_of_it(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(256, |i| i)))?;
        assert_eq!(numbers.iter().map(|n| n.read(w)).sum::<usize>(), 255 * 128);
        w.barrier()?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let mine = || (0..256).filter(|i| i % 8 == me);
        let freed: Vec<_> = mine().map(|i| numbers.at(i)).collect();
        w.free(&freed)?;
        assert!(
            w.free(freed[0])
                .is_err_and(|error| error.to_string().contains("was freed"))
        );
        w.barrier()?;
        for (i, number) in numbers.iter().enumerate() {
            let read = number.try_get(w).copied();
            match read {
                Ok(value) => assert!(i % 8 >= nodes && value == i),
                Err(AccessError::Freed { by, .. }) => assert_eq!(by, Some(NodeId::at(i % 8))),
                Err(error) => panic!("{error}"),
            }
        }
        w.barrier()?;
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// Neighbours in one range are objects of their own.
pub fn each_object_of_a_range_is_written_by_another_node(on: &dyn Platform) {
    let outcome = succeed(on, 4, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(200, |i| i as u64)))?;
        for (i, number) in numbers.iter().enumerate() {
            if i % w.nodes() == w.node().index() {
                *number.get_mut(w) += 1000;
            }
        }
        w.barrier()?;
        Ok(numbers
            .iter()
            .map(|number| number.read(w))
            .collect::<Vec<u64>>())
    });
    assert!(
        outcome
            .value
            .iter()
            .enumerate()
            .all(|(i, number)| *number == 1000 + i as u64)
    );
}

/// Rows of one allocation, each written by another node in each round.
pub fn each_row_is_written_by_another_node_and_starts_as_zeros(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<f64>(6, 100)))?;
        assert!(
            rows.iter()
                .all(|row| row.get(w).iter().all(|scalar| *scalar == 0.0))
        );
        w.barrier()?;
        for round in 0..6 {
            let mine = |number: usize| (number + round) % w.nodes() == w.node().index();
            for number in (0..rows.count())
                .filter(|number| mine(*number))
                .collect::<Vec<_>>()
            {
                let row = rows.row(number).get_mut(w);
                row.iter_mut().for_each(|scalar| *scalar += 1.0);
            }
            w.barrier()?;
            let all = (round + 1) as f64;
            assert!(
                rows.iter()
                    .all(|row| row.get(w).iter().all(|scalar| *scalar == all))
            );
            w.barrier()?;
        }
        Ok(())
    });
}

/// A link of a list.
#[derive(Clone, Copy, Share)]
struct Link {
    value: u64,
    next: Option<Ref<Link>>,
}

/// Where a list begins.
#[derive(Clone, Copy, Share)]
struct Head {
    first: Option<Ref<Link>>,
}

/// Node after node puts links of its own in front of a list; all walk it.
pub fn a_list_made_by_all_nodes_is_walked_by_all(on: &dyn Platform) {
    succeed(on, 4, |w| {
        let head = w.once(|w| Ok(w.alloc(Head { first: None })))?;
        for turn in 0..3 * w.nodes() {
            if turn % w.nodes() == w.node().index() {
                let next = head.read(w).first;
                let value = turn as u64;
                let first = Some(w.alloc(Link { value, next }));
                head.get_mut(w).first = first;
            }
            w.barrier()?;
            assert_eq!(values(w, head), (0..=turn as u64).rev().collect::<Vec<_>>());
            w.barrier()?;
        }
        Ok(())
    });
}

fn values(w: &Worker<'_>, head: Ref<Head>) -> Vec<u64> {
    let first = head.at(w).follow(|head| head.first);
    let links = std::iter::successors(first, |link| link.follow(|link| link.next));
    links.map(|link| link.value).collect()
}

/// Scoped threads read what their node has fetched, rows too, and learn what is not there.
pub fn four_threads_of_a_node_read_what_is_present(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(100, |i| i as u64)))?;
        let row = w.once(|w| Ok(w.alloc_rows::<u64>(1, 4)))?.row(0);
        if w.node().index() == 0 {
            return Ok(());
        }
        let absent = w.readers(|present| present.get(numbers.at(3)).unwrap_err());
        assert!(absent.to_string().contains("objects.rs:"), "{absent}");
        row.get_mut(w).fill(5);
        assert_eq!(
            numbers.iter().map(|number| number.read(w)).sum::<u64>(),
            4950
        );
        let sum = w.readers(|present| {
            std::thread::scope(|scope| {
                let part = |quarter: usize| -> Result<u64> {
                    let mut sum = present.get(row)?[quarter];
                    for number in numbers.slice(25 * quarter..25 * quarter + 25).iter() {
                        sum += present.get(number)?;
                    }
                    Ok(sum)
                };
                let parts = [0, 1, 2, 3].map(|quarter| scope.spawn(move || part(quarter)));
                let sums = parts.map(|part| part.join().expect("it does not panic"));
                sums.into_iter().sum::<Result<u64>>()
            })
        })?;
        assert_eq!(sum, 4970);
        Ok(())
    });
}

/// One of every kind of field.
#[derive(Clone, Copy, Share, PartialEq, Debug)]
struct All {
    truth: bool,
    small: u8,
    letter: char,
    fraction: f32,
    signed: i64,
    wide: u128,
    many: [u16; 5],
    other: Option<Ref<u64>>,
    row: Row<u64>,
}

/// An object whose fields have padding, invalid bit patterns and references.
pub fn values_of_all_kinds_arrive_whole(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let all = w.once(|w| {
            let row = w.alloc_rows::<u64>(1, 4).row(0);
            Ok(w.alloc(All {
                truth: false,
                small: 1,
                letter: 'a',
                fraction: 0.0,
                signed: 0,
                wide: 0,
                many: [0; 5],
                other: None,
                row,
            }))
        })?;
        for turn in 0..2 * w.nodes() {
            let step = turn as u64 + 1;
            if turn % w.nodes() == w.node().index() {
                let other = Some(w.alloc(step));
                all.update(w, |all| {
                    all.truth = !all.truth;
                    all.small = all.small.wrapping_mul(99);
                    all.letter = ['a', '\u{e9}', '\u{1f43a}'][turn % 3];
                    all.fraction = f32::NAN;
                    all.signed = -(step as i64);
                    all.wide = u128::MAX / u128::from(step);
                    all.many = [turn as u16; 5];
                    all.other = other;
                });
                all.read(w).row.get_mut(w)[turn % 4] = step;
            }
            w.barrier()?;
            let seen = all.read(w);
            assert_eq!(seen.truth, turn % 2 == 0);
            assert_eq!(seen.letter, ['a', '\u{e9}', '\u{1f43a}'][turn % 3]);
            assert!(seen.fraction.is_nan());
            assert_eq!(
                (seen.signed, seen.wide),
                (-(step as i64), u128::MAX / u128::from(step))
            );
            assert_eq!(seen.many, [turn as u16; 5]);
            assert_eq!(seen.other.map(|other| other.read(w)), Some(step));
            assert_eq!(seen.row.get(w)[turn % 4], step);
            w.barrier()?;
        }
        Ok(())
    });
}

/// A row of a mebibyte.
pub fn a_large_row_arrives_whole(on: &dyn Platform) {
    const LEN: usize = 1 << 17;
    succeed(on, 2, |w| {
        let row = w.once(|w| Ok(w.alloc_rows::<u64>(1, LEN).row(0)))?;
        if w.node().index() == 1 {
            for (i, scalar) in row.get_mut(w).iter_mut().enumerate() {
                *scalar = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
        w.barrier()?;
        let right =
            |(i, scalar): (usize, &u64)| *scalar == (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert!(row.get(w).iter().enumerate().all(right));
        Ok(())
    });
}

/// Reads of objects of other nodes beside a write.
pub fn several_objects_are_borrowed_at_once(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let nodes = w.nodes();
        let rows = w.once(|w| Ok(w.alloc_rows::<u64>(nodes, 8)))?;
        let me = w.node().index();
        rows.row(me).get_mut(w).fill(me as u64 + 1);
        w.barrier()?;
        let sums = w.once(|w| Ok(w.alloc_range(nodes, |_| 0_u64)))?;
        let (sum, above, below) = w.borrow((
            Write(sums.at(me)),
            Read(rows.row((me + 1) % nodes)),
            Read(rows.row((me + 2) % nodes)),
        ))?;
        *sum = above.iter().zip(below).map(|(a, b)| a * b).sum();
        w.barrier()?;
        let sums: Vec<u64> = sums.iter().map(|sum| sum.read(w)).collect();
        assert_eq!(sums, [48, 24, 16]);
        Ok(())
    });
}

/// No object is borrowed for writing beside itself.
pub fn an_object_borrowed_twice_for_writing_is_an_error(on: &dyn Platform) {
    succeed(on, 2, |w| {
        let pair = w.once(|w| Ok(w.alloc_range(2, |_| 0_u64)))?;
        assert!(w.borrow((Write(pair.at(0)), Write(pair.at(0)))).is_err());
        assert!(w.borrow((Write(pair.at(0)), Read(pair.at(0)))).is_err());
        assert!(w.borrow((Read(pair.at(0)), Read(pair.at(0)))).is_ok());
        assert!(w.borrow((Write(pair.at(0)), Read(pair.at(1)))).is_ok());
        Ok(())
    });
}

/// A place for each node to show an object.
#[derive(Clone, Copy, Share)]
struct Shown {
    object: Option<Ref<u64>>,
}

/// Every node allocates in every round, and reads what the others allocated in the last one.
pub fn objects_allocated_meanwhile_are_found(on: &dyn Platform) {
    succeed(on, 3, |w| {
        let nodes = w.nodes();
        let shown = w.once(|w| Ok(w.alloc_range(nodes, |_| Shown { object: None })))?;
        let me = w.node().index();
        for round in 0..10 {
            let mine = w.alloc_range(3, |i| round * 100 + me as u64 * 10 + i as u64);
            shown.at(me).get_mut(w).object = Some(mine.at(2));
            w.barrier()?;
            for other in 0..nodes {
                let object: Result<Ref<u64>> = shown
                    .at(other)
                    .get(w)
                    .object
                    .ok_or_else(|| dhole::Error::program("nothing is shown"));
                assert_eq!(object?.read(w), round * 100 + other as u64 * 10 + 2);
            }
            w.barrier()?;
        }
        Ok(())
    });
}
