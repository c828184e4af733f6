//! Every interleaving of an owner and a reader, whose adapter completes the parts of a transfer in
//! any order.

use std::sync::Mutex;

use loom::sync::atomic::fence;
use loom::thread;

use super::*;

/// What owner or reader does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    Nothing,
    /// The reader goes on before its mark is in the window.
    LookBeforeMark,
    /// The reader does not look again.
    SkipSecondLook,
    /// The reader gets the bytes alone, and relies on what the first look said of them.
    SkipBody,
    /// The reader puts no mark.
    SkipMark,
    /// The owner looks for marks without a fence.
    SkipFence,
}

const NODES: usize = 2;
const OWNER: usize = 0;
const READER: usize = 1;
const ID: u64 = 7;

/// The window of the owner, as both nodes reach it.
struct Window {
    words: Vec<AtomicU64>,
    mistake: Mistake,
    /// What the reader found at its first look.
    first: Mutex<Vec<u64>>,
}

impl RemoteMemory for Window {
    fn own(&self) -> &[AtomicU64] {
        &self.words
    }

    fn fence(&self) {
        if self.mistake != Mistake::SkipFence {
            fence(Ordering::SeqCst);
        }
    }

    fn transfer(
        &self,
        _: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached> {
        into.clear();
        let put = put.filter(|_| self.mistake != Mistake::SkipMark);
        if let Some(put) = put {
            self.words[put.at].store(put.value, Ordering::Relaxed);
        }
        let mut first = self.first.lock().unwrap();
        for at in gets.iter().cloned().flatten() {
            let is_again = !first.is_empty() && at < MARKS;
            let is_word = at == WORD;
            let value = match self.mistake {
                Mistake::SkipSecondLook if is_again && is_word => first[at],
                Mistake::SkipBody if is_again && !is_word => first[at],
                _ => self.words[at].load(Ordering::Relaxed),
            };
            into.push(value);
        }
        if first.is_empty() {
            first.extend_from_slice(into);
        }
        // All parts are complete from here on, in the one order of fences.
        match self.mistake {
            Mistake::LookBeforeMark => fence(Ordering::Acquire),
            _ => fence(Ordering::SeqCst),
        }
        Ok(())
    }
}

/// An owner, which has published the first version, and what the reader needs.
fn nodes(mistake: Mistake) -> (WindowPublications, Windows) {
    let words = (0..24).map(|_| AtomicU64::new(0)).collect();
    let first = Mutex::default();
    let window = Arc::new(Window {
        words,
        mistake,
        first,
    });
    let [owner, reader] =
        [OWNER, READER].map(|me| Windows::new(Arc::clone(&window) as _, NODES, me));
    let mut owner = WindowPublications::new(Arc::new(owner));
    publish(&mut owner, 1);
    (owner, reader)
}

fn publish(owner: &mut WindowPublications, version: u64) {
    let bytes = version.to_ne_bytes();
    let room = owner.reserve(ID, bytes.len()).expect("room");
    owner.publish(room, version, &bytes);
}

/// A one-sided read: the version, and the bytes.
fn read(reader: &Windows) -> Option<(u64, u64)> {
    let mut room = ReadRoom::default();
    let read = reader.read(OWNER, ID, WORD_BYTES, |_| true, &mut room);
    match read.unwrap() {
        WindowRead::Whole(version) => {
            let bytes = room.bytes.try_into().expect("a word");
            Some((version, u64::from_ne_bytes(bytes)))
        }
        WindowRead::Changed | WindowRead::Absent => None,
    }
}

/// What must hold of what was read: its version and bytes, and the readers that the owner found at
/// the end of each version.
type Property = fn((u64, u64), [u64; 2]);

fn is_whole((version, bytes): (u64, u64), _: [u64; 2]) {
    assert_eq!(bytes, version, "the bytes are of another version");
}

fn is_found((version, _): (u64, u64), found: [u64; 2]) {
    assert_eq!(found[version as usize - 1], 1 << READER, "nobody is found");
}

/// The owner writes twice. The second time it would keep the object for itself, and tell nobody, if
/// it finds no mark.
fn holds(mistake: Mistake, properties: &'static [Property]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (mut owner, reader) = nodes(mistake);
        let owner = thread::spawn(move || {
            let first = owner.unpublish(ID);
            publish(&mut owner, 2);
            [first, owner.unpublish(ID)]
        });
        let read = read(&reader);
        let found = owner.join().unwrap();
        if let Some(read) = read {
            properties.iter().for_each(|holds| holds(read, found));
        }
    });
}

#[test]
fn a_reader_sees_one_version_whole_and_is_found_when_it_ends() {
    holds(Mistake::Nothing, &[is_whole, is_found]);
}

#[test]
#[should_panic(expected = "nobody is found")]
fn a_look_before_the_mark_is_complete_is_not_found() {
    holds(Mistake::LookBeforeMark, &[is_found]);
}

#[test]
#[should_panic(expected = "another version")]
fn without_a_second_look_a_mixture_is_seen() {
    holds(Mistake::SkipSecondLook, &[is_whole]);
}

#[test]
#[should_panic(expected = "another version")]
fn a_first_look_at_two_publications_is_taken_for_one() {
    holds(Mistake::SkipBody, &[is_whole]);
}

#[test]
#[should_panic(expected = "nobody is found")]
fn a_reader_without_a_mark_is_not_found() {
    holds(Mistake::SkipMark, &[is_found]);
}

#[test]
#[should_panic(expected = "nobody is found")]
fn an_owner_without_a_fence_finds_nobody() {
    holds(Mistake::SkipFence, &[is_found]);
}
