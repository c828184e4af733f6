//! What operations on objects ask of coherence: intervals that end, notices that travel, and a
//! place in the wait-for graph. The objects themselves are [`objects`](crate::objects).

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, VectorTime};

use super::Protocol;
use crate::command::{Commands, ProtocolError};
use crate::stall::Traffic;
use crate::{News, Operation, WaitingFor};

impl Protocol {
    /// What this node has seen; `None` while nobody has written anything that it knows of.
    pub fn seen(&self) -> Option<&VectorTime> {
        let time = self.lazy.time();
        let nothing = (0..time.nodes()).all(|node| time.of(dhole_model::NodeId::at(node)) == 0);
        (!nothing).then_some(time)
    }

    /// What this node has seen and someone at `time` has not; `None` if that is nothing.
    pub fn news_for(&self, time: &VectorTime) -> Option<Arc<News>> {
        let nothing = time.covers(self.lazy.time());
        (!nothing).then(|| Arc::new(self.lazy.news_since(time)))
    }

    /// What every node has seen, as far as this one knows.
    pub fn seen_by_all(&self) -> &VectorTime {
        &self.lazy.seen_by_all
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
        self.traffic = Traffic::of_each(self.lazy.time().nodes());
    }

    /// These nodes are lost, and the run goes on: no wait can be ended by them any more.
    pub fn lose(&mut self, nodes: &[NodeId]) {
        self.traffic.lose(nodes);
    }

    /// The operation that the worker [waited](crate::Event::Await) for was executed.
    pub fn operation_over(&mut self) {
        self.wait_for.end();
    }

    pub(super) fn await_operation(&mut self, operation: Operation, site: CallSite) {
        self.wait_for.begin(WaitingFor::Operation(operation), site);
    }

    pub(super) fn learn(
        &mut self,
        news: Option<&News>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.lazy.end_interval(out);
        match news {
            Some(news) => {
                let records = self.lazy.check(self.me, news)?;
                self.lazy.apply(news, records, out);
            }
            None => self.lazy.acquired(out),
        }
        self.go_on(out);
        Ok(())
    }
}
