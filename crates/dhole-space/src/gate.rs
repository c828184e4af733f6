//! Gates: the objects of a chunk that their owner alone has and goes on to write are published
//! while it does not write them.
//!
//! An object *behind the gate* of its chunk stays published, with the version that was announced
//! last. Its bytes may be newer: the owner changes them under that version as long as no other node
//! has a copy. A node that reads them leaves a mark, and the write that follows on a mark is
//! announced in a newer version. While the gate is *shut* nothing behind it changes, and others
//! read it without a message. The owner opens the gate before it writes one of these objects, and
//! may write all of them until it shuts the gate again: no record, list or state is touched for
//! each.
//!
//! | word | says |
//! |---|---|
//! | `word` | a number that grows with each change; it is odd while the gate is shut |
//! | `marks` | one bit an object of the chunk that somebody reads, since the owner last took them |
//!
//! The owner alone writes `word`; readers set marks, which the owner takes.
//!
//! **A reader is seen**, as by a [record](crate::publication). It looks at the record and at the
//! gate, sets its mark in the gate and then its bit in the record, copies, and looks at both again.
//! The owner makes the word even, and then takes the marks; between both pairs stands a fence of
//! one total order. So either the second look finds that the word has changed, or the opening takes
//! the mark. An object that leaves the gate by itself is made unpublished in its record, where its
//! reader's bit is found in the same way.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::publication::{FirstLook, Publication};

/// Ids of the objects that share a gate: a bit each in its marks.
pub const GATE_IDS: u64 = 64;

/// The gate of one chunk. All zeros, as untouched memory is: it is open, and nothing is behind it.
#[repr(C, align(16))]
pub struct Gate {
    word: AtomicU64,
    marks: AtomicU64,
}

impl Gate {
    /// Nothing behind the gate changes from here on, until it is opened. For the owner. Nothing
    /// happens where it is shut.
    #[inline]
    pub fn shut(&self) {
        let word = self.word.load(Ordering::Relaxed);
        if word & 1 == 0 {
            self.word.store(word.wrapping_add(1), Ordering::Release);
        }
    }

    /// What is behind the gate may change from here on, but for what somebody may have read since
    /// the last time: the marks, one bit an object. For the owner.
    #[inline]
    pub fn open(&self) -> u64 {
        self.begin_to_open();
        // Orders the word before the marks, and before what is written to the bytes.
        fence(Ordering::SeqCst);
        self.take_marks()
    }

    /// The first of the two parts of [`open`](Gate::open).
    #[inline]
    fn begin_to_open(&self) {
        let word = self.word.load(Ordering::Relaxed);
        if word & 1 == 1 {
            self.word.store(word.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The second part, after a fence.
    #[inline]
    fn take_marks(&self) -> u64 {
        match self.marks.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.marks.swap(0, Ordering::Relaxed),
        }
    }

    /// Whether nothing behind the gate changes.
    #[inline]
    pub fn is_shut(&self) -> bool {
        self.word.load(Ordering::Relaxed) & 1 == 1
    }

    /// The word, while the gate is shut.
    #[inline]
    fn look(&self) -> Option<u64> {
        let word = self.word.load(Ordering::Acquire);
        (word & 1 == 1).then_some(word)
    }

    /// Object `slot` is about to be read, or is to be taken for read. The fence of
    /// [`Publication::mark`] follows.
    #[inline]
    pub fn mark(&self, slot: usize) {
        let mark = 1 << (slot as u64 % GATE_IDS);
        if self.marks.load(Ordering::Relaxed) & mark == 0 {
            self.marks.fetch_or(mark, Ordering::Relaxed);
        }
    }

    /// Behind the second look at the record, and its fence.
    #[inline]
    fn still(&self, word: u64) -> bool {
        self.word.load(Ordering::Relaxed) == word
    }
}

/// An object as a reader finds it: its record, and the gate of its chunk.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The record.
    pub record: &'a Publication,
    /// The gate.
    pub gate: &'a Gate,
    /// The place of the object in its chunk.
    pub slot: usize,
}

/// What a reader found at its first look at both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstLooks {
    /// What it found at the record.
    pub record: FirstLook,
    /// The word of the gate, if the object is behind it.
    gate: Option<u64>,
}

