//! Every interleaving of one writer and one reader, and what each may see of the other's words.
//!
//! ```text
//! writer:  0 where the next header goes; bytes; header     asks: is the reader parked?
//! reader:  header; bytes; up to where it read              says: parked; is there a header?
//! ```
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p dhole-net --lib model`

use std::cell::Cell;
use std::panic::catch_unwind;

use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::parked::ParkedThreads;
use super::{CONTROL, Header, Kind, LARGEST, Planted, Reader, Ring, Writer, unpack};
use crate::atomic::AtomicU64;
use crate::doorbell::model::{Waker, deadlocks, explore};
use crate::parker::Park;

std::thread_local! {
    /// What is planted in this test's model, all of whose threads loom runs on this one.
    pub(super) static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

/// Words of the ring: three of the records below do not fit.
const WORDS: usize = 8;
/// How many bytes each record has; some must skip the end of the ring, or go back to its beginning
/// because all before them were read.
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
            // As a port does: the short way, and where it is barred the other.
            while !writer.write_on(ring, bytes.len(), &[&bytes[..]])
                && !writer
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
        let bytes = loop {
            if let Some((body, bytes)) = reader.whole(ring, LARGEST) {
                let mut taken = vec![0; bytes];
                unpack(body, &mut taken);
                break taken;
            }
            // It may say that the rest of the ring holds nothing.
            if reader.peek(ring).expect("a sound writer").is_none() {
                thread::yield_now();
            }
        };
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
        if ring.notifies_reader(Park::Coarse) {
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
fn refused_freed_parked(barriers: bool) {
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
        if ring.notifies_writer() {
            doorbell.ring();
        }
    }
    writer.join().expect("the writer");
}

/// What two sleepers at one port can do wrong.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    Nothing,
    /// No barrier between lying down and the look whether there is something.
    LooksTooEarly,
    /// Nor between what is said for who sleeps on and taking what has come.
    TakesTooEarly,
    /// Who gets up forgets who sleeps on.
    ForgetsTheOther,
    /// Rings are heard when all was taken: one of them may be for who sleeps on.
    HearsTooLate,
}

/// Two threads sleep at one port. Who has taken something does something else from then on, and
/// the other is rung for the rest.
///
/// ```text
/// sleeper:  takes what is there; parked: one more; is there something? sleeps until a ring;
///           hears it; parked: one less; takes
/// writer:   writes; is somebody parked? then rings; once more
/// ```
fn two_sleepers_at_one_port(mistake: Mistake) {
    sleepers_at_one_port([Park::Fine; 2], mistake);
}

/// As above. One of them is parked coarsely, and the first record is written lazily.
fn one_of_two_parks_coarsely(mistake: Mistake) {
    sleepers_at_one_port([Park::Fine, Park::Coarse], mistake);
}

