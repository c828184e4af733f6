//! What comes from other processes: messages, losses, what begins and ends runs. Whoever sends what
//! no sound process sends is cut off: nothing more of it is listened to, and it is lost to the run.
//!
//! What comes is *collected* first, which takes a moment, and then *delivered*, in its order and by
//! one thread at a time, which takes as long as the node takes: it may be in a call of the program,
//! or execute an operation. Meanwhile others can go on to collect.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::NodeId;
use dhole_net::{Envelope, Loss, Outbox, Payload};
use dhole_protocol::{AbortReason, Message};

use super::frame::{Frame, Kind};
use super::{Processes, lock};
use crate::machine::{LostNode, Receivers};

/// Bytes of messages that are kept of each peer that is in the next run already.
const MOST_EARLY: usize = 64 << 20;

/// With so many bytes to deliver nothing more is collected.
const MOST_COLLECTED: usize = 64 << 20;

/// What a message counts beside its bytes.
const EACH: usize = 128;

/// The largest payload that is put together.
const MOST_PAYLOAD: usize = 4 << 30;

/// Where what comes is put that cannot be given to the node at once.
pub(super) struct Desk {
    peers: Box<[Peer]>,
    /// The node is ready for messages.
    ready: AtomicBool,
    early: Mutex<Early>,
    /// What is collected, in the order in which it came.
    collected: Mutex<VecDeque<Envelope<Message>>>,
    /// What that counts.
    waits: AtomicUsize,
    /// Whoever delivers has this.
    delivering: Mutex<()>,
    /// Who was cut off since losses were last looked at, and why.
    cut_off: Mutex<Vec<(NodeId, String)>>,
}

/// Frames of messages that came before this process was ready for them, in order.
#[derive(Default)]
struct Early {
    frames: Vec<(NodeId, Vec<u8>)>,
    /// What they count, by sender.
    bytes: Vec<usize>,
}

#[derive(Default)]
struct Peer {
    /// Nothing that it sends is listened to.
    cut_off: AtomicBool,
    /// The payload of its next message, as far as it has come.
    payload: Mutex<Vec<u8>>,
}

fn counts(envelope: &Envelope<Message>) -> usize {
    EACH + envelope.payload.len()
}

impl Desk {
    pub fn new(nodes: usize) -> Desk {
        Desk {
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            ready: AtomicBool::new(false),
            early: Mutex::new(Early {
                bytes: vec![0; nodes],
                ..Early::default()
            }),
            collected: Mutex::default(),
            waits: AtomicUsize::new(0),
            delivering: Mutex::default(),
            cut_off: Mutex::default(),
        }
    }

    /// A run begins or is over: nothing of the one before is left, and its node is gone.
    pub fn clear(&self) {
        self.ready.store(false, Ordering::SeqCst);
        lock(&self.collected).clear();
        self.waits.store(0, Ordering::SeqCst);
        for peer in &self.peers {
            *lock(&peer.payload) = Vec::new();
        }
    }

    fn put(&self, envelope: Envelope<Message>) {
        let counts = counts(&envelope);
        lock(&self.collected).push_back(envelope);
        self.waits.fetch_add(counts, Ordering::SeqCst);
    }

    fn next(&self) -> Option<Envelope<Message>> {
        let envelope = lock(&self.collected).pop_front()?;
        self.waits.fetch_sub(counts(&envelope), Ordering::SeqCst);
        Some(envelope)
    }
}

impl Processes {
    pub(super) fn cluster(&self) -> Option<Arc<Cluster>> {
        let here = self.here.read().unwrap_or_else(PoisonError::into_inner);
        here.as_ref().map(|here| Arc::clone(&here.cluster))
    }

    /// Takes what has come, and returns how much that was. What it leads to goes to `out`.
    pub(super) fn poll(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) -> usize {
        let mut taken = self.collect();
        let cut_off = std::mem::take(&mut *lock(&self.desk.cut_off));
        for (node, why) in cut_off {
            taken += 1;
            let how = format!("it was cut off by {}, for it sent {why}", self.me);
            self.lose(receivers, node, &how, out);
            // Nobody is told why while the run is parted from, and the others wait for the peer.
            if lock(&self.table).is_parting() {
                self.give_up_cut_off();
            }
        }
        self.port.lost(&mut |node, loss| {
            taken += 1;
            self.lose(receivers, node, &loss.to_string(), out);
        });
        taken + self.deliver(receivers, out)
    }

    /// Takes what has come from the port, and returns how many frames that were.
    fn collect(&self) -> usize {
        if self.desk.waits.load(Ordering::SeqCst) > MOST_COLLECTED {
            return 0;
        }
        self.port.poll(&mut |from, frame| {
            if let Err(why) = self.take(from, frame) {
                self.cut_off(from, why);
            }
        })
    }

    /// Gives what was collected to the node, and returns how many messages that were: none while
    /// another thread does so, which will find what was collected meanwhile.
    fn deliver(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) -> usize {
        let mut delivered = 0;
        while self.desk.waits.load(Ordering::SeqCst) > 0 {
            let _alone = match self.desk.delivering.try_lock() {
                Ok(alone) => alone,
                Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
                Err(TryLockError::WouldBlock) => break,
            };
            while let Some(envelope) = self.desk.next() {
                self.hand_over(receivers, envelope, out);
                delivered += 1;
            }
        }
        delivered
    }

    /// Does what is due by time alone, for a thread that does so however long the others are stuck
    /// in the node or in the program; how long it may take until it does so again.
    pub fn attend(&self) -> Duration {
        let due = self.port.beat();
        let stuck = matches!(
            self.desk.delivering.try_lock(),
            Err(TryLockError::WouldBlock)
        );
        if stuck && self.collect() > 0 {
            // Whoever was stuck may have looked for the last time before.
            self.port.unpark();
        }
        due
    }

