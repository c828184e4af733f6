//! Locks that travel: each stays on the node that held it last.
//!
//! Each lock has a *manager*, a node that follows from its name. A node that wants the lock asks
//! the manager, which passes the request on to the node that asked before. That node grants the
//! lock once its own threads are through (TreadMarks, section 3.3). A lock that is on the node
//! costs no message. The threads of a node hand a lock on to each other, at most
//! [`MOST_IN_A_ROW`] times while another node waits.
//!
//! [`TravellingLocks`] sends nothing: it says what its part of the node has to send ([`Passing`]),
//! and the part gives the messages. The part says by [`Travels`] what a request and a grant carry.
//! The machine relies on no order of messages.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;

use dhole_model::{NodeId, SortedMap};

/// Threads of a node hand a lock on to each other so often at most while another node waits.
pub const MOST_IN_A_ROW: u8 = 16;

/// Locks that a node uses or manages at most: a node that asks for one more is not believed.
pub const MOST_MANAGED: usize = 1 << 22;

/// With so many records, or twice what was left the last time, a node drops those of locks that
/// are as they were made: programs that make ever new locks keep few.
pub const SWEEP_FROM: usize = 1024;

/// The locks of a part of a node: how they are named, which threads hold them, what goes with them.
pub trait Travels: Clone + Eq + Hash + Debug {
    /// The name of a lock.
    type Lock: Copy + Ord + Hash + Debug;
    /// A thread that holds a lock or waits for it.
    type Holder: Copy + Eq + Hash + Debug;
    /// Tells the requests of a node for one lock apart, where a grant is not the only answer.
    type Number: Copy + Eq + Hash + Debug;
    /// What a request says. What its grant brings may follow from it, as write notices do from what
    /// the asker has seen.
    type Request: Clone + Eq + Hash + Debug;
    /// What travels with a lock.
    type Carries: Clone + Default + Eq + Hash + Debug;

    /// The manager of a lock in a cluster of `nodes`.
    fn manager(lock: Self::Lock, nodes: usize) -> NodeId;
}

/// One node's part of all locks of a kind, also as the manager of some.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TravellingLocks<T: Travels> {
    me: NodeId,
    nodes: usize,
    /// Locks that this node has used. One without a record is free at its manager.
    locks: SortedMap<T::Lock, Lock<T>>,
    /// As their manager: the node that has asked last.
    tails: SortedMap<T::Lock, NodeId>,
    /// With so many records, those of locks that nobody uses are dropped.
    sweep_at: usize,
    /// As [`MOST_MANAGED`].
    most: usize,
}

/// A lock, on a node that has used it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lock<T: Travels> {
    /// It is here.
    here: bool,
    holder: Option<T::Holder>,
    /// It was asked for, and has not come.
    asked: Option<T::Number>,
    /// The node that gets it next.
    next: Option<(NodeId, T::Request)>,
    /// Threads that wait, and whether they only try.
    waiting: VecDeque<(T::Holder, bool)>,
    /// So many threads of this node have had it in a row, its holder included.
    in_a_row: u8,
    carries: T::Carries,
}

impl<T: Travels> Lock<T> {
    fn is_free(&self) -> bool {
        self.here && self.holder.is_none()
    }

    fn is_as_made(&self) -> bool {
        let is_alone = self.waiting.is_empty() && self.next.is_none();
        self.is_free() && is_alone && self.carries == T::Carries::default()
    }
}

/// What comes of a thread that wants a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquiring {
    /// It has the lock.
    Has,
    /// It waits. Where it only tries, another thread has the lock, and it does not wait.
    Waits,
    /// It waits, and its node has to [ask](TravellingLocks::ask) for the lock.
    Asks,
}

/// What has to be done about a lock: a message to the first node, or something here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passing<T: Travels> {
    /// The manager: this node asks for the lock.
    Request(NodeId, T::Request),
    /// The node that asked before: as the manager, this node passes the request of the second node
    /// on.
    Forward(NodeId, NodeId, T::Request),
    /// The node that asks: the lock is this node's, which grants it later.
    Queued(NodeId, T::Request),
    /// The node that asks: it gets the lock, with what travels.
    Grant(NodeId, T::Request, T::Carries),
    /// The node that asks, which may be this one: this node, the manager, has no room for one more
    /// lock.
    NoRoom(NodeId, T::Request),
    /// Threads of this node wait still: it has to [ask](TravellingLocks::ask) again.
    Again,
    /// A thread of this node, which has waited, has the lock.
    Has(T::Holder),
}

/// What has to be done about a lock, in this order; or why a message makes no sense.
pub type Passed<T> = Result<Vec<Passing<T>>, &'static str>;

