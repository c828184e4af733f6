use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};

use crate::{Incoming, Layer, Loss, Offers, Port, SendError};

/// Within a bound there are so many heartbeats.
const BEATS: u32 = 8;
/// Time between two looks that counts as silence is at most this part of the bound. Who did not
/// look for longer, because it was stopped or computed, has not heard the silence.
const COUNTED: u32 = 4;
/// Polls between two looks at the clock.
const POLLS: u32 = 64;
/// Frames of nothing but this byte are one longer on the way than they were, so that the empty
/// frame is free to be the heartbeat.
const STUFFING: u8 = 0xe5;

/// A port on which a peer that is silent for too long is lost, over any reliable port.
///
/// A heartbeat goes to each peer that was sent nothing else for an eighth of the bound. It is
/// sent, and silence noticed, by whoever polls or parks: some thread must do so all the time, or
/// the node is silent itself.
pub struct FailureDetector<P> {
    inner: P,
    bound: Duration,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    peers: Vec<Peer>,
    times: Mutex<Times>,
    polls: AtomicU32,
    /// Somebody polled since the last look at the clock: what is not read is not held against
    /// anybody.
    polled: AtomicBool,
    #[cfg(not(loom))]
    launcher: Option<std::sync::Arc<crate::launcher::Launcher>>,
    /// The launcher was told that the program here has failed, or that its run is over.
    #[cfg(not(loom))]
    told: AtomicBool,
    /// This end was closed: that the others end their sides is no loss.
    closed: AtomicBool,
}

/// What happened with a peer since the last look at the clock.
#[derive(Default)]
struct Peer {
    heard: AtomicBool,
    told: AtomicBool,
}

struct Times {
    looked: Duration,
    each: Vec<Silence>,
}

/// How long nothing was heard of a peer, and nothing told it.
#[derive(Default, Clone, Copy)]
struct Silence {
    theirs: Duration,
    ours: Duration,
}

impl<P: Port> FailureDetector<P> {
    /// The bound of silence unless something else is said.
    pub const BOUND: Duration = Duration::from_secs(5);

    /// Watches the peers of `inner` by this machine's clock.
    pub fn new(inner: P, bound: Duration) -> Self {
        let begun = Instant::now();
        FailureDetector::with_clock(inner, bound, move || begun.elapsed())
    }

    /// The same by another clock, which never goes back.
    pub fn with_clock(
        inner: P,
        bound: Duration,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let nodes = inner.nodes();
        FailureDetector {
            bound,
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            times: Mutex::new(Times {
                looked: clock(),
                each: vec![Silence::default(); nodes],
            }),
            clock: Box::new(clock),
            polls: AtomicU32::new(0),
            polled: AtomicBool::new(false),
            #[cfg(not(loom))]
            launcher: None,
            #[cfg(not(loom))]
            told: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            inner,
        }
    }

    /// Tells the launcher, too, who is lost.
    #[cfg(all(feature = "processes", not(loom)))]
    #[doc(hidden)]
    pub fn telling(mut self, launcher: Option<std::sync::Arc<crate::launcher::Launcher>>) -> Self {
        self.launcher = launcher;
        self
    }

    /// Sends the heartbeats that are due, and gives up the peers that were silent for too long.
    /// Polling and parking do this by themselves.
    pub fn tick(&self, now: Duration) {
        if let Some(times) = try_lock(&self.times) {
            self.look(times, now);
        }
    }

    /// Why a peer was silent, if the launcher knows it.
    #[cfg(not(loom))]
    fn explained(&self, peer: NodeId, loss: Loss) -> Loss {
        let Loss::Silent(silent) = loss else {
            return loss;
        };
        let launcher = self.launcher.as_ref();
        match launcher.and_then(|it| it.stopped(Some(peer))) {
            Some((_, how)) => Loss::Stopped { silent, how },
            None => loss,
        }
    }

    fn park_by(&self, at_most: Duration, park: impl FnOnce(Duration)) {
        self.tick((self.clock)());
        park(at_most.min(self.bound / BEATS));
        // What has come is read before its absence is held against anybody.
        self.polls.store(POLLS - 2, Ordering::Relaxed);
    }

    fn look(&self, mut times: MutexGuard<'_, Times>, now: Duration) {
        // A frame that is long on its way is heard by its bytes.
        self.inner.heard(&mut |peer| {
            self.peers[peer.index()]
                .heard
                .store(true, Ordering::Relaxed)
        });
        let passed = now.saturating_sub(times.looked);
        // Who looked before another and comes after it counts nothing twice.
        times.looked = times.looked.max(now);
        let listened = match self.polled.swap(false, Ordering::Relaxed) {
            true => passed.min(self.bound / COUNTED),
            false => Duration::ZERO,
        };
        let me = self.inner.me().index();
        for (node, peer) in self
            .peers
            .iter()
            .enumerate()
            .filter(|&(node, _)| node != me)
        {
            let (silence, node) = (&mut times.each[node], NodeId::at(node));
            silence.theirs = match peer.heard.swap(false, Ordering::Relaxed) {
                true => Duration::ZERO,
                false => silence.theirs + listened,
            };
            if silence.theirs > self.bound {
                self.inner.give_up(node, Loss::Silent(self.bound));
                continue;
            }
            silence.ours = match peer.told.swap(false, Ordering::Relaxed) {
                true => Duration::ZERO,
                false => silence.ours + passed,
            };
            // Where there is no room, the peer has things to read that it has not read.
            if silence.ours >= self.bound / BEATS && self.inner.send(node, &[]).is_ok() {
                silence.ours = Duration::ZERO;
            }
        }
    }
}

