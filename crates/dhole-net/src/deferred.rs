//! Notifications that a node owes others, for messages that it sent lazily although their receivers
//! must act on them: it gives them before it waits for long.
//!
//! The worker defers and settles. The thread that serves beside it may defer too, and learns
//! whether the worker has settled already; then it notifies by itself.

#[cfg(all(test, loom))]
mod model;

use dhole_model::NodeId;

use crate::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Notifications that a node owes to others.
///
/// ```
/// use dhole_model::NodeId;
/// use dhole_net::Deferred;
///
/// let deferred = Deferred::new(3);
/// deferred.ask(NodeId(2));
/// assert!(!deferred.start(NodeId(1)), "the worker does not wait yet");
/// let mut notified = Vec::new();
/// deferred.settle(|to| notified.push(to));
/// assert_eq!(notified, [NodeId(2), NodeId(1)]);
/// assert!(deferred.start(NodeId(1)), "it waits, and has notified already");
/// ```
pub struct Deferred {
    /// Nodes that the worker asked for what it waits for next. Only the worker's thread uses these.
    asked: Nodes,
    /// Nodes at which something was started that it may wait for later.
    started: Nodes,
    /// It waits, and has settled.
    settled: AtomicBool,
}

/// A set of nodes, and whether there are any.
struct Nodes {
    words: Box<[AtomicU64]>,
    any: AtomicBool,
}

impl Nodes {
    fn new(nodes: usize) -> Nodes {
        Nodes {
            words: (0..nodes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            any: AtomicBool::new(false),
        }
    }

    /// Inserts a node, where no other thread inserts or drains meanwhile.
    #[inline]
    fn insert_alone(&self, node: NodeId) {
        if let Some(word) = self.words.get(node.index() / 64) {
            let bits = word.load(Ordering::Relaxed);
            word.store(bits | 1 << (node.index() % 64), Ordering::Relaxed);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    fn insert(&self, node: NodeId) {
        if let Some(word) = self.words.get(node.index() / 64) {
            word.fetch_or(1 << (node.index() % 64), Ordering::Relaxed);
            self.any.store(true, Ordering::Release);
        }
    }

    #[inline]
    fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Empties the set. A node that another thread inserts meanwhile is found now or the next time:
    /// it says that there is one after it has inserted it.
    fn drain(&self, each: &mut dyn FnMut(NodeId)) {
        if !self.any.swap(false, Ordering::Acquire) {
            return;
        }
        for (number, word) in self.words.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Relaxed);
            while bits != 0 {
                each(NodeId::at(64 * number + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
    }

    /// Empties the set, where no other thread inserts or drains meanwhile.
    #[inline]
    fn clear_alone(&self) {
        if self.has_any() {
            self.any.store(false, Ordering::Relaxed);
            for word in &self.words {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Deferred {
    /// Nothing is owed to any of so many nodes.
    pub fn new(nodes: usize) -> Deferred {
        Deferred {
            asked: Nodes::new(nodes),
            started: Nodes::new(nodes),
            settled: AtomicBool::new(false),
        }
    }

    /// The worker, which does not wait yet, sends `to` something that it waits for next.
    #[inline]
    pub fn ask(&self, to: NodeId) {
        self.asked.insert_alone(to);
    }

    /// Whether the worker owes a notification for what it waits for.
    #[inline]
    pub fn has_asked(&self) -> bool {
        self.asked.has_any()
    }

    /// Whether the worker owes any notification.
    #[inline]
    pub fn owes(&self) -> bool {
        self.has_asked() || self.started.has_any()
    }

    /// A thread has sent `to` something that the worker may wait for later, or waits for now.
    /// Whether that thread is to notify it, for the worker has settled before.
    #[must_use = "the receiver may have to be notified now"]
    pub fn start(&self, to: NodeId) -> bool {
        self.started.insert(to);
        // Either the worker finds the node when it settles, or this thread finds it settled.
        if !planted(Planted::NoBarrier) {
            fence(Ordering::SeqCst);
        }
        self.settled.load(Ordering::Relaxed)
    }

    /// The worker waits for long: notifies all to whom that is owed. Until it
    /// [goes on](Deferred::goes_on) every thread notifies for what it sends.
    pub fn settle(&self, mut notify: impl FnMut(NodeId)) {
        if !planted(Planted::SettlesInSilence) {
            self.settled.store(true, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        let mut notified = None;
        for nodes in [&self.asked, &self.started] {
            nodes.drain(&mut |node| {
                if notified.replace(node) != Some(node) {
                    notify(node);
                }
            });
        }
    }

    /// The worker's wait is over.
    #[inline]
    pub fn goes_on(&self) {
        if self.settled.load(Ordering::Relaxed) {
            self.settled.store(false, Ordering::Relaxed);
        }
    }

    /// The worker computes: what it asked for has come, or it waits for that no longer.
    #[inline]
    pub fn forget_asked(&self) {
        self.asked.clear_alone();
    }
}

/// Errors that the model checker must find, where it plants them.
#[cfg_attr(
    not(all(test, loom)),
    expect(dead_code, reason = "planted by the model")
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Nothing,
    /// The thread that defers may not see that the worker settled, nor the worker what it deferred.
    NoBarrier,
    /// The worker does not say that it has settled.
    SettlesInSilence,
}

#[cfg(all(test, loom))]
fn planted(error: Planted) -> bool {
    model::PLANTED.get() == error
}

#[cfg(not(all(test, loom)))]
const fn planted(_error: Planted) -> bool {
    false
}
