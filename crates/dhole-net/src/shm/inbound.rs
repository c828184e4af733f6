use crate::ring::{Header, Impossible, Kind, Reader, Ring};
use crate::{Incoming, Loss};

/// A buffer for the frames of pieces that has grown beyond this is given back.
const KEPT: usize = 4 << 20;
/// Frames that are taken of one peer before the next has its turn.
const IN_TURN: usize = 1_024;
/// The same in bytes.
const BYTES_IN_TURN: usize = 1 << 20;

/// The receiving side of a link.
pub(super) struct Inbound {
    reader: Reader,
    /// What was looked at of a frame, copied out before.
    seen: Vec<u8>,
    /// The frame whose pieces are coming: the first `filled` bytes of `total`.
    pieces: Vec<u8>,
    filled: usize,
    total: Option<usize>,
}

/// What one poll of a ring found.
pub(super) struct Polled {
    pub frames: usize,
    /// Something was read, and the writer was told.
    pub freed: bool,
    /// What comes behind that.
    pub behind: Behind,
}

/// What comes behind the frames of one look.
pub(super) enum Behind {
    /// Something that has not been looked at.
    More,
    Nothing,
    /// The peer is lost. Boxed, for what most looks bring is small.
    Lost(Box<Loss>),
}

impl Inbound {
    pub fn new() -> Self {
        Inbound {
            reader: Reader::new(),
            seen: Vec::new(),
            pieces: Vec::new(),
            filled: 0,
            total: None,
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self, ring: Ring<'_>) -> bool {
        self.reader.is_empty(ring)
    }

    /// Where the next record begins.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Bytes of a frame that have come without the others.
    pub fn of_a_frame(&self) -> usize {
        self.filled
    }

    /// Takes what is there, within a turn's limit.
    pub fn poll(
        &mut self,
        ring: Ring<'_>,
        largest: usize,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Polled {
        let (mut frames, mut bytes) = (0, 0);
        let published = self.reader.published();
        let mut behind = Behind::More;
        while frames < IN_TURN && bytes < BYTES_IN_TURN {
            if let Some(more) = self.short(ring, largest, take) {
                (frames, bytes) = (frames + 1, bytes + more);
                continue;
            }
            let next = match self.is_empty(ring) {
                true => Ok(None),
                false => self.any(ring, largest, take),
            };
            match next {
                Ok(Some((ended, more))) => (frames, bytes) = (frames + ended, bytes + more),
                Ok(None) => {
                    behind = Behind::Nothing;
                    break;
                }
                Err(loss) => {
                    behind = Behind::Lost(Box::new(loss));
                    break;
                }
            }
        }
        self.reader.publish(ring);
        Polled {
            frames,
            // Also what was published on the way: the writer may sleep for want of it.
            freed: self.reader.published() != published,
            behind,
        }
    }

    /// Takes the next frame if it is whole, as most are, and may be; its bytes.
    #[inline]
    fn short(
        &mut self,
        ring: Ring<'_>,
        largest: usize,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Option<usize> {
        if self.total.is_some() {
            return None;
        }
        // It is passed before it is taken, so that it is taken once, also by who panics; the writer
        // gets the room afterwards.
        let (body, bytes) = self.reader.whole(ring, largest)?;
        take(Incoming::shared(body, bytes, &mut self.seen));
        self.reader.publish_from_time_to_time(ring);
        Some(bytes)
    }

    /// Takes the next record, whatever it is, if there is one: the frames that it ends, and its
    /// bytes.
    #[cold]
    fn any(
        &mut self,
        ring: Ring<'_>,
        largest: usize,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<Option<(usize, usize)>, Loss> {
        let cut_off = |Impossible(what)| Loss::CutOff(what);
        let Some(header) = self.reader.peek(ring).map_err(cut_off)? else {
            return Ok(None);
        };
        self.record(ring, header, largest, take).map(Some)
    }

    /// Takes the record that `header` begins: the frames that it ends, and the bytes that it turns
    /// out to have.
    fn record(
        &mut self,
        ring: Ring<'_>,
        header: Header,
        largest: usize,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<(usize, usize), Loss> {
        let bytes = header.bytes;
        let cut_off = |what: String| Err(Loss::CutOff(what));
        if bytes > largest {
            return cut_off(format!(
                "a frame of {bytes} bytes where {largest} are allowed"
            ));
        }
        match header.kind {
            Kind::Goodbye => return Err(Loss::Left),
            Kind::Whole if self.total.is_some() => {
                return cut_off("a frame in the middle of another".into());
            }
            // It has become the next record, for the end of the ring was skipped.
            Kind::Whole => {
                return match self.short(ring, largest, take) {
                    // Its header was read once more.
                    Some(bytes) => Ok((1, bytes)),
                    None => cut_off("a record that it changes".into()),
                };
            }
            Kind::First(total) => {
                if self.total.is_some() || total < bytes || total > largest {
                    return cut_off(format!("{bytes} bytes as the beginning of {total}"));
                }
                self.total = Some(total);
            }
            // Pieces of nothing could follow each other for ever, and no turn would end.
            Kind::Piece if bytes == 0 => return cut_off("a piece of 0 bytes".into()),
            Kind::Piece => {}
        }
        let Some(total) = self.total.filter(|total| bytes <= total - self.filled) else {
            return cut_off(format!("{bytes} bytes that belong to no frame"));
        };
        let end = self.filled + bytes;
        if self.pieces.len() < end {
            // With what has come, not with what is promised, but for a usual size.
            let size = total.min(KEPT.max(2 * self.pieces.len()));
            self.pieces.resize(size.max(end), 0);
        }
        self.reader
            .copy(ring, header, &mut self.pieces[self.filled..end]);
        self.filled = end;
        if end < total {
            return Ok((0, bytes));
        }
        self.total = None;
        self.filled = 0;
        take(Incoming::of(&self.pieces[..total]));
        if self.pieces.len() > KEPT {
            self.pieces = Vec::new();
        }
        Ok((1, bytes))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::AtomicU64;
    use crate::ring::{CONTROL, Writer};

    #[test]
    fn a_frame_counts_what_it_turns_out_to_have() {
        const LONG: usize = 4_000;
        let words: Vec<AtomicU64> = (0..CONTROL + 1_024).map(|_| AtomicU64::new(0)).collect();
        let ring = Ring::new(&words);
        let frame = |bytes| Header {
            kind: Kind::Whole,
            bytes,
        };
        let written = Writer::new().write(ring, frame(LONG), [&[7; LONG][..]]);
        assert_eq!(written, Ok(true));
        // Its writer has changed the header since it was looked at.
        let mut inbound = Inbound::new();
        let mut taken = 0;
        let take = &mut |frame: Incoming<'_>| taken += frame.len();
        let counted = inbound.record(ring, frame(0), LONG, take);
        assert_eq!((counted, taken), (Ok((1, LONG)), LONG));
    }
}
