//! A ring of words that one process writes and another reads. Neither trusts the other: whatever
//! is read from the shared words is checked, and bytes are copied out before anybody looks at them.
//!
//! A record is a header, which is never 0, and the bytes behind it. Where the next header will be,
//! the writer first puts 0; then it writes the bytes, and last the header of the record. So the
//! reader looks at one word to learn that there is something, and that word lies beside the bytes
//! it will read: a small frame costs one cache line. Each side keeps its own position to itself;
//! the reader publishes its own, from time to time, for the writer to see what is free.
//!
//! A writer of whose records all were read goes back to the beginning before it has come far: where
//! little is under way little of the ring is used, and that is in the caches, and mapped. Until the
//! reader has followed, only what it came back over is free; who finds that too little goes farther
//! from then on.

#[cfg(all(test, loom))]
mod model;
mod pack;
pub(crate) mod parked;
mod prefetch;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod string_move;
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
#[path = "ring/word_by_word.rs"]
mod string_move;

use self::pack::Packer;
pub(crate) use self::pack::unpack;
use crate::atomic::{AtomicU64, Ordering};

/// Words before the ring itself. What the reader writes, and the flags, which both write, lie on
/// lines of their own; two, because lines are fetched in pairs.
pub(crate) const CONTROL: usize = 64;
const READ_UP_TO: usize = 0;
const READER_PARKED: usize = 16;
const WRITER_WAITS: usize = 32;

/// The largest frame whose length fits into a header.
pub(crate) const LARGEST: usize = (1 << 30) - 1;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A whole frame.
    Whole,
    /// The first piece of a frame of so many bytes in all.
    First(usize),
    /// A further piece of it.
    Piece,
    /// The writer leaves.
    Goodbye,
}

/// What a header says: a kind, and the bytes behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub kind: Kind,
    pub bytes: usize,
}

/// The rest of the ring holds nothing: the next record is at its beginning.
const SKIP: u64 = 5;

impl Header {
    /// What the header of a whole frame says beside its bytes.
    const WHOLE: u64 = 1;

    #[inline]
    fn encode(self) -> u64 {
        let (kind, total) = match self.kind {
            Kind::Whole => (Header::WHOLE, 0),
            Kind::First(total) => (2, total as u64),
            Kind::Piece => (3, 0),
            Kind::Goodbye => (4, 0),
        };
        kind | (self.bytes as u64) << 4 | total << 34
    }

    #[inline]
    fn decode(word: u64) -> Option<Header> {
        let total = (word >> 34) as usize;
        let kind = match word & 15 {
            Header::WHOLE => Kind::Whole,
            2 => Kind::First(total),
            3 => Kind::Piece,
            4 => Kind::Goodbye,
            _ => return None,
        };
        let bytes = (word >> 4) as usize & LARGEST;
        let sound = matches!(kind, Kind::First(_)) || total == 0;
        sound.then_some(Header { kind, bytes })
    }
}

/// Words that a record of so many bytes takes, its header included.
fn words(bytes: usize) -> u64 {
    1 + bytes.div_ceil(8) as u64
}

/// The other side wrote what no sound one does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Impossible(pub String);

/// Errors that the model checker must find, where it plants them.
#[cfg_attr(
    not(all(test, loom)),
    expect(dead_code, reason = "planted by the model")
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Nothing,
    /// A header is published without what is behind it.
    HeaderRelaxed,
    /// Where the next header goes lies what was there before.
    NextHeaderNotCleared,
    /// A writer goes back to the beginning as if all before it had been read.
    TakenForRead,
    /// A header is read as if nothing lay behind it.
    TakenRelaxed,
    /// What was said for a coarsely parked thread is taken by a lazy writer, and nobody rings.
    TakenInSilence,
}

#[cfg(all(test, loom))]
fn planted(error: Planted) -> bool {
    model::PLANTED.with(|planted| planted.get() == error)
}

#[cfg(not(all(test, loom)))]
const fn planted(_error: Planted) -> bool {
    false
}