impl<T: Travels> TravellingLocks<T> {
    /// The part of node `me` of `nodes`, with room for `most` locks.
    pub fn new(me: NodeId, nodes: usize, most: usize) -> TravellingLocks<T> {
        TravellingLocks {
            me,
            nodes,
            locks: SortedMap::new(),
            tails: SortedMap::new(),
            sweep_at: SWEEP_FROM.min(most),
            most,
        }
    }

    /// The manager of a lock.
    pub fn manager(&self, lock: T::Lock) -> NodeId {
        T::manager(lock, self.nodes)
    }

    /// Whether there is a record of a lock, or room for one.
    pub fn has_room(&mut self, lock: T::Lock) -> bool {
        self.locks.contains_key(&lock) || {
            self.sweep();
            self.locks.len() < self.most
        }
    }

    /// Forgets locks of this node's own that are here and that no thread uses, where there are many
    /// records: a lock without a record is just that.
    fn sweep(&mut self) {
        if self.locks.len() < self.sweep_at {
            return;
        }
        let TravellingLocks {
            me, nodes, tails, ..
        } = self;
        self.locks.retain(|lock, record| {
            let is_own = T::manager(*lock, *nodes) == *me;
            let is_last = tails.get(lock).is_none_or(|tail| tail == me);
            let as_made = is_own && is_last && record.is_as_made();
            if as_made {
                tails.remove(lock);
            }
            !as_made
        });
        self.sweep_at = SWEEP_FROM.max(2 * self.locks.len()).min(self.most);
    }

    fn record(&mut self, lock: T::Lock) -> &mut Lock<T> {
        if !self.locks.contains_key(&lock) {
            self.sweep();
        }
        let here = self.manager(lock) == self.me;
        self.locks.get_or_insert_with(lock, || Lock {
            here,
            holder: None,
            asked: None,
            next: None,
            waiting: VecDeque::new(),
            in_a_row: 0,
            carries: T::Carries::default(),
        })
    }

    /// A thread acquires a lock that is known to be here and free; whether it is.
    #[inline]
    pub fn take_here(&mut self, lock: T::Lock, holder: T::Holder) -> bool {
        let record = self.locks.get_mut(&lock).filter(|record| record.is_free());
        let taken = record.map(|it| (it.holder, it.in_a_row) = (Some(holder), 1));
        taken.is_some()
    }

    /// A thread releases a lock for which no other thread or node waits; whether it does.
    #[inline]
    pub fn free_here(&mut self, lock: T::Lock, holder: T::Holder) -> bool {
        let record = self.locks.get_mut(&lock);
        let is_alone = |record: &&mut Lock<T>| {
            record.holder == Some(holder) && record.waiting.is_empty() && record.next.is_none()
        };
        let freed = record.filter(is_alone);
        let freed = freed.map(|it| (it.holder, it.in_a_row) = (None, 0));
        freed.is_some()
    }

    /// A thread that does not have the lock wants it, and `tries` only if no other one has it.
    pub fn want(&mut self, lock: T::Lock, holder: T::Holder, tries: bool) -> Acquiring {
        self.record(lock);
        if self.take_here(lock, holder) {
            return Acquiring::Has;
        }
        let record = self.record(lock);
        let comes = record.here || record.asked.is_some();
        // Where it was asked for, another thread waits, or has heard that it is taken.
        if !comes || !tries {
            record.waiting.push_back((holder, tries));
        }
        if comes {
            Acquiring::Waits
        } else {
            Acquiring::Asks
        }
    }

    /// Asks for a lock that threads of this node [want](Acquiring::Asks).
    ///
    /// # Errors
    /// As [`requested`](TravellingLocks::requested), where this node is the manager
    pub fn ask(&mut self, lock: T::Lock, number: T::Number, request: T::Request) -> Passed<T> {
        self.record(lock).asked = Some(number);
        let to = self.manager(lock);
        if to == self.me {
            return self.requested(lock, to, request);
        }
        Ok(vec![Passing::Request(to, request)])
    }

    /// The manager takes a request.
    ///
    /// # Errors
    /// Why it makes no sense. Nothing was changed then.
    pub fn requested(&mut self, lock: T::Lock, asker: NodeId, request: T::Request) -> Passed<T> {
        if self.manager(lock) != self.me {
            return Err("a lock request at a node that is not the lock's manager");
        }
        let tail = self.tails.get(&lock).copied();
        let to = tail.unwrap_or(self.me);
        if to == asker {
            return Err("a request for a lock that is already on its way to the requester");
        }
        if tail.is_none() && (self.tails.len() >= self.most || !self.has_room(lock)) {
            return Ok(vec![Passing::NoRoom(asker, request)]);
        }
        if to == self.me {
            let passed = self.forwarded(lock, asker, request)?;
            self.tails.insert(lock, asker);
            return Ok(passed);
        }
        self.tails.insert(lock, asker);
        Ok(vec![Passing::Forward(to, asker, request)])
    }

