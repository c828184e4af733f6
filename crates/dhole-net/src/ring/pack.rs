//! Bytes to shared words and back. Every word is moved by an atomic access of its own, or many by
//! one instruction of which the compiler knows nothing: whoever writes the other side at the same
//! time spoils the bytes, and nothing else.

use super::string_move;
use crate::atomic::{AtomicU64, Ordering};

/// Writes parts, one behind the other, into words.
pub(crate) struct Packer<'a> {
    words: &'a [AtomicU64],
    at: usize,
    /// The bytes of a word that is not yet full: the lowest `held` bits.
    begun: u64,
    held: u32,
}

impl<'a> Packer<'a> {
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Packer {
            words,
            at: 0,
            begun: 0,
            held: 0,
        }
    }

    /// Appends the bytes of a part.
    pub fn push(&mut self, part: &[u8]) {
        let (whole, rest) = part.as_chunks::<8>();
        let into = &self.words[self.at..self.at + whole.len()];
        if self.held == 0 && whole.len() >= string_move::LEAST {
            string_move::into_words(into, whole);
        } else if self.held == 0 {
            for (word, bytes) in into.iter().zip(whole) {
                word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
            }
        } else {
            for (word, bytes) in into.iter().zip(whole) {
                let next = u64::from_le_bytes(*bytes);
                word.store(self.begun | next << self.held, Ordering::Relaxed);
                self.begun = next >> (64 - self.held);
            }
        }
        self.at += whole.len();
        if self.held == 0 && !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.begun = u64::from_le_bytes(last);
            self.held = 8 * rest.len() as u32;
            return;
        }
        for &byte in rest {
            self.begun |= u64::from(byte) << self.held;
            self.held += 8;
            if self.held == 64 {
                self.words[self.at].store(self.begun, Ordering::Relaxed);
                self.at += 1;
                (self.begun, self.held) = (0, 0);
            }
        }
    }

    /// Writes the word that is not full.
    pub fn finish(self) {
        if self.held > 0 {
            self.words[self.at].store(self.begun, Ordering::Relaxed);
        }
    }
}

/// Reads as many bytes as `bytes` has.
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
    if let Some(word) = last.first() {
        let word = word.load(Ordering::Relaxed).to_le_bytes();
        rest.copy_from_slice(&word[..rest.len()]);
    }
}