fn sleepers_at_one_port(sleeps: [Park; 2], mistake: Mistake) {
    const COUNT: usize = 2;
    let words = words();
    let doorbell = Arc::new(Waker::new());
    let port = Arc::new((ParkedThreads::new(), Mutex::new((Reader::new(), 0))));
    let sleepers = sleeps.map(|sleep| {
        let (words, doorbell, port) = (words.clone(), doorbell.clone(), port.clone());
        thread::spawn(move || {
            let (ring, (parked, reader)) = (Ring::new(&words), &*port);
            let barrier_unless = |without| {
                if mistake != without {
                    fence(Ordering::SeqCst);
                }
            };
            loop {
                let (took, all) = take_all(ring, &mut reader.lock().expect("a lock"));
                if mistake == Mistake::HearsTooLate {
                    doorbell.hear();
                }
                if all == COUNT {
                    // The other has nothing to wait for.
                    doorbell.ring();
                }
                if took > 0 || all == COUNT {
                    break;
                }
                parked.prepare_park(sleep, [ring].into_iter());
                barrier_unless(Mistake::LooksTooEarly);
                if reader.lock().expect("a lock").0.is_empty(ring) {
                    doorbell.sleep();
                }
                if mistake != Mistake::HearsTooLate {
                    doorbell.hear();
                }
                if parked.finish_park(sleep, [ring].into_iter()) {
                    barrier_unless(Mistake::TakesTooEarly);
                }
                if mistake == Mistake::ForgetsTheOther {
                    ring.reader_parked().swap(0, Ordering::Relaxed);
                }
            }
        })
    });
    let (ring, mut writer) = (Ring::new(&words), Writer::new());
    for record in 0..COUNT {
        let (kind, bytes) = (Kind::Whole, 0);
        let written = writer.write(ring, Header { kind, bytes }, []);
        assert!(written.expect("a sound reader"), "there is room");
        fence(Ordering::SeqCst);
        let lazy = record == 0 && sleeps.contains(&Park::Coarse);
        let wakes = if lazy { Park::Fine } else { Park::Coarse };
        if ring.notifies_reader(wakes) {
            doorbell.ring();
        }
    }
    for sleeper in sleepers {
        sleeper.join().expect("a sleeper");
    }
}

/// Takes the records that are there: how many they are, and how many were ever taken.
fn take_all(ring: Ring<'_>, (reader, taken): &mut (Reader, usize)) -> (usize, usize) {
    let before = *taken;
    while let Some(header) = reader.peek(ring).expect("a sound writer") {
        reader.copy(ring, header, &mut []);
        *taken += 1;
    }
    reader.publish(ring);
    (*taken - before, *taken)
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
fn a_header_that_is_read_too_early_is_caught() {
    assert!(is_caught(Planted::TakenRelaxed, pass_all_records));
}

#[test]
fn a_next_header_that_is_not_cleared_is_caught() {
    assert!(is_caught(Planted::NextHeaderNotCleared, pass_all_records));
}

#[test]
fn going_back_over_what_was_not_read_is_caught() {
    assert!(is_caught(Planted::TakenForRead, pass_all_records));
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
    explore(3, || refused_freed_parked(true));
}

#[test]
fn a_barrier_that_is_missing_where_room_is_made_is_caught() {
    assert!(is_caught(Planted::Nothing, || refused_freed_parked(false)));
}

#[test]
fn what_is_written_beside_two_sleepers_is_taken() {
    explore(3, || two_sleepers_at_one_port(Mistake::Nothing));
}

#[test]
fn what_is_written_beside_one_that_is_parked_coarsely_is_taken() {
    explore(3, || one_of_two_parks_coarsely(Mistake::Nothing));
}

#[test]
#[ignore = "it deadlocks, which the next test wants"]
fn taking_in_silence() {
    PLANTED.set(Planted::TakenInSilence);
    explore(3, || one_of_two_parks_coarsely(Mistake::Nothing));
}

#[test]
fn a_coarse_park_that_is_taken_in_silence_is_caught() {
    assert!(deadlocks("ring::model::taking_in_silence"));
}

/// Each deadlocks, which the test that follows on it wants.
macro_rules! caught {
    ($($mistake:ident: $planted:ident, $caught:ident;)*) => {$(
        #[test]
        #[ignore = "it deadlocks, which the next test wants"]
        fn $planted() {
            explore(3, || two_sleepers_at_one_port(Mistake::$mistake));
        }

        #[test]
        fn $caught() {
            assert!(deadlocks(concat!("ring::model::", stringify!($planted))));
        }
    )*};
}

caught! {
    LooksTooEarly: looking_too_early, a_look_without_a_barrier_is_caught;
    TakesTooEarly: taking_too_early, taking_without_a_barrier_is_caught;
    ForgetsTheOther: forgetting_the_other, a_sleeper_that_is_forgotten_by_the_other_is_caught;
    HearsTooLate: hearing_too_late, a_ring_that_is_heard_after_all_was_taken_is_caught;
}
