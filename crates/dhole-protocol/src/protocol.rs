use std::ops::Range;

use dhole_model::{CallSite, NodeId, Oid, PageId, VectorTime};
use dhole_sync::MOST_MANAGED;

use crate::array_event::ArrayEvent;
use crate::coherence::parts::HasParts;
use crate::coherence::switch::array_has_one_copy;
use crate::coherence::{Protocols, built_in};
use crate::combining::Combining;
use crate::command::{Command, Commands, Event, Unread, WorkerIs};
use crate::effects::Effects;
use crate::error::ProtocolError;
use crate::ids::Ids;
use crate::sync::barrier::{Barrier, MANAGER};
use crate::sync::collective::Collectives;
use crate::sync::interval_log::LogLimits;
use crate::sync::lock::Locks;
use crate::sync::probes::DeadlockProbe;
use crate::sync::sections::Sections;
use crate::sync::sync_objects::{Request, SyncObjects, Wakes};
use crate::sync::traffic::Traffic;
use crate::sync::wait_for::{WaitFor, WorkerEdges};
use crate::{Changed, LockId, Message, Races, RegionMessage, SyncObject};

mod along;
mod barrier;
mod blocks;
mod collective;
mod combining;
mod gates;
mod locks;
mod misses;
mod one_sided;
mod operations;
mod passing;
mod probes;
mod read_ahead;
mod records;
pub(crate) mod sections;
mod withdrawal;
mod young;

/// Everything that one node of a cluster has to know to keep its objects consistent and its
/// worker in step with the others: a pure state machine. It owns no socket, thread, clock or
/// random number; [`step`](Protocol::step) takes an event and says what is to be done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Protocol {
    me: NodeId,
    coherence: Protocols,
    locks: Locks,
    barrier: Barrier,
    sync_objects: SyncObjects,
    sections: Sections,
    ids: Ids,
    collectives: Collectives,
    combining: Combining,
    wait_for: WaitFor,
    traffic: Traffic,
    /// What the worker waited for has come, but for the other sides of races.
    withheld: bool,
    /// The worker's wait was [given up](Protocol::give_up), or the run has ended early.
    over: bool,
}

impl Protocol {
    /// The protocol of node `me` in a cluster of `nodes`, before anything has happened. It does
    /// not look for races.
    pub fn new(me: NodeId, nodes: usize) -> Protocol {
        Protocol::with(me, nodes, LogLimits::default(), Races::Ignore)
    }

    /// As [`new`](Protocol::new), but looks for races; all nodes of a cluster do, or none.
    pub fn finding(races: Races, me: NodeId, nodes: usize) -> Protocol {
        Protocol::with(me, nodes, LogLimits::default(), races)
    }

    /// As [`finding`](Protocol::finding), with other limits for the log of intervals.
    pub fn with(me: NodeId, nodes: usize, limits: LogLimits, races: Races) -> Protocol {
        built_in::put();
        Protocol {
            me,
            coherence: Protocols::new(me, nodes, limits, races),
            locks: Locks::new(me, nodes, MOST_MANAGED),
            barrier: Barrier::new(me, nodes),
            sync_objects: SyncObjects::new(me, nodes),
            sections: Sections::default(),
            ids: Ids::new(me),
            collectives: Collectives::new(me, nodes),
            combining: Combining::default(),
            wait_for: WaitFor::new(me),
            traffic: Traffic::default(),
            withheld: false,
            over: false,
        }
    }

    /// Takes an event and appends to `out` what is to be done, in this order. `worker` says what
    /// the node's worker is doing meanwhile.
    ///
    /// # Errors
    /// [`ProtocolError`] when the program or a peer did what it must not; nothing was done then.
    pub fn step(
        &mut self,
        event: Event,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let before = out.len();
        let acted = self.act(event, worker, out);
        // What a node says to itself is refused only after messages in its own name, which no port
        // delivers.
        let by_itself = |error: &ProtocolError| match error {
            ProtocolError::BadMessage { from, .. } => *from == self.me,
            _ => false,
        };
        debug_assert!(
            out.len() == before || acted.as_ref().err().is_none_or(by_itself),
            "{acted:?}: a step that fails has called no effect"
        );
        let taken = acted.and_then(|()| self.tell_more(out));
        self.count_sent(out.get(before..).unwrap_or_default());
        taken
    }

