//! Read-write locks and semaphores: *sync objects*. The number of each fixes the node that manages
//! it.
//!
//! Whoever wants to pass asks the manager, which lets nodes pass in the order in which they
//! asked; readers that follow on each other pass together. So neither a writer nor a reader
//! starves. A node that gives something back tells the manager its vector time and no more. The
//! manager passes the next node's request on to those whose releases it has to see and has not,
//! and each of them tells it the news itself: write notices never take a way round the manager,
//! and a reader that has learned nothing need not be asked. Three messages, as for a lock; two
//! where the node that passes has seen all releases or the manager's own is the last.

use std::collections::{BTreeSet, VecDeque};

use dhole_model::{CallSite, NodeId, SortedMap, VectorTime};
use dhole_sync::{MOST_MANAGED, SWEEP_FROM};

use crate::error::ProtocolError;
use crate::{RwLockId, SemaphoreId, SyncObject};

/// The most permits that a semaphore may have at a time.
const MOST_PERMITS: u32 = u32::MAX;

/// One node's view of all sync objects, and its part as the manager of some.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SyncObjects {
    me: NodeId,
    nodes: usize,
    /// The read-write locks held here.
    held: SortedMap<RwLockId, (SyncObject, CallSite)>,
    entering: Option<Entering>,
    rw_locks: SortedMap<RwLockId, Managed<RwLock>>,
    semaphores: SortedMap<u64, Managed<Semaphore>>,
    /// The releases of sync objects of which no record is left. A node that acquires one which is
    /// new here has to see them.
    swept: Releases,
    /// With so many records of one kind, those of sync objects that nobody holds are dropped.
    sweep_at: [usize; 2],
    /// Sync objects of each kind that this node manages.
    most: usize,
}

/// What the worker waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entering {
    sync_object: SyncObject,
    site: CallSite,
    wait: u64,
    /// How many grants are still to come, once the first has.
    left: Option<u32>,
}

/// Someone who wants to pass.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Request {
    pub sync_object: SyncObject,
    pub requester: NodeId,
    pub wait: u64,
    /// What the requester has seen.
    pub time: VectorTime,
}

/// A node that may pass, when it has heard of the releases of these nodes.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Pass {
    pub request: Request,
    pub sources: Vec<NodeId>,
}

fn too_many(from: NodeId) -> ProtocolError {
    ProtocolError::BadMessage {
        from,
        what: "a request at one sync object more than a node manages (2^22)",
    }
}

