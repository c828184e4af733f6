//! The barrier: arriving, and leaving when all have.

use std::sync::Arc;

use dhole_model::{CallSite, IntervalIndex, NodeId};

use super::Protocol;
use crate::barrier::{Arrived, Barrier, Here, MANAGER, Told};
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
            news: Box::new(news),
            site,
            full,
            here: self.barrier.said_here(),
        };
        out.push(Command::Send {
            to: MANAGER,
            message,
        });
        Ok(())
    }

    /// The other of two nodes.
    pub fn other(&self) -> NodeId {
        NodeId(1 - self.me.0.min(1))
    }

    /// The worker arrives at a barrier where nobody brings a value: what this node says to the
    /// [other](Protocol::other), and whether both go on at once. None where there are not two
    /// nodes, or one of them has more to tell.
    #[inline]
    pub fn arrive_quietly(&mut self, site: CallSite) -> Option<(Here, bool)> {
        let lazy = &self.lazy;
        let quiet = lazy.is_quiet() && lazy.is_known_to_all() && lazy.treadmarks.is_unused();
        let quiet = quiet && !lazy.races.is_asking();
        let quiet = quiet && self.collectives.is_idle();
        if lazy.time().nodes() != 2 || self.over || !quiet {
            return None;
        }
        let last = lazy.time().of(self.me);
        let news = || lazy.nothing_since(last);
        let arrived = self.barrier.arrive_quietly(self.me, news, last, site)?;
        let barrier = BarrierId::Program(arrived.0.number);
        match arrived.1 {
            true => self.met_quietly(),
            false => {
                self.wait_for.begin(WaitingFor::Barrier(barrier), site);
            }
        }
        Some(arrived)
    }

    /// Both are there, and have nothing to tell.
    fn met_quietly(&mut self) {
        self.barrier.depart_quietly();
        self.collectives.met();
        // Its processes may have done more since it arrived, which the other has not seen.
        self.gates.met(&self.lazy.seen_by_all);
    }

    /// Both are there, and this node goes on.
    fn depart_quietly(&mut self, out: &mut Commands) {
        self.met_quietly();
        self.lazy.acquired(out);
        self.go_on(out);
    }

    /// At the manager: a node that arrives says at which barrier it was last there with nothing to
    /// tell. If the manager was as well, both have gone on from there.
    pub(super) fn was_there(&mut self, here: u64, out: &mut Commands) {
        if self.barrier.is_quietly_there() && here == self.barrier.said_here() && !self.over {
            self.depart_quietly(out);
        }
    }

    /// The other of two nodes says that it is there.
    pub(super) fn told_here(
        &mut self,
        from: NodeId,
        here: Here,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        Barrier::check_here(self.me, from, here.manages)?;
        if self.me == MANAGER {
            // It has gone on from the barrier before, and what it said there is still on its way.
            self.was_there(here.number, out);
        }
        match self.barrier.told_here(self.me, from, here)? {
            Told::Nothing => Ok(()),
            Told::Over if self.over => Ok(()),
            Told::Over => {
                self.depart_quietly(out);
                Ok(())
            }
            Told::Arrival(barrier, site) => {
                let news = self.lazy.known_of(from);
                self.arrived(from, barrier, news, site, out)?;
                self.barrier.was_quiet(from);
                Ok(())
            }
        }
    }

    /// Takes what the other of two nodes says, where nothing comes of it but that this one goes on,
    /// if it waits for that: whether it does. None where nothing has happened yet.
    #[inline]
    pub fn hears_here(&mut self, from: NodeId, here: Here) -> Option<bool> {
        let two = self.lazy.time().nodes() == 2;
        let busy = self.over || self.collectives.is_in_one();
        if !two || busy || !self.barrier.is_next(here.number) {
            return None;
        }
        let there = self.barrier.is_quietly_there();
        let simple = match there {
            true => self.lazy.is_quiet() && !self.lazy.races.is_asking(),
            false => !self.barrier.is_waiting(),
        };
        if !simple {
            return None;
        }
        match self.barrier.told_here(self.me, from, here).ok()? {
            Told::Over => {
                self.met_quietly();
                self.wait_for.end();
            }
            Told::Nothing => {}
            Told::Arrival(barrier, site) => {
                let news = self.lazy.known_of(from);
                // Not all: this node has not arrived.
                self.barrier.arrived(from, barrier, news, site).ok()?;
                self.barrier.was_quiet(from);
            }
        }
        self.traffic.received_from(from);
        Some(there)
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
        self.check_arrived(from, barrier, site)?;
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
                        news: Box::new(news),
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
        self.collectives.met();
        self.gates.met(&news.time);
        if collect {
            self.lazy.treadmarks.begin_collection();
        }
        self.go_on(out);
        Ok(())
    }
}
