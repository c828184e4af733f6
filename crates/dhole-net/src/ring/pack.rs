//! Bytes to shared words and back. Every word is moved by an atomic access of its own, or many by
//! one instruction of which the compiler knows nothing: whoever writes the other side at the same
//! time spoils the bytes, and nothing else.

use super::string_move;
use crate::atomic::{AtomicU64, Ordering};

/// Writes parts, one behind the other, into words, of which those that are left are `words`.
pub(crate) struct Packer<'a> {
    words: &'a [AtomicU64],
    /// The bytes of a word that is not yet full: the lowest `held` bits.
    begun: u64,
    held: u32,
}

impl<'a> Packer<'a> {
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Packer {
            words,
            begun: 0,
            held: 0,
        }
    }

    /// Appends the bytes of a part.
    pub fn push(&mut self, part: &[u8]) {
        let (whole, rest) = part.as_chunks::<8>();
        if self.held > 0 || whole.len() < string_move::LEAST {
            return self.push_few(part);
        }
        string_move::into_words(self.next(whole.len()), whole);
        self.begin(rest);
    }

    /// Appends the bytes of a part which are few: word by word, where the code that calls this is.
    #[inline(always)]
    pub fn push_few(&mut self, part: &[u8]) {
        let (whole, rest) = part.as_chunks::<8>();
        if self.held > 0 {
            return self.push_between(whole, rest);
        }
        for (word, bytes) in self.next(whole.len()).iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            self.begin(rest);
        }
    }

    /// The words that are written next, so many.
    #[inline(always)]
    fn next(&mut self, words: usize) -> &'a [AtomicU64] {
        let (next, behind) = self.words.split_at(words);
        self.words = behind;
        next
    }

    /// Begins a word with bytes that do not fill it.
    #[inline(always)]
    fn begin(&mut self, rest: &[u8]) {
        self.begun = of_few(rest);
        self.held = 8 * rest.len() as u32;
    }

    /// The same where a word is begun.
    fn push_between(&mut self, whole: &[[u8; 8]], rest: &[u8]) {
        for (word, bytes) in self.next(whole.len()).iter().zip(whole) {
            let next = u64::from_le_bytes(*bytes);
            word.store(self.begun | next << self.held, Ordering::Relaxed);
            self.begun = next >> (64 - self.held);
        }
        let next = of_few(rest);
        self.begun |= next << self.held;
        let held = self.held + 8 * rest.len() as u32;
        if held < 64 {
            self.held = held;
            return;
        }
        self.words[0].store(self.begun, Ordering::Relaxed);
        self.words = &self.words[1..];
        // As much of it as did not fit; less than all, for a word was begun.
        self.begun = next >> (64 - self.held);
        self.held = held - 64;
    }

    /// Writes the word that is not full.
    #[inline]
    pub fn finish(self) {
        if self.held > 0 {
            self.words[0].store(self.begun, Ordering::Relaxed);
        }
    }
}

/// The word that begins with these bytes, fewer than it has, and ends with zeros. By loads of fixed
/// length: a copy into it would be read back before it is written.
#[inline]
fn of_few(bytes: &[u8]) -> u64 {
    let long = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (long - 4));
    }
    let at = |place: usize| u64::from(bytes[place]) << (8 * place);
    match long {
        0 => 0,
        _ => at(0) | at(long / 2) | at(long - 1),
    }
}

/// Reads as many bytes as `bytes` has.
#[inline]
pub(crate) fn unpack(words: &[AtomicU64], bytes: &mut [u8]) {
    let (whole, rest) = bytes.as_chunks_mut::<8>();
    let (full, last) = words.split_at(whole.len());
    if whole.len() >= string_move::LEAST {
        string_move::out_of_words(full, whole);
    } else {
        for (bytes, word) in whole.iter_mut().zip(full) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }
    if let (Some(word), false) = (last.first(), rest.is_empty()) {
        let mut word = word.load(Ordering::Relaxed);
        for byte in rest {
            *byte = word as u8;
            word >>= 8;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_length_come_back_one_behind_the_other() {
        let bytes: Vec<u8> = (1..=100).collect();
        for (first, second, third) in (0..20 * 20 * 20).map(|n| (n % 20, n / 20 % 20, n / 400)) {
            let all: usize = first + second + third;
            let words: Vec<AtomicU64> = (0..14).map(|_| AtomicU64::new(0)).collect();
            let mut packer = Packer::new(&words[..all.div_ceil(8)]);
            packer.push(&bytes[..first]);
            packer.push(&bytes[first..first + second]);
            packer.push(&bytes[first + second..all]);
            packer.finish();
            let mut back = vec![0; all];
            unpack(&words, &mut back);
            assert_eq!(back, bytes[..all], "{first}, {second}, {third}");
        }
    }

    #[test]
    fn a_long_part_comes_back_wherever_in_a_word_it_begins() {
        let bytes: Vec<u8> = (0..2_000_usize).map(|at| (at % 251) as u8).collect();
        for (first, long) in
            (0..9).flat_map(|first| [511, 512, 513, 1_031_usize].map(|long| (first, long)))
        {
            let all = first + long + 5;
            let words: Vec<AtomicU64> = (0..all.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
            let mut packer = Packer::new(&words);
            packer.push(&bytes[..first]);
            packer.push(&bytes[first..first + long]);
            packer.push(&bytes[first + long..all]);
            packer.finish();
            let mut back = vec![0; all];
            unpack(&words, &mut back);
            assert_eq!(back, bytes[..all], "{first}, {long}");
        }
    }
}