    fn act(
        &mut self,
        event: Event,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_arrival(&event)?;
        match event {
            // Neither is something that the worker does.
            Event::Deliver { .. } | Event::WaitedLong | Event::SectionsTried(_) => {}
            Event::DeliverAgain { .. } | Event::Serve | Event::Array(ArrayEvent::Blocks(_)) => {
                self.coherence.members.worker_goes_on();
            }
            _ => self.worker_acts(),
        }
        match event {
            Event::Allocated { range, coherence } => {
                self.coherence.allocated(range, coherence, out)
            }
            Event::ReadMiss(miss) => self.coherence.read_misses(&[miss], out)?,
            Event::ReadMisses(misses) => self.coherence.read_misses(&misses, out)?,
            Event::Free { range, site } => self.coherence.free(range, site, out)?,
            Event::WriteFault { oid, site } => self.coherence.write_fault(oid, site, out),
            Event::Overwrite(unread) => self.coherence.overwrite(unread, out)?,
            Event::Unwritten(oids) => self.coherence.unwritten(&oids, out),
            Event::WrittenAt(noted) => self.coherence.written_at(noted),
            Event::Touch { oid } => self.coherence.touch(oid, out),
            Event::Array(event) => self.coherence.array(event, out)?,
            Event::Pages(event) => self.coherence.page_event(event, out),
            Event::Acquire { lock, site } => self.acquire(lock, site, out)?,
            Event::Release { lock } => self.release(lock, out)?,
            Event::Enter { sync_object, site } => self.enter(sync_object, site, out)?,
            Event::Leave { sync_object, site } => self.leave(sync_object, site, out)?,
            Event::WaitOnRwLock {
                lock,
                until_written,
                site,
            } => self.wait_on_rw_lock(lock, until_written, site, out)?,
            Event::SectionsTried(lock) => self.pass_by(SyncObject::Write(lock), out),
            Event::NotifyRwLock { lock, all, site } => {
                self.sync_objects.notify(lock, all, site)?;
            }
            Event::WaitOn { condition, site } => self.wait_on(condition, site, out)?,
            Event::Notify {
                condition,
                all,
                site,
            } => self.notify(condition, all, site, out)?,
            Event::Arrive { once: false, site } if self.begins_with_rounds() => {
                self.arrive_in_rounds(site, out)?
            }
            Event::Arrive { once, site } => {
                let at = self.barrier.arrive(once, false);
                self.arrive(at, site, out)?
            }
            Event::EndInterval => self.coherence.end_interval(out),
            Event::Combine(batches) => self.combine(batches, out)?,
            Event::TakeUpdates => self.take_updates(out),
            Event::Await { what, site } => self.awaits(what, site),
            Event::Learn(news) => self.learn(news.as_deref(), out)?,
            Event::Flush => self.coherence.before_release(out),
            Event::SwitchArray {
                array,
                creator,
                zero_ok,
                to,
                site,
            } => {
                if array_has_one_copy(to) && zero_ok && creator == self.me {
                    self.coherence.before_switch(array, out);
                }
                let at = self.barrier.arrive_to_switch_array(array.array, to);
                self.arrive(at, site, out)?
            }
            Event::Switch {
                range,
                creator,
                zero_ok,
                to,
                site,
            } => {
                self.coherence.check_none_freed(range)?;
                if to.properties().has_home && zero_ok && creator == self.me {
                    let objects = range.iter();
                    objects.for_each(|oid| self.coherence.before_switch(oid, out));
                }
                let at = self.barrier.arrive_to_switch(range, to);
                self.arrive(at, site, out)?
            }
            Event::Switched {
                range,
                creator,
                allocated,
                to,
            } => self.coherence.switch(range, creator, [allocated, to], out),
            Event::ArriveToCollect { site } => {
                let at = self.barrier.arrive_to_collect();
                self.arrive(at, site, out)?
            }
            Event::Collective(event) => self.collective(event, out)?,
            Event::Finish => {
                let site = CallSite::runtime("the end of the run");
                let at = self.barrier.arrive(false, true);
                self.arrive(at, site, out)?
            }
            Event::Propagate {
                objects,
                elements,
                to,
            } => self.coherence.propagate(&objects, &elements, &to, out)?,
            Event::Serve => {
                self.coherence.serve(out)?;
                self.serve_sections(worker, out);
            }
            Event::Deliver { from, message } => self.deliver(from, message, worker, out)?,
            Event::DeliverAgain { from, message } => {
                self.coherence.undefer(from, &message);
                self.handle(from, message, worker, out)?
            }
            Event::WaitedLong => self.suspect(out),
            Event::AskIds { ids } => self.ids.ask(ids, out),
        }
        Ok(())
    }

