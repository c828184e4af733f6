use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

use crate::{Loss, SendError};

/// How long who closes a port sleeps at most: another thread may take what it would wake up for.
pub const CLOSING_NAP: Duration = Duration::from_millis(1);

/// What every port keeps of the nodes at the other ends: who is lost, and who was told of it.
pub struct Peers {
    me: NodeId,
    largest: usize,
    lost: Vec<OnceLock<Loss>>,
    untold: Mutex<Vec<NodeId>>,
    any_untold: AtomicBool,
    /// This end was closed.
    closed: AtomicBool,
}

impl Peers {
    pub fn new(me: NodeId, nodes: usize, largest: usize) -> Self {
        Peers {
            me,
            largest,
            lost: (0..nodes).map(|_| OnceLock::new()).collect(),
            untold: Mutex::default(),
            any_untold: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub fn me(&self) -> NodeId {
        self.me
    }

    pub fn nodes(&self) -> usize {
        self.lost.len()
    }

    /// The largest frame.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// All nodes but this one.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me;
        (0..self.nodes()).map(NodeId::at).filter(move |&n| n != me)
    }

    /// Whether a frame that is not too large may be sent to `to`, which is another node.
    #[inline]
    pub fn may_send(&self, to: NodeId) -> bool {
        self.loss(to).is_none() && !self.closed.load(Ordering::Relaxed)
    }

    /// The frame's bytes, when a frame of `parts` may be sent to `to`.
    pub fn admit(&self, to: NodeId, parts: &[&[u8]]) -> Result<usize, SendError> {
        let nodes = self.nodes();
        let lost = match self.lost.get(to.index()) {
            Some(lost) if to != self.me => lost,
            Some(_) => return Err(SendError::ToItself { node: to }),
            None => return Err(SendError::NoSuchNode { to, nodes }),
        };
        if let Some(loss) = lost.get() {
            return Err(SendError::Lost {
                to,
                loss: loss.clone(),
            });
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(SendError::Closed { to });
        }
        let bytes = parts.iter().map(|part| part.len()).sum();
        if bytes > self.largest {
            return Err(SendError::TooLarge {
                to,
                bytes,
                largest: self.largest,
            });
        }
        Ok(bytes)
    }

    /// From now on nothing is sent; whether that is new.
    pub fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::Relaxed)
    }

    /// Notes that `peer` is lost, and whether it was not before: only the first reason counts.
    pub fn lose(&self, peer: NodeId, loss: Loss) -> bool {
        let other = self.lost.get(peer.index()).filter(|_| peer != self.me);
        let first = other.is_some_and(|lost| lost.set(loss).is_ok());
        if first {
            lock(&self.untold).push(peer);
            self.any_untold.store(true, Ordering::Release);
        }
        first
    }

    /// What leads to each peer that is not lost: `links[n]` is node `n`'s.
    pub fn living<'a, L>(
        &'a self,
        links: &'a [Option<L>],
    ) -> impl Iterator<Item = (NodeId, &'a L)> {
        let links = links.iter().enumerate();
        links
            .filter_map(|(node, link)| Some((NodeId::at(node), link.as_ref()?)))
            .filter(|&(node, _)| self.loss(node).is_none())
    }

    /// Why `peer` is lost, if it is.
    #[inline]
    pub fn loss(&self, peer: NodeId) -> Option<&Loss> {
        self.lost[peer.index()].get()
    }

    /// Tells each peer that was lost since the last call, once.
    pub fn tell(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        if !self.any_untold.load(Ordering::Relaxed)
            || !self.any_untold.swap(false, Ordering::AcqRel)
        {
            return;
        }
        let untold = std::mem::take(&mut *lock(&self.untold));
        for peer in untold {
            if let Some(loss) = self.loss(peer) {
                tell(peer, loss.clone());
            }
        }
    }
}