/// The words of one direction.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'a> {
    control: &'a [AtomicU64],
    data: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// A ring over `words`: [`CONTROL`], and then a power of two.
    #[inline]
    pub fn new(words: &'a [AtomicU64]) -> Self {
        let (control, data) = words.split_at(CONTROL);
        debug_assert!(data.len().is_power_of_two());
        Ring { control, data }
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.data.len() as u64
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        (position & (self.capacity() - 1)) as usize
    }

    #[inline]
    fn at(&self, position: u64) -> &'a AtomicU64 {
        &self.data[self.index(position)]
    }

    /// Whether no header is where a reader of this process last was, as far as can be seen from
    /// where nobody reads: that it is elsewhere by now, another thread has found out.
    #[inline]
    pub fn has_nothing_at(&self, position: u64) -> bool {
        self.at(position).load(Ordering::Acquire) == 0
    }

    /// Up to where the reader says that it has read.
    #[inline]
    pub fn read_up_to(&self) -> u64 {
        self.control[READ_UP_TO].load(Ordering::Acquire)
    }

    /// What the reader sets before it sleeps, and the writer clears when it rings.
    #[inline]
    pub fn reader_parked(&self) -> &'a AtomicU64 {
        &self.control[READER_PARKED]
    }

    /// What the writer sets before it sleeps for want of room, and the reader clears.
    #[inline]
    pub fn writer_waits(&self) -> &'a AtomicU64 {
        &self.control[WRITER_WAITS]
    }
}

/// A writer has come far, at first, when it has used more words than these, 32 KiB: so much is free
/// then for who goes back, and a ring that is no larger is gone through from end to end.
const FAR: u64 = if cfg!(loom) { 0 } else { 4096 };

/// So many words behind the next header is a word of the first and of the second line behind it.
const AHEAD: [u64; 2] = [8, 16];

/// The writing side of a ring.
pub(crate) struct Writer {
    /// Where the next header goes.
    position: u64,
    /// Up to where the reader had read when this side last looked.
    read_up_to: u64,
    /// It has come far when it has used more words than these.
    far: u64,
    /// Where it went back to last, until that left it too little room.
    went_back_to: u64,
    /// Where it is asked next whether all was read.
    asks_at: u64,
}

impl Writer {
    pub fn new() -> Self {
        Writer {
            position: 0,
            read_up_to: 0,
            far: FAR,
            went_back_to: 0,
            asks_at: 0,
        }
    }

    /// Whether `words` more words are free, up to which the reader may not look yet.
    fn is_free(&mut self, ring: Ring<'_>, words: u64) -> Result<bool, Impossible> {
        if self.position + words - self.read_up_to <= ring.capacity() {
            return Ok(true);
        }
        self.look(ring)?;
        let is_free = self.position + words - self.read_up_to <= ring.capacity();
        if !is_free && self.read_up_to < self.went_back_to {
            self.went_back_to = 0;
            self.far *= 2;
        }
        Ok(is_free)
    }

    /// Looks up to where the reader has read.
    fn look(&mut self, ring: Ring<'_>) -> Result<(), Impossible> {
        let read_up_to = ring.read_up_to();
        if read_up_to < self.read_up_to || read_up_to > self.position {
            let (from, to) = (self.read_up_to, self.position);
            return Err(Impossible(format!(
                "that it has read up to {read_up_to}, which is not between {from} and {to}"
            )));
        }
        self.read_up_to = read_up_to;
        Ok(())
    }

    /// Whether the reader has read on since this side last looked.
    pub fn has_moved(&self, ring: Ring<'_>) -> bool {
        ring.read_up_to() != self.read_up_to
    }

    /// Words that a record takes where it would go now: with what is skipped before it, and with
    /// the word behind it where the next header goes.
    fn needs(&self, ring: Ring<'_>, record: u64, goes_back: bool) -> (u64, u64) {
        let to_the_end = ring.capacity() - ring.index(self.position) as u64;
        let skips = goes_back || record > to_the_end;
        let skipped = if skips { to_the_end } else { 0 };
        (skipped, skipped + record + 1)
    }

