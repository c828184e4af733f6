//! Every frame once and in order, over a port that promises neither (Orca 2.3.4: what the network
//! does not offer, Panda supplies).

mod datagram;
#[cfg(all(feature = "processes", not(loom)))]
pub(crate) mod decoders;
mod flow;
mod pace;
mod planted;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};

use self::datagram::{Datagram, OVERHEAD, parse, shared_head, shared_overhead};
use self::flow::{Flow, FlowLimits, RESET};
use crate::peers::{CLOSING_NAP, Peers};
use crate::port::send_one_by_one;
use crate::{LARGEST_FRAME, Loss, Offers, Owed, Port, SendError};

/// Between two tries where the port beneath had no room.
const NO_ROOM: Duration = Duration::from_millis(1);

/// Limits of what [`Reliable`] keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReliableLimits {
    /// The largest frame, in bytes; at most 1 GiB. All nodes must say the same.
    pub largest: usize,
    /// Bytes kept for each peer until they have come. One frame may exceed it.
    pub kept_back: usize,
    /// After how long a peer that answers nothing is lost. One that nothing is sent to is watched
    /// by [`FailureDetector`](crate::FailureDetector) alone.
    pub patience: Duration,
}

impl Default for ReliableLimits {
    fn default() -> Self {
        ReliableLimits {
            largest: LARGEST_FRAME,
            kept_back: 1 << 20,
            patience: Duration::from_secs(5),
        }
    }
}

/// A reliable and ordered port over an unreliable one: fragments are numbered, acknowledged one by
/// one, sent again when they were overtaken or time is up, and no faster than they come through.
pub struct Reliable<P> {
    inner: P,
    peers: Peers,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    flows: Vec<Mutex<Flow>>,
    /// From whom a datagram has come since somebody asked.
    heard: Vec<AtomicBool>,
    /// The largest frame that goes to several at once, where the port beneath can.
    shares: Option<usize>,
    /// Threads that are parked until what was to be done when they parked.
    parked: AtomicUsize,
    polling: Mutex<Polling>,
}

/// Frames that are whole and were not taken.
#[derive(Default)]
struct Polling {
    ready: VecDeque<(NodeId, Vec<u8>)>,
}

/// The largest frame that fits beside its numbers into one datagram to all. A datagram that is
/// mostly numbers is worth little.
fn shares(port: &dyn Port) -> Option<usize> {
    let (largest, overhead) = (port.offers().largest, shared_overhead(port.nodes()));
    (port.multicasts() && 2 * overhead <= largest)
        .then(|| (largest - overhead).min(largest.saturating_sub(OVERHEAD)))
}

impl<P: Port> Reliable<P> {
    /// Makes `inner` reliable, by this machine's clock.
    pub fn new(inner: P, limits: ReliableLimits) -> Self {
        let begun = Instant::now();
        Reliable::with_clock(inner, limits, move || begun.elapsed())
    }

    /// The same by another clock, which never goes back.
    pub fn with_clock(
        inner: P,
        limits: ReliableLimits,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let largest = limits.largest.min(1 << 30);
        let limits = FlowLimits {
            largest,
            datagram: inner.offers().largest,
            kept_back: limits.kept_back,
            patience: limits.patience,
        };
        let flow = |_| Mutex::new(Flow::new(limits));
        Reliable {
            peers: Peers::new(inner.me(), inner.nodes(), largest),
            flows: (0..inner.nodes()).map(flow).collect(),
            heard: (0..inner.nodes()).map(|_| AtomicBool::new(false)).collect(),
            clock: Box::new(clock),
            shares: shares(&inner),
            parked: AtomicUsize::new(0),
            polling: Mutex::default(),
            inner,
        }
    }

    /// The port beneath.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    fn transmit(&self, now: Duration, peer: NodeId, flow: &mut Flow) {
        flow.transmit(now, &mut |parts| self.inner.send(peer, parts).is_ok());
    }

    /// After a flow that may have had nothing under way has something: a parked thread does not
    /// know when it is to be sent again.
    fn unpark_parked(&self, was_done: bool) {
        if was_done && self.parked.load(Ordering::SeqCst) > 0 {
            self.inner.unpark();
        }
    }

    fn living(&self) -> impl Iterator<Item = (NodeId, &Mutex<Flow>)> {
        let others = self.peers.others();
        others
            .filter(|&peer| self.peers.loss(peer).is_none())
            .map(|peer| (peer, &self.flows[peer.index()]))
    }

    /// What the port beneath lost is lost here.
    fn hear_of_losses(&self) {
        self.inner.lost(&mut |peer, loss| {
            self.peers.lose(peer, loss);
        });
    }

    /// Takes a datagram of `from`; frames that are whole go to `ready`.
    fn receive(
        &self,
        now: Duration,
        from: NodeId,
        datagram: &[u8],
        ready: &mut VecDeque<(NodeId, Vec<u8>)>,
    ) {
        self.heard[from.index()].store(true, Ordering::Relaxed);
        let mut frames = Vec::new();
        let mut flow = lock(&self.flows[from.index()]);
        let received = match parse(datagram) {
            Some(Datagram::Shared(numbers, bytes)) => match numbers.of(self.me().index()) {
                Some(number) => flow.receive_shared(now, number, bytes, &mut frames),
                None => Ok(()),
            },
            _ => flow.receive(now, datagram, &mut frames),
        };
        match self.peers.loss(from) {
            // It has left, and perhaps does not know that this is known here.
            Some(Loss::Left) => self.transmit(now, from, &mut flow),
            Some(_) if datagram != RESET => drop(self.inner.send(from, &[RESET])),
            Some(_) => {}
            None => {
                drop(flow);
                ready.extend(frames.into_iter().map(|frame| (from, frame)));
                if let Err(loss) = received {
                    self.give_up(from, loss);
                }
            }
        }
    }
}

