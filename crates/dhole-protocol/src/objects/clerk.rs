//! The clerks of a node: which calls of objects that have monitors may begin, and which wait
//! (VOTE, section 3.3).
//!
//! Each object whose type has operations that take a worker has a *monitor*, and so has each object
//! that was made in a clerk of the program's. Calls that only read the object hold the monitor
//! together; a call that writes holds it alone. The calls of an object are admitted in the order of
//! coming, so no reader overtakes a waiting writer. A call whose guard is false gives the monitor
//! back. It returns to its place in the order when a call that writes is over.
//!
//! A clerk of the program's groups objects: so many of their calls are in progress at a time, and
//! no more. With one at a time the clerk is the paper's *sequential* domain. Without a group any
//! number are, as in the paper's *concurrent* domain. When a call of a group is over, the first
//! that came of those that may begin does.
//!
//! A call that an operation makes says the *chain* of calls that it is a part of. An object of the
//! chain is held until the call is over, so a call that would wait for such an object is refused at
//! once.
//!
//! [`Clerks`] are pure: they see no state, run nothing and send nothing.

use std::collections::VecDeque;

use dhole_model::{NodeId, ObjectId, SortedMap};

use super::call::{Call, CallId};
use super::chain::ChainLink;
use super::message::ClerkId;

/// A call that came, and its place in the order of coming.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Came {
    number: u64,
    call: Call,
}

/// The monitor of an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Monitor {
    /// The clerk in which the object was made.
    group: Option<ClerkId>,
    /// Calls in progress.
    inside: Vec<Came>,
    /// Calls that wait for the monitor, in the order of coming.
    waiting: VecDeque<Came>,
    /// Calls whose guards were false, in the order of coming.
    blocked: Vec<Came>,
}

/// The objects that were made in a clerk.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Group {
    objects: Vec<ObjectId>,
    /// Calls in progress of all of them, and of those that were freed meanwhile.
    inside: u32,
}

impl Monitor {
    fn admits(&self, writes: bool) -> bool {
        match writes {
            true => self.inside.is_empty(),
            false => self.inside.iter().all(|came| !came.call.writes),
        }
    }

    /// The number of the first call that waits, if it may begin.
    fn first(&self) -> Option<u64> {
        let first = self.waiting.front()?;
        self.admits(first.call.writes).then_some(first.number)
    }

    /// A call that has begun gives the monitor back.
    fn leaves(&mut self, call: CallId) -> Option<Came> {
        let place = self.inside.iter().position(|it| it.call.id == call)?;
        Some(self.inside.remove(place))
    }
}

/// The clerks of a node, with the monitors of its objects.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Clerks {
    monitors: SortedMap<ObjectId, Monitor>,
    groups: SortedMap<ClerkId, Group>,
    /// Calls in progress of objects that were freed meanwhile, with their clerks.
    leaving: Vec<(CallId, ClerkId)>,
    came: u64,
}

impl Clerks {
    /// Adds an object that has a monitor.
    pub fn add(&mut self, object: ObjectId) {
        self.monitors.get_or_default(object);
    }

    /// Adds an object that was made in a clerk of the program's.
    pub fn add_to(&mut self, group: ClerkId, object: ObjectId) {
        self.monitors.get_or_default(object).group = Some(group);
        let objects = &mut self.groups.get_or_default(group).objects;
        if !objects.contains(&object) {
            objects.push(object);
        }
    }

    /// Whether the object was made in a clerk of the program's.
    pub fn is_grouped(&self, object: ObjectId) -> bool {
        self.group_of(object).is_some()
    }

    fn group_of(&self, object: ObjectId) -> Option<ClerkId> {
        self.monitors.get(&object)?.group
    }

    /// Whether so few calls of the group are in progress that another may be.
    fn has_room(&self, group: Option<ClerkId>) -> bool {
        group.is_none_or(|it| self.groups.get(&it).is_none_or(|all| all.inside < it.most))
    }

    /// Whether a call of the object that came now would begin at once.
    pub fn is_free(&self, object: ObjectId, writes: bool) -> bool {
        let monitor = self.monitors.get(&object);
        monitor
            .is_none_or(|it| it.waiting.is_empty() && it.admits(writes) && self.has_room(it.group))
    }

    /// Whether a call of the object can never begin before the calls of this chain are over. They
    /// hold the object, or all that the clerk of the object admits at a time.
    pub fn waits_for(&self, object: ObjectId, chain: &[ChainLink]) -> bool {
        let Some(monitor) = self.monitors.get(&object) else {
            return false;
        };
        let beside = chain.iter().filter(|it| self.are_beside(it.object, object));
        let most = monitor
            .group
            .map_or(usize::MAX, |group| group.most as usize);
        beside.count() >= most || chain.iter().any(|it| it.object == object)
    }

