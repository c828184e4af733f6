//! Locks as in TreadMarks: each has a manager, fixed by its number, which passes a request on to
//! the node that asked last before; that node grants it when it has released. Acquiring a lock
//! that was last held here costs no message.

use dhole_model::{CallSite, NodeId, SortedMap, VectorTime};
use dhole_wire::Wire;

use crate::error::ProtocolError;
use crate::sync_id::LockId;
use crate::sync_object::ConditionId;

/// Locks that one node manages, and sync objects of each kind. A node that asks for one more is not
/// believed.
pub(crate) const MOST_MANAGED: usize = 1 << 22;

/// With so many records, or twice what was left the last time, a node drops those of locks that
/// are as they were made: programs that make ever new locks keep few.
pub(crate) const SWEEP_FROM: usize = 1024;

/// A node that waits on a condition of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Waiting {
    /// The condition's number among those of the lock.
    pub condition: u64,
    /// The node.
    pub node: NodeId,
}

/// One node's view of all locks, and its part as the manager of some.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Locks {
    me: NodeId,
    nodes: usize,
    here: SortedMap<LockId, Local>,
    managed: SortedMap<LockId, Managed>,
    /// With so many records here, those of locks that nobody uses are dropped.
    sweep_at: usize,
    /// Locks that this node manages for others.
    most: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Local {
    state: State,
    /// Who asked after us, and is granted the lock when we release it.
    next: Option<(NodeId, VectorTime)>,
    /// Who waits on the lock's conditions, the longest first, while the lock is here: as only the
    /// holder waits or notifies, no notification can come before the wait that it is for.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Elsewhere,
    Waiting(CallSite),
    Held(CallSite),
    /// Last held here, and free.
    Free,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Managed {
    /// Who asked last: the end of the queue.
    last: NodeId,
}

/// What an acquire comes to.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Acquired {
    /// The lock is here.
    AtOnce,
    /// The manager has to be asked.
    Ask(NodeId),
}

/// Whom a request concerns next.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Passed {
    /// The lock is here and nobody holds it: grant it now.
    GrantNow,
    /// It is granted at the release.
    Queued,
}

impl Locks {
    pub fn new(me: NodeId, nodes: usize) -> Locks {
        Locks {
            me,
            nodes,
            here: SortedMap::new(),
            managed: SortedMap::new(),
            sweep_at: SWEEP_FROM,
            most: MOST_MANAGED,
        }
    }

    pub fn manager(&self, lock: LockId) -> NodeId {
        NodeId::at((lock.0 % self.nodes as u64) as usize)
    }

    fn state(&self, lock: LockId) -> State {
        match self.here.get(&lock) {
            Some(local) => local.state,
            None if self.manager(lock) == self.me => State::Free,
            None => State::Elsewhere,
        }
    }

    fn local(&mut self, lock: LockId) -> &mut Local {
        if self.here.len() >= self.sweep_at && !self.here.contains_key(&lock) {
            self.sweep();
        }
        let state = self.state(lock);
        self.here.get_or_insert_with(lock, || Local {
            state,
            next: None,
            waiting: Vec::new(),
        })
    }

    /// Forgets the locks of this node's own that are here and that nobody holds or waits for: a
    /// lock without a record is just that.
    fn sweep(&mut self) {
        let (me, nodes, managed) = (self.me, self.nodes as u64, &mut self.managed);
        self.here.retain(|lock, local| {
            let is_own = lock.0 % nodes == me.index() as u64;
            let is_free = local.state == State::Free && local.waiting.is_empty();
            let is_last = managed.get(lock).is_none_or(|known| known.last == me);
            let as_made = is_own && is_free && is_last && local.next.is_none();
            if as_made {
                managed.remove(lock);
            }
            !as_made
        });
        self.sweep_at = SWEEP_FROM.max(2 * self.here.len());
    }

    pub fn acquire(&mut self, lock: LockId, site: CallSite) -> Result<Acquired, ProtocolError> {
        let manager = self.manager(lock);
        let local = self.local(lock);
        match local.state {
            State::Free => {
                local.state = State::Held(site);
                Ok(Acquired::AtOnce)
            }
            State::Elsewhere => {
                local.state = State::Waiting(site);
                Ok(Acquired::Ask(manager))
            }
            State::Held(held_since) | State::Waiting(held_since) => {
                Err(ProtocolError::AlreadyHeld {
                    lock,
                    site,
                    held_since,
                })
            }
        }
    }

    /// The manager takes a request and says to whom it goes.
    pub fn requested(&mut self, lock: LockId, requester: NodeId) -> Result<NodeId, ProtocolError> {
        let bad = |what| ProtocolError::BadMessage {
            from: requester,
            what,
        };
        if self.manager(lock) != self.me {
            return Err(bad(
                "a lock request at a node that is not the lock's manager",
            ));
        }
        let me = self.me;
        if self.managed.get(&lock).map_or(me, |managed| managed.last) == requester {
            return Err(bad(
                "a request for a lock that is already on its way to the requester",
            ));
        }
        if self.managed.len() >= self.most && !self.managed.contains_key(&lock) {
            return Err(bad(
                "a request for one lock more than a node manages (2^22)",
            ));
        }
        let managed = self
            .managed
            .get_or_insert_with(lock, || Managed { last: me });
        Ok(std::mem::replace(&mut managed.last, requester))
    }

