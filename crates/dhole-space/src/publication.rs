//! What a node publishes of one of its objects, for neighbours that see its memory and read the
//! object there without a message: one record of four words.
//!
//! The owner alone writes `word`, `place` and `version`; a reader alone sets its bit in `readers`.
//!
//! | word | says |
//! |---|---|
//! | `word` | a number that grows with each change; it is odd while the object is published |
//! | `place` | where in the owner's store the bytes begin; the highest bit says that the object is behind the [gate](crate::gate) of its chunk |
//! | `version` | the version of these bytes |
//! | `readers` | one bit a neighbour that reads, since the owner last took them |
//!
//! A read is a seqlock's: the reader *looks* at the record, copies the bytes, and *looks again*.
//! Where the word is the same, the bytes are those of that version, whole, and neither place nor
//! version changed meanwhile.
//!
//! **A reader is seen.** It sets its bit between the first look and the copy. The owner makes the
//! word even, and then takes the bits; between both pairs stands a fence of one total order. So
//! either the second look finds that the word has changed, or the owner finds the bit. Were the
//! bit set before the first look, the owner could take it, publish another version, and find no
//! bit at the end of that version although it was read.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The record of one object. All zeros, as untouched memory is: nothing is published.
#[repr(C, align(32))]
pub struct Publication {
    word: AtomicU64,
    place: AtomicU64,
    version: AtomicU64,
    readers: AtomicU64,
}

/// Set in the place of an object that is behind the [gate](crate::gate) of its chunk.
const GATED: u64 = 1 << 63;

/// What a reader found at its first look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstLook {
    word: u64,
    place: u64,
    /// The version that the bytes are said to have.
    pub version: u64,
}

impl FirstLook {
    /// Where in the owner's store the bytes are said to begin.
    #[inline]
    pub fn place(&self) -> u64 {
        self.place & !GATED
    }

    /// Whether the object is behind the [gate](crate::gate) of its chunk: its bytes may be newer
    /// than their version, and change whenever the gate is open.
    #[inline]
    pub fn is_gated(&self) -> bool {
        self.place & GATED != 0
    }
}

