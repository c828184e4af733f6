//! Passes on the output of nodes: bytes as they are, or lines that begin with their node.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

/// The most bytes of a line that is kept. A longer one is passed on in parts.
const LONGEST_LINE_BYTES: usize = 64 << 10;
/// The most bytes in one write: as much as a pipe holds.
const AT_ONCE_BYTES: usize = 64 << 10;

/// The time for the rest of a line, before its beginning is passed on. A program prints a line in
/// one write as a rule. A question has no end of line.
const REST_WITHIN: Duration = Duration::from_millis(100);

/// The source of a node's output.
pub trait Source: Read {
    /// Whether more output, or its end, comes within this time.
    fn comes(&self, within: Duration) -> bool;
}

/// A source that notes when the last bytes were read from it.
pub struct Noting<'a> {
    pub source: &'a mut dyn Source,
    /// When that read began, in nanoseconds of the monotonic clock: they were there then.
    pub last_ns: Option<u64>,
}

impl Read for Noting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.source.comes(REST_WITHIN * 100) {}
        let now = clock_gettime(ClockId::Monotonic);
        let count = self.source.read(buffer)?;
        if count > 0 {
            let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
            self.last_ns = Some(ns);
        }
        Ok(count)
    }
}

impl Source for Noting<'_> {
    fn comes(&self, within: Duration) -> bool {
        self.source.comes(within)
    }
}

impl Source for ChildStdout {
    fn comes(&self, within: Duration) -> bool {
        has_come(PollFd::new(self, PollFlags::IN), within)
    }
}

impl Source for ChildStderr {
    fn comes(&self, within: Duration) -> bool {
        has_come(PollFd::new(self, PollFlags::IN), within)
    }
}

fn has_come(pipe: PollFd<'_>, within: Duration) -> bool {
    let within = Timespec {
        tv_sec: within.as_secs() as i64,
        tv_nsec: within.subsec_nanos().into(),
    };
    // What is wrong with a pipe, reading it tells.
    !matches!(poll(&mut [pipe], Some(&within)), Ok(0))
}

/// Keeps the lines of several nodes apart, if they are passed on as they are: an incomplete line
/// waits for its end.
#[derive(Default)]
struct Bytes {
    begun: Vec<u8>,
}

impl Bytes {
    /// Adds bytes, and passes on the lines that they end.
    fn add(&mut self, bytes: &[u8], pass: &mut dyn FnMut(&[u8])) {
        let ended = bytes.iter().rposition(|byte| *byte == b'\n');
        let (ended, begun) = bytes.split_at(ended.map_or(0, |at| at + 1));
        if !ended.is_empty() {
            self.begun.extend_from_slice(ended);
            self.pass(pass);
        }
        self.begun.extend_from_slice(begun);
        if self.begun.len() >= LONGEST_LINE_BYTES {
            self.pass(pass);
        }
    }

    /// Passes on everything.
    fn pass(&mut self, pass: &mut dyn FnMut(&[u8])) {
        pass(&self.begun);
        self.begun.clear();
    }
}

/// The most bytes of a JSON object that is passed on whole: those of a report.
const LONGEST_OBJECT_BYTES: usize = 16 << 20;

/// What stands before the lines of a node.
#[derive(Clone, Default)]
pub struct LinePrefix {
    /// The prefix; nothing where bytes are passed on as they are.
    pub mark: String,
    /// Lines that begin as JSON objects do are passed on whole and without it.
    pub but_for_objects: bool,
}

/// Divides a node's output into lines.
struct Lines {
    prefix: Vec<u8>,
    but_for_objects: bool,
    line: Vec<u8>,
}

impl Lines {
    /// Lines that begin with `prefix`.
    fn new(prefix: &LinePrefix) -> Lines {
        let mark = prefix.mark.as_bytes();
        Lines {
            line: mark.into(),
            prefix: mark.into(),
            but_for_objects: prefix.but_for_objects,
        }
    }

    /// Whether the line is a JSON object, as it begins, or will be with these bytes.
    fn is_object(&self, part: &[u8]) -> bool {
        let first = self.line[self.prefix.len()..].first().or(part.first());
        self.but_for_objects && first == Some(&b'{')
    }

    /// Adds bytes, and passes on each line that they end.
    fn add(&mut self, bytes: &[u8], pass: &mut dyn FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in part.chunks(LONGEST_LINE_BYTES) {
                let most = match self.is_object(part) {
                    true => LONGEST_OBJECT_BYTES,
                    false => LONGEST_LINE_BYTES,
                };
                if self.line.len() + part.len() > self.prefix.len() + most {
                    self.end(pass);
                }
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.end(pass);
            }
        }
    }

    /// Passes on an incomplete line, and ends it.
    fn end(&mut self, pass: &mut dyn FnMut(&[u8])) {
        if self.line.len() == self.prefix.len() {
            return;
        }
        if !self.line.ends_with(b"\n") {
            self.line.push(b'\n');
        }
        let begin = if self.is_object(&[]) {
            self.prefix.len()
        } else {
            0
        };
        pass(&self.line[begin..]);
        self.line.truncate(self.prefix.len());
    }
}