    /// Takes the messages that came before the node was ready for them, and hears of the peers
    /// that were lost before.
    pub(super) fn take_early(&self, receivers: &Receivers<'_>) {
        let mut out = Outbox::default();
        self.desk.ready.store(true, Ordering::SeqCst);
        let early = {
            let mut early = lock(&self.desk.early);
            early.bytes.fill(0);
            std::mem::take(&mut early.frames)
        };
        for (from, frame) in early {
            if let Err(why) = self.take(from, &frame) {
                self.cut_off(from, why);
            }
        }
        let lost: Vec<LostNode> = lock(&self.table).lost().cloned().collect();
        for LostNode { node, how } in lost {
            self.tell_of_loss(receivers, node, &how, &mut out);
        }
        self.deliver(receivers, &mut out);
        self.post_all(receivers, &mut out);
    }

    /// Takes one frame; why it is one that no sound process sends.
    fn take(&self, from: NodeId, bytes: &[u8]) -> Result<(), String> {
        let peer = &self.desk.peers[from.index()];
        if peer.cut_off.load(Ordering::Relaxed) {
            return Ok(());
        }
        let frame = Frame::parse(bytes).map_err(|error| error.to_string())?;
        let (run, kind) = (self.run(), frame.header.kind);
        if !matches!(kind, Kind::Message | Kind::Payload) {
            let of = (run, self.survives());
            return lock(&self.table).put(self.me, from, of, frame);
        }
        let ready = self.desk.ready.load(Ordering::SeqCst);
        match frame.header.run {
            its if its < run => Ok(()),
            its if its > run + 1 => Err(format!("a message of run {its} in run {run}")),
            its if its > run || !ready => self.keep_early(from, bytes),
            _ if kind == Kind::Payload => {
                let mut payload = lock(&peer.payload);
                if payload.len() + frame.payload.len() > MOST_PAYLOAD {
                    return Err(format!("a payload of more than {MOST_PAYLOAD} bytes"));
                }
                payload.extend_from_slice(frame.payload);
                Ok(())
            }
            _ => self.take_message(from, frame),
        }
    }

    fn take_message(&self, from: NodeId, frame: Frame<'_>) -> Result<(), String> {
        let here = self.here.read().unwrap_or_else(PoisonError::into_inner);
        let Some(here) = &*here else { return Ok(()) };
        let learnt = here.cluster.learn(from, frame.told);
        learnt.map_err(|error| error.to_string())?;
        if frame.message.is_empty() {
            return Ok(());
        }
        let body = Message::decode(frame.message).map_err(|error| error.to_string())?;
        if let Message::Abort {
            node,
            reason: AbortReason::Lost(how),
        } = &body
            && *node != self.me
            && node.index() < self.nodes
            && !self.survives()
        {
            lock(&self.table).lose(*node, how);
        }
        let mut payload = here.pool.take();
        let begun = &self.desk.peers[from.index()].payload;
        let mut begun = lock(begun);
        if !begun.is_empty() {
            payload.extend(&begun);
            *begun = Vec::new();
        }
        drop(begun);
        payload.extend(frame.payload);
        let to = self.me;
        self.desk.put(Envelope {
            from,
            to,
            body,
            payload,
        });
        Ok(())
    }

    /// Keeps a message until the node is ready for it.
    fn keep_early(&self, from: NodeId, bytes: &[u8]) -> Result<(), String> {
        if lock(&self.table).is_parting() {
            return Ok(());
        }
        let mut early = lock(&self.desk.early);
        let kept = &mut early.bytes[from.index()];
        if *kept + EACH + bytes.len() > MOST_EARLY {
            return Err(format!(
                "more than {MOST_EARLY} bytes before the run has begun"
            ));
        }
        *kept += EACH + bytes.len();
        early.frames.push((from, bytes.to_vec()));
        Ok(())
    }

    /// Listens to a peer no longer.
    fn cut_off(&self, node: NodeId, why: String) {
        let peer = &self.desk.peers[node.index()];
        peer.cut_off.store(true, Ordering::Relaxed);
        *lock(&peer.payload) = Vec::new();
        lock(&self.desk.cut_off).push((node, why));
    }

    /// Ends the connections to those that were cut off, now that they have heard why.
    pub(super) fn give_up_cut_off(&self) {
        for node in self.others() {
            if self.desk.peers[node.index()]
                .cut_off
                .load(Ordering::Relaxed)
            {
                let loss = Loss::CutOff("what no sound process sends".into());
                self.port.give_up(node, loss);
            }
        }
    }

    /// A peer is lost: the run is over, unless it is for the peer.
    fn lose(&self, receivers: &Receivers<'_>, node: NodeId, how: &str, out: &mut Outbox<Message>) {
        let mut table = lock(&self.table);
        let (first, parting) = (table.lose(node, how), table.is_parting());
        drop(table);
        // A run that survives needs the group to its end, and that is when all have ended.
        if first && (!parting || self.survives()) {
            self.tell_of_loss(receivers, node, how, out);
        }
    }

    /// Ends the run for all, or tells the node here alone where it goes on, after all that the
    /// lost one has said.
    fn tell_of_loss(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        how: &str,
        out: &mut Outbox<Message>,
    ) {
        let reason = AbortReason::Lost(how.into());
        if !self.survives() {
            return self.end_for_all(receivers, node, &reason, out);
        }
        let (from, to) = (self.me, self.me);
        let body = Message::Abort { node, reason };
        let payload = Payload::NONE;
        let envelope = Envelope {
            from,
            to,
            body,
            payload,
        };
        self.desk.put(envelope);
    }
}
