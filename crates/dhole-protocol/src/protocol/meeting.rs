//! The barrier: arriving, and leaving when all have.

use std::sync::Arc;

use dhole_model::{CallSite, IntervalIndex, NodeId};

use super::Protocol;
use crate::barrier::{Arrived, MANAGER};
use crate::command::{Command, Commands, ProtocolError};
use crate::{BarrierId, Message, News, Untold, WaitingFor};

impl Protocol {
    pub(super) fn arrive(
        &mut self,
        (barrier, first_untold): (BarrierId, IntervalIndex),
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.lazy.end_interval(out);
        self.wait_for.begin(WaitingFor::Barrier(barrier), site);
        let news = self.lazy.own_news_from(first_untold);
        self.barrier.tells(news.time.of(self.me), site);
        self.tell_arrival(barrier, news, site, out)
    }

    /// Where this node has arrived at a barrier, tells what its processes did since.
    pub(super) fn tell_more(&mut self, out: &mut Commands) -> Result<(), ProtocolError> {
        let last = self.lazy.time().of(self.me);
        let Some((barrier, first, site)) = self.barrier.untold(last) else {
            return Ok(());
        };
        let news = self.lazy.own_news_from(first);
        self.tell_arrival(barrier, news, site, out)
    }

    fn tell_arrival(
        &mut self,
        barrier: BarrierId,
        news: News,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let full = self.lazy.treadmarks.is_full();
        if self.me == MANAGER {
            self.lazy.treadmarks.arrived(full);
            return self.arrived(self.me, barrier, news, site, out);
        }
        let message = Message::BarrierArrive {
            barrier,
            news,
            site,
            full,
        };
        out.push(Command::Send {
            to: MANAGER,
            message,
        });
        Ok(())
    }

    /// The manager asks for an interval of this node that another one says to have seen.
    pub(super) fn asked_what_it_told(
        &mut self,
        from: NodeId,
        of: Untold,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if from != MANAGER {
            let what = "a question that only the manager of a barrier asks";
            return Err(ProtocolError::BadMessage { from, what });
        }
        if let Some(arrivals) = self.barrier.arrivals_at(of.barrier) {
            let ended = self.lazy.time().of(self.me);
            let message = Message::Told {
                of,
                ended,
                arrivals,
            };
            out.push(Command::Send { to: from, message });
        }
        Ok(())
    }

    pub(super) fn arrived(
        &mut self,
        from: NodeId,
        barrier: BarrierId,
        news: News,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        match self.barrier.arrived(from, barrier, news, site)? {
            Arrived::NotAll => Ok(()),
            Arrived::All(barrier, departures) => {
                let program = matches!(barrier, BarrierId::Program(_) | BarrierId::Once(_));
                let collect = program && self.lazy.treadmarks.collects();
                let mut departures = departures.into_iter();
                let own = departures.next();
                for (node, news) in departures.enumerate() {
                    let message = Message::BarrierDepart {
                        barrier,
                        news,
                        collect,
                    };
                    out.push(Command::Send {
                        to: NodeId::at(node + 1),
                        message,
                    });
                }
                own.map_or(Ok(()), |news| {
                    self.depart(self.me, barrier, &news, collect, out)
                })
            }
            Arrived::Apart(waiters) => {
                let cycle: Arc<[_]> = waiters.into();
                for waiter in cycle.iter() {
                    let message = Message::Deadlock {
                        cycle: Arc::clone(&cycle),
                    };
                    out.push(Command::Send {
                        to: waiter.node,
                        message,
                    });
                }
                Ok(())
            }
        }
    }

    pub(super) fn depart(
        &mut self,
        from: NodeId,
        barrier: BarrierId,
        news: &News,
        collect: bool,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.over {
            return Ok(());
        }
        self.barrier.check_departure(barrier, from)?;
        let records = self.lazy.check(from, news)?;
        self.barrier.depart(news.time.of(self.me));
        self.lazy.apply(news, records, out);
        self.lazy.met(news);
        self.gates.met(&news.time);
        if collect {
            self.lazy.treadmarks.begin_collection();
        }
        self.go_on(out);
        Ok(())
    }
}