    /// The node that asked last before `asker` gets its request.
    ///
    /// # Errors
    /// Why it makes no sense. Nothing was changed then.
    pub fn forwarded(&mut self, lock: T::Lock, asker: NodeId, request: T::Request) -> Passed<T> {
        let is_mine = match self.locks.get(&lock) {
            Some(record) => record.here || record.asked.is_some(),
            None => self.manager(lock) == self.me,
        };
        if !is_mine || asker == self.me {
            return Err("a lock request passed on to a node that does not get the lock");
        }
        let record = self.record(lock);
        if record.next.is_some() {
            return Err("two requests behind one holder of a lock");
        }
        record.next = Some((asker, request));
        let mut passed = self.serve(lock);
        let next = self.locks.get(&lock).and_then(|record| record.next.clone());
        passed.extend(next.map(|(asker, request)| Passing::Queued(asker, request)));
        Ok(passed)
    }

    /// Hands a free lock on that is here.
    fn serve(&mut self, lock: T::Lock) -> Vec<Passing<T>> {
        let is_manager = self.manager(lock) == self.me;
        let Some(record) = self.locks.get_mut(&lock).filter(|record| record.is_free()) else {
            return Vec::new();
        };
        let is_others = record.waiting.is_empty() || record.in_a_row >= MOST_IN_A_ROW;
        if is_others && let Some((to, request)) = record.next.take() {
            (record.here, record.in_a_row) = (false, 0);
            let grant = Passing::Grant(to, request, std::mem::take(&mut record.carries));
            if !record.waiting.is_empty() {
                return vec![grant, Passing::Again];
            }
            if !is_manager {
                // That the lock is elsewhere needs no record but its manager's.
                self.locks.remove(&lock);
            }
            return vec![grant];
        }
        let Some((holder, _)) = record.waiting.pop_front() else {
            record.in_a_row = 0;
            return Vec::new();
        };
        (record.holder, record.in_a_row) = (Some(holder), record.in_a_row.saturating_add(1));
        vec![Passing::Has(holder)]
    }

    /// A lock has come that this node has asked for.
    ///
    /// # Errors
    /// It has not.
    pub fn granted(&mut self, lock: T::Lock, carries: T::Carries) -> Passed<T> {
        let record = self.locks.get_mut(&lock);
        let record = record.filter(|record| record.asked.is_some() && !record.here);
        let record = record.ok_or("a lock that was not asked for")?;
        (record.here, record.asked, record.carries) = (true, None, carries);
        Ok(self.serve(lock))
    }

    /// A thread releases a lock; `None` if it does not have it.
    pub fn release(&mut self, lock: T::Lock, holder: T::Holder) -> Option<Vec<Passing<T>>> {
        let record = self.locks.get_mut(&lock);
        let record = record.filter(|record| record.holder == Some(holder))?;
        record.holder = None;
        Some(self.serve(lock))
    }

