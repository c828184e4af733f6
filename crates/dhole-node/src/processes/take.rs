//! What comes from other processes: messages, losses, what begins and ends runs. Whoever sends what
//! no sound process sends is cut off: nothing more of it is listened to, and it is lost to the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dhole_heap::Cluster;
use dhole_model::NodeId;
use dhole_net::{Envelope, Loss, Outbox};
use dhole_protocol::{AbortReason, Message};

use super::frame::{Frame, Kind};
use super::{Processes, lock};
use crate::machine::{LostNode, Receivers};

/// Bytes of messages that are kept of each peer that is in the next run already.
const MOST_EARLY: usize = 64 << 20;

/// The largest payload that is put together.
const MOST_PAYLOAD: usize = 4 << 30;

/// Where what comes is put that cannot be given to the node at once.
pub(super) struct Desk {
    peers: Box<[Peer]>,
    /// Frames of messages that came before this process was ready for them, in order.
    early: Mutex<Vec<(NodeId, Vec<u8>)>>,
}

#[derive(Default)]
struct Peer {
    /// Nothing that it sends is listened to.
    cut_off: AtomicBool,
    /// The payload of its next message, as far as it has come.
    payload: Mutex<Vec<u8>>,
}

impl Desk {
    pub fn new(nodes: usize) -> Desk {
        Desk {
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            early: Mutex::default(),
        }
    }
}

impl Processes {
    pub(super) fn cluster(&self) -> Option<Arc<Cluster>> {
        let here = self.here.read().unwrap_or_else(PoisonError::into_inner);
        here.as_ref().map(|here| Arc::clone(&here.cluster))
    }

    /// Takes what has come, and returns how much that was. What it leads to goes to `out`.
    pub(super) fn poll(&self, receivers: &Receivers<'_>, out: &mut Outbox<Message>) -> usize {
        let taken = self.port.poll(&mut |from, frame| {
            if let Err(why) = self.take(receivers, from, frame, out) {
                self.cut_off(receivers, from, &why, out);
            }
        });
        let mut losses = 0;
        self.port.lost(&mut |node, loss| {
            losses += 1;
            self.lose(receivers, node, &loss.to_string(), out);
        });
        taken + losses
    }

    /// Takes the messages that came before the node was ready for them, and hears of the peers
    /// that were lost before.
    pub(super) fn take_early(&self, receivers: &Receivers<'_>) {
        let mut out = Outbox::default();
        let early = std::mem::take(&mut *lock(&self.desk.early));
        for (from, frame) in early {
            if let Err(why) = self.take(receivers, from, &frame, &mut out) {
                self.cut_off(receivers, from, &why, &mut out);
            }
        }
        let lost: Vec<LostNode> = lock(&self.table).lost().cloned().collect();
        for LostNode { node, how } in lost {
            self.end_for_all(receivers, node, &AbortReason::Lost(how.into()), &mut out);
        }
        self.post_all(receivers, &mut out);
    }

    /// Takes one frame; why it is one that no sound process sends.
    fn take(
        &self,
        receivers: &Receivers<'_>,
        from: NodeId,
        bytes: &[u8],
        out: &mut Outbox<Message>,
    ) -> Result<(), String> {
        let peer = &self.desk.peers[from.index()];
        if peer.cut_off.load(Ordering::Relaxed) {
            return Ok(());
        }
        let frame = Frame::parse(bytes).map_err(|error| error.to_string())?;
        let (run, kind) = (self.run(), frame.header.kind);
        if !matches!(kind, Kind::Message | Kind::Payload) {
            return lock(&self.table).put(self.me, from, run, frame);
        }
        match frame.header.run {
            its if its < run => Ok(()),
            its if its > run + 1 => Err(format!("a message of run {its} in run {run}")),
            its if its > run || receivers.is_empty() => self.keep_early(from, bytes),
            _ if kind == Kind::Payload => {
                let mut payload = lock(&peer.payload);
                if payload.len() + frame.payload.len() > MOST_PAYLOAD {
                    return Err(format!("a payload of more than {MOST_PAYLOAD} bytes"));
                }
                payload.extend_from_slice(frame.payload);
                Ok(())
            }
            _ => self.take_message(receivers, from, frame, out),
        }
    }

    fn take_message(
        &self,
        receivers: &Receivers<'_>,
        from: NodeId,
        frame: Frame<'_>,
        out: &mut Outbox<Message>,
    ) -> Result<(), String> {
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
        let envelope = Envelope {
            from,
            to,
            body,
            payload,
        };
        self.hand_over(receivers, envelope, out);
        Ok(())
    }

    /// Keeps a message until the node is ready for it.
    fn keep_early(&self, from: NodeId, bytes: &[u8]) -> Result<(), String> {
        if lock(&self.table).is_parting() {
            return Ok(());
        }
        let mut early = lock(&self.desk.early);
        let kept = early.iter().filter(|(node, _)| *node == from);
        let kept: usize = kept.map(|(_, frame)| frame.len()).sum();
        if kept + bytes.len() > MOST_EARLY {
            return Err(format!(
                "more than {MOST_EARLY} bytes before the run has begun"
            ));
        }
        early.push((from, bytes.to_vec()));
        Ok(())
    }

    /// Listens to a peer no longer.
    fn cut_off(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        why: &str,
        out: &mut Outbox<Message>,
    ) {
        let peer = &self.desk.peers[node.index()];
        peer.cut_off.store(true, Ordering::Relaxed);
        *lock(&peer.payload) = Vec::new();
        let how = format!("it was cut off by {}, for it sent {why}", self.me);
        self.lose(receivers, node, &how, out);
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
        if first && !parting {
            self.end_for_all(receivers, node, &AbortReason::Lost(how.into()), out);
        }
    }
}
