//! What nodes print: whole lines, which say whose they are.

use std::io::{self, Read, Write};

/// A line that is longer is passed on in parts: a node cannot make this command keep more.
const LONGEST_LINE_BYTES: usize = 64 << 10;

/// Puts a node's output together to lines.
pub struct Lines {
    prefix: Vec<u8>,
    line: Vec<u8>,
}

impl Lines {
    /// Lines that begin with this.
    pub fn new(prefix: String) -> Lines {
        let prefix = prefix.into_bytes();
        Lines {
            line: prefix.clone(),
            prefix,
        }
    }

    /// Adds bytes; passes on each line that they end.
    pub fn add(&mut self, bytes: &[u8], pass: &mut dyn FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in part.chunks(LONGEST_LINE_BYTES) {
                if self.line.len() + part.len() > self.prefix.len() + LONGEST_LINE_BYTES {
                    self.end(pass);
                }
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.end(pass);
            }
        }
    }

    /// Passes on what has no end yet, and ends it.
    pub fn end(&mut self, pass: &mut dyn FnMut(&[u8])) {
        if self.line.len() == self.prefix.len() {
            return;
        }
        if !self.line.ends_with(b"\n") {
            self.line.push(b'\n');
        }
        pass(&self.line);
        self.line.truncate(self.prefix.len());
    }
}

/// Passes everything on that comes `from` a node, until it ends, but for the lines that `hears`
/// takes. When nobody reads it any more, the rest is dropped: an end of reading is no failure of
/// the program. An error is another one of writing.
pub fn pass_on(
    from: &mut dyn Read,
    to: &mut dyn Write,
    prefix: String,
    hears: &mut dyn FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let skip = prefix.len();
    let mut lines = Lines::new(prefix);
    let mut buffer = vec![0; 16 << 10];
    let mut written = Ok(());
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            // The node is gone: what it has said is all it has said.
            Err(_) => 0,
        };
        let mut pass = |line: &[u8]| {
            if !hears(&line[skip..]) && written.is_ok() {
                written = to.write_all(line);
            }
        };
        match count {
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

/// Whether an error of writing means that nobody reads any more.
fn is_unread(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::BrokenPipe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(parts: &[&[u8]], prefix: &str) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(prefix.into());
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

    /// Takes three lines, and is closed then.
    struct Head(Vec<u8>);

    impl Write for Head {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.iter().filter(|b| **b == b'\n').count() >= 3 {
                return Err(io::ErrorKind::BrokenPipe.into());
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
        let mut heard = 0;
        let mut hears = |_: &[u8]| {
            heard += 1;
            false
        };
        pass_on(&mut from, &mut head, "[1] ".into(), &mut hears).unwrap();
        assert_eq!(head.0, b"[1] a line\n".repeat(3));
        assert_eq!((from.len(), heard), (0, 50_000));
    }

    #[test]
    fn a_line_that_is_heard_is_not_passed_on() {
        let mut from = &b"one\n\x01two\nthree\n"[..];
        let mut to = Vec::new();
        let mut hears = |line: &[u8]| line.starts_with(b"\x01");
        pass_on(&mut from, &mut to, "[1] ".into(), &mut hears).unwrap();
        assert_eq!(to, b"[1] one\n[1] three\n");
    }
}