    /// The node that asked last before `requester` gets its request.
    pub fn forwarded(
        &mut self,
        lock: LockId,
        requester: NodeId,
        time: &VectorTime,
    ) -> Result<Passed, ProtocolError> {
        let bad = |what| ProtocolError::BadMessage {
            from: requester,
            what,
        };
        if self.state(lock) == State::Elsewhere {
            return Err(bad("a lock request passed on to a node that never had it"));
        }
        let local = self.local(lock);
        match local.state {
            State::Elsewhere => unreachable!("just tested"),
            State::Free => {
                local.state = State::Elsewhere;
                Ok(Passed::GrantNow)
            }
            State::Held(_) | State::Waiting(_) if local.next.is_some() => {
                Err(bad("two requests behind one holder"))
            }
            State::Held(_) | State::Waiting(_) => {
                local.next = Some((requester, time.clone()));
                Ok(Passed::Queued)
            }
        }
    }

    /// The locks that this node holds, and where they were acquired.
    pub fn held(&self) -> impl Iterator<Item = (LockId, CallSite)> {
        self.here
            .iter()
            .filter_map(|(lock, local)| match local.state {
                State::Held(site) => Some((*lock, site)),
                _ => None,
            })
    }

    /// How many locks there is a record of.
    pub fn kept(&self) -> usize {
        self.here.len()
    }

    /// Whether this node waits for the lock.
    pub fn is_waiting_for(&self, lock: LockId) -> bool {
        matches!(self.state(lock), State::Waiting(_))
    }

    /// The lock that this node [waits for](Locks::is_waiting_for) has come.
    pub fn granted(&mut self, lock: LockId, waiting: Vec<Waiting>) {
        let local = self.local(lock);
        local.waiting = waiting;
        if let State::Waiting(site) = local.state {
            local.state = State::Held(site);
        }
    }

    /// The lock goes to another node, with those that wait on its conditions.
    pub fn hand_over(&mut self, lock: LockId) -> Vec<Waiting> {
        let is_manager = self.manager(lock) == self.me;
        let local = self.local(lock);
        let waiting = std::mem::take(&mut local.waiting);
        // That the lock is elsewhere needs no record but its manager's.
        if local.state == State::Elsewhere && !is_manager {
            self.here.remove(&lock);
        }
        waiting
    }

    /// Notes that this node, which holds the condition's lock, waits on it.
    pub fn wait_on(&mut self, condition: ConditionId) {
        let waiting = Waiting {
            condition: condition.number,
            node: self.me,
        };
        self.local(condition.lock).waiting.push(waiting);
    }

    /// Takes those who wait on a condition off its lock, which is here: all or the first.
    pub fn notify(&mut self, condition: ConditionId, all: bool) -> Vec<NodeId> {
        let waiting = &mut self.local(condition.lock).waiting;
        let most = if all { waiting.len() } else { 1 };
        let woken = waiting.extract_if(.., |waiting| waiting.condition == condition.number);
        woken.take(most).map(|waiting| waiting.node).collect()
    }

    /// Whether this node holds the lock.
    pub fn holds(&self, lock: LockId) -> bool {
        matches!(self.state(lock), State::Held(_))
    }

    /// Releases a lock and says to whom it must be granted, if anyone waits for it.
    pub fn release(&mut self, lock: LockId) -> Result<Option<(NodeId, VectorTime)>, ProtocolError> {
        let State::Held(_) = self.state(lock) else {
            return Err(ProtocolError::NotHeld { lock });
        };
        let local = self.local(lock);
        let next = local.next.take();
        local.state = if next.is_some() {
            State::Elsewhere
        } else {
            State::Free
        };
        Ok(next)
    }

    /// The line where this node acquired a lock that it holds.
    pub fn held_since(&self, lock: LockId) -> Option<CallSite> {
        match self.state(lock) {
            State::Held(site) => Some(site),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_nobody_uses_leave_no_record() {
        let (site, time) = (CallSite::caller(), VectorTime::zero(2));
        let mut locks = Locks::new(NodeId(0), 2);
        assert_eq!(locks.acquire(LockId(0), site), Ok(Acquired::AtOnce));
        for number in (2..20_000).step_by(2) {
            let lock = LockId(number);
            // Every other one goes to node 1 and comes back.
            if number % 4 == 0 {
                assert_eq!(locks.requested(lock, NodeId(1)), Ok(NodeId(0)));
                let passed = locks.forwarded(lock, NodeId(1), &time);
                assert_eq!(passed, Ok(Passed::GrantNow));
                assert_eq!(locks.acquire(lock, site), Ok(Acquired::Ask(NodeId(0))));
                assert_eq!(locks.requested(lock, NodeId(0)), Ok(NodeId(1)));
                locks.granted(lock, Vec::new());
            } else {
                assert_eq!(locks.acquire(lock, site), Ok(Acquired::AtOnce));
            }
            assert_eq!(locks.release(lock), Ok(None));
        }
        assert!(locks.here.len() <= SWEEP_FROM, "{} here", locks.here.len());
        let managed = locks.managed.len();
        assert!(managed <= SWEEP_FROM, "{managed} managed");
        assert!(locks.holds(LockId(0)) && !locks.holds(LockId(2)));
        assert_eq!(locks.acquire(LockId(4), site), Ok(Acquired::AtOnce));
    }

    #[test]
    fn who_asks_for_more_locks_than_a_node_manages_is_not_believed() {
        let mut locks = Locks::new(NodeId(0), 2);
        locks.most = 2;
        let mut ask = |lock| locks.requested(LockId(lock), NodeId(1));
        assert!(ask(0).is_ok() && ask(2).is_ok());
        let Err(ProtocolError::BadMessage { from, what }) = ask(4) else {
            panic!("a third lock");
        };
        assert_eq!(from, NodeId(1));
        assert!(what.contains("one lock more"), "{what}");
    }
}
