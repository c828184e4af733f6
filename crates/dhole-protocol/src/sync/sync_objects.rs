//! Read-write locks and semaphores: *sync objects*. The number of each fixes the node that manages
//! it; that of an object's lock names the object's home.
//!
//! Whoever wants to pass asks the manager, which lets nodes pass in the order in which they
//! asked ([`Turnstile`]). A node that gives something back tells the manager its vector time and no
//! more. The manager passes the next node's request on to those whose releases it has to see and
//! has not, and each of them tells it the news itself: write notices never take a way round the
//! manager, and a reader that has learned nothing need not be asked. Three messages, as for a lock;
//! two where the node that passes has seen all releases or the manager's own is the last.

use dhole_model::{CallSite, NodeId, SortedMap, VectorTime};
use dhole_sync::{Conditions, MOST_MANAGED, Mode, SWEEP_FROM, Turnstile};

use crate::error::ProtocolError;
use crate::{RwLockId, SemaphoreId, SyncObject};

/// The most permits that a semaphore may have at a time.
const MOST_PERMITS: u64 = u32::MAX as u64;

/// One node's view of all sync objects, and its part as the manager of some.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SyncObjects {
    me: NodeId,
    nodes: usize,
    /// The read-write locks held here.
    held: SortedMap<RwLockId, Held>,
    entering: Option<Entering>,
    managed: SortedMap<SyncObject, Managed>,
    /// As their manager: those that wait on the conditions of read-write locks.
    conditions: Conditions<RwLockId, Request>,
    /// As their manager: those that wait until a node has written under a read-write lock.
    guards: Conditions<RwLockId, Request>,
    /// The releases of sync objects of which no record is left. A node that acquires one which is
    /// new here has to see them.
    swept: Releases,
    /// With so many records, those of sync objects that nobody holds are dropped.
    sweep_at: usize,
    /// Sync objects that this node manages.
    most: usize,
}

/// What names a sync object at its manager, however it is acquired.
fn key(sync_object: SyncObject) -> SyncObject {
    match sync_object {
        SyncObject::Read(lock) | SyncObject::Write(lock) => SyncObject::Write(lock),
        SyncObject::Permit(SemaphoreId { number, .. }) => {
            SyncObject::Permit(SemaphoreId { number, permits: 0 })
        }
    }
}

/// Whether a node waits until another one has written under the lock.
fn waits_for_a_write(guards: &Conditions<RwLockId, Request>, key: SyncObject) -> bool {
    let waits_for = |lock| guards.waiters().iter().any(|(on, _)| *on == lock);
    key.rw_lock().is_some_and(waits_for)
}

fn mode(sync_object: SyncObject) -> Mode {
    match sync_object {
        SyncObject::Read(_) => Mode::Read,
        SyncObject::Write(_) => Mode::Write,
        SyncObject::Permit(_) => Mode::Permit,
    }
}

fn bad(from: NodeId, what: &'static str) -> ProtocolError {
    ProtocolError::BadMessage { from, what }
}

/// A read-write lock that this node holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Held {
    sync_object: SyncObject,
    site: CallSite,
    /// So many nodes that wait on its condition are woken when it is given back.
    wakes: u32,
}

/// What comes with a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wakes {
    /// So many nodes are woken that wait on the lock's condition until they are notified.
    pub notified: u32,
    /// Which wait of the releasing node begins on the condition.
    pub waits: Option<u64>,
    /// That wait lasts until a node has written under the lock. The releasing node has not.
    pub until_written: bool,
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

impl dhole_sync::Request for Request {
    fn node(&self) -> NodeId {
        self.requester
    }

    fn mode(&self) -> Mode {
        mode(self.sync_object)
    }
}

/// A node that may pass, when it has heard of the releases of these nodes.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Pass {
    pub request: Request,
    pub sources: Vec<NodeId>,
}

/// What the manager knows of a sync object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Managed {
    kept: Turnstile<Request>,
    /// How many permits a semaphore was made with.
    made_with: u32,
    /// Releases that whoever passes next has to see.
    released: Releases,
    /// Releases that readers have to see: those of writers.
    written: Releases,
}