    /// Whether a record that is no part of a longer frame goes to the beginning of the ring,
    /// because all before it were read. The reader is asked that only every so often, for the
    /// answer lies where it writes.
    fn goes_back(&mut self, ring: Ring<'_>, record: u64) -> Result<bool, Impossible> {
        let place = ring.index(self.position) as u64;
        // Where it starts must be free, and so must the word behind it.
        if place <= self.far || place <= record || self.position < self.asks_at {
            return Ok(false);
        }
        // At places that no rhythm of frames keeps in step with.
        let mixed = self.position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.asks_at = self.position + mixed % (self.far / 2).max(1);
        match planted(Planted::TakenForRead) {
            true => self.read_up_to = self.position,
            false => self.look(ring)?,
        }
        Ok(self.read_up_to == self.position)
    }

    /// Whether a record goes right behind the last, as most do: there is room for it, as far as is
    /// known without a look, and it is not time to ask whether it goes to the beginning.
    #[inline]
    fn goes_on(&self, ring: Ring<'_>, record: u64) -> bool {
        let place = ring.index(self.position) as u64;
        let asks = place > self.far && self.position >= self.asks_at;
        let free = self.position + record - self.read_up_to < ring.capacity();
        !asks && free && place + record <= ring.capacity()
    }

    /// Where a record may not go right behind the last: the words that are skipped before it, if
    /// there is room for it.
    #[cold]
    fn make_way(
        &mut self,
        ring: Ring<'_>,
        kind: Kind,
        record: u64,
    ) -> Result<Option<u64>, Impossible> {
        // Whoever has begun a long frame has seen that there is room for it, if nothing is skipped.
        let goes_back = kind == Kind::Whole && self.goes_back(ring, record)?;
        let (skipped, needed) = self.needs(ring, record, goes_back);
        if !self.is_free(ring, needed)? {
            return Ok(None);
        }
        if goes_back {
            self.went_back_to = self.position + skipped;
        }
        Ok(Some(skipped))
    }

    /// Whether there is room for a frame of `bytes` bytes, in pieces of `piece`.
    pub fn has_room(
        &mut self,
        ring: Ring<'_>,
        bytes: usize,
        piece: usize,
    ) -> Result<bool, Impossible> {
        let pieces = bytes.div_ceil(piece) as u64;
        // One piece may have to skip, by less than it is long.
        let words = words(bytes) + pieces + words(piece.min(bytes)) + 1;
        self.is_free(ring, words)
    }

    /// The most bytes that a record may have.
    pub fn longest_record(ring: Ring<'_>) -> usize {
        (ring.capacity() as usize / 2 - 2) * 8
    }

    /// Writes one record, unless there is no room for it now. No record is longer than
    /// [`longest_record`](Writer::longest_record).
    pub fn write<'p>(
        &mut self,
        ring: Ring<'_>,
        header: Header,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<bool, Impossible> {
        let record = words(header.bytes);
        let skipped = match self.goes_on(ring, record) {
            true => Some(0),
            false => self.make_way(ring, header.kind, record)?,
        };
        let Some(skipped) = skipped else {
            return Ok(false);
        };
        self.put(ring, skipped, header, |packer| {
            parts.into_iter().for_each(|part| packer.push(part));
        });
        Ok(true)
    }

    /// Writes a whole frame, which is short, if it goes right behind the last; whether it did.
    #[inline]
    pub fn write_on(&mut self, ring: Ring<'_>, bytes: usize, parts: &[&[u8]]) -> bool {
        let goes_on = self.goes_on(ring, words(bytes));
        if goes_on {
            let kind = Kind::Whole;
            self.put(ring, 0, Header { kind, bytes }, |packer| {
                parts.iter().for_each(|part| packer.push_few(part));
            });
        }
        goes_on
    }

