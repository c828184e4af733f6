//! The clerk of a node: which calls of objects that have monitors may begin, and which wait (VOTE,
//! section 3.3).
//!
//! Each object whose type has operations that take a worker has a *monitor*. Calls that only read
//! the object hold it together; a call that writes holds it alone. The clerk admits the calls of an
//! object in the order of coming, so no reader overtakes a waiting writer. A call whose guard is
//! false gives the monitor back. It returns to its place in the order when a call that writes is
//! over.
//!
//! A [`Clerk`] is pure: it sees no state, runs nothing and sends nothing.

use std::collections::VecDeque;

use dhole_model::{NodeId, ObjectId, SortedMap};

use super::call::{Call, CallId};

/// A call that came, and its place in the order of coming.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Came {
    number: u64,
    call: Call,
}

/// The monitor of an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Monitor {
    /// Calls in progress.
    inside: Vec<Came>,
    /// Calls that wait for the monitor, in the order of coming.
    waiting: VecDeque<Came>,
    /// Calls whose guards were false, in the order of coming.
    blocked: Vec<Came>,
}

impl Monitor {
    fn admits(&self, writes: bool) -> bool {
        match writes {
            true => self.inside.is_empty(),
            false => self.inside.iter().all(|came| !came.call.writes),
        }
    }

    /// A call that has begun gives the monitor back.
    fn leaves(&mut self, call: CallId) -> Option<Came> {
        let place = self.inside.iter().position(|it| it.call.id == call)?;
        Some(self.inside.remove(place))
    }
}

/// The clerk of a node, with the monitors of its objects.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Clerk {
    monitors: SortedMap<ObjectId, Monitor>,
    came: u64,
}

impl Clerk {
    /// Adds an object that has a monitor.
    pub fn add(&mut self, object: ObjectId) {
        self.monitors.get_or_default(object);
    }

    /// Whether a call of the object that came now would begin at once.
    pub fn is_free(&self, object: ObjectId, writes: bool) -> bool {
        let monitor = self.monitors.get(&object);
        monitor.is_none_or(|it| it.waiting.is_empty() && it.admits(writes))
    }

    /// How many calls of the object wait.
    pub fn waiting(&self, object: ObjectId) -> usize {
        let monitor = self.monitors.get(&object);
        monitor.map_or(0, |it| it.waiting.len() + it.blocked.len())
    }

    /// Whether the call of an object waits, or is in progress.
    pub fn knows(&self, object: ObjectId, call: CallId) -> bool {
        let is_it = |came: &Came| came.call.id == call;
        self.monitors.get(&object).is_some_and(|monitor| {
            monitor.inside.iter().any(is_it)
                || monitor.waiting.iter().any(is_it)
                || monitor.blocked.iter().any(is_it)
        })
    }

    /// A call comes, last in the order. `false` if its object has no monitor: nothing happened.
    pub fn comes(&mut self, call: Call) -> bool {
        let Some(monitor) = self.monitors.get_mut(&call.object) else {
            return false;
        };
        self.came += 1;
        let number = self.came;
        monitor.waiting.push_back(Came { number, call });
        true
    }

    /// The next call of the object that may begin. It holds the monitor until it
    /// [is over](Clerk::over) or [is blocked](Clerk::is_blocked).
    pub fn begin(&mut self, object: ObjectId) -> Option<Call> {
        let monitor = self.monitors.get_mut(&object)?;
        let first = monitor.waiting.front()?;
        if !monitor.admits(first.call.writes) {
            return None;
        }
        let came = monitor.waiting.pop_front()?;
        let call = came.call.clone();
        monitor.inside.push(came);
        Some(call)
    }

    /// The guard of a call that has begun is false. It waits until a call that writes is over.
    pub fn is_blocked(&mut self, object: ObjectId, call: CallId) {
        let Some(monitor) = self.monitors.get_mut(&object) else {
            return;
        };
        if let Some(came) = monitor.leaves(call) {
            let blocked = &mut monitor.blocked;
            let place = blocked.partition_point(|it| it.number < came.number);
            blocked.insert(place, came);
        }
    }

    /// A call that has begun is over; whether it was in progress. If it writes, the calls whose
    /// guards were false are tried again.
    pub fn over(&mut self, object: ObjectId, call: CallId) -> bool {
        let Some(monitor) = self.monitors.get_mut(&object) else {
            return false;
        };
        let Some(over) = monitor.leaves(call) else {
            return false;
        };
        if over.call.writes {
            monitor.waiting.extend(monitor.blocked.drain(..));
            let in_order = monitor.waiting.make_contiguous();
            in_order.sort_by_key(|came| came.number);
        }
        true
    }

    /// Nodes are lost: their calls that wait never begin. Those in progress go on.
    pub fn lose(&mut self, is_lost: impl Fn(NodeId) -> bool) {
        let waits = |came: &Came| !is_lost(came.call.id.node);
        for monitor in self.monitors.values_mut() {
            monitor.waiting.retain(waits);
            monitor.blocked.retain(waits);
        }
    }

    /// The object is no more. Returns the calls that wait for it, in the order of coming.
    pub fn remove(&mut self, object: ObjectId) -> Vec<Call> {
        let Some(monitor) = self.monitors.remove(&object) else {
            return Vec::new();
        };
        let mut came = monitor.blocked;
        came.extend(monitor.waiting);
        came.sort_by_key(|it| it.number);
        came.into_iter().map(|it| it.call).collect()
    }

    /// The objects that have monitors.
    pub fn objects(&self) -> Vec<ObjectId> {
        self.monitors.keys().copied().collect()
    }
}
