use std::io::{self, ErrorKind};

use super::Stream;
use super::frame::{self, HEADER, Next};
use crate::Loss;

/// The buffer's size as long as frames fit.
const USUAL: usize = 64 << 10;
/// A buffer that has grown beyond this is given back once it is empty.
const KEPT: usize = 4 << 20;

/// What has come from one peer and is not yet taken. Frames are taken where they were read.
pub(super) struct Inbound {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    goodbye: bool,
    /// Taking frames was broken off: `take` panicked.
    broken_off: bool,
}

/// What one poll of a peer's stream found.
#[derive(Default)]
pub(super) struct Polled {
    pub frames: usize,
    /// Bytes have come, of a whole frame or not.
    pub read: bool,
    /// There may be more to read at once.
    pub more: bool,
    /// The peer is lost, after these frames.
    pub loss: Option<Loss>,
}

impl Inbound {
    pub fn new() -> Self {
        Inbound {
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            goodbye: false,
            broken_off: false,
        }
    }

    /// Reads once, unless taking was broken off, and takes every frame that is whole.
    pub fn poll(&mut self, stream: &Stream, largest: usize, take: &mut dyn FnMut(&[u8])) -> Polled {
        let mut polled = Polled::default();
        let mut end = None;
        if self.broken_off {
            // What was read before comes first: the buffer may be full of it.
            polled.more = true;
        } else {
            if self.end == self.buffer.len() {
                self.grow(USUAL);
            }
            match stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => end = Some(CLOSED.to_owned()),
                Ok(read) => {
                    self.end += read;
                    polled.read = true;
                }
                Err(e) if is_passing(e.kind()) => return polled,
                Err(e) => end = Some(how_ended(&e)),
            }
            polled.more = self.end == self.buffer.len();
        }
        self.broken_off = true;
        match self.take_frames(largest, take) {
            Ok(frames) => {
                polled.frames = frames;
                polled.loss = end.map(|how| self.ended(&how));
            }
            Err((frames, loss)) => {
                polled.frames = frames;
                polled.loss = Some(loss);
            }
        }
        self.broken_off = false;
        polled
    }

    fn ended(&self, how: &str) -> Loss {
        if self.goodbye {
            return Loss::Left;
        }
        Loss::Broken(match self.end - self.begin {
            0 => how.to_owned(),
            rest => format!("{how} after {rest} bytes of a frame"),
        })
    }

    fn take_frames(
        &mut self,
        largest: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, (usize, Loss)> {
        let mut frames = 0;
        let needed = loop {
            if self.goodbye && self.begin < self.end {
                let loss = Loss::CutOff("bytes behind its goodbye".into());
                return Err((frames, loss));
            }
            match frame::next(&self.buffer[self.begin..self.end], largest) {
                Next::Frame(frame) => {
                    frames += 1;
                    // Moved on first: should `take` panic, the frame is not taken twice.
                    self.begin += HEADER + frame.len();
                    take(frame);
                }
                Next::Partial(needed) => break needed,
                Next::Goodbye => {
                    self.begin += HEADER;
                    self.goodbye = true;
                }
                Next::TooLarge(length) => {
                    let loss = format!("a frame of {length} bytes where {largest} are allowed");
                    return Err((frames, Loss::CutOff(loss)));
                }
            }
            if self.goodbye && self.begin == self.end {
                break 0;
            }
        };
        self.make_room(needed);
        Ok(frames)
    }

    /// Makes room for the frame of `needed` bytes that has begun. The buffer grows with what has
    /// come, not with what a length promises.
    fn make_room(&mut self, needed: usize) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
            if self.buffer.len() > KEPT {
                self.buffer = Vec::new();
            }
            return;
        }
        if self.begin + needed > self.buffer.len() {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.end == self.buffer.len() {
            self.grow(needed);
        }
    }

    fn grow(&mut self, needed: usize) {
        let size = needed.min(2 * self.buffer.len()).max(USUAL);
        self.buffer.resize(size.max(self.buffer.len()), 0);
    }
}

/// How a connection ends whose peer ends.
const CLOSED: &str = "it closed the connection";

/// How a connection has ended, by the error of a read or a write. The system has several names for
/// the end of a peer: which one it gives depends on what was under way.
pub(super) fn how_ended(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionReset
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => CLOSED.to_owned(),
        _ => error.to_string(),
    }
}

/// Whether an error of a socket says no more than "not now".
pub(super) fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