    /// The worker does something that is no part of the call before. Every method that it calls
    /// says so: while it waits next, it does not count as computing.
    #[inline]
    fn worker_acts(&mut self) {
        self.coherence.members.worker_goes_on();
        self.coherence.members.call_is_over();
    }

    fn edges(&self) -> WorkerEdges<'_> {
        WorkerEdges {
            wait_for: &self.wait_for,
            locks: &self.locks,
            sync_objects: &self.sync_objects,
            barrier: &self.barrier,
            collectives: &self.collectives,
        }
    }

    fn suspect(&self, out: &mut Commands) {
        for (to, untold) in self.barrier.untold_by_others() {
            let message = Message::Untold(untold);
            out.push(Command::Send { to, message });
        }
        if let Some(me) = self.wait_for.current() {
            let message = Message::Probe(Box::new(DeadlockProbe::begin(me)));
            out.push(Command::Send {
                to: self.me,
                message,
            });
        }
    }

    /// How many intervals are kept here because a node may not have seen them.
    pub fn intervals_kept(&self) -> usize {
        self.coherence.intervals.kept()
    }

    /// Sends a message of the locks, which carries gossip on what can be collected.
    fn say(&mut self, to: NodeId, message: Message, out: &mut Commands) {
        let message = match self.coherence.intervals.gossip_for(to) {
            Some(gossip) => Message::Gossiped {
                gossip,
                carrier: Box::new(message),
            },
            None => message,
        };
        out.push(Command::Send { to, message });
    }

    /// Pages that the worker has to bring up to date ([`PageEvent::Read`](crate::PageEvent)), if
    /// diffs are being collected; then come [`Event::ArriveToCollect`] and
    /// [`PageEvent::Collect`](crate::PageEvent).
    pub fn pages_to_validate(&self) -> Option<Vec<PageId>> {
        self.coherence.treadmarks.to_validate()
    }

    /// A diff that was made here, or came and is kept, has so many bytes.
    pub fn keeps_diff(&mut self, bytes: u64) {
        self.coherence.treadmarks.keeps_diff(bytes);
    }

    /// Whether this node's diffs, twins and records of pages take more memory than they may, so
    /// that they are collected at the next barrier.
    pub fn is_full_of_pages(&self) -> bool {
        self.coherence.treadmarks.is_full()
    }

    /// Whether an [`Event::WriteFault`] of the object leads to a wait: a protocol that the program
    /// brings says when it may be written.
    pub fn waits_to_write(&self, oid: Oid) -> bool {
        self.coherence.waits_to_write(oid)
    }

    /// Whether an object of which this node has no valid copy may be written as a whole without
    /// being fetched ([`Event::Overwrite`]). Where it is kept consistent by versions it may. A home
    /// is sent what differs from a copy, and comparisons find what was written by a copy.
    pub fn may_overwrite(&self, unread: &Unread) -> bool {
        self.coherence.may_overwrite(unread)
    }

    /// Whether requests wait for the worker's next call ([`Event::Serve`]).
    pub fn has_deferred(&self) -> bool {
        self.sections.are_deferred() || self.coherence.has_deferred()
    }

    /// How many requests wait for it.
    pub fn deferred(&self) -> usize {
        usize::from(self.sections.are_deferred()) + self.coherence.deferred()
    }

    /// Whether so much was freed in this interval that it [should end](Event::EndInterval).
    pub fn has_freed_much(&self) -> bool {
        self.coherence.has_freed_much()
    }

    /// Whether an access to an object may be made, as far as it is known here.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when the object was freed.
    pub fn check_not_freed(&self, oid: Oid) -> Result<(), ProtocolError> {
        self.coherence.check_not_freed(oid)
    }

    /// The same protocol, which learns what was written by comparing with twins: what is the same
    /// must be told ([`Event::Unwritten`]) before the worker synchronises.
    pub fn comparing(mut self) -> Protocol {
        self.coherence.compare();
        self
    }

    /// The same protocol, which [expects](Command::ExpectWrite) writes: what of it is not written
    /// must be told ([`Event::Unwritten`]) before the worker synchronises.
    pub fn expecting_writes(mut self) -> Protocol {
        self.coherence.expect_writes();
        self
    }

    /// The same protocol, of a node that withdraws exclusive objects from a worker that computes:
    /// it [is told](Protocol::take_written_alone) which are to be expected to be written.
    pub fn withdrawing(mut self) -> Protocol {
        self.coherence.withdraw_exclusive();
        self
    }

    /// The same protocol, of a node whose clean objects others [may read](Protocol::published)
    /// without a message: it keeps writable those alone that it wrote in so many intervals in a row
    /// while nobody read them, besides the first.
    pub fn publishing(mut self, exclusive_after: u8) -> Protocol {
        self.coherence.publish(exclusive_after);
        self
    }

    /// The same protocol, of a run in which barriers begin with [rounds](Message::BarrierRound)
    /// where no node is expected to have news. So many of the first are expected to be so.
    pub fn disseminating(mut self, first: u32) -> Protocol {
        self.barrier.disseminate(first);
        self
    }

    /// The same protocol, of a run that keeps these pages consistent in place of objects.
    pub fn paging(mut self, pages: Range<u64>) -> Protocol {
        self.coherence.treadmarks.keep(pages);
        self
    }

    /// Whether what was written is found by comparing with twins.
    pub fn compares(&self) -> bool {
        self.coherence.compares()
    }

    /// The objects that have a twin to be compared with, or that were expected to be written.
    pub fn twins(&self) -> impl Iterator<Item = Oid> {
        self.coherence.twins()
    }

    /// The object of the next [`Event::ReadMiss`] has this one on its page, without a valid copy:
    /// it is asked for at once if it was written elsewhere. Or that of the next
    /// [`Event::WriteFault`] has it there, with a clean copy: it becomes writable at once, where
    /// what was written is found by comparing. Up to [`MOST_BESIDE`](crate::MOST_BESIDE) of them.
    pub fn lies_beside(&mut self, oid: Oid) {
        self.coherence.lies_beside(oid);
    }

    /// A merge or a comparison has found that leaves of an object at home here were changed, by a
    /// node that had seen `time` or, without one, by this node's worker. Where a write races with
    /// another node's last one of the same leaf, `out` says so.
    pub fn changed_at_home(
        &mut self,
        changed: Changed,
        leaves: impl Iterator<Item = Range<u64>>,
        time: Option<&VectorTime>,
        out: &mut Commands,
    ) {
        self.coherence.changed_at_home(changed, leaves, time, out);
    }

    /// The wait that the worker is in for what other nodes do.
    pub fn wait(&self) -> Option<crate::Waiter> {
        self.wait_for.current()
    }

    /// The nodes whose answers the worker waits for, for objects or elements.
    pub fn asked(&self) -> impl Iterator<Item = NodeId> {
        let objects = self.coherence.fetching.fetches.asked();
        objects.chain(self.coherence.arrays.fetching.fetches.asked())
    }

    /// The locks that this node holds, and where they were acquired.
    pub fn held_locks(&self) -> impl Iterator<Item = (LockId, CallSite)> {
        self.locks.held()
    }

    /// The read-write locks that this node holds, and where they were acquired.
    pub fn held_sync_objects(&self) -> impl Iterator<Item = (SyncObject, CallSite)> {
        self.sync_objects.held()
    }

    /// Whether the worker wrote objects that have a home since they were last flushed. Then an
    /// [`Event::Flush`] must be over before the worker synchronises.
    pub fn has_unflushed(&self) -> bool {
        self.coherence.must_release()
    }

    /// What the worker waited for has come. It goes on once it is known where the other sides of
    /// the races are that were found with it.
    fn go_on(&mut self, fx: &mut impl Effects) {
        self.wait_for.end();
        self.withheld = self.coherence.races.is_asking();
        if !self.withheld {
            fx.done();
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Message,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let nodes = self.coherence.intervals.time().nodes();
        let checked = self
            .check_sender(from)
            .and_then(|()| message.check(nodes))
            .and_then(|()| self.coherence.treadmarks.check_message(&message));
        checked.map_err(|what| ProtocolError::BadMessage { from, what })?;
        let counted = message.may_end_a_wait() && !matches!(message, Message::Gossiped { .. });
        self.handle(from, message, worker, out)?;
        if counted {
            self.traffic.received_from(from);
        }
        Ok(())
    }

    fn handle(
        &mut self,
        from: NodeId,
        message: Message,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        match message {
            // The worker computes, and what it sees may not change.
            message if self.over && message.ends_a_wait() => Ok(()),
            Message::Gossiped { gossip, carrier } => {
                self.coherence.intervals.check_gossip(from, &gossip)?;
                self.deliver(from, *carrier, worker, out)?;
                self.coherence.hear(&gossip);
                Ok(())
            }
            Message::Fetch(_)
            | Message::FetchElements { .. }
            | Message::PageRequest { .. }
            | Message::DiffRequest { .. } => self.coherence.requested(from, message, worker, out),
            Message::FetchReply(reply) => self.coherence.fetch_reply(from, reply, out),
            Message::Region(it) => self.about_regions(from, it, worker, out),
            Message::Elements(it) => self.about_regions(from, it, worker, out),
            Message::AskIds { ids } => self.ids.asked(from, ids, out),
            Message::HandIdsOut(handed) => self.ids.got(from, handed, out),
            Message::Combine(combine) => self.updates_came(from, *combine),
            Message::Combined { number, news, left } => {
                self.updates_taken(from, (number, &news, left), out)
            }
            Message::PageReply {
                round,
                page,
                applied,
            } => {
                let treadmarks = &mut self.coherence.treadmarks;
                treadmarks.page_reply(from, (round, page), &applied, out)
            }
            Message::DiffReply {
                round,
                page,
                got,
                diffs,
            } => {
                let treadmarks = &mut self.coherence.treadmarks;
                treadmarks.diff_reply(from, (round, page), &got, &diffs, out)
            }
            Message::ElementsReply(reply) => self.coherence.fetch_reply(from, reply, out),
            Message::LockRequest { lock, time } => {
                let passed = self.locks.requested(lock, from, time);
                self.pass(lock, from, passed, out)
            }
            Message::LockForward {
                lock,
                requester,
                time,
            } => {
                let passed = self.locks.forwarded(lock, requester, time);
                self.pass(lock, from, passed, out)
            }
            Message::LockGrant {
                lock,
                news,
                waiting,
            } => self.lock_grant(from, lock, &news, waiting, out),
            Message::BarrierArrive {
                barrier,
                news,
                site,
                full,
                has_news,
            } => {
                if self.me != MANAGER {
                    let what = "an arrival at a node that does not manage the barrier";
                    return Err(ProtocolError::BadMessage { from, what });
                }
                self.coherence.check_own(from, &news)?;
                self.coherence.treadmarks.arrived(full);
                self.arrived(from, barrier, (*news, has_news), site, out)
            }
            Message::BarrierDepart {
                barrier,
                news,
                collect,
                rounds,
            } => {
                if from != MANAGER {
                    let what = "a departure from a node that does not manage the barrier";
                    return Err(ProtocolError::BadMessage { from, what });
                }
                self.depart(from, barrier, &news, (collect, rounds), out)
            }
            Message::BarrierRound(said) => self.told_round(from, said, out),
            Message::Probe(probe) => self.probed(from, probe, out),
            Message::Untold(of) => self.asked_what_it_told(from, of, out),
            Message::Told {
                of,
                ended,
                arrivals,
            } => self.barrier.told_again(from, of, ended, arrivals),
            Message::WhereWritten { raced, lamport } => {
                self.coherence.races.asked(from, raced, lamport, out);
                Ok(())
            }
            Message::WrittenAt {
                raced,
                lamport,
                site,
            } => {
                self.coherence
                    .races
                    .answered(from, raced, lamport, site, out)?;
                if self.withheld {
                    self.go_on(out);
                }
                Ok(())
            }
            Message::Notify { condition } => self.notified(from, condition, out),
            Message::SyncRequest {
                sync_object,
                wait,
                time,
            } => self.sync_request(sync_object, from, wait, time, out),
            Message::SyncForward {
                sync_object,
                requester,
                wait,
                time,
                parts,
            } => {
                let request = Request {
                    sync_object,
                    requester,
                    wait,
                    time,
                };
                self.tell(&request, parts, out);
                Ok(())
            }
            Message::SyncGrant {
                sync_object,
                wait,
                parts,
                news,
            } => self.sync_grant(from, (sync_object, wait, parts), &news, out),
            Message::SyncRelease {
                sync_object,
                time,
                site,
            } => self.sync_release(sync_object, from, &time, Wakes::default(), site, out),
            Message::SyncReleaseAndWake {
                sync_object,
                time,
                site,
                wakes,
                waits,
                until_written,
            } => {
                let wakes = Wakes {
                    notified: wakes,
                    waits,
                    until_written,
                };
                self.sync_release(sync_object, from, &time, wakes, site, out)
            }
            Message::Collective(message) => self.collected(from, *message, out),
            Message::Objects(_) | Message::Part(_) | Message::After { .. } => {
                let what = "a message about objects or memory to a node that has none";
                Err(ProtocolError::BadMessage { from, what })
            }
            Message::Coherence(message) => {
                self.coherence.member_message(from, message, worker, out)
            }
            Message::Deadlock { cycle } => {
                if self.is_on(&cycle) {
                    self.give_up();
                    out.push(Command::Deadlock(cycle));
                }
                Ok(())
            }
            Message::Abort { .. } => {
                self.give_up();
                Ok(())
            }
        }
    }

    fn about_regions<R: HasParts>(
        &mut self,
        from: NodeId,
        message: RegionMessage<R>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.coherence.about_regions(from, message, worker, out)? {
            self.try_sections(out);
        }
        Ok(())
    }

    /// The worker goes on without what it waits for, and will never wait for a lock, at a barrier
    /// or a sync object, or on a condition again. What it was to get may be on its way all the
    /// same.
    pub fn give_up(&mut self) {
        self.wait_for.end();
        self.over = true;
    }

    /// Whether the worker's current wait lies on the cycle. Waits at different barriers that the
    /// manager saw apart carry no number.
    fn is_on(&self, cycle: &[crate::Waiter]) -> bool {
        let apart = cycle.iter().any(|waiter| waiter.wait == 0);
        self.wait_for.is_waiting() && (apart || self.wait_for.is_on(cycle))
    }
}
