//! The line to the `dhole run` that started this process: it hears how far the process has come,
//! and says which others ended before they had joined.
//!
//! | the process says | when |
//! |---|---|
//! | `meets PID` | it begins to join; the process of that number takes SIGQUIT well |
//! | `joined` | it is connected with all |
//! | `lost N HOW` | node `N` is lost |
//! | `failed HOW` | it fails by itself, and not because another node has failed |
//! | `exits CODE` | its program ends the run with this exit code, on all nodes |
//! | `over NS` | its run has ended well, at this time of the monotonic clock |
//! | `goes on` | its program begins another run, after one that has ended, or a failure |
//! | `survives` | the run that its program begins goes on if other nodes are lost |
//!
//! It hears `ended N`: node `N` is gone, and never joined. Nothing depends on the line: whoever has
//! none waits until the time for joining is over.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;
use rustix::fs::{FileType, fstat};
use rustix::time::{ClockId, clock_gettime};

/// A longer line is none of the launcher's.
const LONGEST_LINE_BYTES: usize = 64;
/// Bytes of the words with which a loss or a failure is told.
const MOST_HOW_BYTES: usize = 400;

/// The time that a reader of the standard output has to read what was printed, in looks.
const LOOKS: u32 = 1_000;
/// The time between two of them.
const LOOKS_EVERY: Duration = Duration::from_millis(1);

/// This process's end of the line.
#[derive(Debug)]
pub struct Launcher {
    socket: UnixStream,
    /// A peer is lost.
    has_lost: AtomicBool,
    /// What has come of a line.
    line: Mutex<Vec<u8>>,
}

impl Launcher {
    /// The line at this descriptor, which must be a socket.
    pub fn new(descriptor: OwnedFd) -> std::io::Result<Launcher> {
        rustix::net::sockopt::socket_type(&descriptor)?;
        let socket = UnixStream::from(descriptor);
        socket.set_nonblocking(true)?;
        let (line, has_lost) = (Mutex::default(), AtomicBool::new(false));
        Ok(Launcher {
            socket,
            has_lost,
            line,
        })
    }

    /// This process begins to join.
    pub fn meets(&self) {
        self.say(&format!("meets {}\n", std::process::id()));
    }

    /// It has joined.
    pub fn joined(&self) {
        self.say("joined\n");
    }

    /// A peer is lost.
    pub fn lost(&self, peer: NodeId, how: &str) {
        self.has_lost.store(true, Ordering::Relaxed);
        self.say(&format!("lost {} {}\n", peer.0, one_line(how)));
    }

    /// This process fails by itself: it has not heard of another's failure. Whoever calls this does
    /// so before it tells the others, so that the launcher hears of the cause before it can hear
    /// of what follows.
    pub fn failed(&self, how: &str) {
        self.say(&format!("failed {}\n", one_line(how)));
    }

    /// The program of this process ends the run with an exit code, before the others hear of it.
    pub fn exits(&self, code: u8) {
        self.say(&format!("exits {code}\n"));
    }

    /// The run of this process has ended well. Where a peer is lost, what was printed before is
    /// read first: what is printed from here on may be the result, and the launcher tells it apart.
    pub fn over(&self) {
        if self.has_lost.load(Ordering::Relaxed) {
            await_readers_of_stdout();
        }
        let now = clock_gettime(ClockId::Monotonic);
        let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.say(&format!("over {ns}\n"));
    }

    /// The program of this process begins another run, after a failure or an end that was told.
    pub fn goes_on(&self) {
        self.say("goes on\n");
    }

    /// The run that the program of this process begins goes on if other nodes are lost.
    pub fn survives(&self) {
        self.say("survives\n");
    }

    /// Says a line, whole, for it is shorter than what a socket takes at once. Who does not listen
    /// is not waited for.
    fn say(&self, line: &str) {
        let _ = (&self.socket).write(line.as_bytes());
    }

    /// The next node of which the launcher says that it ended before it had joined. An error says
    /// that nothing more will come.
    pub fn ended(&self) -> Result<Option<NodeId>, Gone> {
        let mut line = lock(&self.line);
        let mut byte = [0];
        loop {
            match (&self.socket).read(&mut byte) {
                Ok(0) => return Err(Gone),
                Ok(_) if byte != *b"\n" => {
                    if line.len() == LONGEST_LINE_BYTES {
                        return Err(Gone);
                    }
                    line.extend_from_slice(&byte);
                }
                Ok(_) => {
                    let said = std::mem::take(&mut *line);
                    let said = std::str::from_utf8(&said).ok();
                    let node = said.and_then(|said| said.strip_prefix("ended "));
                    if let Some(node) = node.and_then(|node| node.parse().ok()) {
                        return Ok(Some(NodeId(node)));
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone),
            }
        }
    }
}

/// Waits until what this process has printed is read, if its standard output is a pipe, for about a
/// second at most.
fn await_readers_of_stdout() {
    let stdout = std::io::stdout();
    let _ = stdout.lock().flush();
    let is_pipe = |mode| FileType::from_raw_mode(mode) == FileType::Fifo;
    if !fstat(&stdout).is_ok_and(|stat| is_pipe(stat.st_mode)) {
        return;
    }
    let is_read = || rustix::io::ioctl_fionread(&stdout).is_ok_and(|unread| unread == 0);
    for _ in 0..LOOKS {
        if is_read() {
            return;
        }
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// These words in one line that is short enough.
fn one_line(words: &str) -> String {
    let words = words.replace(char::is_control, " ");
    words[..words.floor_char_boundary(MOST_HOW_BYTES)].to_owned()
}

/// There is nobody at the other end of the line.
pub struct Gone;

impl AsFd for Launcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loss;
    use std::time::Duration;

    fn line() -> (Launcher, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        (Launcher::new(here.into()).unwrap(), there)
    }

    #[test]
    fn a_line_that_comes_in_parts_is_heard_when_it_is_whole() {
        let (launcher, mut there) = line();
        assert!(matches!(launcher.ended(), Ok(None)));
        there.write_all(b"hello\nended 1").unwrap();
        assert!(matches!(launcher.ended(), Ok(None)));
        there.write_all(b"7\nended 3\n").unwrap();
        assert!(matches!(launcher.ended(), Ok(Some(NodeId(17)))));
        assert!(matches!(launcher.ended(), Ok(Some(NodeId(3)))));
        drop(there);
        assert!(launcher.ended().is_err());
    }

    #[test]
    fn an_endless_line_is_not_kept_and_nobody_is_waited_for() {
        let (launcher, mut there) = line();
        there.write_all(&[b'x'; 2 * LONGEST_LINE_BYTES]).unwrap();
        assert!(launcher.ended().is_err());
        // Nobody reads: the line is full some time, and saying more still returns.
        let loss = Loss::Silent(Duration::from_secs(5)).to_string();
        (0..100_000).for_each(|_| launcher.lost(NodeId(2), &loss));
        let mut said = [0; 48];
        there.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"lost 2 nothing was heard of it for 5s\nlost 2 not");
    }
}