impl Publication {
    /// A record by which nothing is published.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Publication {
        let zero = || AtomicU64::new(0);
        Publication {
            word: zero(),
            place: zero(),
            version: zero(),
            readers: zero(),
        }
    }

    /// Publishes the object at `place`, whose bytes are whole and of this version. For the owner,
    /// of an object that is not published.
    #[inline]
    pub fn publish(&self, place: u64, version: u64) {
        let word = self.word.load(Ordering::Relaxed);
        self.place.store(place, Ordering::Relaxed);
        self.version.store(version, Ordering::Relaxed);
        self.word.store(word.wrapping_add(1) | 1, Ordering::Release);
    }

    /// As [`publish`](Publication::publish), of an object behind the [gate](crate::gate) of its
    /// chunk.
    #[inline]
    pub fn publish_gated(&self, place: u64, version: u64) {
        self.publish(place | GATED, version);
    }

    /// Whether the object is published. For the owner.
    #[inline]
    pub fn is_published(&self) -> bool {
        self.word.load(Ordering::Relaxed) & 1 == 1
    }

    /// The object is not published from here on, and its bytes may change. The readers that may
    /// have read it since the last time. For the owner.
    #[inline]
    pub fn unpublish(&self) -> u64 {
        if !self.is_published() {
            // Who marks it meanwhile does not read it.
            return 0;
        }
        self.hide();
        // Orders the word before the readers, and before what is written to the bytes.
        fence(Ordering::SeqCst);
        self.take_readers()
    }

    /// The first of the two parts of [`unpublish`](Publication::unpublish).
    fn hide(&self) {
        let word = self.word.load(Ordering::Relaxed);
        if word & 1 == 1 {
            self.word.store(word.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The second part, after a fence.
    fn take_readers(&self) -> u64 {
        match self.readers.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.readers.swap(0, Ordering::Relaxed),
        }
    }

    /// The first look of a reader; `None` where nothing is published.
    #[inline]
    pub fn look(&self) -> Option<FirstLook> {
        let word = self.word.load(Ordering::Acquire);
        (word & 1 == 1).then(|| FirstLook {
            word,
            place: self.place.load(Ordering::Relaxed),
            version: self.version.load(Ordering::Relaxed),
        })
    }

    /// The reader with this bit is about to copy what it looked at.
    #[inline]
    pub fn mark(&self, reader: u64) {
        if self.readers.load(Ordering::Relaxed) & reader == 0 {
            self.readers.fetch_or(reader, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// The second look: whether the bytes that were copied since the first one are whole, and of
    /// the version that it found.
    #[inline]
    pub fn still(&self, look: FirstLook) -> bool {
        fence(Ordering::Acquire);
        self.word.load(Ordering::Relaxed) == look.word
    }
}

/// As [`Publication::unpublish`] of each of these records, with one fence for all of them. `read`
/// is called with those that somebody may have read. For the owner.
pub fn unpublish_all<'a, K>(
    records: impl Iterator<Item = (K, &'a Publication)> + Clone,
    mut read: impl FnMut(K, u64),
) {
    records.clone().for_each(|(_, record)| record.hide());
    // Orders the words before the readers, and before what is written to the bytes.
    fence(Ordering::SeqCst);
    for (key, record) in records {
        match record.take_readers() {
            0 => (),
            readers => read(key, readers),
        }
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
        /// The object stays published while its bytes change.
        StayPublished,
        /// The reader does not look again.
        SkipSecondLook,
        /// The reader sets its bit before it looks.
        MarkFirst,
        /// The reader sets no bit.
        SkipMark,
    }

    /// A record, and an object of two words.
    struct Shared {
        record: Publication,
        bytes: [AtomicU64; 2],
        mistake: Mistake,
        with_others: bool,
    }

    impl Shared {
        /// With the first version published.
        fn new(mistake: Mistake, with_others: bool) -> Arc<Shared> {
            let zero = || AtomicU64::new(0);
            let shared = Shared {
                record: Publication::new(),
                bytes: [zero(), zero()],
                mistake,
                with_others,
            };
            shared.write(1);
            shared.record.publish(64, 1);
            Arc::new(shared)
        }

        /// The owner unpublishes the object, alone or with others.
        fn unpublish(&self) -> u64 {
            if !self.with_others {
                return self.record.unpublish();
            }
            let mut found = 0;
            unpublish_all([((), &self.record)].into_iter(), |(), readers| {
                found = readers
            });
            found
        }

        fn write(&self, value: u64) {
            for word in &self.bytes {
                word.store(value, Ordering::Relaxed);
            }
        }

        /// The owner writes the second version; the bits that it found at the end of the first.
        fn write_again(&self) -> u64 {
            let readers = match self.mistake {
                Mistake::StayPublished => 0,
                _ => self.unpublish(),
            };
            self.write(2);
            self.record.publish(128, 2);
            readers
        }

        /// A one-sided read: the version, and the bytes.
        fn read(&self, reader: u64) -> Option<(u64, [u64; 2])> {
            if self.mistake == Mistake::MarkFirst {
                self.record.mark(reader);
            }
            let look = self.record.look()?;
            if !matches!(self.mistake, Mistake::MarkFirst | Mistake::SkipMark) {
                self.record.mark(reader);
            }
            let bytes = [0, 1].map(|at| self.bytes[at].load(Ordering::Relaxed));
            if self.mistake != Mistake::SkipSecondLook && !self.record.still(look) {
                return None;
            }
            assert_eq!(look.place(), 64 * look.version, "place and version agree");
            Some((look.version, bytes))
        }
    }

    /// A reader sees one version whole.
    fn sees_one_version(mistake: Mistake, with_others: bool) {
        loom::model(move || {
            let shared = Shared::new(mistake, with_others);
            let other = Arc::clone(&shared);
            let owner = thread::spawn(move || other.write_again());
            if let Some((version, bytes)) = shared.read(1) {
                assert_eq!(bytes, [version; 2]);
            }
            owner.join().unwrap();
            assert_eq!(shared.read(1), Some((2, [2; 2])));
        });
    }

    /// The owner writes twice. The second time it would keep the object for itself, and tell
    /// nobody, if no bit is there: then nobody may have read the version that was published last.
    fn is_found_when_the_version_ends(mistake: Mistake, with_others: bool) {
        loom::model(move || {
            let shared = Shared::new(mistake, with_others);
            let other = Arc::clone(&shared);
            let owner = thread::spawn(move || [other.write_again(), other.unpublish()]);
            let read = shared.read(1);
            let readers = owner.join().unwrap();
            if let Some((version, _)) = read {
                assert_eq!(readers[version as usize - 1], 1, "{version} {readers:?}");
            }
        });
    }

    #[test]
    fn a_reader_sees_one_version_whole() {
        sees_one_version(Mistake::Nothing, false);
        sees_one_version(Mistake::Nothing, true);
    }

    #[test]
    fn whoever_reads_a_version_is_found_when_it_ends() {
        is_found_when_the_version_ends(Mistake::Nothing, false);
        is_found_when_the_version_ends(Mistake::Nothing, true);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn what_stays_published_while_it_is_written_is_seen_torn() {
        sees_one_version(Mistake::StayPublished, false);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn without_a_second_look_a_mixture_is_seen() {
        sees_one_version(Mistake::SkipSecondLook, false);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_bit_that_is_set_before_the_first_look_is_taken_too_early() {
        is_found_when_the_version_ends(Mistake::MarkFirst, false);
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_reader_without_a_bit_is_not_found() {
        is_found_when_the_version_ends(Mistake::SkipMark, false);
    }
}
