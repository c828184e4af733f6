use std::collections::VecDeque;
use std::io::{self, IoSlice};

use super::Stream;
use super::frame::HEADER;
use super::inbound::{how_ended, is_passing};

/// Parts of a frame that go to the kernel without being copied together.
const AT_ONCE: usize = 16;

/// What was to be sent to one peer and is not yet the kernel's.
#[derive(Default)]
pub(super) struct Outbound {
    kept: VecDeque<u8>,
    /// Writing failed: what is kept will never be sent.
    broken: Option<String>,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Gone, or kept to be sent.
    Yes,
    /// No room: nothing of it was sent.
    Busy,
    /// The connection is broken.
    Broken(String),
}

impl Outbound {
    /// Bytes kept back.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Sends the frame `parts` of `bytes` bytes behind `header`, keeping at most `limit` bytes
    /// back, or the rest of this one frame if nothing else is kept.
    pub fn send(
        &mut self,
        stream: &Stream,
        header: [u8; HEADER],
        parts: &[&[u8]],
        bytes: usize,
        limit: usize,
    ) -> Sent {
        self.flush(stream);
        if let Some(broken) = &self.broken {
            return Sent::Broken(broken.clone());
        }
        if !self.kept.is_empty() {
            if self.kept.len() + HEADER + bytes > limit {
                return Sent::Busy;
            }
            self.keep(&header, parts, 0);
            return Sent::Yes;
        }
        let written = match write(stream, &header, parts) {
            Ok(written) => written,
            Err(e) if is_passing(e.kind()) => 0,
            Err(e) => return self.broke(stream, &e),
        };
        if written == 0 && HEADER + bytes > limit {
            return Sent::Busy;
        }
        self.keep(&header, parts, written);
        Sent::Yes
    }

    /// Keeps what lies behind the first `gone` bytes of the frame.
    fn keep(&mut self, header: &[u8], parts: &[&[u8]], mut gone: usize) {
        for part in std::iter::once(&header).chain(parts) {
            let skipped = gone.min(part.len());
            gone -= skipped;
            self.kept.extend(&part[skipped..]);
        }
    }

    /// Sends of what is kept as much as the kernel takes.
    pub fn flush(&mut self, stream: &Stream) {
        while !self.kept.is_empty() {
            let (front, back) = self.kept.as_slices();
            match stream.write(&[IoSlice::new(front), IoSlice::new(back)]) {
                Ok(written) => drop(self.kept.drain(..written)),
                Err(e) if is_passing(e.kind()) => return,
                Err(e) => {
                    self.broke(stream, &e);
                }
            }
        }
    }

    fn broke(&mut self, stream: &Stream, error: &io::Error) -> Sent {
        let error = how_ended(error);
        self.broken = Some(error.clone());
        self.kept = VecDeque::new();
        // What the peer had sent before can still be read; then the reader finds the end.
        stream.shutdown(std::net::Shutdown::Both);
        Sent::Broken(error)
    }
}

/// One write of header and parts: more parts than go at once are left for what is kept.
fn write(stream: &Stream, header: &[u8], parts: &[&[u8]]) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); AT_ONCE];
    slices[0] = IoSlice::new(header);
    for (slice, part) in slices[1..].iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    stream.write(&slices[..AT_ONCE.min(1 + parts.len())])
}
