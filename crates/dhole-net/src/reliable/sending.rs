use std::collections::VecDeque;
use std::time::Duration;

use super::datagram::{Acknowledgement, Fragment, Place};
use super::pace::Pace;
use super::planted::{Planted, planted};
use super::receiving::WINDOW;

/// A missing fragment counts as lost when so many sent after it have come.
const OVERTAKEN_BY: u64 = 3;

/// Who lost so many shared fragments, one after the other, gets no more of them.
const DEAF: u32 = 8;

/// The sending half of a flow: cuts frames into fragments, and sends each until it has come.
pub(super) struct Sending {
    /// Bytes of a fragment, at most.
    fragment: usize,
    pace: Pace,
    /// All fragments that have not come for certain: first those that were sent, then the others.
    fragments: VecDeque<Sent>,
    /// The number of the first of them.
    first: u64,
    /// How many of them were sent.
    sent: usize,
    /// Bytes of those that have not come.
    bytes: usize,
    /// How many of those sent are on the way, and how many are lost and not yet sent again.
    on_the_way: usize,
    lost: usize,
    /// Shared fragments that were lost one after the other.
    deaf: u32,
}

struct Sent {
    fragment: Fragment<Vec<u8>>,
    at: Duration,
    times: u32,
    /// It went to several at once, the first time.
    shared: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unsent,
    OnTheWay,
    Lost,
    /// It has come, but one before it has not.
    Arrived,
}

impl Sending {
    pub fn new(fragment: usize) -> Self {
        Sending {
            fragment,
            pace: Pace::new(),
            fragments: VecDeque::new(),
            first: 0,
            sent: 0,
            bytes: 0,
            on_the_way: 0,
            lost: 0,
            deaf: 0,
        }
    }

    /// Bytes that are kept until they have come.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether everything has come.
    pub fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    /// How often the last fragment was sent, when it is the only one that may not have come.
    pub fn tries_of_the_last(&self) -> u32 {
        match self.fragments.len() {
            1 => self.fragments[0].times,
            _ => 0,
        }
    }

    fn push(&mut self, place: Place, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        let number = self.first + self.fragments.len() as u64;
        self.fragments.push_back(Sent {
            fragment: Fragment {
                number,
                place,
                bytes,
            },
            at: Duration::ZERO,
            times: 0,
            shared: false,
            state: State::Unsent,
        });
    }

    /// Takes a frame of `bytes` bytes to be sent.
    pub fn frame(&mut self, parts: &[&[u8]], bytes: usize) {
        let mut place = Place::First(bytes as u32);
        let mut left = bytes;
        let mut fragment = Vec::with_capacity(left.min(self.fragment));
        for part in parts {
            let mut part = *part;
            while !part.is_empty() {
                let room = self.fragment - fragment.len();
                let (fits, rest) = part.split_at(room.min(part.len()));
                fragment.extend_from_slice(fits);
                part = rest;
                left -= fits.len();
                if fragment.len() == self.fragment && left > 0 {
                    let next = Vec::with_capacity(left.min(self.fragment));
                    self.push(place, std::mem::replace(&mut fragment, next));
                    place = Place::Further;
                }
            }
        }
        self.push(place, fragment);
    }

    /// Says goodbye, behind everything else.
    pub fn goodbye(&mut self) {
        self.push(Place::Goodbye, Vec::new());
    }

    /// Notes what has come at the other side.
    pub fn acknowledged(&mut self, now: Duration, of: Acknowledgement) -> Result<(), String> {
        let next = self.first + self.sent as u64;
        if of.below > next {
            let below = of.below;
            return Err(format!("an acknowledgement of {below}, which is not sent"));
        }
        let mut arrived = 0;
        let mut below = of.below;
        if planted(Planted::BeyondIsBelow) && of.beyond != 0 {
            below = next.min(below + 1 + u64::from(u64::BITS - of.beyond.leading_zeros()));
        }
        while self.first < below {
            arrived += self.arrived(now, 0);
            if let Some(gone) = self.fragments.pop_front() {
                self.bytes -= gone.fragment.bytes.len();
            }
            self.first += 1;
            self.sent -= 1;
        }
        // An old acknowledgement says nothing of what is beyond it now.
        if of.below == self.first && of.beyond != 0 {
            let last = u64::from(u64::BITS - of.beyond.leading_zeros());
            if of.below + last >= next {
                return Err("an acknowledgement of what is not sent".into());
            }
            for bit in (0..last).filter(|bit| of.beyond >> bit & 1 == 1) {
                arrived += self.arrived(now, 1 + bit as usize);
            }
            self.find_lost(now, of.below + last);
        }
        if arrived > 0 {
            self.pace.arrived(arrived, WINDOW as usize);
        }
        Ok(())
    }

