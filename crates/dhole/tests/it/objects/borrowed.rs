//! Borrowed arguments: what travels, what comes back, and what is refused.

use dhole::{Config, NodeId, ObjectError, ObjectType, Refusal, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Store(Vec<u8>);

#[dhole::object]
impl Store {
    pub fn read(&self, #[out] into: &mut [u8]) -> usize {
        let most = into.len().min(self.0.len());
        into[..most].copy_from_slice(&self.0[..most]);
        most
    }

    pub fn write(&mut self, from: &[u8]) {
        self.0 = from.to_vec();
    }

    pub fn sum(&self, numbers: &[u32], words: &[String]) -> u64 {
        numbers.iter().map(|it| u64::from(*it)).sum::<u64>() + words.len() as u64
    }

    pub fn grow(&self, list: &mut Vec<String>, names: &mut [String]) {
        list.push(names.concat());
        names.reverse();
    }
}

fn why(error: ObjectError) -> Refusal {
    match error {
        ObjectError::Refused { cause, .. } => cause,
        error => panic!("{error}"),
    }
}

#[test]
fn an_out_that_is_too_long_is_refused_and_read_where_the_object_is() {
    let run = Config::nodes(2).run(|w| {
        let store = w.once(|w| Ok(w.new_object(on(NodeId(1)), Store(vec![1, 2]))?))?;
        let mut into = vec![9; (64 << 20) + 1];
        let read = store.read(w, &mut into);
        match w.node() {
            NodeId(0) => {
                let cause = why(read.expect_err("it is too long"));
                let words = cause.to_string();
                assert!(matches!(cause, Refusal::Malformed(_)), "{words}");
                assert!(
                    words.contains("`into`, an `#[out]` of 67108865 numbers"),
                    "{words}"
                );
                assert!(words.contains("ask for parts of it"), "{words}");
                assert!(into.iter().all(|it| *it == 9));
            }
            _ => {
                assert_eq!(read?, 2);
                assert_eq!(into[..3], [1, 2, 0]);
            }
        }
        w.barrier()?;
        Ok(())
    });
    run.expect("it runs");
}

/// What an operation gives back of a list may have grown; a slice has its length.
#[test]
fn a_list_that_is_lent_may_grow() {
    for strategy in [on(NodeId(0)), on(NodeId(1)), replicated()] {
        let run = Config::nodes(2).run(|w| {
            let store = w.once(|w| Ok(w.new_object(strategy, Store::default())?))?;
            let mut list = vec!["one".to_owned()];
            let mut names = ["a".to_owned(), "b".to_owned()];
            store.grow(w, &mut list, &mut names)?;
            assert_eq!(list, ["one", "ab"]);
            assert_eq!(names, ["b", "a"]);
            store.write(w, &[w.node().0 as u8; 3])?;
            w.barrier()?;
            let mut into = [9; 4];
            assert_eq!(store.read(w, &mut into)?, 3);
            assert_eq!(into[3], 0, "an out begins as zeros");
            Ok(())
        });
        run.expect("it runs");
    }
}

/// A started call has the values that its arguments had at the start.
#[test]
fn what_a_started_call_has_borrowed_may_be_changed_at_once() {
    for strategy in [on(NodeId(0)), on(NodeId(1)), replicated()] {
        let run = Config::nodes(2).run(|w| {
            let store = w.once(|w| Ok(w.new_object(strategy, Store::default())?))?;
            if w.node() == NodeId(0) {
                let mut from = vec![3; 2_000];
                let started = store.start_write(w, &from)?;
                from.fill(4);
                started.wait(w)?;
                let mut into = vec![0; 2_000];
                assert_eq!(store.read(w, &mut into)?, 2_000);
                assert!(into.iter().all(|it| *it == 3));
            }
            w.barrier()?;
            Ok(())
        });
        run.expect("it runs");
    }
}

/// What is borrowed is part of a type's key, so builds that disagree about it refuse each other.
#[test]
fn the_key_of_a_type_says_what_is_borrowed() {
    let signatures = Store::OPERATIONS.iter().map(|it| it.signature);
    let signatures: Vec<&str> = signatures.collect();
    assert_eq!(signatures[0], "#[out] & mut [u8] -> usize");
    assert_eq!(signatures[1], "& [u8] -> ()");
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const SUM: u16 = 2;

/// Executes an operation on these arguments, as a node does to which they were sent.
fn executed(operation: u16, arguments: &[u8]) -> Result<Vec<u8>, String> {
    let (mut store, mut result) = (Store::default(), Vec::new());
    match store.apply(operation, arguments, &mut result) {
        Ok(_) => Ok(result),
        Err(malformed) => Err(malformed.to_string()),
    }
}

#[test]
fn a_bulk_slice_that_is_cut_short_is_refused() {
    // Two numbers of 4 bytes, and a word.
    let whole = [8, 1, 0, 0, 0, 2, 0, 0, 0, 1, 1, b'a'];
    assert_eq!(executed(SUM, &whole), Ok(vec![4]));
    for length in 0..whole.len() {
        let refused = executed(SUM, &whole[..length]).expect_err("it is cut short");
        assert!(refused.contains("the arguments"), "{refused}");
    }
    let refused = executed(SUM, &[6, 1, 0, 0, 0, 2, 0, 0]).expect_err("one and a half numbers");
    assert!(refused.contains("the arguments"), "{refused}");
}

#[test]
fn a_count_beyond_the_bytes_is_refused() {
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    for beyond in [&[3][..], &[0xff, 0xff, 0xff, 0x7f], &most] {
        let bytes = [beyond, &[1, 2]].concat();
        executed(WRITE, &bytes).expect_err("of bytes");
        executed(SUM, &bytes).expect_err("of numbers");
        executed(SUM, &[&[0], &bytes[..]].concat()).expect_err("of words");
    }
}

#[test]
fn an_out_of_2_to_the_60_is_refused_before_room_is_made_for_it() {
    let length = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
    let refused = executed(READ, &length).expect_err("it fits into no message");
    assert!(refused.contains("the arguments"), "{refused}");
}

#[test]
fn an_operation_that_the_type_does_not_have_is_refused() {
    let refused = executed(99, &[]).expect_err("there are four");
    assert!(refused.contains("none of this number"), "{refused}");
}
