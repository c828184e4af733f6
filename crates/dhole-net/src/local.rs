use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhole_model::unpoisoned::{lock, try_lock};
use dhole_model::{NodeId, Notify};

use crate::doorbell::Doorbell;
use crate::peers::Peers;
use crate::{LARGEST_FRAME, Loss, Offers, Owed, Port, SendError};

/// Bytes on the way from one node to another; one frame may exceed it.
const ON_THE_WAY: usize = 1 << 20;
/// What a frame costs in the count beside its bytes, so that empty frames have a limit too.
const FRAME: usize = 64;

/// A port between nodes of one process: queues of copied frames. It is what the other ports are
/// compared with, and what tests of the layers above ports run on.
pub struct Local {
    room: Arc<Room>,
    peers: Peers,
    polling: Mutex<Vec<u8>>,
    /// Frames of a peer were taken since somebody asked.
    heard: Vec<AtomicBool>,
}

struct Room {
    nodes: usize,
    /// From node `f` to node `t`: `channels[f * nodes + t]`.
    channels: Vec<SendChannel>,
    doorbells: Vec<Doorbell>,
}

#[derive(Default)]
struct SendChannel {
    queue: Mutex<Queue>,
    /// A frame was refused for want of room.
    refused: AtomicBool,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    weight: usize,
    end: Option<Loss>,
}

impl Queue {
    fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.weight -= FRAME + frame.len();
        Some(frame)
    }

    /// How the sender ended, once all its frames are taken.
    fn ended(&self) -> Option<Loss> {
        self.end.clone().filter(|_| self.frames.is_empty())
    }
}

impl Room {
    fn channel(&self, from: NodeId, to: NodeId) -> &SendChannel {
        &self.channels[from.index() * self.nodes + to.index()]
    }
}

impl Local {
    /// The ports of a cluster of `nodes`, in the order of the nodes.
    ///
    /// # Errors
    /// What the kernel says when no descriptor is left.
    pub fn cluster(nodes: usize) -> io::Result<Vec<Local>> {
        let room = Arc::new(Room {
            nodes,
            channels: (0..nodes * nodes).map(|_| SendChannel::default()).collect(),
            doorbells: (0..nodes)
                .map(|_| Doorbell::new())
                .collect::<Result<_, _>>()?,
        });
        let port = |node| Local {
            room: room.clone(),
            peers: Peers::new(NodeId::at(node), nodes, LARGEST_FRAME),
            polling: Mutex::default(),
            heard: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
        };
        Ok((0..nodes).map(port).collect())
    }

    fn end(&self, peer: NodeId, loss: Loss) {
        let channel = self.room.channel(self.me(), peer);
        lock(&channel.queue).end.get_or_insert(loss);
        self.room.doorbells[peer.index()].ring();
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for peer in self.peers.others() {
            self.end(peer, Loss::Broken("its port is no more".into()));
        }
    }
}

impl Port for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn me(&self) -> NodeId {
        self.peers.me()
    }

    fn nodes(&self) -> usize {
        self.peers.nodes()
    }

    fn offers(&self) -> Offers {
        Offers {
            reliable: true,
            ordered: true,
            largest: LARGEST_FRAME,
        }
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], _: Notify) -> Result<(), SendError> {
        let weight = FRAME + self.peers.admit(to, parts)?;
        let channel = self.room.channel(self.me(), to);
        let mut queue = lock(&channel.queue);
        if !queue.frames.is_empty() && queue.weight + weight > ON_THE_WAY {
            channel.refused.store(true, Ordering::Relaxed);
            return Err(SendError::Busy { to });
        }
        queue.frames.push_back(parts.concat());
        queue.weight += weight;
        drop(queue);
        self.room.doorbells[to.index()].ring();
        Ok(())
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let Some(mut frame) = try_lock(&self.polling) else {
            return 0;
        };
        let mut frames = 0;
        for peer in self.peers.others() {
            if self.peers.loss(peer).is_some() {
                continue;
            }
            let channel = self.room.channel(peer, self.me());
            // No more than were there when it began: what `take` sends may bring answers.
            let waiting = lock(&channel.queue).frames.len();
            for _ in 0..waiting {
                let Some(next) = lock(&channel.queue).pop() else {
                    break;
                };
                if channel.refused.swap(false, Ordering::Relaxed) {
                    self.room.doorbells[peer.index()].ring();
                }
                *frame = next;
                frames += 1;
                self.heard[peer.index()].store(true, Ordering::Relaxed);
                take(peer, &frame);
            }
            if let Some(end) = lock(&channel.queue).ended() {
                self.peers.lose(peer, end);
            }
        }
        frames
    }

    fn park(&self, at_most: Duration) {
        let me = self.me();
        let has_come = || {
            let mut all = self.peers.others();
            all.any(|peer| !lock(&self.room.channel(peer, me).queue).frames.is_empty())
        };
        self.room.doorbells[me.index()].wait([], at_most, has_come);
    }

    fn unpark(&self) {
        self.room.doorbells[self.me().index()].ring();
    }

    fn owe(&self, owed: Owed) {
        self.room.doorbells[self.me().index()].owe(owed);
    }

    fn lost_doorbells(&self) -> u64 {
        self.room.doorbells[self.me().index()].lost()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        if self.peers.lose(peer, loss) {
            self.end(peer, Loss::Broken("it gave this node up".into()));
        }
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        for peer in self.peers.others() {
            if self.heard[peer.index()].swap(false, Ordering::Relaxed) {
                tell(peer);
            }
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.peers.tell(tell);
    }

    fn close(&self, _at_most: Duration) {
        self.peers.close();
        for peer in self.peers.others() {
            self.end(peer, Loss::Left);
        }
    }
}
