use std::time::Duration;

use super::datagram::{Datagram, Fragment, OVERHEAD, Place, RESET_DATAGRAM, head, parse};
use super::receiving::Receiving;
use super::sending::Sending;
use crate::Loss;

/// Time between two looks that counts as silence is at most this part of the patience: who did not
/// look has not heard the silence.
const COUNTED: u32 = 4;
/// Tries of a goodbye that nobody answers, after which there is nobody, as a rule.
const GOODBYES: u32 = 8;

/// Frames to and from one peer, over datagrams that may be lost, repeated and reordered: a pure
/// state machine that is told the time and whatever comes.
pub(super) struct Flow {
    sending: Sending,
    receiving: Receiving,
    kept_back: usize,
    patience: Duration,
    /// When something was heard, or nothing was awaited; later by the time in which nobody looked.
    heard: Duration,
    looked: Duration,
    said_goodbye: bool,
}

/// Limits of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowLimits {
    pub largest: usize,
    pub datagram: usize,
    pub kept_back: usize,
    pub patience: Duration,
}

impl Flow {
    pub fn new(limits: FlowLimits) -> Self {
        Flow {
            sending: Sending::new(limits.datagram.saturating_sub(OVERHEAD).max(1)),
            receiving: Receiving::new(limits.largest),
            kept_back: limits.kept_back,
            patience: limits.patience,
            heard: Duration::ZERO,
            looked: Duration::ZERO,
            said_goodbye: false,
        }
    }

    /// Whether everything that was to be sent has come.
    pub fn is_done(&self) -> bool {
        self.sending.is_done()
    }

    /// Takes a frame to be sent; false when there is no room.
    pub fn frame(&mut self, now: Duration, parts: &[&[u8]], bytes: usize) -> bool {
        if self.sending.is_done() {
            self.heard = now;
        } else if self.sending.bytes() + bytes > self.kept_back {
            return false;
        }
        self.sending.frame(parts, bytes);
        true
    }

    /// Takes a datagram; frames that are whole go to `frames`.
    pub fn receive(
        &mut self,
        now: Duration,
        datagram: &[u8],
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Loss> {
        let cut_off = |what: String| Loss::CutOff(what);
        let (acknowledges, fragment) = match parse(datagram) {
            Some(Datagram::Sound(acknowledges, fragment)) => (acknowledges, fragment),
            Some(Datagram::Shared(..)) => {
                let what = "a frame for several where one is spoken to";
                return Err(cut_off(what.into()));
            }
            Some(Datagram::Reset) => return Err(Loss::Broken("it gave this node up".into())),
            None => {
                let bytes = datagram.len();
                return Err(cut_off(format!("a datagram of {bytes} bytes that is none")));
            }
        };
        self.heard = now;
        self.sending
            .acknowledged(now, acknowledges)
            .map_err(cut_off)?;
        if let Some(fragment) = fragment {
            self.receiving.receive(fragment, frames).map_err(cut_off)?;
        }
        Ok(())
    }

    /// Takes a whole frame that went to several, of which it is the fragment `number` here.
    pub fn receive_shared(
        &mut self,
        now: Duration,
        number: u64,
        bytes: &[u8],
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Loss> {
        self.heard = now;
        let place = Place::First(bytes.len() as u32);
        let fragment = Fragment {
            number,
            place,
            bytes,
        };
        self.receiving
            .receive(fragment, frames)
            .map_err(Loss::CutOff)
    }

    /// The number of the fragment that alone is to be sent now, if it can go to several at once.
    pub fn alone(&self) -> Option<u64> {
        self.sending.alone()
    }

    /// That fragment went to several.
    pub fn went(&mut self, now: Duration) {
        self.sending.went(now);
    }

    /// Sends what may be sent now. `send` says whether there was room for the datagram.
    pub fn transmit(&mut self, now: Duration, send: &mut dyn FnMut(&[&[u8]]) -> bool) {
        let acknowledges = self.receiving.acknowledgement();
        let mut owes = self.receiving.owes;
        self.sending.transmit(now, &mut |fragment| {
            let (head, length) = head(acknowledges, Some(fragment));
            let sent = send(&[&head[..length], &fragment.bytes]);
            owes &= !sent;
            sent
        });
        if owes {
            let (head, length) = head::<Vec<u8>>(acknowledges, None);
            owes = !send(&[&head[..length]]);
        }
        self.receiving.owes = owes;
    }

    /// When [`transmit`](Flow::transmit) is due at the latest.
    pub fn wake_at(&self, now: Duration) -> Option<Duration> {
        if self.receiving.owes || self.sending.may_send() {
            return Some(now);
        }
        let look = (self.heard + self.patience).min(self.looked + self.patience / COUNTED);
        let patience = (!self.sending.is_done()).then_some(look);
        self.sending.timeout_at().into_iter().chain(patience).min()
    }

    /// Everything that had come was read by now: what was not heard was not said.
    pub fn look(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.looked);
        self.looked = now;
        let not_counted = passed.saturating_sub(self.patience / COUNTED);
        self.heard = (self.heard + not_counted).min(now);
    }

    /// The other side has left.
    pub fn has_left(&self) -> Option<Loss> {
        self.receiving.goodbye().then_some(Loss::Left)
    }

    /// The other side is gone: it left, or what was sent to it is unanswered for too long.
    pub fn is_over(&self, now: Duration) -> Option<Loss> {
        let unanswered = !self.sending.is_done() && now > self.heard + self.patience;
        let silent = || unanswered.then_some(Loss::Silent(self.patience));
        self.has_left().or_else(silent)
    }

    /// Says goodbye, once.
    pub fn goodbye(&mut self, now: Duration) {
        if !self.said_goodbye {
            self.said_goodbye = true;
            if self.sending.is_done() {
                self.heard = now;
            }
            self.sending.goodbye();
        }
    }

    /// The last that is said to a peer that has left, by one who will not hear whether it asks
    /// again: that everything has come. As often as a goodbye is tried, for any may be lost.
    pub fn farewell(&self, send: &mut dyn FnMut(&[&[u8]]) -> bool) {
        let (head, length) = head::<Vec<u8>>(self.receiving.acknowledgement(), None);
        for _ in 0..GOODBYES {
            send(&[&head[..length]]);
        }
    }

    /// Whether the goodbye has come, or is not worth another try.
    pub fn has_parted(&self) -> bool {
        self.sending.is_done() || self.said_goodbye && self.sending.tries_of_the_last() >= GOODBYES
    }
}

/// What is said to a peer that was given up.
pub(super) const RESET: &[u8] = &RESET_DATAGRAM;