    /// Whether these are one object, or are in one clerk of the program's.
    pub fn are_beside(&self, one: ObjectId, other: ObjectId) -> bool {
        let group = self.group_of(one);
        one == other || group.is_some() && group == self.group_of(other)
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

    /// The next call that may begin, of the object or of those that are in a clerk with it. It
    /// holds its monitor until it [is over](Clerks::over) or [is blocked](Clerks::is_blocked).
    pub fn begin(&mut self, object: ObjectId) -> Option<Call> {
        self.begin_in(self.group_of(object), object)
    }

    /// As [`begin`](Clerks::begin), of the objects in the clerk of an object that is no more.
    pub fn begin_beside(&mut self, group: ClerkId) -> Option<Call> {
        let first = *self.groups.get(&group)?.objects.first()?;
        self.begin_in(Some(group), first)
    }

    fn begin_in(&mut self, group: Option<ClerkId>, object: ObjectId) -> Option<Call> {
        if !self.has_room(group) {
            return None;
        }
        let first = |object: &ObjectId| Some((self.monitors.get(object)?.first()?, *object));
        let (_, next) = match group.and_then(|it| self.groups.get(&it)) {
            Some(all) => all.objects.iter().filter_map(first).min()?,
            None => first(&object)?,
        };
        let monitor = self.monitors.get_mut(&next)?;
        let came = monitor.waiting.pop_front()?;
        let call = came.call.clone();
        monitor.inside.push(came);
        if let Some(all) = group.and_then(|it| self.groups.get_mut(&it)) {
            all.inside += 1;
        }
        Some(call)
    }

    /// A call that has begun gives its monitor back.
    fn leaves(&mut self, object: ObjectId, call: CallId) -> Option<Came> {
        let monitor = self.monitors.get_mut(&object)?;
        let came = monitor.leaves(call)?;
        if let Some(all) = monitor.group.and_then(|it| self.groups.get_mut(&it)) {
            all.inside -= 1;
        }
        Some(came)
    }

    /// The guard of a call that has begun is false. It waits until a call that writes is over.
    pub fn is_blocked(&mut self, object: ObjectId, call: CallId) {
        let Some(came) = self.leaves(object, call) else {
            return;
        };
        if let Some(monitor) = self.monitors.get_mut(&object) {
            let blocked = &mut monitor.blocked;
            let place = blocked.partition_point(|it| it.number < came.number);
            blocked.insert(place, came);
        }
    }

    /// A call that has begun is over; the clerk of its object if that was freed meanwhile. If the
    /// call writes, the calls whose guards were false are tried again.
    pub fn over(&mut self, object: ObjectId, call: CallId) -> Option<ClerkId> {
        let Some(over) = self.leaves(object, call) else {
            return self.leaves_freed(call);
        };
        if over.call.writes
            && let Some(monitor) = self.monitors.get_mut(&object)
        {
            monitor.waiting.extend(monitor.blocked.drain(..));
            let in_order = monitor.waiting.make_contiguous();
            in_order.sort_by_key(|came| came.number);
        }
        None
    }

    /// A call of an object is over that was freed meanwhile: others of its clerk may begin.
    fn leaves_freed(&mut self, call: CallId) -> Option<ClerkId> {
        let place = self.leaving.iter().position(|(it, _)| *it == call)?;
        let (_, group) = self.leaving.remove(place);
        self.groups.get_mut(&group)?.inside -= 1;
        self.forget_empty(group);
        Some(group)
    }

    /// A call is withdrawn; whether it waited, and waits no longer.
    pub fn withdraw(&mut self, object: ObjectId, call: CallId) -> bool {
        let Some(monitor) = self.monitors.get_mut(&object) else {
            return false;
        };
        let before = monitor.waiting.len() + monitor.blocked.len();
        monitor.waiting.retain(|it| it.call.id != call);
        monitor.blocked.retain(|it| it.call.id != call);
        monitor.waiting.len() + monitor.blocked.len() < before
    }

    /// Nodes are lost: their calls that wait never begin. Those in progress go on.
    pub fn lose(&mut self, is_lost: impl Fn(NodeId) -> bool) {
        let waits = |came: &Came| !is_lost(came.call.id.node);
        for monitor in self.monitors.values_mut() {
            monitor.waiting.retain(waits);
            monitor.blocked.retain(waits);
        }
    }

    /// The object is no more. Returns the calls that wait for it, in the order of coming. Those in
    /// progress count in its clerk until they are over.
    pub fn remove(&mut self, object: ObjectId) -> Vec<Call> {
        let Some(monitor) = self.monitors.remove(&object) else {
            return Vec::new();
        };
        if let Some(group) = monitor.group {
            let inside = monitor.inside.iter().map(|it| (it.call.id, group));
            self.leaving.extend(inside);
            if let Some(all) = self.groups.get_mut(&group) {
                all.objects.retain(|it| *it != object);
            }
            self.forget_empty(group);
        }
        let mut came = monitor.blocked;
        came.extend(monitor.waiting);
        came.sort_by_key(|it| it.number);
        came.into_iter().map(|it| it.call).collect()
    }

    /// Nothing is kept of a clerk without objects.
    fn forget_empty(&mut self, group: ClerkId) {
        let all = self.groups.get(&group);
        if all.is_some_and(|it| it.objects.is_empty() && it.inside == 0) {
            self.groups.remove(&group);
        }
    }

    /// The objects that have monitors.
    pub fn objects(&self) -> Vec<ObjectId> {
        self.monitors.keys().copied().collect()
    }
}
