//! What a node publishes for nodes that reach its memory by operations of a port alone, as through
//! a network adapter: they put words into its *window* and get bytes from it, and map nothing.
//!
//! A window holds a table of records, and behind it the bytes of what is published, which are
//! copies: nothing else of the owner lies where others can write. An object has the record that its
//! id modulo their number names. Where that is another object's, it is not published.
//!
//! | word of a record | says |
//! |---|---|
//! | `WORD` | a number that grows with each change; it is odd while an object is published |
//! | `ID` | which object that is |
//! | `VERSION` | the version of its bytes |
//! | `SPAN` | where in the window they begin, and how many they are |
//! | from `MARKS` on | for each node, the number of the record when it read last |
//!
//! The owner alone writes the first four. Each reader writes one word, its mark, which no other
//! node writes: adapter and processor need not agree on atomic instructions.
//!
//! **A read** takes three transfers, each complete before the next one begins:
//!
//! 1. The reader gets the record, and knows the number and where the bytes should be.
//! 2. It puts that number as its mark, and gets the bytes, and the record but for its number again.
//! 3. It gets the number again. If it is the same, the record published one object all the while.
//!    So what the second transfer got is of that publication, whatever came first within a
//!    transfer; the place in the first one counts only if it is the same.
//!
//! **A reader is seen.** The owner makes the number even, then calls [`RemoteMemory::fence`], then
//! looks for marks that are the number of before. The mark is in the window before the third
//! transfer begins. So either that finds the new number, or the owner finds the mark. A mark of an
//! earlier publication is another number: the owner need not take marks away.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dhole_model::unpoisoned::lock;

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

/// Bytes of a word.
const WORD_BYTES: usize = size_of::<u64>();

/// The words of a record.
const WORD: usize = 0;
const ID: usize = 1;
const VERSION: usize = 2;
const SPAN: usize = 3;
const MARKS: usize = 4;

/// Room for bytes is taken in so many words.
const ROOM_WORDS: usize = 8;

/// One word that a transfer puts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    /// Where in the window, in words.
    pub at: usize,
    /// What it becomes.
    pub value: u64,
}

/// Why a transfer did not come about.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("reaching the memory of node {node}: {why}")]
pub struct Unreached {
    /// Whose memory it is.
    pub node: usize,
    /// In the port's words.
    pub why: String,
}

/// The windows of all nodes of a run, equally long, which a port makes.
pub trait RemoteMemory: Send + Sync {
    /// The window of the node here. Any word may change at any time: others put into it.
    fn own(&self) -> &[AtomicU64];

    /// Orders what is stored in the own window before this call before what is loaded from it and
    /// stored in it after the call, for who puts and gets as well.
    fn fence(&self);

    /// Puts a word into the window of `node` and gets words from there, in no order. When it
    /// returns, the word is in that window, and the words are behind each other in `into`;
    /// nothing else is there.
    ///
    /// # Errors
    /// [`Unreached`], after a limited time, also where that node does not take part any more.
    fn transfer(
        &self,
        node: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached>;
}

/// Makes the windows. All nodes call it at the same point of a run.
///
/// # Errors
/// Why there are none, in words; all nodes get an error then.
pub type WindowMaker = Box<dyn Fn() -> Result<Arc<dyn RemoteMemory>, String> + Send + Sync>;

/// Where things are in a window, which is the same in all of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    words: usize,
    /// Words from one record to the next.
    stride: usize,
    /// How many there are, a power of two.
    records: usize,
}

impl Layout {
    /// A quarter of the window is records.
    fn of(words: usize, nodes: usize) -> Layout {
        let stride = (MARKS + nodes).next_multiple_of(2);
        let most = (words / 4 / stride).max(1);
        Layout {
            words,
            stride,
            records: 1 << most.ilog2(),
        }
    }

    fn slot(&self, id: u64) -> usize {
        id as usize & (self.records - 1)
    }

    /// Where the record begins.
    fn record(&self, slot: usize) -> usize {
        slot * self.stride
    }

    /// Where the bytes begin.
    fn bytes_from(&self) -> usize {
        self.records * self.stride
    }

    /// The words of so many bytes from a word on, if that is where bytes are.
    fn span(&self, at: usize, bytes: usize) -> Option<Range<usize>> {
        let words = bytes.div_ceil(WORD_BYTES);
        let fits = at >= self.bytes_from() && at <= self.words && words <= self.words - at;
        fits.then(|| at..at + words)
    }
}

/// The windows of a run, as one of its nodes sees them.
pub struct Windows {
    memory: Arc<dyn RemoteMemory>,
    layout: Layout,
    nodes: usize,
    me: usize,
    /// Of two reads at once one would put its mark in place of the other's.
    one_read: Mutex<()>,
    /// By node: a transfer did not come about.
    given_up: Box<[AtomicBool]>,
}

/// How a read ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowRead {
    /// The bytes are whole, and of this version.
    Whole(u64),
    /// The record changed meanwhile.
    Changed,
    /// The node publishes nothing that is wanted.
    Absent,
}

