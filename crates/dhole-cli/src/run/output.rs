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

/// Passes everything on that comes `from` a node, until it ends. An error is one of writing.
pub fn pass_on(from: &mut dyn Read, to: &mut dyn Write, prefix: String) -> io::Result<()> {
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
            if written.is_ok() {
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
        if count == 0 || written.is_err() {
            return written;
        }
    }
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
}