/// Whether these bytes are nothing but stuffing, however many.
fn is_stuffing<'a>(mut bytes: impl Iterator<Item = &'a u8>) -> bool {
    bytes.all(|&byte| byte == STUFFING)
}

impl<P: Port> Layer for FailureDetector<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.inner
    }

    fn offers(&self) -> Offers {
        let inner = self.inner.offers();
        Offers {
            largest: inner.largest - 1,
            ..inner
        }
    }

    /// Sends a frame, stuffed where it could be taken for a heartbeat.
    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let largest = Layer::offers(self).largest;
        if bytes > largest {
            return Err(SendError::TooLarge { to, bytes, largest });
        }
        if is_stuffing(parts.iter().copied().flatten()) {
            let stuffed = vec![STUFFING; bytes + 1];
            self.inner.send_with(to, &[&stuffed], notify)?;
        } else {
            self.inner.send_with(to, parts, notify)?;
        }
        let told = &self.peers[to.index()].told;
        if !told.load(Ordering::Relaxed) {
            told.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let largest = Layer::offers(self).largest;
        if let Some(&to) = to.first().filter(|_| bytes > largest) {
            return Err(SendError::TooLarge { to, bytes, largest });
        }
        let all = to.clone();
        let sent = match is_stuffing(parts.iter().copied().flatten()) {
            true => self.inner.send_each(to, &[&vec![STUFFING; bytes + 1]]),
            false => self.inner.send_each(to, parts),
        };
        for peer in all.iter().filter(|peer| !to.contains(peer)) {
            self.peers[peer.index()].told.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        Layer::poll_in_place(self, &mut |from, mut frame| take(from, frame.bytes()))
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        let mut heartbeats = 0;
        let frames = self.inner.poll_in_place(&mut |from, mut frame| {
            let heard = &self.peers[from.index()].heard;
            if !heard.load(Ordering::Relaxed) {
                heard.store(true, Ordering::Relaxed);
            }
            let begins = frame.first(1).first();
            match begins.copied() {
                None => heartbeats += 1,
                Some(STUFFING) if is_stuffing(frame.bytes().iter()) => {
                    take(from, Incoming::of(&frame.bytes()[1..]));
                }
                Some(_) => take(from, frame),
            }
        });
        self.polled.store(true, Ordering::Relaxed);
        let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        if polls.is_multiple_of(POLLS) {
            self.tick((self.clock)());
        }
        frames - heartbeats
    }

    fn can_peek(&self) -> bool {
        self.inner.can_peek()
    }

    fn park(&self, at_most: Duration) {
        self.park_by(at_most, |at_most| self.inner.park(at_most));
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        self.park_by(at_most, |at_most| self.inner.park_coarse(at_most, looks));
    }

    fn beat(&self) -> Duration {
        // Where nobody polls, the rest of a long frame goes on its way here, and is heard.
        self.inner.flush();
        let times = lock(&self.times);
        self.look(times, (self.clock)());
        self.bound / BEATS
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.inner.lost(&mut |peer, loss| {
            #[cfg(not(loom))]
            let loss = self.explained(peer, loss);
            #[cfg(not(loom))]
            if loss != Loss::Left {
                Layer::missed(self, peer, &loss.to_string());
            }
            tell(peer, loss);
        });
    }

    #[cfg(not(loom))]
    fn missed(&self, peer: NodeId, how: &str) {
        let launcher = self.launcher.as_ref();
        if let Some(launcher) = launcher.filter(|_| !self.closed.load(Ordering::Relaxed)) {
            launcher.lost(peer, how);
        }
    }

    #[cfg(not(loom))]
    fn failed(&self, how: &str) {
        // What fails afterwards may follow from the first failure.
        if let Some(launcher) = &self.launcher
            && !self.told.swap(true, Ordering::Relaxed)
        {
            launcher.failed(how);
        }
    }

    #[cfg(not(loom))]
    fn exits(&self, code: u8) {
        if let Some(launcher) = &self.launcher {
            launcher.exits(code);
        }
    }

    #[cfg(not(loom))]
    fn ends(&self) {
        if let Some(launcher) = &self.launcher {
            launcher.over();
            self.told.store(true, Ordering::Relaxed);
        }
    }

    #[cfg(not(loom))]
    fn begins(&self, survives: bool) {
        let Some(launcher) = &self.launcher else {
            return;
        };
        if self.told.swap(false, Ordering::Relaxed) {
            launcher.goes_on();
        }
        if survives {
            launcher.survives();
        }
    }

    fn close(&self, at_most: Duration) {
        self.closed.store(true, Ordering::Relaxed);
        self.inner.close(at_most);
    }
}