    /// The manager has no room for a lock: the threads that do not get it, and whether they only
    /// tried.
    ///
    /// # Errors
    /// This was not asked for.
    pub fn no_room(
        &mut self,
        lock: T::Lock,
        number: T::Number,
    ) -> Result<VecDeque<(T::Holder, bool)>, &'static str> {
        let record = self.locks.get_mut(&lock);
        let is_asked = |it: &&mut Lock<T>| it.asked == Some(number) && it.next.is_none();
        let record = record.filter(is_asked);
        let record = record.ok_or("no room for a lock that was not asked for")?;
        record.asked = None;
        Ok(std::mem::take(&mut record.waiting))
    }

    /// The threads that only try to get a lock, which has another holder: they wait no more.
    pub fn refuse_tries(&mut self, lock: T::Lock) -> Vec<T::Holder> {
        let mut refused = Vec::new();
        if let Some(record) = self.locks.get_mut(&lock) {
            let tried = record.waiting.iter().filter(|(_, tries)| *tries);
            refused.extend(tried.map(|(holder, _)| *holder));
            record.waiting.retain(|(_, tries)| !tries);
        }
        refused
    }

    /// A thread does not wait for a lock any more.
    pub fn forget(&mut self, lock: T::Lock, holder: T::Holder) {
        if let Some(record) = self.locks.get_mut(&lock) {
            record.waiting.retain(|(waits, _)| *waits != holder);
        }
    }

    /// Whether a thread wants a lock only if no other one has it.
    pub fn only_tries(&self, lock: T::Lock, holder: T::Holder) -> bool {
        let record = self.locks.get(&lock);
        record.is_some_and(|record| record.waiting.contains(&(holder, true)))
    }

    /// The thread of this node that holds a lock.
    pub fn holder(&self, lock: T::Lock) -> Option<T::Holder> {
        self.locks.get(&lock)?.holder
    }

    /// The thread of this node that waits for a lock, the longest.
    pub fn waits(&self, lock: T::Lock) -> Option<T::Holder> {
        let (holder, _) = self.locks.get(&lock)?.waiting.front()?;
        Some(*holder)
    }

    /// The locks that threads of this node hold.
    pub fn held(&self) -> impl Iterator<Item = (T::Lock, T::Holder)> {
        let held = self.locks.iter();
        held.filter_map(|(lock, record)| Some((*lock, record.holder?)))
    }

    /// The number of the request for a lock that has not come.
    pub fn asked(&self, lock: T::Lock) -> Option<T::Number> {
        self.locks.get(&lock)?.asked
    }

    /// Whether no lock was asked for that has not come.
    pub fn is_at_rest(&self) -> bool {
        self.locks.values().all(|record| record.asked.is_none())
    }

    /// What travels with a lock, while it is here.
    pub fn carried(&mut self, lock: T::Lock) -> &mut T::Carries {
        &mut self.record(lock).carries
    }

    /// How many locks there is a record of.
    pub fn kept(&self) -> usize {
        self.locks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks that bring a number along.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    enum Test {}

    impl Travels for Test {
        type Lock = u64;
        type Holder = u8;
        type Number = ();
        type Request = ();
        type Carries = u32;

        fn manager(lock: u64, nodes: usize) -> NodeId {
            NodeId::at((lock % nodes as u64) as usize)
        }
    }

    const ME: NodeId = NodeId(0);
    const OTHER: NodeId = NodeId(1);

    fn locks(most: usize) -> TravellingLocks<Test> {
        TravellingLocks::new(ME, 2, most)
    }

    fn grant(carries: u32) -> Passing<Test> {
        Passing::Grant(OTHER, (), carries)
    }

    #[test]
    fn locks_that_nobody_uses_leave_no_record() {
        let mut locks = locks(MOST_MANAGED);
        assert_eq!(locks.want(0, 1, false), Acquiring::Has);
        for lock in (2..20_000).step_by(2) {
            // Every other one goes to the other node and comes back.
            if lock % 4 == 0 {
                assert_eq!(locks.requested(lock, OTHER, ()), Ok(vec![grant(0)]));
                assert_eq!(locks.want(lock, 1, false), Acquiring::Asks);
                let forward = Passing::Forward(OTHER, ME, ());
                assert_eq!(locks.ask(lock, (), ()), Ok(vec![forward]));
                assert_eq!(locks.granted(lock, 0), Ok(vec![Passing::Has(1)]));
            } else {
                assert_eq!(locks.want(lock, 1, false), Acquiring::Has);
            }
            assert_eq!(locks.release(lock, 1), Some(Vec::new()));
        }
        assert!(locks.kept() <= SWEEP_FROM, "{} locks", locks.kept());
        let managed = locks.tails.len();
        assert!(managed <= SWEEP_FROM, "{managed} managed");
        assert_eq!((locks.holder(0), locks.holder(2)), (Some(1), None));
        assert_eq!(locks.want(4, 1, false), Acquiring::Has);
    }

    #[test]
    fn there_is_no_room_for_more_locks_than_a_node_manages() {
        let mut locks = locks(2);
        for lock in [0, 2] {
            assert_eq!(locks.requested(lock, OTHER, ()), Ok(vec![grant(0)]));
        }
        let no_room = Passing::NoRoom(OTHER, ());
        assert_eq!(locks.requested(4, OTHER, ()), Ok(vec![no_room]));
    }

    #[test]
    fn what_travels_with_a_lock_leaves_its_node() {
        let mut locks = locks(2);
        assert_eq!(locks.want(0, 1, false), Acquiring::Has);
        *locks.carried(0) = 7;
        let queued = Passing::Queued(OTHER, ());
        assert_eq!(locks.requested(0, OTHER, ()), Ok(vec![queued]));
        // A thread of this node is before the other node, which gets the lock in the end.
        assert_eq!(locks.want(0, 2, false), Acquiring::Waits);
        assert_eq!(locks.release(0, 1), Some(vec![Passing::Has(2)]));
        assert_eq!(locks.release(0, 2), Some(vec![grant(7)]));
        assert_eq!((*locks.carried(0), locks.release(0, 2)), (0, None));
    }

    #[test]
    fn what_makes_no_sense_changes_nothing() {
        let mut locks = locks(2);
        assert_eq!(locks.requested(0, OTHER, ()), Ok(vec![grant(0)]));
        let before = locks.clone();
        let refused = [
            locks.requested(0, OTHER, ()),
            locks.requested(1, OTHER, ()),
            locks.forwarded(0, OTHER, ()),
            locks.forwarded(1, OTHER, ()),
            locks.granted(0, 3),
        ];
        assert!(refused.iter().all(Result::is_err), "{refused:?}");
        assert!(locks.no_room(0, ()).is_err());
        assert_eq!(locks, before);
    }
}
