use std::sync::Mutex;
use std::time::Duration;

use dhole_model::unpoisoned::lock;
use dhole_model::{NodeId, Notify, SplitMix64};

use crate::port::send_one_by_one;
use crate::{Layer, Offers, Port, SendError};

/// Frames that are held back at once; more are lost.
const MOST_HELD: usize = 4_096;
/// The longest park while frames are held back, for it is polls that let them go.
const WHILE_HELD: Duration = Duration::from_millis(1);

/// What happens to frames, each in so many of a thousand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chances {
    /// The frame is never seen again.
    pub drop: u32,
    /// It comes twice.
    pub duplicate: u32,
    /// It comes behind some that were sent after it.
    pub delay: u32,
    /// By how many sends and polls a delayed frame is late at most.
    pub latest: u32,
}

/// A port that loses, repeats, reorders and delays frames as its seed says, over any other: what
/// the layers above an unreliable port are tried on.
pub struct Lossy<P> {
    inner: P,
    chances: Chances,
    fate: Mutex<Fate>,
}

/// What decides, and the frames that are on their way for longer.
struct Fate {
    random: SplitMix64,
    steps: u64,
    held: Vec<Held>,
}

struct Held {
    until: u64,
    to: NodeId,
    frame: Vec<u8>,
}

impl Fate {
    fn happens(&mut self, chance: u32) -> bool {
        self.random.below(1_000) < u64::from(chance)
    }
}

impl<P: Port> Lossy<P> {
    /// Does to the frames sent through `inner` what `seed` says.
    pub fn new(inner: P, seed: u64, chances: Chances) -> Self {
        let fate = Fate {
            random: SplitMix64(seed ^ u64::from(inner.me().0) << 48),
            steps: 0,
            held: Vec::new(),
        };
        Lossy {
            inner,
            chances,
            fate: Mutex::new(fate),
        }
    }

    /// Lets go what was held back for long enough. What finds no room is lost.
    fn step(&self, fate: &mut Fate) {
        fate.steps += 1;
        let steps = fate.steps;
        for held in fate.held.extract_if(.., |held| held.until <= steps) {
            let _ = self.inner.send(held.to, &[&held.frame]);
        }
    }
}

impl<P: Port> Layer for Lossy<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.inner
    }

    fn name(&self) -> &'static str {
        "lossy"
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: false,
            ordered: false,
            ..self.inner.offers()
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let fate = &mut *lock(&self.fate);
        self.step(fate);
        if fate.happens(self.chances.drop) && to.index() < self.nodes() && to != self.me() {
            return Ok(());
        }
        if fate.happens(self.chances.delay) && fate.held.len() < MOST_HELD {
            let until = fate.steps + 1 + fate.random.below(u64::from(self.chances.latest));
            let frame = parts.concat();
            fate.held.push(Held { until, to, frame });
            return Ok(());
        }
        let twice = fate.happens(self.chances.duplicate);
        self.inner.send_with(to, parts, notify)?;
        if twice {
            // It was sent, whether there is room for another or not.
            let _ = self.inner.send_with(to, parts, notify);
        }
        Ok(())
    }

    /// So that layers above do what they would over such a network. Each of the others gets a frame
    /// to all of them or not, by a chance of its own.
    fn multicasts(&self) -> bool {
        true
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        send_one_by_one(self, to, parts)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.step(&mut lock(&self.fate));
        self.inner.poll(take)
    }

    fn park(&self, at_most: Duration) {
        let holds = !lock(&self.fate).held.is_empty();
        self.inner.park(match holds {
            true => at_most.min(WHILE_HELD),
            false => at_most,
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::Local;

    /// Has room for so many frames.
    struct Room(Local, AtomicU32);

    impl Layer for Room {
        type Inner = Local;

        fn inner(&self) -> &Local {
            &self.0
        }

        fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
            let room = self.1.load(Ordering::SeqCst);
            let left = room.checked_sub(1).ok_or(SendError::Busy { to })?;
            self.1.store(left, Ordering::SeqCst);
            Port::send_with(&self.0, to, parts, notify)
        }
    }

    #[test]
    fn what_is_sent_once_and_finds_no_room_the_second_time_was_sent() {
        let to = NodeId(0);
        for (room, comes, sent) in [
            (0, 0, Err(SendError::Busy { to })),
            (1, 1, Ok(())),
            (2, 2, Ok(())),
        ] {
            let mut ports = Local::cluster(2).expect("a doorbell");
            let (port, receiver) = (ports.remove(1), ports.remove(0));
            let chances = Chances {
                drop: 0,
                duplicate: 1_000,
                delay: 0,
                latest: 1,
            };
            let lossy = Lossy::new(Room(port, AtomicU32::new(room)), 0, chances);
            assert_eq!(Port::send(&lossy, to, &[b"frame"]), sent);
            assert_eq!(receiver.poll(&mut |_, _| ()), comes);
        }
    }
}
