//! Separates the reports of an agent about its node from the node's output.

use std::io::{self, Read};
use std::time::Duration;

use super::line::Word;
use super::output::Source;

/// The beginning of a report that an agent passes on; the end of the line ends it.
pub const MARK: &[u8] = b"\x01dhole-agent 1 ";
/// The most bytes of a report.
const LONGEST_WORD_BYTES: usize = 4 << 10;

/// The standard error of an agent without the reports in it, each of which goes to a function
/// instead. A report may stand anywhere, also in the middle of a line that the node, or the remote
/// shell, prints.
pub struct Heard<R, F> {
    from: R,
    hears: F,
    /// The bytes that may be part of a report.
    held: Vec<u8>,
    /// The other bytes, and how many of them were read.
    plain: Vec<u8>,
    read: usize,
    ended: bool,
}

impl<R: Read, F: FnMut(Word)> Heard<R, F> {
    /// The standard error that comes `from` an agent.
    pub fn new(from: R, hears: F) -> Self {
        Heard {
            from,
            hears,
            held: Vec::new(),
            plain: Vec::new(),
            read: 0,
            ended: false,
        }
    }

    /// Moves the bytes that belong to no report to those that can be read.
    fn sort(&mut self) {
        while let Some(at) = self.held.windows(MARK.len()).position(|part| part == MARK) {
            self.plain.extend(self.held.drain(..at));
            match self.held.iter().position(|byte| *byte == b'\n') {
                Some(end) => self.hear(end),
                None if self.ended || self.held.len() > LONGEST_WORD_BYTES => self.give(MARK.len()),
                None => return,
            }
        }
        let begun = |kept: &usize| MARK.starts_with(&self.held[self.held.len() - kept..]);
        let most = self.held.len().min(MARK.len() - 1);
        let kept = (1..=most).rev().find(begun).filter(|_| !self.ended);
        self.give(self.held.len() - kept.unwrap_or(0));
    }

    /// Takes the report that ends at `end`, or treats its mark as output if it is none.
    fn hear(&mut self, end: usize) {
        let said = std::str::from_utf8(&self.held[MARK.len()..end]).ok();
        match said.and_then(Word::parse) {
            Some(word) => {
                (self.hears)(word);
                self.held.drain(..=end);
            }
            None => self.give(MARK.len()),
        }
    }

    fn give(&mut self, bytes: usize) {
        self.plain.extend(self.held.drain(..bytes));
    }
}

impl<R: Read, F: FnMut(Word)> Read for Heard<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.plain.len() {
            if self.ended {
                return Ok(0);
            }
            self.plain.clear();
            self.read = 0;
            let count = self.from.read(buffer)?;
            self.ended = count == 0;
            self.held.extend_from_slice(&buffer[..count]);
            self.sort();
        }
        let count = buffer.len().min(self.plain.len() - self.read);
        buffer[..count].copy_from_slice(&self.plain[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

impl<R: Source, F: FnMut(Word)> Source for Heard<R, F> {
    fn comes(&self, within: Duration) -> bool {
        self.read < self.plain.len() || self.from.comes(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are left of these, read `at_once` at a time, and the reports in them.
    fn heard(bytes: &[u8], at_once: usize) -> (Vec<u8>, Vec<Word>) {
        let (mut left, mut words) = (Vec::new(), Vec::new());
        let mut from = Heard::new(bytes, |word| words.push(word));
        let mut buffer = vec![0; at_once];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            left.extend_from_slice(&buffer[..count]);
        }
        (left, words)
    }

    #[test]
    fn words_are_heard_wherever_they_stand_and_all_else_is_left_as_it_is() {
        let how = "it panicked".to_owned();
        let words = [Word::Joined, Word::Failed { how }];
        let said = format!("noise{:#}\n\x01\x01dhole, {:#}\nno end", words[0], words[1]);
        for at_once in 1..said.len() {
            let (left, heard) = heard(said.as_bytes(), at_once);
            assert_eq!(left, b"noise\x01\x01dhole, no end", "{at_once} at once");
            assert_eq!(heard, words);
        }
    }

    #[test]
    fn what_only_begins_like_a_word_is_none() {
        for plain in [
            &b"\x01dhole-agent 1 joined"[..],
            b"\x01dhole-agent 1 hello\n",
            b"\x01",
        ] {
            for at_once in [1, 100] {
                assert_eq!(heard(plain, at_once), (plain.to_vec(), Vec::new()));
            }
        }
        let endless = [MARK, &[b'x'; 3 * LONGEST_WORD_BYTES]].concat();
        let mut from = Heard::new(&endless[..], |_| {});
        let mut buffer = [0; 100];
        while let Ok(1..) = from.read(&mut buffer) {
            assert!(from.held.len() <= LONGEST_WORD_BYTES + buffer.len());
        }
    }
}
