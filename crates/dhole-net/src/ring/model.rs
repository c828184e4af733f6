//! Every interleaving of one writer and one reader, and what each may see of the other's words.
//!
//! ```text
//! writer:  0 where the next header goes; bytes; header     asks: is the reader asleep?
//! reader:  header; bytes; up to where it read              says: asleep; is there a header?
//! ```
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dhole-net --lib model`

use std::cell::Cell;
use std::panic::catch_unwind;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::thread;

use super::{CONTROL, Header, Kind, Planted, Reader, Ring, Writer};
use crate::atomic::AtomicU64;
use crate::bell::model::{Waker, explore};

std::thread_local! {
    /// What is planted in this test's model, all of whose threads loom runs on this one.
    pub(super) static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

/// Words of the ring: three of the records below do not fit.
const WORDS: usize = 8;
/// How many bytes each record has; some must skip the end of the ring.
const RECORDS: [usize; 4] = [8, 16, 8, 5];

fn words() -> Arc<Vec<AtomicU64>> {
    Arc::new((0..CONTROL + WORDS).map(|_| AtomicU64::new(0)).collect())
}

fn content(record: usize) -> Vec<u8> {
    (0..RECORDS[record])
        .map(|at| (record * 16 + at + 1) as u8)
        .collect()
}

fn pass_all_records() {
    let words = words();
    let writing = words.clone();
    let writer = thread::spawn(move || {
        let mut writer = Writer::new();
        for record in 0..RECORDS.len() {
            let bytes = content(record);
            let header = Header {
                kind: Kind::Whole,
                bytes: bytes.len(),
            };
            let ring = Ring::new(&writing);
            while !writer
                .write(ring, header, [&bytes[..]])
                .expect("a sound reader")
            {
                thread::yield_now();
            }
        }
    });
    let mut reader = Reader::new();
    for record in 0..RECORDS.len() {
        let ring = Ring::new(&words);
        let header = loop {
            match reader.peek(ring).expect("a sound writer") {
                Some(header) => break header,
                None => thread::yield_now(),
            }
        };
        let mut bytes = vec![0; header.bytes];
        reader.copy(ring, header, &mut bytes);
        reader.publish(ring);
        assert_eq!(bytes, content(record), "record {record}");
    }
    writer.join().expect("the writer");
    assert!(reader.is_empty(Ring::new(&words)));
}

/// One record, and a reader that goes to sleep unless it sees it.
fn write_beside_a_sleeper(barriers: bool) {
    let barrier = move || {
        if barriers {
            fence(Ordering::SeqCst);
        }
    };
    let words = words();
    let rung = Arc::new(AtomicBool::new(false));
    let (writing, ringing) = (words.clone(), rung.clone());
    let writer = thread::spawn(move || {
        let ring = Ring::new(&writing);
        let header = Header {
            kind: Kind::Whole,
            bytes: 0,
        };
        Writer::new()
            .write(ring, header, [])
            .expect("a sound reader");
        barrier();
        if ring.rouses_reader() {
            ringing.store(true, Ordering::Relaxed);
        }
    });
    let ring = Ring::new(&words);
    ring.reader_parked().store(1, Ordering::Relaxed);
    barrier();
    let sleeps = Reader::new().is_empty(ring);
    writer.join().expect("the writer");
    assert!(!sleeps || rung.load(Ordering::Relaxed), "asleep for ever");
}

/// A writer that is refused sleeps until the reader has freed something, record after record.
fn refused_freed_asleep(barriers: bool) {
    let barrier = move || {
        if barriers {
            fence(Ordering::SeqCst);
        }
    };
    const BYTES: usize = 16;
    const COUNT: usize = 4;
    let words = words();
    let doorbell = Arc::new(Waker::new());
    let (writing, sleeping) = (words.clone(), doorbell.clone());
    let writer = thread::spawn(move || {
        let (ring, mut writer) = (Ring::new(&writing), Writer::new());
        let (kind, bytes) = (Kind::Whole, BYTES);
        for _ in 0..COUNT {
            while !writer
                .write(ring, Header { kind, bytes }, [&[7; BYTES][..]])
                .expect("a sound reader")
            {
                ring.writer_waits().store(1, Ordering::Relaxed);
                barrier();
                if !writer.has_moved(ring) {
                    sleeping.sleep();
                }
                sleeping.hear();
            }
        }
    });
    let (ring, mut reader) = (Ring::new(&words), Reader::new());
    for _ in 0..COUNT {
        let header = loop {
            match reader.peek(ring).expect("a sound writer") {
                Some(header) => break header,
                None => thread::yield_now(),
            }
        };
        reader.copy(ring, header, &mut [0; BYTES]);
        reader.publish(ring);
        barrier();
        if ring.rouses_writer() {
            doorbell.ring();
        }
    }
    writer.join().expect("the writer");
}

fn is_caught(error: Planted, model: impl Fn() + Sync + Send + 'static) -> bool {
    PLANTED.set(error);
    let caught = catch_unwind(std::panic::AssertUnwindSafe(|| explore(2, model))).is_err();
    PLANTED.set(Planted::Nothing);
    caught
}

#[test]
fn records_arrive_whole_and_in_order() {
    explore(3, pass_all_records);
}

#[test]
fn a_header_that_is_published_too_early_is_caught() {
    assert!(is_caught(Planted::HeaderRelaxed, pass_all_records));
}

#[test]
fn a_next_header_that_is_not_cleared_is_caught() {
    assert!(is_caught(Planted::NextHeaderNotCleared, pass_all_records));
}

#[test]
fn a_reader_that_sleeps_is_rung() {
    explore(3, || write_beside_a_sleeper(true));
}

#[test]
fn a_missing_barrier_is_caught() {
    assert!(is_caught(Planted::Nothing, || write_beside_a_sleeper(
        false
    )));
}

#[test]
fn a_writer_that_was_refused_is_rung_when_something_is_freed() {
    explore(3, || refused_freed_asleep(true));
}

#[test]
fn a_barrier_that_is_missing_where_room_is_made_is_caught() {
    assert!(is_caught(Planted::Nothing, || refused_freed_asleep(false)));
}