/// What the manager knows of a sync object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Managed<S> {
    state: S,
    queue: VecDeque<Request>,
    /// Releases that whoever passes next has to see.
    released: Releases,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct RwLock {
    readers: BTreeSet<NodeId>,
    writer: Option<NodeId>,
    /// Releases that readers have to see: those of writers.
    written: Releases,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Semaphore {
    permits: u32,
    /// How many it was made with.
    made_with: u32,
}

/// The newest release of each node, but for those that another one has seen. One node's may come in
/// any order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Releases(Vec<(NodeId, VectorTime)>);

impl Releases {
    fn add(&mut self, node: NodeId, time: &VectorTime) {
        self.0.retain(|(_, theirs)| !time.covers(theirs));
        if !self.0.iter().any(|(_, theirs)| theirs.covers(time)) {
            self.0.push((node, time.clone()));
        }
    }

    /// All nodes have seen `time`.
    fn forget_up_to(&mut self, time: &VectorTime) {
        self.0.retain(|(_, released)| !time.covers(released));
    }

    /// Whom to ask, so that a node that has seen `time` sees all releases.
    fn unseen_at(&self, time: &VectorTime) -> Vec<NodeId> {
        let unseen = self.0.iter().filter(|(_, released)| !time.covers(released));
        unseen.map(|(node, _)| *node).collect()
    }
}

impl SyncObjects {
    pub fn new(me: NodeId, nodes: usize) -> SyncObjects {
        SyncObjects {
            me,
            nodes,
            held: SortedMap::new(),
            entering: None,
            rw_locks: SortedMap::new(),
            semaphores: SortedMap::new(),
            swept: Releases::default(),
            sweep_at: [SWEEP_FROM; 2],
            most: MOST_MANAGED,
        }
    }

    /// All nodes have met at a barrier and seen `time`: forgets the releases before it, and locks
    /// that nobody holds or waits for.
    pub fn met(&mut self, time: &VectorTime) {
        self.rw_locks.retain(|_, managed| {
            managed.released.forget_up_to(time);
            managed.state.written.forget_up_to(time);
            *managed != Managed::default()
        });
        for managed in self.semaphores.values_mut() {
            managed.released.forget_up_to(time);
        }
        self.swept.forget_up_to(time);
    }

    /// The read-write lock, which may be new here. Where there are many, first forgets those that
    /// nobody holds or waits for, so that programs which make ever new ones keep few.
    fn rw_lock(&mut self, lock: RwLockId) -> &mut Managed<RwLock> {
        let many = self.rw_locks.len() >= self.sweep_at[0];
        if many && !self.rw_locks.contains_key(&lock) {
            let swept = &mut self.swept;
            self.rw_locks.retain(|_, managed| {
                let state = &managed.state;
                let is_idle = state.readers.is_empty() && state.writer.is_none();
                managed.stays(is_idle, swept)
            });
            self.sweep_at[0] = SWEEP_FROM.max(2 * self.rw_locks.len());
        }
        let swept = &self.swept;
        self.rw_locks.get_or_insert_with(lock, || Managed {
            state: RwLock {
                written: swept.clone(),
                ..RwLock::default()
            },
            released: swept.clone(),
            ..Managed::default()
        })
    }

    /// Records of locks, and of releases, that are kept here.
    pub fn kept(&self) -> [usize; 2] {
        let of_locks = self.rw_locks.values();
        let of_locks =
            of_locks.map(|managed| managed.released.0.len() + managed.state.written.0.len());
        let of_semaphores = self
            .semaphores
            .values()
            .map(|managed| managed.released.0.len());
        [self.rw_locks.len(), of_locks.chain(of_semaphores).sum()]
    }

    pub fn manager(&self, sync_object: SyncObject) -> NodeId {
        NodeId::at((sync_object.number() % self.nodes as u64) as usize)
    }

    /// Whether the worker may wait for this.
    pub fn check_enter(
        &self,
        sync_object: SyncObject,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        if let SyncObject::Permit(semaphore) = sync_object {
            return self.check_permits(semaphore, self.me);
        }
        let held = sync_object.rw_lock().and_then(|lock| self.held.get(&lock));
        match held {
            None => Ok(()),
            Some(&(_, held_since)) => Err(ProtocolError::AlreadyEntered {
                sync_object,
                site,
                held_since,
            }),
        }
    }

    /// The worker waits from now on.
    pub fn enter(&mut self, sync_object: SyncObject, site: CallSite, wait: u64) {
        self.entering = Some(Entering {
            sync_object,
            site,
            wait,
            left: None,
        });
    }

    /// Whether the worker waits for just this.
    pub fn check_grant(
        &self,
        from: NodeId,
        sync_object: SyncObject,
        wait: u64,
        parts: u32,
    ) -> Result<(), ProtocolError> {
        let asked = self.entering.as_ref().is_some_and(|entering| {
            entering.sync_object == sync_object
                && entering.wait == wait
                && parts > 0
                && entering.left.is_none_or(|left| left < parts)
        });
        match asked {
            true => Ok(()),
            false => Err(ProtocolError::BadMessage {
                from,
                what: "a grant that was not asked for",
            }),
        }
    }

    /// One of `parts` grants, which was [checked](SyncObjects::check_grant), has come. Whether it
    /// was the last.
    pub fn granted(&mut self, parts: u32) -> bool {
        let Some(entering) = &mut self.entering else {
            return false;
        };
        let left = entering.left.unwrap_or(parts) - 1;
        entering.left = Some(left);
        if left > 0 {
            return false;
        }
        if let Some(lock) = entering.sync_object.rw_lock() {
            self.held
                .insert(lock, (entering.sync_object, entering.site));
        }
        self.entering = None;
        true
    }

    /// The worker gives back what it holds; a permit need not be one that it acquired.
    pub fn leave(&mut self, sync_object: SyncObject, site: CallSite) -> Result<(), ProtocolError> {
        let Some(lock) = sync_object.rw_lock() else {
            return match self.manager(sync_object) == self.me {
                true => self.check_release(sync_object, self.me, site),
                false => Ok(()),
            };
        };
        match self.held.get(&lock) {
            Some((held, _)) if *held == sync_object => {
                self.held.remove(&lock);
                Ok(())
            }
            _ => Err(ProtocolError::NotEntered { sync_object, site }),
        }
    }

    /// The read-write locks that this node holds, and where they were acquired.
    pub fn held(&self) -> impl Iterator<Item = (SyncObject, CallSite)> {
        self.held.values().copied()
    }

    /// The line where this node acquired a lock that it holds.
    pub fn held_since(&self, lock: RwLockId) -> Option<CallSite> {
        self.held.get(&lock).map(|(_, since)| *since)
    }

    /// At the manager: whether a node is known to wait for those that hold the lock. A reader may
    /// wait for nobody but a message: one that admits it or asks, or its own earlier release.
    pub fn is_kept_from(&self, lock: RwLockId, waiter: NodeId) -> bool {
        let Some(managed) = self.rw_locks.get(&lock) else {
            return false;
        };
        let is_waiter = |request: &Request| request.requester == waiter;
        let Some(place) = managed.queue.iter().position(is_waiter) else {
            return false;
        };
        let mut up_to_waiter = managed.queue.iter().take(place + 1);
        let writes = |request: &Request| matches!(request.sync_object, SyncObject::Write(_));
        up_to_waiter.any(writes) || managed.state.writer.is_some()
    }

    /// The manager takes a request, and says who may pass.
    pub fn requested(&mut self, request: Request) -> Result<Vec<Pass>, ProtocolError> {
        self.check_managed(request.sync_object, request.requester)?;
        let from = request.requester;
        let asks = |queue: &VecDeque<Request>| queue.iter().any(|r| r.requester == from);
        let twice = ProtocolError::BadMessage {
            from,
            what: "a second request for a sync object that it waits for",
        };
        match request.sync_object {
            SyncObject::Read(lock) | SyncObject::Write(lock) => {
                let many = self.rw_locks.len() >= self.most;
                if many && !self.rw_locks.contains_key(&lock) {
                    return Err(too_many(from));
                }
                let managed = self.rw_lock(lock);
                if asks(&managed.queue) {
                    return Err(twice);
                }
                managed.queue.push_back(request);
                Ok(managed.let_pass())
            }
            SyncObject::Permit(semaphore) => {
                let managed = self.semaphore(semaphore, from)?;
                if asks(&managed.queue) {
                    return Err(twice);
                }
                managed.queue.push_back(request);
                Ok(managed.let_pass())
            }
        }
    }

    /// The manager hears that a node, which has seen `time`, gave something back, and says who
    /// may pass.
    pub fn released(
        &mut self,
        sync_object: SyncObject,
        from: NodeId,
        time: &VectorTime,
        site: CallSite,
    ) -> Result<Vec<Pass>, ProtocolError> {
        self.check_release(sync_object, from, site)?;
        match sync_object {
            SyncObject::Read(lock) | SyncObject::Write(lock) => {
                let managed = self.rw_lock(lock);
                if let SyncObject::Write(_) = sync_object {
                    managed.state.writer = None;
                    managed.state.written.add(from, time);
                } else {
                    managed.state.readers.remove(&from);
                }
                managed.released.add(from, time);
                Ok(managed.let_pass())
            }
            SyncObject::Permit(semaphore) => {
                let managed = self.semaphore(semaphore, from)?;
                managed.state.permits += 1;
                managed.released.add(from, time);
                Ok(managed.let_pass())
            }
        }
    }

    /// At the manager: whether a node may give this back.
    fn check_release(
        &self,
        sync_object: SyncObject,
        from: NodeId,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        self.check_managed(sync_object, from)?;
        match sync_object {
            SyncObject::Read(lock) | SyncObject::Write(lock) => {
                let state = self.rw_locks.get(&lock).map(|managed| &managed.state);
                let holds = |state: &RwLock| match sync_object {
                    SyncObject::Read(_) => state.readers.contains(&from),
                    _ => state.writer == Some(from),
                };
                let what = "the release of a read-write lock that it does not hold";
                match state.is_some_and(holds) {
                    true => Ok(()),
                    false => Err(ProtocolError::BadMessage { from, what }),
                }
            }
            SyncObject::Permit(semaphore) => {
                self.check_permits(semaphore, from)?;
                let managed = self.semaphores.get(&semaphore.number);
                let permits = managed.map_or(semaphore.permits, |managed| managed.state.permits);
                match permits < MOST_PERMITS {
                    true => Ok(()),
                    false => Err(ProtocolError::TooManyPermits {
                        semaphore,
                        node: from,
                        site,
                    }),
                }
            }
        }
    }

    fn check_managed(&self, sync_object: SyncObject, from: NodeId) -> Result<(), ProtocolError> {
        match self.manager(sync_object) == self.me {
            true => Ok(()),
            false => Err(ProtocolError::BadMessage {
                from,
                what: "a request at a node that does not manage the sync object",
            }),
        }
    }

    fn semaphore(
        &mut self,
        semaphore: SemaphoreId,
        from: NodeId,
    ) -> Result<&mut Managed<Semaphore>, ProtocolError> {
        self.check_permits(semaphore, from)?;
        let many = self.semaphores.len() >= self.most;
        if many && !self.semaphores.contains_key(&semaphore.number) {
            return Err(too_many(from));
        }
        let is_new = !self.semaphores.contains_key(&semaphore.number);
        if is_new && self.semaphores.len() >= self.sweep_at[1] {
            let swept = &mut self.swept;
            self.semaphores.retain(|_, managed| {
                let is_idle = managed.state.permits == managed.state.made_with;
                managed.stays(is_idle, swept)
            });
            self.sweep_at[1] = SWEEP_FROM.max(2 * self.semaphores.len());
        }
        let swept = &self.swept;
        let made = || Managed {
            state: Semaphore {
                permits: semaphore.permits,
                made_with: semaphore.permits,
            },
            released: swept.clone(),
            ..Managed::default()
        };
        Ok(self.semaphores.get_or_insert_with(semaphore.number, made))
    }

    fn check_permits(&self, semaphore: SemaphoreId, node: NodeId) -> Result<(), ProtocolError> {
        let made_with = self.semaphores.get(&semaphore.number);
        match made_with.map(|managed| managed.state.made_with) {
            Some(made_with) if made_with != semaphore.permits => Err(ProtocolError::OtherPermits {
                semaphore,
                node,
                made_with,
            }),
            _ => Ok(()),
        }
    }
}

impl<S> Managed<S> {
    /// Whether a record has to stay: something happens here. What was released at another one is
    /// added to `swept`.
    fn stays(&self, is_idle: bool, swept: &mut Releases) -> bool {
        let stays = !is_idle || !self.queue.is_empty();
        if !stays {
            let released = self.released.0.iter();
            released.for_each(|(node, time)| swept.add(*node, time));
        }
        stays
    }
}

impl Managed<RwLock> {
    fn let_pass(&mut self) -> Vec<Pass> {
        let mut passes = Vec::new();
        while let Some(request) = self
            .queue
            .pop_front_if(|request| self.state.admits(request))
        {
            let releases = match request.sync_object {
                SyncObject::Read(_) => {
                    self.state.readers.insert(request.requester);
                    &self.state.written
                }
                _ => {
                    self.state.writer = Some(request.requester);
                    &self.released
                }
            };
            let sources = releases.unseen_at(&request.time);
            passes.push(Pass { request, sources });
        }
        passes
    }
}

impl RwLock {
    /// A node that asks again while it seems to hold the lock has released it: that message is
    /// on its way, and was overtaken.
    fn admits(&self, request: &Request) -> bool {
        let reads = matches!(request.sync_object, SyncObject::Read(_));
        let again = self.readers.contains(&request.requester);
        self.writer.is_none() && (self.readers.is_empty() || reads && !again)
    }
}

impl Managed<Semaphore> {
    fn let_pass(&mut self) -> Vec<Pass> {
        let mut passes = Vec::new();
        while self.state.permits > 0
            && let Some(request) = self.queue.pop_front()
        {
            self.state.permits -= 1;
            let sources = self.released.unseen_at(&request.time);
            passes.push(Pass { request, sources });
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(of: [u32; 3]) -> VectorTime {
        let mut time = VectorTime::zero(3);
        of.iter()
            .enumerate()
            .for_each(|(node, index)| time.see(NodeId::at(node), *index));
        time
    }

    #[test]
    fn a_release_that_another_has_seen_need_not_be_asked_for() {
        let mut releases = Releases::default();
        releases.add(NodeId(0), &time([1, 0, 0]));
        releases.add(NodeId(1), &time([0, 1, 0]));
        assert_eq!(releases.unseen_at(&time([1, 0, 0])), [NodeId(1)]);
        releases.add(NodeId(2), &time([1, 1, 1]));
        assert_eq!(releases.unseen_at(&time([0, 0, 0])), [NodeId(2)]);
        releases.add(NodeId(0), &time([1, 1, 0]));
        assert_eq!(releases.unseen_at(&time([0, 0, 0])), [NodeId(2)]);
        assert_eq!(releases.unseen_at(&time([2, 2, 2])), []);
    }

    #[test]
    fn who_asks_at_more_gates_than_a_node_manages_is_not_believed() {
        let mut sync_objects = SyncObjects::new(NodeId(0), 3);
        sync_objects.most = 2;
        let mut ask = |sync_object| {
            sync_objects.requested(Request {
                sync_object,
                requester: NodeId(1),
                wait: 1,
                time: time([0, 0, 0]),
            })
        };
        let semaphore = |number| SyncObject::Permit(SemaphoreId { number, permits: 1 });
        for sync_object in [|n| SyncObject::Read(RwLockId(n)), semaphore] {
            assert!(ask(sync_object(0)).is_ok() && ask(sync_object(3)).is_ok());
            let Err(ProtocolError::BadMessage { from, what }) = ask(sync_object(6)) else {
                panic!("a third sync object");
            };
            assert_eq!(from, NodeId(1));
            assert!(what.contains("one sync object more"), "{what}");
        }
    }

    #[test]
    fn gates_that_nobody_uses_leave_no_record_and_their_releases_are_seen() {
        let (site, me) = (CallSite::caller(), NodeId(0));
        let ask = |sync_objects: &mut SyncObjects, sync_object, requester, time| {
            let wait = 1;
            sync_objects.requested(Request {
                sync_object,
                requester,
                wait,
                time,
            })
        };
        let semaphore = |number| SyncObject::Permit(SemaphoreId { number, permits: 1 });
        for kind in [|n| SyncObject::Write(RwLockId(n)), semaphore] {
            let mut sync_objects = SyncObjects::new(me, 3);
            let release = time([0, 7, 0]);
            for number in (0..30_000).step_by(3) {
                let zero = time([0, 0, 0]);
                ask(&mut sync_objects, kind(number), NodeId(1), zero).unwrap();
                if number > 0 {
                    sync_objects
                        .released(kind(number), NodeId(1), &release, site)
                        .unwrap();
                }
            }
            let kept = sync_objects.rw_locks.len() + sync_objects.semaphores.len();
            assert!(kept <= SWEEP_FROM, "{kept} sync objects kept");
            // One that is held stays; a new one is passed by nodes that have seen all releases.
            let again = ask(&mut sync_objects, kind(0), NodeId(2), time([0, 0, 0]));
            assert_eq!(again, Ok(Vec::new()));
            let passes = ask(&mut sync_objects, kind(3), NodeId(2), time([0, 0, 0])).unwrap();
            assert_eq!(passes[0].sources, [NodeId(1)]);
            sync_objects.met(&release);
            let passes = ask(&mut sync_objects, kind(6), NodeId(2), time([0, 0, 0])).unwrap();
            assert_eq!(passes[0].sources, []);
        }
    }

    #[test]
    fn a_release_that_comes_late_does_not_replace_a_later_one() {
        let mut releases = Releases::default();
        releases.add(NodeId(0), &time([2, 0, 0]));
        releases.add(NodeId(0), &time([1, 0, 0]));
        assert_eq!(releases.unseen_at(&time([1, 0, 0])), [NodeId(0)]);
    }
}