impl Shown<'_> {
    /// The first look of a reader; `None` where nothing is published, or the gate is open.
    #[inline]
    pub fn look(&self) -> Option<FirstLooks> {
        let record = self.record.look()?;
        let gate = match record.is_gated() {
            true => Some(self.gate.look()?),
            false => None,
        };
        Some(FirstLooks { record, gate })
    }

    /// The reader with this bit is about to copy what it looked at.
    #[inline]
    pub fn mark(&self, look: &FirstLooks, reader: u64) {
        if look.gate.is_some() {
            self.gate.mark(self.slot);
        }
        // The fence behind the reader's bit is the mark's too.
        self.record.mark(reader);
    }

    /// The second look: whether the bytes that were copied since the first one are whole, and what
    /// the version that it found stands for.
    #[inline]
    pub fn still(&self, look: &FirstLooks) -> bool {
        self.record.still(look.record) && look.gate.is_none_or(|word| self.gate.still(word))
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// What owner or reader does wrong.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Mistake {
        Nothing,
        /// The reader marks the gate before it looks.
        MarkFirst,
        /// The reader does not look at the gate again.
        SkipSecondLook,
        /// The owner's word and the marks are not ordered.
        SkipFence,
        /// The owner opens the gate and leaves the marks.
        LeaveMarks,
        /// The owner shuts the gate after it has released what it wrote.
        ShutLate,
    }

    /// A record and a gate, and an object of two words.
    struct Shared {
        record: Publication,
        gate: Gate,
        bytes: [AtomicU64; 2],
        released: AtomicU64,
        mistake: Mistake,
    }

    /// The place of the object in its chunk.
    const SLOT: usize = 3;
    /// Its mark.
    const MARK: u64 = 1 << SLOT;

    /// What an opening found: marks of the gate, and readers of the record if the object left.
    type Opened = (u64, u64);

    impl Shared {
        /// The object is behind the gate in version 1, and the gate is shut.
        fn new(mistake: Mistake) -> Arc<Shared> {
            let zero = || AtomicU64::new(0);
            let (word, marks) = (zero(), zero());
            let shared = Shared {
                record: Publication::new(),
                gate: Gate { word, marks },
                bytes: [zero(), zero()],
                released: zero(),
                mistake,
            };
            shared.write(1);
            shared.record.publish_gated(64, 1);
            shared.gate.shut();
            Arc::new(shared)
        }

        fn write(&self, value: u64) {
            for word in &self.bytes {
                word.store(value, Ordering::Relaxed);
            }
        }

        /// The owner opens the gate. The object leaves if it is marked.
        fn open(&self) -> Opened {
            let marks = match self.mistake {
                Mistake::SkipFence => {
                    self.gate.begin_to_open();
                    self.gate.take_marks()
                }
                Mistake::LeaveMarks => {
                    self.gate.open();
                    0
                }
                _ => self.gate.open(),
            };
            let readers = match marks {
                0 => 0,
                _ => self.record.unpublish(),
            };
            (marks, readers)
        }

        /// An interval of the owner that writes `value`. If the object left the gate it is
        /// announced in a version of that number, and goes behind the gate again.
        fn write_again(&self, value: u64) -> Opened {
            let opened = self.open();
            self.write(value);
            if opened.0 != 0 {
                self.record.publish_gated(64 * value, value);
            }
            if self.mistake != Mistake::ShutLate {
                self.gate.shut();
            }
            self.released.store(value, Ordering::Release);
            self.gate.shut();
            opened
        }

        /// A one-sided read: the version, and the bytes.
        fn read(&self) -> Option<(u64, [u64; 2])> {
            let shown = Shown {
                record: &self.record,
                gate: &self.gate,
                slot: SLOT,
            };
            if self.mistake == Mistake::MarkFirst {
                self.gate.mark(SLOT);
            }
            let look = shown.look()?;
            match self.mistake {
                Mistake::MarkFirst => self.record.mark(1),
                _ => shown.mark(&look, 1),
            }
            let bytes = [0, 1].map(|at| self.bytes[at].load(Ordering::Relaxed));
            let is_still = match self.mistake {
                Mistake::SkipSecondLook => self.record.still(look.record),
                _ => shown.still(&look),
            };
            let (place, version) = (look.record.place(), look.record.version);
            assert_eq!(place, 64 * version, "place and version agree");
            is_still.then_some((version, bytes))
        }
    }

    /// The owner writes twice. A reader sees one write whole, and the opening that follows on that
    /// write takes its mark, and its bit.
    fn a_reader_is_found(mistake: Mistake) {
        loom::model(move || {
            let shared = Shared::new(mistake);
            let other = Arc::clone(&shared);
            let owner = thread::spawn(move || {
                let first = other.write_again(2);
                (first, other.open())
            });
            let read = shared.read();
            let (first, second) = owner.join().unwrap();
            if let Some((version, bytes)) = read {
                assert_eq!(bytes, [bytes[0]; 2], "one write, whole");
                let found = match bytes[0] {
                    1 => first,
                    _ => second,
                };
                assert_eq!(found, (MARK, 1), "{version} {bytes:?}");
            }
        });
    }

    /// A reader that has acquired what the owner released finds the gate shut.
    fn what_is_released_is_read(mistake: Mistake) {
        loom::model(move || {
            let shared = Shared::new(mistake);
            let other = Arc::clone(&shared);
            let owner = thread::spawn(move || other.write_again(2));
            if shared.released.load(Ordering::Acquire) == 2 {
                assert_eq!(shared.read(), Some((1, [2; 2])));
            }
            owner.join().unwrap();
        });
    }

    #[test]
    fn whoever_reads_behind_a_gate_is_found_when_it_is_opened() {
        a_reader_is_found(Mistake::Nothing);
    }

    #[test]
    fn what_is_behind_a_gate_is_read_once_it_is_released() {
        what_is_released_is_read(Mistake::Nothing);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_mark_that_is_set_before_the_first_look_is_taken_too_early() {
        a_reader_is_found(Mistake::MarkFirst);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn without_a_second_look_at_the_gate_a_mixture_is_seen() {
        a_reader_is_found(Mistake::SkipSecondLook);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn without_a_fence_a_mark_is_missed() {
        a_reader_is_found(Mistake::SkipFence);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_gate_that_is_opened_without_its_marks_hides_a_reader() {
        a_reader_is_found(Mistake::LeaveMarks);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_gate_that_is_shut_after_the_release_is_found_open() {
        what_is_released_is_read(Mistake::ShutLate);
    }
}
