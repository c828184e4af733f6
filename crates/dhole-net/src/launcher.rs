//! The line to the `dhole run` that started this process: it hears how far the process has come,
//! and says which others ended before they had joined, or are stopped.
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
//! | it hears | that means |
//! |---|---|
//! | `ended N` | node `N` is gone, and never joined |
//! | `stopped N HOW` | a signal has stopped the process of node `N` |
//! | `resumed N` | it goes on |
//!
//! Nothing depends on the line: whoever has none waits until the time for joining is over.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::time::{ClockId, clock_gettime};

/// A longer line is none of the launcher's.
const LONGEST_LINE_BYTES: usize = 96;
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
    heard: Mutex<Heard>,
}

/// What the launcher has said. Of each node there is one entry at most.
#[derive(Debug, Default)]
struct Heard {
    /// What has come of a line.
    line: Vec<u8>,
    /// The nodes that have ended, of which nobody was told.
    ended: VecDeque<NodeId>,
    /// The nodes that are stopped, and how.
    stopped: BTreeMap<NodeId, String>,
    /// Nothing more will come.
    is_gone: bool,
}

impl Heard {
    /// Takes what has come.
    fn read(&mut self, mut from: &UnixStream) {
        let mut byte = [0];
        while !self.is_gone {
            match from.read(&mut byte) {
                Ok(0) => self.is_gone = true,
                Ok(_) if byte != *b"\n" => {
                    self.line.extend_from_slice(&byte);
                    self.is_gone = self.line.len() > LONGEST_LINE_BYTES;
                }
                Ok(_) => {
                    let line = std::mem::take(&mut self.line);
                    // Another line is none of those that are known.
                    let _known = std::str::from_utf8(&line).ok().and_then(|it| self.take(it));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_gone = true,
            }
        }
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (verb, rest) = line.split_once(' ')?;
        let (node, how) = rest.split_once(' ').unwrap_or((rest, ""));
        let node = NodeId(node.parse().ok()?);
        match verb {
            "ended" if !self.ended.contains(&node) => self.ended.push_back(node),
            "stopped" => drop(self.stopped.insert(node, how.to_owned())),
            "resumed" => drop(self.stopped.remove(&node)),
            _ => {}
        }
        Some(())
    }
}

impl Launcher {
    /// The line at this descriptor, which must be a socket.
    pub fn new(descriptor: OwnedFd) -> std::io::Result<Launcher> {
        rustix::net::sockopt::socket_type(&descriptor)?;
        let socket = UnixStream::from(descriptor);
        socket.set_nonblocking(true)?;
        Ok(Launcher {
            socket,
            has_lost: AtomicBool::new(false),
            heard: Mutex::default(),
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
        let mut heard = lock(&self.heard);
        heard.read(&self.socket);
        match heard.ended.pop_front() {
            None if heard.is_gone => Err(Gone),
            ended => Ok(ended),
        }
    }

    /// As [`ended`](Launcher::ended), and waits for it as long as this.
    pub fn await_ended(&self, within: Duration) -> Option<NodeId> {
        let until = Instant::now() + within;
        loop {
            let ended = self.ended().ok()?;
            let left = until.saturating_duration_since(Instant::now());
            if ended.is_some() || left.is_zero() {
                return ended;
            }
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            // What it says otherwise, the next look finds.
            let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&left));
        }
    }

    /// How the process of a node is stopped, as the launcher says: of this node if one is named,
    /// and else of the lowest-numbered that is.
    pub fn stopped(&self, of: Option<NodeId>) -> Option<(NodeId, String)> {
        let mut heard = lock(&self.heard);
        heard.read(&self.socket);
        let mut stopped = heard.stopped.iter();
        let found = stopped.find(|(node, _)| of.is_none_or(|of| of == **node))?;
        Some((*found.0, found.1.clone()))
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
    fn a_node_is_stopped_until_it_goes_on() {
        let (launcher, mut there) = line();
        assert_eq!(launcher.stopped(None), None);
        there
            .write_all(b"stopped 4 process 7 is stopped\nended 3\nstopped 2 x\n")
            .unwrap();
        let stopped = |node, how: &str| Some((NodeId(node), how.to_owned()));
        assert_eq!(launcher.stopped(None), stopped(2, "x"));
        let four = stopped(4, "process 7 is stopped");
        assert_eq!(launcher.stopped(Some(NodeId(4))), four);
        there
            .write_all(b"resumed 2\nresumed 1\nstopped x\n")
            .unwrap();
        assert_eq!(launcher.stopped(None), four);
        assert_eq!(launcher.stopped(Some(NodeId(2))), None);
        // What was said beside it is not lost.
        assert!(matches!(launcher.ended(), Ok(Some(NodeId(3)))));
        assert_eq!(launcher.await_ended(Duration::ZERO), None);
        there.write_all(b"ended 5\n").unwrap();
        assert_eq!(launcher.await_ended(Duration::MAX / 4), Some(NodeId(5)));
        drop(there);
        assert_eq!(launcher.await_ended(Duration::MAX / 4), None);
        assert_eq!(launcher.stopped(None), four);
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
