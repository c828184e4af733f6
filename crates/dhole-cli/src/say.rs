//! Prints the command's own messages.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Writes a message to standard error, in one write. It ignores a failure to write: the exit code
/// still reports the error.
pub fn complain(words: impl Display) {
    let _ = io::stderr().write_all(format!("dhole: {words}\n").as_bytes());
}

/// Prints a result to standard output.
///
/// # Errors
/// If it cannot be written, unless the reader has closed the pipe: that reader has read enough.
pub fn print(result: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(result).and_then(|()| stdout.flush());
    match written {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
