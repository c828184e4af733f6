//! What operations on objects ask of coherence: intervals that end, notices that travel, and a
//! place in the wait-for graph. The objects themselves are [`objects`](crate::objects).

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, VectorTime};

use super::Protocol;
use crate::command::Commands;
use crate::error::ProtocolError;
use crate::sync::traffic::Traffic;
use crate::{BarrierId, Message, Waiter, WaitingFor, WriteNotices};

impl Protocol {
    /// What this node has seen; `None` while nobody has written anything that it knows of.
    pub fn seen(&self) -> Option<&VectorTime> {
        let time = self.coherence.intervals.time();
        (!time.is_zero()).then_some(time)
    }

    /// What this node has seen and someone at `time` has not; `None` if that is nothing.
    pub fn news_for(&self, time: &VectorTime) -> Option<Arc<WriteNotices>> {
        let news = self.has_news_for(time);
        news.then(|| Arc::new(self.coherence.intervals.since(time)))
    }

    /// Whether there is something that this node has seen and someone who has seen `time` has not.
    pub fn has_news_for(&self, time: &VectorTime) -> bool {
        !time.covers(self.coherence.intervals.time())
    }

    /// What every node has seen, as far as this one knows.
    pub fn seen_by_all(&self) -> &VectorTime {
        self.coherence.intervals.seen_by_all()
    }

    /// A message about objects was sent, or received: whoever looks whether anything is on its way
    /// has to know. Any of them may end a wait, also the digests for which a comparison waits.
    pub fn count_objects(&mut self, with: NodeId, sent: bool) {
        match sent {
            true => self.traffic.sent_to(with),
            false => self.traffic.received_from(with),
        }
    }

    /// The run goes on when nodes are [lost](Protocol::lose). From the beginning on.
    pub fn survive(&mut self) {
        self.traffic = Traffic::of_each(self.coherence.intervals.time().nodes());
    }

    /// These nodes are lost, and the run goes on: no wait can be ended by them any more.
    pub fn lose(&mut self, nodes: &[NodeId]) {
        self.traffic.lose(nodes);
    }

    /// The worker waits for an operation, or for a process: [`Event::Await`](crate::Event::Await).
    pub fn awaits(&mut self, what: WaitingFor, site: CallSite) {
        self.worker_acts();
        self.wait_for.begin(what, site);
    }

    /// The operation that the worker [waited](crate::Event::Await) for was executed.
    pub fn operation_over(&mut self) {
        self.wait_for.end();
    }

    /// Whether an operation neither ends an interval here nor, if it tells nothing, changes what is
    /// kept: then none of that need be looked at.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        let quiet = self.coherence.is_quiescent() && !self.has_updates();
        quiet && !self.sections.are_deferred()
    }

    /// Whether the worker is in a wait that may be set aside, so that another process of this node
    /// goes on meanwhile.
    pub fn may_park(&self) -> bool {
        let barrier = |barrier| {
            matches!(
                barrier,
                BarrierId::Program(_) | BarrierId::Once(_) | BarrierId::End(_)
            )
        };
        self.wait_for
            .current()
            .is_some_and(|wait| match wait.waiting_for {
                WaitingFor::Operation(_) | WaitingFor::Process(_) | WaitingFor::Collective(_) => {
                    true
                }
                WaitingFor::Barrier(at) => barrier(at),
                _ => false,
            })
    }

    /// Sets the worker's wait aside, if it is in one. It may not hold a lock, for whoever waits for
    /// that waits for this node's worker.
    pub fn park(&mut self) -> Option<Waiter> {
        self.wait_for.park()
    }

    /// Whether something that these tell of rests on what this node has not been told: other nodes
    /// have left a barrier at which it has arrived, and forgotten what all were told there.
    pub fn lacks(&self, news: &WriteNotices) -> bool {
        self.coherence.check(self.me, news).is_err()
    }

    /// As [`lacks`](Protocol::lacks), of what gives the worker a lock.
    pub fn lacks_of_grant(&self, message: &Message) -> bool {
        match message {
            Message::LockGrant { news, .. } | Message::SyncGrant { news, .. } => self.lacks(news),
            Message::Gossiped { carrier, .. } => self.lacks_of_grant(carrier),
            _ => false,
        }
    }

    /// Whoever waited goes on before the other sides of races are known; they are told all the
    /// same.
    pub fn go_on_at_once(&mut self) {
        self.withheld = false;
    }

    /// The waits that are set aside.
    pub fn parked(&self) -> &[Waiter] {
        self.wait_for.parked()
    }

    /// A wait that was set aside is over, or the worker's again.
    pub fn unpark(&mut self, wait: Waiter, again: bool) {
        self.wait_for.unpark(wait, again);
    }

    pub(super) fn learn(
        &mut self,
        news: Option<&WriteNotices>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.coherence.end_interval(out);
        match news {
            Some(news) => {
                let records = self.coherence.check(self.me, news)?;
                self.coherence.apply(news, records, out);
            }
            None => self.coherence.acquired(out),
        }
        self.go_on(out);
        Ok(())
    }
}
