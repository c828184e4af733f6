//! What goes to one peer, and how much of it may be on its way.
//!
//! MPI says when a message's bytes are not needed any more, and that is before the peer has taken
//! it: small ones lie in the peer's memory then, in a queue without a limit. So from time to time a
//! frame is sent such that MPI says when the peer has begun to take it, a *mark*. Messages between
//! two processes are taken in order, so by then the peer has taken all before it as well.

use std::collections::VecDeque;

use super::library::{Communicator, Inside, MpiError, UnderWay};
use super::{ANNOUNCED, MORE};

/// What a frame costs in the count beside its bytes, so that empty frames have a limit too.
const FRAME: usize = 64;
/// After so much a frame is a mark.
const BETWEEN_MARKS: usize = 64 << 10;
/// What may lie before marks that the peer has not come to; one frame may exceed it.
const ON_THE_WAY: usize = 1 << 20;
/// A message of at most so many bytes is received where one waits for it, and is short enough for
/// libraries to send it at once; a longer one goes beside it, and is announced by such a message.
pub(super) const SMALL: usize = 3 << 10;
/// A longer frame goes in pieces of so many bytes: MPI does not say how much of a message has come,
/// and each piece is a sign of life.
pub(super) const PIECE: usize = 2 << 20;
/// A buffer larger than this is not kept for the next frame.
const MOST_KEPT: usize = 256 << 10;

/// Frames to one peer.
#[derive(Default)]
pub(super) struct SendChannel {
    /// Marks, and what lies between each and the one before.
    marks: VecDeque<(UnderWay, usize)>,
    before_marks: usize,
    since_mark: usize,
    /// Frames whose bytes are still needed.
    needed: Vec<UnderWay>,
    /// Bytes of a frame that is gone, for the next.
    buffer: Vec<u8>,
}

/// Where a frame goes to.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub communicator: Communicator,
    pub rank: usize,
    pub tag: i32,
    /// What is not small goes under this one.
    pub large_tag: i32,
}

impl SendChannel {
    /// Sends `parts` and `last` behind them; not where there is no room, unless it `must`.
    pub fn send(
        &mut self,
        inside: &Inside,
        target: Target,
        parts: &[&[u8]],
        last: u8,
        must: bool,
    ) -> Result<bool, MpiError> {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let weight = FRAME + bytes;
        if !must && !self.has_room_for(weight) {
            self.progress(inside)?;
            if !self.has_room_for(weight) {
                return Ok(false);
            }
        }
        if bytes <= PIECE {
            self.send_piece(inside, target, parts, last)?;
            return Ok(true);
        }
        let whole = parts.concat();
        let mut pieces = whole.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let kind = if pieces.peek().is_some() { MORE } else { last };
            self.send_piece(inside, target, &[piece], kind)?;
        }
        Ok(true)
    }

    /// Sends a frame, or one of its pieces.
    fn send_piece(
        &mut self,
        inside: &Inside,
        target: Target,
        parts: &[&[u8]],
        last: u8,
    ) -> Result<(), MpiError> {
        let mut frame = std::mem::take(&mut self.buffer);
        frame.clear();
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        self.since_mark += FRAME + frame.len();
        frame.push(last);
        let Target {
            communicator,
            rank,
            tag,
            large_tag,
        } = target;
        let small = frame.len() <= SMALL;
        let its_tag = if small { tag } else { large_tag };
        let is_mark = self.since_mark >= BETWEEN_MARKS;
        let sending = communicator.send(inside, frame, rank, its_tag, is_mark)?;
        if is_mark {
            let covers = std::mem::take(&mut self.since_mark);
            self.before_marks += covers;
            self.marks.push_back((sending, covers));
        } else {
            self.keep_until_sent(inside, sending)?;
        }
        if !small {
            // Behind it: who hears this waits for nothing that is not on its way. It may stay there
            // all the same, for this node may be lost.
            let mut announced = communicator.send(inside, vec![ANNOUNCED], rank, tag, false)?;
            if !announced.is_complete(inside)? {
                self.needed.push(announced);
            }
        }
        Ok(())
    }

    fn keep_until_sent(&mut self, inside: &Inside, mut sending: UnderWay) -> Result<(), MpiError> {
        match sending.is_complete(inside)? {
            true => self.keep(sending),
            false => self.needed.push(sending),
        }
        Ok(())
    }

    fn has_room_for(&self, weight: usize) -> bool {
        self.marks.is_empty() || self.before_marks + weight <= ON_THE_WAY
    }

    fn keep(&mut self, sending: UnderWay) {
        let buffer = sending.into_buffer();
        if buffer.capacity() <= MOST_KEPT {
            self.buffer = buffer;
        }
    }

    /// Whether something is on its way that [`progress`](SendChannel::progress) may find done.
    pub fn is_busy(&self) -> bool {
        !self.marks.is_empty() || !self.needed.is_empty()
    }

    /// Finds out what the peer has taken; whether it has come to another mark.
    pub fn progress(&mut self, inside: &Inside) -> Result<bool, MpiError> {
        let mut taken = false;
        while let Some((mark, _)) = self.marks.front_mut() {
            if !mark.is_complete(inside)? {
                break;
            }
            if let Some((mark, covers)) = self.marks.pop_front() {
                self.before_marks -= covers;
                self.keep(mark);
                taken = true;
            }
        }
        for at in (0..self.needed.len()).rev() {
            if self.needed[at].is_complete(inside)? {
                let sent = self.needed.swap_remove(at);
                self.keep(sent);
            }
        }
        Ok(taken)
    }

    /// Whether a frame that was refused would find room now.
    pub fn has_some_room(&self) -> bool {
        self.has_room_for(ON_THE_WAY / 2)
    }

    /// Forgets what is on its way: the peer takes nothing any more.
    pub fn clear(&mut self) {
        *self = SendChannel::default();
    }
}