impl Managed {
    fn pass(&mut self) -> Vec<Pass> {
        let passed = self.kept.pass().into_iter();
        let with_sources = passed.map(|request| {
            let releases = match request.sync_object {
                SyncObject::Read(_) => &self.written,
                _ => &self.released,
            };
            let sources = releases.unseen_at(&request.time);
            Pass { request, sources }
        });
        with_sources.collect()
    }
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
            managed: SortedMap::new(),
            conditions: Conditions::default(),
            guards: Conditions::default(),
            swept: Releases::default(),
            sweep_at: SWEEP_FROM,
            most: MOST_MANAGED,
        }
    }

    /// All nodes have met at a barrier and seen `time`: forgets the releases before it, and locks
    /// that nobody holds or waits for.
    pub fn met(&mut self, time: &VectorTime) {
        let guards = &self.guards;
        self.managed.retain(|key, managed| {
            managed.released.forget_up_to(time);
            managed.written.forget_up_to(time);
            let is_new = *managed == Managed::default() && !waits_for_a_write(guards, *key);
            key.rw_lock().is_none() || !is_new
        });
        self.swept.forget_up_to(time);
    }

    /// What the manager knows of a sync object, which may be new here. Where there are many, first
    /// forgets those that nobody holds or waits for, so that programs which make ever new ones keep
    /// few.
    fn managed(
        &mut self,
        sync_object: SyncObject,
        from: NodeId,
    ) -> Result<&mut Managed, ProtocolError> {
        self.check_managed(sync_object, from)?;
        let key = key(sync_object);
        if !self.managed.contains_key(&key) && self.managed.len() >= self.sweep_at {
            let (swept, guards) = (&mut self.swept, &self.guards);
            self.managed.retain(|key, managed| {
                let permits = u64::from(managed.made_with);
                let is_idle = managed.kept.is_idle() && !waits_for_a_write(guards, *key);
                let stays = !is_idle || managed.kept.permits != permits;
                let released = managed.released.0.iter().filter(|_| !stays);
                released.for_each(|(node, time)| swept.add(*node, time));
                stays
            });
            let twice = SWEEP_FROM.max(2 * self.managed.len());
            self.sweep_at = twice.min(self.most);
            if self.managed.len() >= self.most {
                let what = "a request at one sync object more than a node manages (2^22)";
                return Err(bad(from, what));
            }
        }
        let swept = &self.swept;
        Ok(self.managed.get_or_insert_with(key, || {
            let mut new = Managed {
                released: swept.clone(),
                ..Managed::default()
            };
            match sync_object {
                SyncObject::Permit(semaphore) => {
                    new.made_with = semaphore.permits;
                    new.kept.permits = semaphore.permits.into();
                }
                _ => new.written = swept.clone(),
            }
            new
        }))
    }

    /// Records of locks, and of releases, that are kept here.
    pub fn kept(&self) -> [usize; 2] {
        let locks = self.managed.keys();
        let locks = locks.filter(|key| key.rw_lock().is_some());
        let all = self.managed.values();
        let releases = all.map(|managed| managed.released.0.len() + managed.written.0.len());
        [locks.count(), releases.sum()]
    }

    pub fn manager(&self, sync_object: SyncObject) -> NodeId {
        sync_object.manager(self.nodes)
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
            Some(held) => Err(ProtocolError::AlreadyEntered {
                sync_object,
                site,
                held_since: held.site,
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
            false => Err(bad(from, "a grant that was not asked for")),
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
            let held = Held {
                sync_object: entering.sync_object,
                site: entering.site,
                wakes: 0,
            };
            self.held.insert(lock, held);
        }
        self.entering = None;
        true
    }

    /// The worker gives back what it holds; a permit need not be one that it acquired. How many
    /// nodes that wait on the condition it wakes.
    pub fn leave(&mut self, sync_object: SyncObject, site: CallSite) -> Result<u32, ProtocolError> {
        let Some(lock) = sync_object.rw_lock() else {
            if self.manager(sync_object) == self.me {
                self.check_release(sync_object, self.me, site)?;
            }
            return Ok(0);
        };
        let held = self.held.get(&lock);
        let wakes = held.filter(|held| held.sync_object == sync_object);
        let wakes = wakes.map(|held| held.wakes);
        let wakes = wakes.ok_or(ProtocolError::NotEntered { sync_object, site })?;
        self.held.remove(&lock);
        Ok(wakes)
    }

    /// The worker wakes nodes that wait on the condition of a lock, when it gives the lock back:
    /// they need the lock first.
    pub fn notify(
        &mut self,
        lock: RwLockId,
        all: bool,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        let held = self.held.get_mut(&lock);
        let held = held.ok_or(ProtocolError::WithoutRwLock {
            doing: "notifying",
            lock,
            mode: "",
            site,
        })?;
        held.wakes = if all {
            u32::MAX
        } else {
            held.wakes.saturating_add(1)
        };
        Ok(())
    }

    /// The read-write locks that this node holds, and where they were acquired.
    pub fn held(&self) -> impl Iterator<Item = (SyncObject, CallSite)> {
        let held = self.held.values();
        held.map(|held| (held.sync_object, held.site))
    }

    /// The line where this node acquired a lock that it holds.
    pub fn held_since(&self, lock: RwLockId) -> Option<CallSite> {
        self.held.get(&lock).map(|held| held.site)
    }

    /// At the manager: whether a node is known to wait for those that hold the lock.
    pub fn is_kept_from(&self, lock: RwLockId, waiter: NodeId) -> bool {
        let managed = self.managed.get(&SyncObject::Write(lock));
        managed.is_some_and(|managed| managed.kept.keeps_from(waiter))
    }

    /// The manager takes a request, and says who may pass.
    pub fn requested(&mut self, request: Request) -> Result<Vec<Pass>, ProtocolError> {
        let from = request.requester;
        let managed = self.managed(request.sync_object, from)?;
        if managed.kept.queue().iter().any(|r| r.requester == from) {
            return Err(bad(
                from,
                "a second request for a sync object that it waits for",
            ));
        }
        managed.kept.wants(request);
        Ok(managed.pass())
    }

    /// The manager hears that a node, which has seen `time`, gave something back. Nodes may
    /// [pass](SyncObjects::pass) then.
    pub fn released(
        &mut self,
        sync_object: SyncObject,
        from: NodeId,
        time: &VectorTime,
        wakes: Wakes,
        site: CallSite,
    ) -> Result<(), ProtocolError> {
        self.check_release(sync_object, from, site)?;
        let Wakes {
            notified,
            waits,
            until_written,
        } = wakes;
        let mut woken = Vec::new();
        match sync_object {
            SyncObject::Write(lock) => {
                woken = self.conditions.wake(lock, notified as usize);
                // Two sections whose guards are false would wake each other for ever.
                if !until_written {
                    woken.extend(self.guards.wake(lock, usize::MAX));
                }
                if let Some(wait) = waits {
                    let request = Request {
                        sync_object,
                        requester: from,
                        wait,
                        time: time.clone(),
                    };
                    match until_written {
                        true => self.guards.wait(lock, request),
                        false => self.conditions.wait(lock, request),
                    }
                }
            }
            _ if wakes == Wakes::default() => {}
            SyncObject::Read(lock) if waits.is_none() => {
                woken = self.conditions.wake(lock, notified as usize);
            }
            _ => {
                let what = "a wait on the condition of a lock that it does not hold to write";
                return Err(bad(from, what));
            }
        }
        let managed = self.managed(sync_object, from)?;
        managed.kept.gives(mode(sync_object), from);
        woken
            .into_iter()
            .for_each(|request| managed.kept.wants(request));
        if let SyncObject::Write(_) = sync_object {
            managed.written.add(from, time);
        }
        managed.released.add(from, time);
        Ok(())
    }

    /// The nodes that may pass by what they asked for.
    pub fn pass(&mut self, sync_object: SyncObject) -> Vec<Pass> {
        let managed = self.managed.get_mut(&key(sync_object));
        managed.map_or_else(Vec::new, Managed::pass)
    }

    /// At the manager: whether no node holds a read-write lock.
    pub fn is_free(&self, lock: RwLockId) -> bool {
        let managed = self.managed.get(&SyncObject::Write(lock));
        managed.is_none_or(|managed| managed.kept.is_free())
    }

    /// At the manager: whether a node that has seen `time` has seen all that was released with a
    /// read-write lock. If `time` is not zero, there is a record of the lock then.
    pub fn has_seen_releases(&mut self, lock: RwLockId, time: Option<&VectorTime>) -> bool {
        let sync_object = SyncObject::Write(lock);
        let Some(time) = time else {
            let managed = self.managed.get(&sync_object);
            let released = managed.map_or(&self.swept, |managed| &managed.released);
            return released.0.iter().all(|(_, time)| time.is_zero());
        };
        // The record may be one more than the node manages.
        let managed = self.managed(sync_object, self.me);
        managed.is_ok_and(|managed| managed.released.unseen_at(time).is_empty())
    }

    /// At the manager: a section of a node that had seen `time` ran under a lock. If it wrote, the
    /// nodes that wait until one has written want the lock.
    pub fn section_ran(
        &mut self,
        lock: RwLockId,
        (by, time): (NodeId, Option<&VectorTime>),
        wrote: bool,
    ) {
        let woken = match wrote {
            true => self.guards.wake(lock, usize::MAX),
            false => Vec::new(),
        };
        if let Some(managed) = self.managed.get_mut(&SyncObject::Write(lock)) {
            woken.into_iter().for_each(|it| managed.kept.wants(it));
            if let Some(time) = time {
                managed.released.add(by, time);
                managed.written.add(by, time);
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
        let managed = self.managed.get(&key(sync_object));
        if let SyncObject::Permit(semaphore) = sync_object {
            let permits = managed.map_or(semaphore.permits.into(), |it| it.kept.permits);
            return match permits < MOST_PERMITS {
                true => Ok(()),
                false => Err(ProtocolError::TooManyPermits {
                    semaphore,
                    node: from,
                    site,
                }),
            };
        }
        match managed.is_some_and(|it| it.kept.holds(mode(sync_object), from)) {
            true => Ok(()),
            false => Err(bad(
                from,
                "the release of a read-write lock that it does not hold",
            )),
        }
    }

    fn check_managed(&self, sync_object: SyncObject, from: NodeId) -> Result<(), ProtocolError> {
        if self.manager(sync_object) != self.me {
            return Err(bad(
                from,
                "a request at a node that does not manage the sync object",
            ));
        }
        match sync_object {
            SyncObject::Permit(semaphore) => self.check_permits(semaphore, from),
            _ => Ok(()),
        }
    }

    fn check_permits(&self, semaphore: SemaphoreId, node: NodeId) -> Result<(), ProtocolError> {
        let made_with = self.managed.get(&key(SyncObject::Permit(semaphore)));
        match made_with.map(|managed| managed.made_with) {
            Some(made_with) if made_with != semaphore.permits => Err(ProtocolError::OtherPermits {
                semaphore,
                node,
                made_with,
            }),
            _ => Ok(()),
        }
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
        (sync_objects.most, sync_objects.sweep_at) = (4, 4);
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
        }
        let Err(ProtocolError::BadMessage { from, what }) = ask(semaphore(6)) else {
            panic!("a fifth sync object");
        };
        assert_eq!(from, NodeId(1));
        assert!(what.contains("one sync object more"), "{what}");
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
                        .released(kind(number), NodeId(1), &release, Wakes::default(), site)
                        .unwrap();
                    assert_eq!(sync_objects.pass(kind(number)), []);
                }
            }
            let kept = sync_objects.managed.len();
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
