//! The line to a node, on which the node reports how far it has come and which nodes it lost
//! (`dhole-net`, `launcher`).

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::heard::MARK;
use super::secret::inherit;
use super::stop::Stop;

/// The most bytes of a line.
const LONGEST_LINE_BYTES: usize = 4 << 10;
/// The time without a report after which this command looks at the node itself.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// A report of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// It begins to join the others.
    Meets {
        /// Its process, which answers SIGQUIT. The process that this command started may be a
        /// script around it.
        process: i32,
    },
    /// It is connected with all others.
    Joined,
    /// It has lost a node, and how.
    Lost {
        /// The lost node.
        peer: u16,
        /// In its words.
        how: String,
    },
    /// It fails by itself, and not because another node has failed.
    Failed {
        /// In its words.
        how: String,
    },
    /// Its program ends the run with this exit code, on all nodes.
    Exits {
        /// The exit code.
        code: u8,
    },
    /// Its run has ended well.
    Over {
        /// When, in nanoseconds of the monotonic clock of its machine.
        at_ns: u64,
    },
    /// Its program begins another run, after one that has ended, or a failure that it reported.
    GoesOn,
    /// The run that its program begins goes on if other nodes are lost.
    Survives,
    /// A signal has stopped its process: not its own report, but what was seen of it.
    Stopped(Stop),
    /// Its process goes on, likewise.
    Resumed,
}

/// The report as the node writes it; with `#`, as its agent passes it on.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            f.write_str(&String::from_utf8_lossy(MARK))?;
        }
        match self {
            Word::Meets { process } => write!(f, "meets {process}"),
            Word::Joined => f.write_str("joined"),
            Word::Lost { peer, how } => write!(f, "lost {peer} {how}"),
            Word::Failed { how } => write!(f, "failed {how}"),
            Word::Exits { code } => write!(f, "exits {code}"),
            Word::Over { at_ns } => write!(f, "over {at_ns}"),
            Word::GoesOn => f.write_str("goes on"),
            Word::Survives => f.write_str("survives"),
            Word::Stopped(Stop { process, signal }) => write!(f, "stopped {process} {signal}"),
            Word::Resumed => f.write_str("resumed"),
        }
    }
}

impl Word {
    /// The report in a line, if there is one.
    pub fn parse(line: &str) -> Option<Word> {
        match line.trim_end_matches('\n') {
            "joined" => Some(Word::Joined),
            "goes on" => Some(Word::GoesOn),
            "survives" => Some(Word::Survives),
            "resumed" => Some(Word::Resumed),
            line => {
                let (verb, rest) = line.split_once(' ')?;
                match verb {
                    "meets" => {
                        let process = rest.parse().ok()?;
                        Some(Word::Meets { process })
                    }
                    "over" => {
                        let at_ns = rest.parse().ok()?;
                        Some(Word::Over { at_ns })
                    }
                    "exits" => {
                        let code = rest.parse().ok()?;
                        Some(Word::Exits { code })
                    }
                    "failed" => Some(Word::Failed {
                        how: rest.to_owned(),
                    }),
                    "stopped" => {
                        let (process, signal) = rest.split_once(' ')?;
                        let (process, signal) = (process.parse().ok()?, signal.parse().ok()?);
                        Some(Word::Stopped(Stop { process, signal }))
                    }
                    "lost" => {
                        let (peer, how) = rest.split_once(' ')?;
                        let (peer, how) = (peer.parse().ok()?, how.to_owned());
                        Some(Word::Lost { peer, how })
                    }
                    _ => None,
                }
            }
        }
    }
}

/// This command's end of the line to a node.
pub struct Line(UnixStream);

impl Line {
    /// A line, and the node's end of it, which children inherit.
    pub fn new() -> io::Result<(Line, UnixStream)> {
        let (own, its) = UnixStream::pair()?;
        own.set_nonblocking(false)?;
        own.set_read_timeout(Some(LOOKS_EVERY))?;
        inherit(&its)?;
        Ok((Line(own), its))
    }

    /// Reads the node's reports until its end. Says `None` whenever none has come for a while.
    pub fn hear(&self, mut said: impl FnMut(Option<Word>)) {
        let mut lines = BufReader::new(&self.0);
        let mut line = Vec::new();
        loop {
            let left = (LONGEST_LINE_BYTES - line.len()) as u64;
            match (&mut lines).take(left).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    if let Some(word) = Word::parse(&String::from_utf8_lossy(&line)) {
                        said(Some(word));
                    }
                    line.clear();
                }
                // What has come of a line is kept.
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => said(None),
                Err(_) => return,
            }
        }
    }

    /// Ends the line when the node has ended. A process that the node has started may still hold
    /// its end.
    pub fn ended(&self) {
        // Where it fails the line is at its end already.
        let _ = self.0.shutdown(Shutdown::Read);
    }

    /// Tells the node something of another one (`dhole-net`, `launcher`).
    pub fn tell(&self, notice: &str) {
        let line = format!("{notice}\n");
        // Whoever has ended meanwhile need not know. Nor is a node waited for that does not listen:
        // where it has no room, there are many such words that it has not read.
        let _ = send(
            &self.0,
            line.as_bytes(),
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_say_what_nodes_say_and_others_nothing() {
        let lost = |peer, how: &str| {
            let how = how.to_owned();
            Some(Word::Lost { peer, how })
        };
        for (line, word) in [
            ("meets 77\n", Some(Word::Meets { process: 77 })),
            ("meets\n", None),
            ("exits 3\n", Some(Word::Exits { code: 3 })),
            ("exits 256\n", None),
            (
                "stopped 77 19\n",
                Some(Word::Stopped(Stop {
                    process: 77,
                    signal: 19,
                })),
            ),
            ("stopped 77\n", None),
            ("resumed\n", Some(Word::Resumed)),
            ("joined\n", Some(Word::Joined)),
            ("goes on\n", Some(Word::GoesOn)),
            ("survives\n", Some(Word::Survives)),
            (
                "lost 2 its connection broke: x\n",
                lost(2, "its connection broke: x"),
            ),
            (
                "failed it panicked: x\n",
                Some(Word::Failed {
                    how: "it panicked: x".to_owned(),
                }),
            ),
            ("lost 70000 x\n", None),
            ("lost 2\n", None),
            ("\n", None),
            ("joined us\n", None),
        ] {
            assert_eq!(Word::parse(line), word, "{line}");
            if let Some(word) = word {
                assert_eq!(Word::parse(&word.to_string()), Some(word.clone()));
            }
        }
    }

    #[test]
    fn a_node_that_does_not_listen_is_not_waited_for() {
        let (line, its) = Line::new().unwrap();
        (0..100_000).for_each(|_| line.tell("ended 3"));
        let mut first = String::new();
        BufReader::new(its).read_line(&mut first).unwrap();
        assert_eq!(first, "ended 3\n");
    }

    #[test]
    fn a_line_whose_other_end_lives_on_ends_with_its_node() {
        let (line, mut its) = Line::new().unwrap();
        its.write_all(b"meets 7\nhello\nlost 1 it left").unwrap();
        line.ended();
        let mut words = Vec::new();
        line.hear(|word| words.extend(word));
        let how = "it left".to_owned();
        assert_eq!(
            words,
            [Word::Meets { process: 7 }, Word::Lost { peer: 1, how }]
        );
    }
}
