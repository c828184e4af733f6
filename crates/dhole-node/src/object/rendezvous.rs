//! Where all nodes meet, in a run that survives the loss of some: in an order with the operations.

use dhole_model::{CallSite, NodeId, WaitCause};
use dhole_protocol::objects::{Bytes, ObjectsEvent, Outcome, Refusal, Rendezvous};
use dhole_protocol::{Event, Operation};

use super::invoke::Wanted;
use crate::error::Result;
use crate::sync_error::SyncError;
use crate::waits::Awaited;
use crate::worker::{Link, Make, Worker};

impl<'id> Worker<'id> {
    /// As [`once`](Worker::once): the first node that is left makes the value. If it is lost
    /// before it has told it, the next one does.
    pub(crate) fn once_of_those_left(
        &mut self,
        make: &mut Make<'id, '_>,
        site: CallSite,
    ) -> Result<()> {
        let mut has_made = false;
        loop {
            let mut value = None;
            if self.link.maker() == self.node() && !has_made {
                has_made = true;
                self.make_for_all(make, site)?;
                let mut guard = self.link.node.monitor.lock();
                value = Some(Bytes::from(&guard.split().1.value[..]));
            }
            match self.meet(Rendezvous::Once, site, value)? {
                Ok(value) => {
                    let mut guard = self.link.node.monitor.lock();
                    guard.split().1.value = value.to_vec();
                    return Ok(());
                }
                Err(Refusal::Unmade) => {}
                Err(cause) => return Err(self.link.apart(site, cause).into()),
            }
        }
    }

    pub(crate) fn meet_those_left(
        &mut self,
        place: Rendezvous,
        site: CallSite,
    ) -> Result<(), SyncError> {
        let met = self.meet(place, site, None)?;
        met.map(drop).map_err(|cause| self.link.apart(site, cause))
    }

    fn meet(
        &mut self,
        place: Rendezvous,
        site: CallSite,
        value: Option<Bytes>,
    ) -> Result<Outcome, SyncError> {
        let wanted = Wanted {
            object: Operation::NO_OBJECT,
            name: match place {
                Rendezvous::Barrier => "the barrier",
                Rendezvous::Once => "once",
                Rendezvous::End => "the end of the run",
            },
            site,
            cause: WaitCause::Operation,
        };
        let called = self.exclusive(site, |link, call| {
            link.settle_started(call)?;
            link.local(call, Some(Event::EndInterval))?;
            let event = |call| ObjectsEvent::Meet {
                call,
                place,
                site,
                value,
            };
            link.awaits(Awaited::by(match place {
                Rendezvous::Once => WaitCause::Once,
                Rendezvous::Barrier | Rendezvous::End => WaitCause::Barrier,
            }));
            let outcome = link.operate(call, wanted, event)?;
            link.learn(call)?;
            if place != Rendezvous::End {
                call.split().1.counting.all.barriers += 1;
            }
            Ok(outcome)
        });
        called.map_err(|failure| self.link.sync_error(*failure, site))
    }
}

impl Link<'_> {
    /// Whether the run goes on when nodes are lost.
    pub(crate) fn survives(&self) -> bool {
        self.node.survives
    }

    /// The node that makes values for all.
    fn maker(&self) -> NodeId {
        self.node.monitor.lock().split().1.here.machine.maker()
    }

    fn apart(&self, site: CallSite, cause: Refusal) -> SyncError {
        let node = self.node.id;
        SyncError::Apart { node, site, cause }
    }
}