/// Passes on everything that comes `from` a node, until it ends: each line after a prefix, or
/// without one the bytes as they are. If the reader has closed the output, the rest is dropped:
/// that is no failure of the program. Any other error of writing is returned.
pub fn pass_on(from: &mut dyn Source, to: &mut dyn Write, prefix: &LinePrefix) -> io::Result<()> {
    let (mut lines, mut bytes) = (Lines::new(prefix), Bytes::default());
    let mut buffer = vec![0; AT_ONCE_BYTES];
    let mut written = Ok(());
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
            // The node is gone: what it has said is all it has said.
            Err(_) => 0,
        };
        let mut pass = |bytes: &[u8]| {
            if written.is_ok() {
                written = to.write_all(bytes);
            }
        };
        match count {
            0 if prefix.mark.is_empty() => bytes.pass(&mut pass),
            _ if prefix.mark.is_empty() => {
                bytes.add(&buffer[..count], &mut pass);
                if !bytes.begun.is_empty() && !from.comes(REST_WITHIN) {
                    bytes.pass(&mut pass);
                }
            }
            0 => lines.end(&mut pass),
            _ => lines.add(&buffer[..count], &mut pass),
        }
        if written.is_ok() {
            written = to.flush();
        }
        let unread = written.as_ref().is_err_and(is_unread);
        if count == 0 || written.is_err() && !unread {
            return written.or_else(|cause| if unread { Ok(()) } else { Err(cause) });
        }
    }
}

/// Whether an error of writing means that the reader has closed the output.
fn is_unread(cause: &io::Error) -> bool {
    cause.kind() == ErrorKind::BrokenPipe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(mark: &str) -> LinePrefix {
        LinePrefix {
            mark: mark.into(),
            but_for_objects: false,
        }
    }

    fn passed(parts: &[&[u8]], prefix: &str) -> Vec<Vec<u8>> {
        passed_by(parts, &marked(prefix))
    }

    #[test]
    fn an_object_is_passed_on_whole_and_without_a_prefix_where_that_is_asked() {
        let mut prefix = marked("[0] ");
        let object = [
            b"{\"lines\":\"".to_vec(),
            vec![b'x'; 3 * LONGEST_LINE_BYTES],
        ]
        .concat();
        let parts: [&[u8]; 5] = [b"{", b"one\nt{\n", &object, b"\"}\n", b"{}"];
        assert_eq!(
            passed_by(&parts[..2], &prefix),
            [&b"[0] {one\n"[..], b"[0] t{\n"]
        );
        prefix.but_for_objects = true;
        let whole = [&object[..], b"\"}\n"].concat();
        let expected = [&b"{one\n"[..], b"[0] t{\n", &whole, b"{}\n"];
        assert_eq!(passed_by(&parts, &prefix), expected);
    }

    fn passed_by(parts: &[&[u8]], prefix: &LinePrefix) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(prefix);
        let mut passed = Vec::new();
        let mut pass = |line: &[u8]| passed.push(line.to_vec());
        for part in parts {
            lines.add(part, &mut pass);
        }
        lines.end(&mut pass);
        passed
    }

    #[test]
    fn lines_are_passed_on_whole_and_say_whose_they_are() {
        let parts: [&[u8]; 4] = [b"on", b"e\ntwo\nth", b"ree", b""];
        assert_eq!(
            passed(&parts, "[2] "),
            [&b"[2] one\n"[..], b"[2] two\n", b"[2] three\n"]
        );
        assert_eq!(passed(&[b"\n\nx\n"], "")[..2], [b"\n", b"\n"]);
    }

    #[test]
    fn an_endless_line_is_passed_on_in_parts() {
        let long = vec![b'x'; 3 * LONGEST_LINE_BYTES];
        let passed = passed(&[&long, b"y\n"], "[1] ");
        assert_eq!(passed.len(), 4);
        assert!(passed.iter().all(|l| l.len() <= LONGEST_LINE_BYTES + 5));
        assert_eq!(passed[3], b"[1] y\n");
    }

    impl Source for &[u8] {
        fn comes(&self, _within: Duration) -> bool {
            true
        }
    }

    /// Prints these parts, each some time after the one before.
    struct Slowly(Vec<&'static [u8]>);

    impl Read for Slowly {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let part = self.0.pop().unwrap_or_default();
            buffer[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    impl Source for Slowly {
        fn comes(&self, _within: Duration) -> bool {
            false
        }
    }

    /// Keeps each write by itself.
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_passed_on_whole_without_a_prefix_too_unless_its_end_does_not_come() {
        let parts: [&[u8]; 3] = [b"one\ntw", b"o\nthr", b"ee\n"];
        let (mut bytes, mut passed) = (Bytes::default(), Vec::new());
        for part in parts {
            bytes.add(part, &mut |line| passed.push(line.to_vec()));
        }
        assert_eq!(passed, [&b"one\n"[..], b"two\n", b"three\n"]);
        let mut writes = Writes(Vec::new());
        pass_on(
            &mut Slowly(vec![b"4\n", b"well? "]),
            &mut writes,
            &marked(""),
        )
        .unwrap();
        assert_eq!(writes.0, [&b"well? "[..], b"4\n"]);
    }

    #[test]
    fn without_a_prefix_every_byte_is_passed_on_as_it_is_and_none_is_added() {
        let mut all = vec![b'x'; 3 * LONGEST_LINE_BYTES];
        all.extend((0..=255).cycle().take(70_000));
        for bytes in [&all[..], b"no end of a line", b""] {
            let (mut from, mut to) = (bytes, Vec::new());
            pass_on(&mut from, &mut to, &marked("")).unwrap();
            assert!(to == bytes, "{} of {} bytes", to.len(), bytes.len());
        }
    }

    /// Takes three lines, and is closed then.
    struct Head(Vec<u8>);

    impl Write for Head {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.iter().filter(|b| **b == b'\n').count() >= 3 {
                return Err(ErrorKind::BrokenPipe.into());
            }
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_nobody_reads_any_more_is_dropped_to_its_end() {
        let all = "a line\n".repeat(50_000);
        let mut from = all.as_bytes();
        let mut head = Head(Vec::new());
        pass_on(&mut from, &mut head, &marked("[1] ")).unwrap();
        assert_eq!(head.0, b"[1] a line\n".repeat(3));
        assert_eq!(from.len(), 0);
    }
}