    /// Writes a record for which there is room, so many words behind the last.
    #[inline(always)]
    fn put<'r>(
        &mut self,
        ring: Ring<'r>,
        skipped: u64,
        header: Header,
        write: impl FnOnce(&mut Packer<'r>),
    ) {
        let record = words(header.bytes);
        let begin = self.position + skipped;
        if !planted(Planted::NextHeaderNotCleared) {
            ring.at(begin + record).store(0, Ordering::Relaxed);
        }
        let body = &ring.data[ring.index(begin)..][1..record as usize];
        let mut packer = Packer::new(body);
        write(&mut packer);
        packer.finish();
        let publishing = match planted(Planted::HeaderRelaxed) {
            true => Ordering::Relaxed,
            false => Ordering::Release,
        };
        if skipped > 0 {
            ring.at(begin).store(header.encode(), Ordering::Relaxed);
            ring.at(self.position).store(SKIP, publishing);
        } else {
            ring.at(begin).store(header.encode(), publishing);
        }
        self.position = begin + record;
        // Where the next records go: a line that the reader has is waited for when it is written.
        for words in AHEAD {
            prefetch::to_write(ring.at(self.position + words));
        }
    }
}

/// The reading side of a ring.
pub(crate) struct Reader {
    /// Where the next header is.
    position: u64,
    /// What the writer was told of it.
    published: u64,
}

impl Reader {
    pub fn new() -> Self {
        Reader {
            position: 0,
            published: 0,
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self, ring: Ring<'_>) -> bool {
        ring.has_nothing_at(self.position)
    }

    /// Where the next header is.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The words and bytes of the next record, if it is a whole frame, and not too long; it is
    /// passed then, of which the writer is not told yet.
    #[inline]
    pub fn whole<'a>(
        &mut self,
        ring: Ring<'a>,
        largest: usize,
    ) -> Option<(&'a [AtomicU64], usize)> {
        let place = ring.index(self.position);
        let (header, behind) = ring.data[place..].split_first()?;
        let header = header.load(match planted(Planted::TakenRelaxed) {
            true => Ordering::Relaxed,
            false => Ordering::Acquire,
        });
        let bytes = (header >> 4) as usize;
        let body = behind.get(..bytes.div_ceil(8))?;
        let is_whole = header & 15 == Header::WHOLE && bytes <= largest.min(LARGEST);
        is_whole.then(|| {
            self.position += words(bytes);
            (body, bytes)
        })
    }

    /// The next record's header; the record stays.
    #[inline]
    pub fn peek(&mut self, ring: Ring<'_>) -> Result<Option<Header>, Impossible> {
        let mut word = ring.at(self.position).load(Ordering::Acquire);
        if word == SKIP {
            self.position += ring.capacity() - ring.index(self.position) as u64;
            word = ring.at(self.position).load(Ordering::Acquire);
            if word == 0 {
                return Err(Impossible("nothing behind the end of the ring".into()));
            }
        }
        if word == 0 {
            return Ok(None);
        }
        let header = Header::decode(word)
            .ok_or_else(|| Impossible(format!("a record that begins with {word:#x}")))?;
        let to_the_end = ring.capacity() - ring.index(self.position) as u64;
        if words(header.bytes) > to_the_end {
            let bytes = header.bytes;
            return Err(Impossible(format!(
                "a record of {bytes} bytes beyond the ring"
            )));
        }
        Ok(Some(header))
    }

    /// Copies the bytes of the record that `header` begins into `bytes`, which is as long, and goes
    /// on behind it.
    pub fn copy(&mut self, ring: Ring<'_>, header: Header, bytes: &mut [u8]) {
        unpack(self.body(ring, header), bytes);
        self.position += words(header.bytes);
        self.publish_from_time_to_time(ring);
    }

    /// The words of the record that `header` begins, in which its bytes lie.
    fn body<'a>(&self, ring: Ring<'a>, header: Header) -> &'a [AtomicU64] {
        let body = ring.index(self.position) + 1;
        let record = words(header.bytes);
        &ring.data[body..body + record as usize - 1]
    }

    /// Lets the writer have what was read, if it is much.
    #[inline]
    pub fn publish_from_time_to_time(&mut self, ring: Ring<'_>) {
        if self.position - self.published > ring.capacity() / 4 {
            self.publish(ring);
        }
    }

    /// Lets the writer have what was read.
    #[inline]
    pub fn publish(&mut self, ring: Ring<'_>) {
        if self.published != self.position {
            self.published = self.position;
            ring.control[READ_UP_TO].store(self.position, Ordering::Release);
        }
    }

    /// Up to where the writer was let have what was read.
    pub fn published(&self) -> u64 {
        self.published
    }
}
