//! What the command itself prints.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Says something on standard error, in one write. Where that takes nothing there is nobody to
/// tell: the exit code still says it.
pub fn complain(words: impl Display) {
    let _ = io::stderr().write_all(format!("dhole: {words}\n").as_bytes());
}

/// Prints a result to standard output.
///
/// # Errors
/// When it cannot be written, but for a reader who has closed the pipe: that one has read what they
/// wanted.
pub fn print(result: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(result).and_then(|()| stdout.flush());
    match written {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
