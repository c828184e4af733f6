use std::hint;

use crate::ring::{Header, Impossible, Kind, Ring, Writer};

/// Larger frames go in pieces of so many bytes: the reader copies one out while the next is copied
/// in, and no large frame needs a large ring.
pub(super) const PIECE: usize = 32 << 10;
/// Looks for room in the middle of a large frame before the rest of it is copied aside. The reader
/// is copying at that moment, as a rule.
const LOOKS: u32 = 20_000;

/// The sending side of a link.
pub(super) struct Outbound {
    writer: Writer,
    /// The frame that was begun and found no room, and how much of it has gone.
    kept: Vec<u8>,
    gone: usize,
    /// The last frame was refused.
    refused: bool,
    goodbye: bool,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Gone, or kept to be sent.
    Yes,
    /// No room: nothing of it was sent.
    Busy,
}

impl Outbound {
    pub fn new() -> Self {
        Outbound {
            writer: Writer::new(),
            kept: Vec::new(),
            gone: 0,
            refused: false,
            goodbye: false,
        }
    }

    /// Whether the rest of a frame waits for room.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.gone < self.kept.len()
    }

    /// Whether the last frame was refused.
    pub fn refused(&self) -> bool {
        self.refused
    }

    /// Whether the reader has read on since this side last looked.
    pub fn has_moved(&self, ring: Ring<'_>) -> bool {
        self.writer.has_moved(ring)
    }

    /// Sends a short frame if nothing of another has to go before it, and it goes right behind the
    /// last in the ring; whether it did.
    #[inline]
    pub fn send_on(&mut self, ring: Ring<'_>, parts: &[&[u8]], bytes: usize) -> bool {
        let sent = !self.keeps() && self.writer.write_on(ring, bytes, parts);
        self.refused &= !sent;
        sent
    }

    /// Sends a frame. `wrote` is called whenever something can be read that could not before.
    pub fn send(
        &mut self,
        ring: Ring<'_>,
        parts: &[&[u8]],
        bytes: usize,
        wrote: &mut dyn FnMut(),
    ) -> Result<Sent, Impossible> {
        let sent = self.begin(ring, parts, bytes, wrote)?;
        self.refused = sent == Sent::Busy;
        Ok(sent)
    }

    fn begin(
        &mut self,
        ring: Ring<'_>,
        parts: &[&[u8]],
        bytes: usize,
        wrote: &mut dyn FnMut(),
    ) -> Result<Sent, Impossible> {
        if self.keeps() {
            self.flush(ring, wrote)?;
            if self.keeps() {
                return Ok(Sent::Busy);
            }
        }
        let longest = Writer::longest_record(ring);
        let piece = PIECE.min(longest);
        if bytes <= piece {
            let kind = Kind::Whole;
            let header = Header { kind, bytes };
            let written = self.writer.write(ring, header, parts.iter().copied())?;
            if written {
                wrote();
            }
            return Ok(if written { Sent::Yes } else { Sent::Busy });
        }
        // A frame of which half the ring holds less than the whole begins when that half is free.
        if !self.writer.has_room(ring, bytes.min(longest), piece)? {
            return Ok(Sent::Busy);
        }
        let mut rest = Rest { parts, skipped: 0 };
        let mut gone = 0;
        while gone < bytes {
            let header = piece_of(gone, bytes, piece);
            let mut looks = LOOKS;
            while !self.writer.write(ring, header, rest.first(header.bytes))? {
                looks -= 1;
                if looks == 0 {
                    self.keep(rest, gone, bytes);
                    return Ok(Sent::Yes);
                }
                hint::spin_loop();
            }
            wrote();
            gone += header.bytes;
            rest.skip(header.bytes);
        }
        Ok(Sent::Yes)
    }

    /// Copies aside what has not gone. What has is counted with it, so that pieces are cut alike.
    fn keep(&mut self, rest: Rest<'_>, gone: usize, bytes: usize) {
        self.kept.clear();
        self.kept.resize(gone, 0);
        for part in rest.first(bytes - gone) {
            self.kept.extend_from_slice(part);
        }
        self.gone = gone;
    }

    /// Sends what was kept, as far as there is room.
    pub fn flush(&mut self, ring: Ring<'_>, wrote: &mut dyn FnMut()) -> Result<(), Impossible> {
        let piece = PIECE.min(Writer::longest_record(ring));
        while self.keeps() {
            let header = piece_of(self.gone, self.kept.len(), piece);
            let bytes = &self.kept[self.gone..self.gone + header.bytes];
            if !self.writer.write(ring, header, [bytes])? {
                return Ok(());
            }
            self.gone += header.bytes;
            wrote();
        }
        self.kept = Vec::new();
        self.gone = 0;
        Ok(())
    }

    /// Says goodbye, behind what is kept; whether it was said.
    pub fn goodbye(&mut self, ring: Ring<'_>, wrote: &mut dyn FnMut()) -> Result<bool, Impossible> {
        self.flush(ring, wrote)?;
        if !self.goodbye && !self.keeps() {
            let (kind, bytes) = (Kind::Goodbye, 0);
            self.goodbye = self.writer.write(ring, Header { kind, bytes }, [])?;
            wrote();
        }
        Ok(self.goodbye)
    }
}

/// The header of the piece that follows on `gone` bytes of a frame of `bytes`.
fn piece_of(gone: usize, bytes: usize, piece: usize) -> Header {
    let kind = match gone {
        0 => Kind::First(bytes),
        _ => Kind::Piece,
    };
    Header {
        kind,
        bytes: piece.min(bytes - gone),
    }
}

/// What of a frame's parts has not gone yet.
#[derive(Clone, Copy)]
struct Rest<'p> {
    parts: &'p [&'p [u8]],
    /// Bytes of the first part that have.
    skipped: usize,
}

impl<'p> Rest<'p> {
    /// The first `bytes` bytes of it.
    fn first(self, bytes: usize) -> impl Iterator<Item = &'p [u8]> {
        let (mut left, mut skipped) = (bytes, self.skipped);
        self.parts.iter().map_while(move |part| {
            let part = &part[skipped..];
            skipped = 0;
            let taken = &part[..part.len().min(left)];
            left -= taken.len();
            (left > 0 || !taken.is_empty()).then_some(taken)
        })
    }

    fn skip(&mut self, bytes: usize) {
        self.skipped += bytes;
        while let Some((part, others)) = self.parts.split_first()
            && self.skipped >= part.len()
        {
            self.skipped -= part.len();
            self.parts = others;
        }
    }
}
