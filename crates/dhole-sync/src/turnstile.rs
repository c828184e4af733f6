//! Locks and permits that are kept at their manager.

use std::collections::{BTreeSet, VecDeque};

use dhole_model::NodeId;

/// How a request passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As one of the readers.
    Read,
    /// As the only one.
    Write,
    /// With a permit.
    Permit,
}

/// Someone who wants to pass.
pub trait Request {
    /// The node.
    fn node(&self) -> NodeId;

    /// How it passes.
    fn mode(&self) -> Mode;
}

/// A read-write lock or a number of permits, at its manager. Requests pass in the order in which
/// they come; readers that follow on each other pass together. So neither a writer nor a reader
/// starves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Turnstile<R> {
    readers: BTreeSet<NodeId>,
    writer: Option<NodeId>,
    /// So many there are.
    pub permits: u64,
    queue: VecDeque<R>,
}

impl<R> Default for Turnstile<R> {
    fn default() -> Turnstile<R> {
        Turnstile {
            readers: BTreeSet::new(),
            writer: None,
            permits: 0,
            queue: VecDeque::new(),
        }
    }
}

impl<R: Request> Turnstile<R> {
    /// Those who want to pass, in their order.
    pub fn queue(&self) -> &VecDeque<R> {
        &self.queue
    }

    /// Someone wants to pass, behind all others.
    pub fn wants(&mut self, request: R) {
        self.queue.push_back(request);
    }

    /// Lets those pass who may.
    pub fn pass(&mut self) -> Vec<R> {
        let next = |kept: &Turnstile<R>| {
            let next = kept.queue.front().filter(|next| kept.admits(next))?;
            Some((next.mode(), next.node()))
        };
        let mut passed = Vec::new();
        while let Some((mode, node)) = next(self) {
            match mode {
                Mode::Read => drop(self.readers.insert(node)),
                Mode::Write => self.writer = Some(node),
                Mode::Permit => self.permits -= 1,
            }
            passed.extend(self.queue.pop_front());
        }
        passed
    }

    /// A node that asks again while it seems to hold the lock has released it: that message is
    /// on its way, and was overtaken.
    fn admits(&self, next: &R) -> bool {
        match next.mode() {
            Mode::Read => self.writer.is_none() && !self.readers.contains(&next.node()),
            Mode::Write => self.writer.is_none() && self.readers.is_empty(),
            Mode::Permit => self.permits > 0,
        }
    }

    /// Whether a node has passed so, and has not given that back. Permits are nobody's.
    pub fn holds(&self, mode: Mode, node: NodeId) -> bool {
        match mode {
            Mode::Read => self.readers.contains(&node),
            Mode::Write => self.writer == Some(node),
            Mode::Permit => true,
        }
    }

    /// A node gives back what it [holds](Turnstile::holds), or adds a permit.
    pub fn gives(&mut self, mode: Mode, node: NodeId) {
        match mode {
            Mode::Read => drop(self.readers.remove(&node)),
            Mode::Write => self.writer = None,
            Mode::Permit => self.permits += 1,
        }
    }

    /// Whether nobody has the lock.
    pub fn is_free(&self) -> bool {
        self.readers.is_empty() && self.writer.is_none()
    }

    /// Whether nobody has the lock, and nobody wants to pass.
    pub fn is_idle(&self) -> bool {
        self.is_free() && self.queue.is_empty()
    }

    /// Whether a node that wants to pass has to wait for others. A reader may wait for nobody but a
    /// message: one that admits it or asks, or its own earlier release.
    pub fn keeps_from(&self, node: NodeId) -> bool {
        let mut queue = self.queue.iter();
        let Some(place) = queue.position(|request| request.node() == node) else {
            return false;
        };
        let mut up_to = self.queue.iter().take(place + 1);
        up_to.any(|request| request.mode() == Mode::Write) || self.writer.is_some()
    }
}