impl<P: Port> Port for Reliable<P> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn me(&self) -> NodeId {
        self.inner.me()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: true,
            ordered: true,
            largest: self.peers.largest(),
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], _: Notify) -> Result<(), SendError> {
        let bytes = self.peers.admit(to, parts)?;
        let now = (self.clock)();
        let mut flow = lock(&self.flows[to.index()]);
        let was_done = flow.is_done();
        if !flow.frame(now, parts, bytes) {
            return Err(SendError::Busy { to });
        }
        self.transmit(now, to, &mut flow);
        drop(flow);
        self.unpark_parked(was_done);
        Ok(())
    }

    fn multicasts(&self) -> bool {
        self.shares.is_some()
    }

    /// A frame that is a datagram's goes to all in one, with its number in each flow: what is lost
    /// of it is missed, acknowledged and sent again as anything else.
    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if to.len() < 2 || self.shares.is_none_or(|most| bytes > most) {
            return send_one_by_one(self, to, parts);
        }
        let now = (self.clock)();
        // Whoever holds several flows takes them in this order, and everybody else holds one.
        to.sort_unstable();
        to.dedup();
        let mut numbers = vec![None; self.nodes()];
        let (mut flows, mut failed, mut were_done) = (Vec::new(), None, false);
        to.retain(|&peer| {
            let admitted = self.peers.admit(peer, parts);
            if let Err(error) = admitted {
                let lost = matches!(error, SendError::Lost { .. });
                failed = failed.take().or((!lost).then_some(error));
                return !lost;
            }
            let mut flow = lock(&self.flows[peer.index()]);
            let was_done = flow.is_done();
            if !flow.frame(now, parts, bytes) {
                failed.get_or_insert(SendError::Busy { to: peer });
                return true;
            }
            were_done |= was_done;
            numbers[peer.index()] = flow.alone();
            flows.push((peer, flow));
            false
        });
        let sharing = numbers.iter().flatten().count();
        let head = shared_head(&numbers);
        let datagram: Vec<&[u8]> = [&head[..]]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        let mut others = self.peers.others().collect();
        let shared = sharing > 1 && self.inner.send_each(&mut others, &datagram).is_ok();
        for (peer, mut flow) in flows {
            if shared && numbers[peer.index()].is_some() {
                flow.went(now);
            }
            self.transmit(now, peer, &mut flow);
        }
        self.unpark_parked(were_done);
        failed.map_or(Ok(()), Err)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut polling) = try_lock(&self.polling) else {
            return 0;
        };
        let ready = &mut polling.ready;
        let now = (self.clock)();
        let came = self
            .inner
            .poll(&mut |from, datagram| self.receive(now, from, datagram, ready));
        self.hear_of_losses();
        let mut frames = 0;
        while let Some((from, frame)) = ready.pop_front() {
            frames += 1;
            take(from, &frame);
        }
        // After `take`, whose answers may have carried what was owed.
        for (peer, flow) in self.living() {
            let mut flow = lock(flow);
            self.transmit(now, peer, &mut flow);
            // What may lie there unread is not held against anybody.
            let over = match came {
                0 => {
                    flow.look(now);
                    flow.is_over(now)
                }
                _ => flow.has_left(),
            };
            drop(flow);
            match over {
                // It has left by itself, and needs to hear nothing more.
                Some(Loss::Left) => drop(self.peers.lose(peer, Loss::Left)),
                Some(loss) => self.give_up(peer, loss),
                None => {}
            }
        }
        frames
    }

    fn park(&self, at_most: Duration) {
        // Before the flows are asked: a thread that sends later knows of this park.
        self.parked.fetch_add(1, Ordering::SeqCst);
        let now = (self.clock)();
        let due = |(_, flow): (NodeId, &Mutex<Flow>)| lock(flow).wake_at(now);
        let wake_at = self.living().filter_map(due).min();
        let left = wake_at.map_or(at_most, |at| at.saturating_sub(now).max(NO_ROOM));
        self.inner.park(at_most.min(left));
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    fn unpark(&self) {
        self.inner.unpark();
    }

    fn owe(&self, owed: Owed) {
        self.inner.owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.inner.lost_doorbells()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        if self.peers.lose(peer, loss) {
            // It may be lost; then the next that it sends is answered by the same.
            let _ = self.inner.send(peer, &[RESET]);
        }
    }

    fn flush(&self) {
        let now = (self.clock)();
        for (peer, flow) in self.living() {
            self.transmit(now, peer, &mut lock(flow));
        }
    }

    /// A datagram of a peer is from itself, also one that only acknowledges.
    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        for (peer, _) in self.living() {
            if self.heard[peer.index()].swap(false, Ordering::Relaxed) {
                tell(peer);
            }
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.hear_of_losses();
        self.peers.tell(tell);
    }

    fn close(&self, at_most: Duration) {
        self.peers.close();
        let begun = (self.clock)();
        for (_, flow) in self.living() {
            lock(flow).goodbye(begun);
        }
        loop {
            self.poll(&mut |_, _| ());
            let has_parted = |(_, flow): (NodeId, &Mutex<Flow>)| lock(flow).has_parted();
            if self.living().all(has_parted) {
                break;
            }
            let left = at_most.saturating_sub((self.clock)().saturating_sub(begun));
            if left.is_zero() {
                break;
            }
            self.park(left.min(CLOSING_NAP));
        }
        for peer in self.peers.others() {
            if self.peers.loss(peer) == Some(&Loss::Left) {
                let flow = lock(&self.flows[peer.index()]);
                flow.farewell(&mut |parts| self.inner.send(peer, parts).is_ok());
            }
        }
        self.inner.close(Duration::ZERO);
    }
}
