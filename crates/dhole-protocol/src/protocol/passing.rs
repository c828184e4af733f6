//! Sync objects: what the worker asks for, and the messages that follow.

use dhole_model::{CallSite, NodeId, VectorTime};

use super::Protocol;
use crate::command::Commands;
use crate::error::ProtocolError;
use crate::sync::sync_objects::{Pass, Request, Wakes};
use crate::{Message, RwLockId, SyncObject, WaitingFor, WriteNotices};

impl Protocol {
    pub(super) fn enter(
        &mut self,
        sync_object: SyncObject,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.sync_objects.check_enter(sync_object, site)?;
        self.coherence.end_interval(out);
        let wait = self
            .wait_for
            .begin(WaitingFor::SyncObject(sync_object), site);
        self.sync_objects.enter(sync_object, site, wait);
        let (manager, time) = (
            self.sync_objects.manager(sync_object),
            self.coherence.intervals.time().clone(),
        );
        if manager == self.me {
            return self.sync_request(sync_object, self.me, wait, time, out);
        }
        let message = Message::SyncRequest {
            sync_object,
            wait,
            time,
        };
        self.say(manager, message, out);
        Ok(())
    }

    pub(super) fn leave(
        &mut self,
        sync_object: SyncObject,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let notified = self.sync_objects.leave(sync_object, site)?;
        self.coherence.end_interval(out);
        let wakes = Wakes {
            notified,
            ..Wakes::default()
        };
        self.gives_back(sync_object, wakes, site, out)
    }

    /// The worker gives a read-write lock back, waits until it is notified, or until a node has
    /// written under the lock, and acquires it again: its place in the queue is its manager's to
    /// give. The wait goes with the release, so it misses nothing.
    pub(super) fn wait_on_rw_lock(
        &mut self,
        lock: RwLockId,
        until_written: bool,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let sync_object = SyncObject::Write(lock);
        let left = self.sync_objects.leave(sync_object, site);
        let notified = left.map_err(|_| ProtocolError::WithoutRwLock {
            doing: "waiting on",
            lock,
            mode: " to write",
            site,
        })?;
        self.coherence.end_interval(out);
        let wait = self.wait_for.begin(WaitingFor::RwLockCondition(lock), site);
        self.sync_objects.enter(sync_object, site, wait);
        let wakes = Wakes {
            notified,
            waits: Some(wait),
            until_written,
        };
        self.gives_back(sync_object, wakes, site, out)
    }

    fn gives_back(
        &mut self,
        sync_object: SyncObject,
        wakes: Wakes,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let manager = self.sync_objects.manager(sync_object);
        let time = self.coherence.intervals.time().clone();
        if manager == self.me {
            return self.sync_release(sync_object, self.me, &time, wakes, site, out);
        }
        let message = match wakes == Wakes::default() {
            true => Message::SyncRelease {
                sync_object,
                time,
                site,
            },
            false => Message::SyncReleaseAndWake {
                sync_object,
                time,
                site,
                wakes: wakes.notified,
                waits: wakes.waits,
                until_written: wakes.until_written,
            },
        };
        self.say(manager, message, out);
        Ok(())
    }

    pub(super) fn sync_request(
        &mut self,
        sync_object: SyncObject,
        requester: NodeId,
        wait: u64,
        time: VectorTime,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let request = Request {
            sync_object,
            requester,
            wait,
            time,
        };
        let passes = self.sync_objects.requested(request)?;
        self.let_pass(passes, out);
        Ok(())
    }

    pub(super) fn sync_release(
        &mut self,
        sync_object: SyncObject,
        from: NodeId,
        time: &VectorTime,
        wakes: Wakes,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.sync_objects
            .released(sync_object, from, time, wakes, site)?;
        self.pass_after_sections(sync_object, out);
        Ok(())
    }

    /// Lets the nodes pass that may.
    pub(super) fn pass_by(&mut self, sync_object: SyncObject, out: &mut Commands) {
        let passes = self.sync_objects.pass(sync_object);
        self.let_pass(passes, out);
    }

    fn let_pass(&mut self, passes: Vec<Pass>, out: &mut Commands) {
        for Pass { request, sources } in passes {
            let parts = sources.len() as u32;
            if sources.is_empty() {
                self.pass_without_news(&request, out);
            }
            for source in sources {
                if source == self.me {
                    self.tell(&request, parts, out);
                    continue;
                }
                let message = Message::SyncForward {
                    sync_object: request.sync_object,
                    requester: request.requester,
                    wait: request.wait,
                    time: request.time.clone(),
                    parts,
                };
                self.say(source, message, out);
            }
        }
    }

    fn pass_without_news(&mut self, request: &Request, out: &mut Commands) {
        if request.requester == self.me {
            if !self.over {
                self.coherence.acquired(out);
                self.sync_objects.granted(1);
                self.go_on(out);
            }
            return;
        }
        let message = Message::SyncGrant {
            sync_object: request.sync_object,
            wait: request.wait,
            parts: 1,
            news: Box::new(WriteNotices {
                time: VectorTime::zero(request.time.nodes()),
                lamport: 0,
                intervals: Vec::new(),
            }),
        };
        self.say(request.requester, message, out);
    }

    /// Tells a node that may pass what it has not seen: this node's releases among it.
    pub(super) fn tell(&mut self, request: &Request, parts: u32, out: &mut Commands) {
        let message = Message::SyncGrant {
            sync_object: request.sync_object,
            wait: request.wait,
            parts,
            news: Box::new(self.coherence.intervals.since(&request.time)),
        };
        self.say(request.requester, message, out);
    }

    pub(super) fn sync_grant(
        &mut self,
        from: NodeId,
        (sync_object, wait, parts): (SyncObject, u64, u32),
        news: &WriteNotices,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.sync_objects
            .check_grant(from, sync_object, wait, parts)?;
        let records = self.coherence.check(from, news)?;
        self.coherence.apply(news, records, out);
        if self.sync_objects.granted(parts) {
            self.go_on(out);
        }
        Ok(())
    }
}
