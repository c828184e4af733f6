use std::collections::VecDeque;

use super::datagram::{Acknowledgement, Fragment, Place};
use super::planted::{Planted, planted};

/// Fragments that may be on the way at once: those behind a missing one are kept.
pub(super) const WINDOW: u64 = 256;

/// The receiving half of a flow: puts fragments into order and frames together.
pub(super) struct Receiving {
    largest: usize,
    /// The fragment that is missing.
    expected: u64,
    /// Those behind it: the first is `expected` itself, which is missing.
    early: VecDeque<Option<Fragment<Vec<u8>>>>,
    /// The frame that is being put together, and the bytes it will have.
    frame: Option<(Vec<u8>, usize)>,
    goodbye: bool,
    /// Something came, and the sender should learn of it.
    pub owes: bool,
}

impl Receiving {
    pub fn new(largest: usize) -> Self {
        Receiving {
            largest,
            expected: 0,
            early: VecDeque::new(),
            frame: None,
            goodbye: false,
            owes: false,
        }
    }

    /// Whether the other side has said goodbye, and everything before it has come.
    pub fn goodbye(&self) -> bool {
        self.goodbye
    }

    pub fn acknowledgement(&self) -> Acknowledgement {
        let mut beyond = 0;
        for (at, fragment) in self.early.iter().skip(1).take(64).enumerate() {
            beyond |= u64::from(fragment.is_some()) << at;
        }
        let below = self.expected;
        Acknowledgement { below, beyond }
    }

    /// Takes a fragment; frames that are whole now go to `frames`.
    pub fn receive(
        &mut self,
        fragment: Fragment<&[u8]>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), String> {
        self.owes = true;
        let number = fragment.number;
        if number < self.expected && !planted(Planted::DuplicatesTaken) {
            return Ok(());
        }
        let at = number.saturating_sub(self.expected);
        if at >= WINDOW {
            let expected = self.expected;
            return Err(format!("fragment {number} where {expected} is expected"));
        }
        let at = at as usize;
        while self.early.len() <= at {
            self.early.push_back(None);
        }
        self.early[at].get_or_insert_with(|| Fragment {
            number,
            place: fragment.place,
            bytes: fragment.bytes.to_vec(),
        });
        while let Some(Some(_)) = self.early.front() {
            self.expected += 1;
            if let Some(Some(fragment)) = self.early.pop_front() {
                self.append(fragment, frames)?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        fragment: Fragment<Vec<u8>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), String> {
        if self.goodbye {
            return Err("a fragment behind its goodbye".into());
        }
        let (frame, total) = match (fragment.place, self.frame.take()) {
            (Place::Goodbye, None) => {
                self.goodbye = true;
                return Ok(());
            }
            (Place::First(total), None) if total as usize <= self.largest => {
                (fragment.bytes, total as usize)
            }
            (Place::Further, Some((mut frame, total))) => {
                frame.extend_from_slice(&fragment.bytes);
                (frame, total)
            }
            (place, frame) => {
                let within = frame.map_or("", |_| " in the middle of a frame");
                return Err(format!("a fragment that cannot be: {place:?}{within}"));
            }
        };
        if frame.len() > total {
            let bytes = frame.len();
            return Err(format!("{bytes} bytes of a frame of {total}"));
        }
        if frame.len() == total {
            frames.push(frame);
        } else {
            self.frame = Some((frame, total));
        }
        Ok(())
    }
}