    /// Notes that a fragment has come; 1 if that is news.
    fn arrived(&mut self, now: Duration, at: usize) -> usize {
        let sent = &mut self.fragments[at];
        match std::mem::replace(&mut sent.state, State::Arrived) {
            State::Arrived => return 0,
            State::Lost => self.lost -= 1,
            State::OnTheWay | State::Unsent => self.on_the_way -= 1,
        }
        if sent.times == 1 && sent.shared {
            self.deaf = 0;
        }
        if sent.times == 1 {
            self.pace.measured(now.saturating_sub(sent.at));
        }
        1
    }

    /// What was overtaken by enough others up to `highest` is lost.
    fn find_lost(&mut self, now: Duration, highest: u64) {
        let next = self.first + self.sent as u64;
        for sent in self.fragments.iter_mut().take(self.sent) {
            let number = sent.fragment.number;
            if number + OVERTAKEN_BY > highest {
                break;
            }
            let again = sent.times > 1 && now < sent.at + self.pace.grace();
            if sent.state == State::OnTheWay && !again {
                sent.state = State::Lost;
                self.deaf += u32::from(sent.shared && sent.times == 1);
                self.on_the_way -= 1;
                self.lost += 1;
                self.pace.lost(number, next);
            }
        }
    }

    /// When the oldest fragment that is on the way counts as lost.
    pub fn timeout_at(&self) -> Option<Duration> {
        let on_the_way = |sent: &&Sent| sent.state == State::OnTheWay;
        let oldest = self.fragments.iter().take(self.sent).find(on_the_way)?;
        Some(oldest.at + self.pace.timeout())
    }

    /// Whether something may be sent now.
    pub fn may_send(&self) -> bool {
        let unsent = self.sent < self.fragments.len() && (self.sent as u64) < WINDOW;
        self.on_the_way < self.pace.window() && (self.lost > 0 || unsent)
    }

    /// The number of the last fragment, if that alone is to be sent, and may be: then it can go to
    /// several at once. Not to one who seems to get nothing of that kind.
    pub fn alone(&self) -> Option<u64> {
        let alone = self.sent + 1 == self.fragments.len() && self.lost == 0;
        let number = self.first + self.sent as u64;
        (alone && self.may_send() && self.deaf < DEAF).then_some(number)
    }

    /// That fragment went to several at once.
    pub fn went(&mut self, now: Duration) {
        if planted(Planted::SharedIsArrived) {
            self.fragments[self.sent].state = State::Arrived;
            self.sent += 1;
            return;
        }
        let sent = &mut self.fragments[self.sent];
        (sent.state, sent.at, sent.times, sent.shared) = (State::OnTheWay, now, 1, true);
        self.sent += 1;
        self.on_the_way += 1;
    }

    /// Sends what may be: first what is lost, then what is new. `send` says whether there was room.
    pub fn transmit(&mut self, now: Duration, send: &mut dyn FnMut(&Fragment<Vec<u8>>) -> bool) {
        let timed_out = self.timeout_at().is_some_and(|at| at <= now);
        if timed_out && !planted(Planted::NoTimeout) {
            self.pace.timed_out(self.first + self.sent as u64);
            for sent in self.fragments.iter_mut().take(self.sent) {
                if sent.state == State::OnTheWay {
                    sent.state = State::Lost;
                    self.deaf += u32::from(sent.shared && sent.times == 1);
                    self.on_the_way -= 1;
                    self.lost += 1;
                }
            }
        }
        let mut at = 0;
        while self.may_send() {
            if self.lost > 0 {
                while self.fragments[at].state != State::Lost {
                    at += 1;
                }
            } else {
                at = self.sent;
            }
            let sent = &mut self.fragments[at];
            if !send(&sent.fragment) {
                return;
            }
            match sent.state {
                State::Lost => self.lost -= 1,
                _ => self.sent += 1,
            }
            sent.state = State::OnTheWay;
            sent.at = now;
            sent.times += 1;
            self.on_the_way += 1;
        }
    }
}