impl Windows {
    /// Those that `memory` reaches, for node `me` of so many.
    pub fn new(memory: Arc<dyn RemoteMemory>, nodes: usize, me: usize) -> Windows {
        let layout = Layout::of(memory.own().len(), nodes);
        Windows {
            memory,
            layout,
            nodes,
            me,
            one_read: Mutex::default(),
            given_up: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Whether every transfer with a node has come about.
    pub fn reaches(&self, node: usize) -> bool {
        !self.given_up[node].load(Ordering::Relaxed)
    }

    /// Reads an object of so many bytes in the window of another node, if that publishes it in a
    /// version that is `wanted`. The bytes are in `room` where they are [whole](WindowRead::Whole).
    /// Nothing that the other node says is believed, but what it publishes of the object.
    ///
    /// # Errors
    /// [`Unreached`]. The node is not [reached](Windows::reaches) any more.
    pub fn read(
        &self,
        of: usize,
        id: u64,
        bytes: usize,
        wanted: impl Fn(u64) -> bool,
        room: &mut ReadRoom,
    ) -> Result<WindowRead, Unreached> {
        let _one = lock(&self.one_read);
        let read = self.transfers(of, id, bytes, wanted, room);
        if read.is_err() {
            self.given_up[of].store(true, Ordering::Relaxed);
        }
        read
    }

    fn transfers(
        &self,
        of: usize,
        id: u64,
        bytes: usize,
        wanted: impl Fn(u64) -> bool,
        room: &mut ReadRoom,
    ) -> Result<WindowRead, Unreached> {
        let ReadRoom { words, bytes: into } = room;
        let record = self.layout.record(self.layout.slot(id));
        let looks = record..record + MARKS;
        self.memory.transfer(of, None, &[looks], words)?;
        let first: [u64; MARKS] = first_of(words);
        let [word, said_id, version, span] = first;
        let Some(place) = self.layout.span((span >> 32) as usize, bytes) else {
            return Ok(WindowRead::Absent);
        };
        let is_it = said_id == id && span as u32 as usize == bytes;
        if word & 1 == 0 || !is_it || !wanted(version) {
            return Ok(WindowRead::Absent);
        }
        let mark = Put {
            at: record + MARKS + self.me,
            value: word,
        };
        let copies = [record + ID..record + MARKS, place];
        self.memory.transfer(of, Some(mark), &copies, words)?;
        let again: [u64; MARKS - ID] = first_of(words);
        if again != first[ID..] {
            return Ok(WindowRead::Changed);
        }
        let copied = words.get(MARKS - ID..).unwrap_or_default();
        into.resize(copied.len() * WORD_BYTES, 0);
        for (word, bytes) in copied.iter().zip(into.as_chunks_mut().0) {
            *bytes = word.to_ne_bytes();
        }
        into.truncate(bytes);
        let looks = record + WORD..record + ID;
        self.memory.transfer(of, None, &[looks], words)?;
        match first_of(words) == [word] && into.len() == bytes {
            true => Ok(WindowRead::Whole(version)),
            false => Ok(WindowRead::Changed),
        }
    }
}

/// Where what is read comes to.
#[derive(Default)]
pub struct ReadRoom {
    words: Vec<u64>,
    /// The bytes of an object.
    pub bytes: Vec<u8>,
}

/// The first words of what was got, and zeros where those are too few.
fn first_of<const N: usize>(words: &[u64]) -> [u64; N] {
    std::array::from_fn(|at| words.get(at).copied().unwrap_or(0))
}

/// Room for an object in the window.
pub struct Reservation {
    id: u64,
    slot: usize,
    at: usize,
}

/// What the node here publishes in its window. It relies on nothing that others can write but their
/// marks.
pub struct WindowPublications {
    windows: Arc<Windows>,
    /// By record: its number, or 0 where this run has not used it.
    words: Vec<u64>,
    /// By record: the object that it publishes, or published last.
    ids: Vec<u64>,
    /// By record: where its bytes are, and the words of that room, as in a span.
    rooms: Vec<u64>,
    /// Rooms of so many words that no record has.
    free: BTreeMap<u32, Vec<u32>>,
    /// Where the window has not been used yet.
    next: usize,
    /// Records that are being made unpublished.
    hidden: Vec<u32>,
}

impl WindowPublications {
    /// Nothing is published yet.
    pub fn new(windows: Arc<Windows>) -> WindowPublications {
        let Layout { records, .. } = windows.layout;
        let next = windows.layout.bytes_from();
        WindowPublications {
            windows,
            words: vec![0; records],
            ids: vec![0; records],
            rooms: vec![0; records],
            free: BTreeMap::new(),
            next,
            hidden: Vec::new(),
        }
    }

    fn store(&self, at: usize, value: u64, order: Ordering) {
        self.windows.memory.own()[at].store(value, order);
    }

    /// Whether the object is published.
    pub fn is_published(&self, id: u64) -> bool {
        let slot = self.windows.layout.slot(id);
        self.words[slot] & 1 == 1 && self.ids[slot] == id
    }

    /// Room for so many bytes of an object, which can be [published](WindowPublications::publish)
    /// then; `None` where it is published, another object has its record, or the window is full.
    pub fn reserve(&mut self, id: u64, bytes: usize) -> Option<Reservation> {
        let slot = self.windows.layout.slot(id);
        if self.words[slot] & 1 == 1 {
            return None;
        }
        let at = self.room_of(slot, bytes)?;
        Some(Reservation { id, slot, at })
    }

    /// Publishes an object in this version, of which these are the bytes: as many as room was
    /// reserved for, since the last change of what is published.
    pub fn publish(&mut self, object: Reservation, version: u64, bytes: &[u8]) {
        let Reservation { id, slot, at } = object;
        let record = self.windows.layout.record(slot);
        if self.words[slot] == 0 {
            // A run before this one may have used it.
            let word = self.windows.memory.own()[record + WORD].load(Ordering::Relaxed);
            self.words[slot] = (word | 1).wrapping_add(1).max(2);
        }
        let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
        let room = &self.windows.memory.own()[at..at + bytes.len().div_ceil(WORD_BYTES)];
        for (word, bytes) in room.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(word) = room.get(whole.len()) {
            let mut last = [0; WORD_BYTES];
            last[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
        self.ids[slot] = id;
        self.store(record + ID, id, Ordering::Relaxed);
        self.store(record + VERSION, version, Ordering::Relaxed);
        let span = (at as u64) << 32 | bytes.len() as u64;
        self.store(record + SPAN, span, Ordering::Relaxed);
        self.windows.memory.fence();
        self.words[slot] = self.words[slot].wrapping_add(1);
        self.store(record + WORD, self.words[slot], Ordering::Release);
    }

    /// Room for so many bytes of a record that publishes nothing.
    fn room_of(&mut self, slot: usize, bytes: usize) -> Option<usize> {
        let words = bytes.div_ceil(WORD_BYTES).next_multiple_of(ROOM_WORDS);
        let words = u32::try_from(words).ok()?;
        let (at, has) = ((self.rooms[slot] >> 32) as u32, self.rooms[slot] as u32);
        if at != 0 && has == words {
            return Some(at as usize);
        }
        if at != 0 {
            self.free.entry(has).or_default().push(at);
            self.rooms[slot] = 0;
        }
        let at = match self.free.get_mut(&words).and_then(Vec::pop) {
            Some(at) => at as usize,
            None => {
                let Range { start, end } =
                    self.windows.layout.span(self.next, words as usize * 8)?;
                self.next = end;
                start
            }
        };
        self.rooms[slot] = (at as u64) << 32 | u64::from(words);
        Some(at)
    }

    /// The object is not published from here on. The nodes that may have read it, one bit a node;
    /// those from the 63rd on have one bit.
    pub fn unpublish(&mut self, id: u64) -> u64 {
        match self.hide(id) {
            Some(slot) => {
                self.windows.memory.fence();
                self.readers(slot)
            }
            None => 0,
        }
    }

    /// As [`unpublish`](WindowPublications::unpublish) of each of these, with one fence for all of
    /// them. `read` is called with those that somebody may have read.
    pub fn unpublish_all(
        &mut self,
        ids: impl Iterator<Item = u64>,
        mut read: impl FnMut(u64, u64),
    ) {
        let mut hidden = std::mem::take(&mut self.hidden);
        hidden.extend(ids.filter_map(|id| self.hide(id)).map(|slot| slot as u32));
        if !hidden.is_empty() {
            self.windows.memory.fence();
        }
        for slot in hidden.drain(..) {
            match self.readers(slot as usize) {
                0 => (),
                readers => read(self.ids[slot as usize], readers),
            }
        }
        self.hidden = hidden;
    }

    /// Nothing is published any more.
    pub fn clear(&mut self) {
        let odd = (0..self.words.len()).filter(|slot| self.words[*slot] & 1 == 1);
        let ids: Vec<u64> = odd.map(|slot| self.ids[slot]).collect();
        self.unpublish_all(ids.into_iter(), |_, _| ());
    }

    /// Makes the number even; which record that is, if it publishes the object.
    fn hide(&mut self, id: u64) -> Option<usize> {
        if !self.is_published(id) {
            return None;
        }
        let slot = self.windows.layout.slot(id);
        self.words[slot] = self.words[slot].wrapping_add(1);
        let at = self.windows.layout.record(slot) + WORD;
        self.store(at, self.words[slot], Ordering::Relaxed);
        Some(slot)
    }

    /// The nodes whose marks are the number that the record had before it was hidden.
    fn readers(&self, slot: usize) -> u64 {
        let word = self.words[slot].wrapping_sub(1);
        let marks = self.windows.layout.record(slot) + MARKS;
        let marks = &self.windows.memory.own()[marks..marks + self.windows.nodes];
        let is_of = |(_, mark): &(usize, &AtomicU64)| mark.load(Ordering::Relaxed) == word;
        let readers = marks.iter().enumerate().filter(is_of);
        readers.fold(0, |all, (node, _)| all | 1 << node.min(63))
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
