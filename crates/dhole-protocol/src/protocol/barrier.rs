//! The barrier: arriving, and leaving when all have.

use std::sync::Arc;

use dhole_model::{CallSite, IntervalIndex, NodeId};

use super::Protocol;
use crate::collective_call::Called;
use crate::command::{Command, Commands};
use crate::effects::Effects;
use crate::error::ProtocolError;
use crate::message::check;
use crate::sync::barrier::{Arrived, BarrierRound, MANAGER};
use crate::{BarrierId, Message, Untold, WaitingFor, WriteNotices};

impl Protocol {
    pub(super) fn arrive(
        &mut self,
        (barrier, first_untold): (BarrierId, IntervalIndex),
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.coherence.end_interval(out);
        self.wait_for.begin(WaitingFor::Barrier(barrier), site);
        let news = self.coherence.intervals.own_from(first_untold);
        self.barrier.tells(news.time.of(self.me), site);
        self.barrier.join_rounds();
        self.say_rounds(out);
        self.tell_arrival(barrier, news, site, out)
    }

    /// Where this node has arrived at a barrier, tells what its processes did since.
    pub(super) fn tell_more(&mut self, out: &mut Commands) -> Result<(), ProtocolError> {
        self.take_updates_in_wait(out);
        let last = self.coherence.intervals.time().of(self.me);
        let Some((barrier, first, site)) = self.barrier.untold(last) else {
            return Ok(());
        };
        let news = self.coherence.intervals.own_from(first);
        self.tell_arrival(barrier, news, site, out)
    }

    fn tell_arrival(
        &mut self,
        barrier: BarrierId,
        news: WriteNotices,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let full = self.coherence.treadmarks.is_full();
        let has_news = self.has_news();
        if self.me == MANAGER {
            self.coherence.treadmarks.arrived(full);
            return self.arrived(self.me, barrier, (news, has_news), site, out);
        }
        let message = Message::BarrierArrive {
            barrier,
            news: Box::new(news),
            site,
            full,
            has_news,
        };
        out.push(Command::Send {
            to: MANAGER,
            message,
        });
        Ok(())
    }

    /// Whether the next barrier of the program begins with rounds: all nodes say the same.
    pub fn begins_with_rounds(&self) -> bool {
        self.barrier.begins_with_rounds() && self.collectives.is_level()
    }

    /// Whether another node may lack what this one knows, or collect its diffs.
    fn has_news(&self) -> bool {
        !(self.coherence.intervals.are_known_to_all() && self.coherence.treadmarks.is_unused())
    }

    pub(super) fn arrive_in_rounds(
        &mut self,
        site: CallSite,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.coherence.end_interval(fx.commands());
        let last = self.coherence.intervals.time().of(self.me);
        let barrier = self.barrier.begin_rounds(self.has_news(), last, site);
        self.wait_for.begin(WaitingFor::Barrier(barrier), site);
        self.go_on_in_rounds(fx)
    }

    /// Says what can be said in the rounds, and does what they come to.
    fn go_on_in_rounds(&mut self, fx: &mut impl Effects) -> Result<(), ProtocolError> {
        self.say_rounds(fx);
        match self.barrier.end_of_rounds() {
            None => Ok(()),
            Some(false) => {
                self.depart_without_news();
                self.coherence.acquired(fx.commands());
                self.go_on(fx);
                Ok(())
            }
            Some(true) => {
                let Some((barrier, first, site)) = self.barrier.leave_rounds() else {
                    return Ok(());
                };
                let news = self.coherence.intervals.own_from(first);
                self.barrier.tells(news.time.of(self.me), site);
                self.tell_arrival(barrier, news, site, fx.commands())
            }
        }
    }

    fn say_rounds(&mut self, fx: &mut impl Effects) {
        while let Some((to, said)) = self.barrier.next_round() {
            self.traffic.sent_to(to);
            fx.round(to, said);
        }
    }

    /// All are there, and none has news.
    fn depart_without_news(&mut self) {
        self.barrier.depart_without_news();
        self.collectives.met();
        // Its processes may have done more since it arrived, which others have not seen.
        self.sync_objects
            .met(self.coherence.intervals.seen_by_all());
    }

    /// As [`Event::Arrive`](crate::Event::Arrive) at a barrier that
    /// [begins with rounds](Protocol::begins_with_rounds), where no node brings a value.
    ///
    /// # Errors
    /// As there.
    pub fn arrive_at_rounds(
        &mut self,
        site: CallSite,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.check_call(Called::Barrier, 0, site)?;
        self.worker_acts();
        let before = fx.commands().len();
        let acted = self.arrive_in_rounds(site, fx);
        self.ends_step(acted, before, fx)
    }

    /// As the delivery of a [`Message::BarrierRound`].
    ///
    /// # Errors
    /// [`ProtocolError`] when no sound node sends that; then nothing was done.
    pub fn round(
        &mut self,
        from: NodeId,
        said: BarrierRound,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        self.check_sender(from)
            .and_then(|()| check::round(&said, self.coherence.intervals.time().nodes()))
            .map_err(|what| ProtocolError::BadMessage { from, what })?;
        let before = fx.commands().len();
        // Where the run is over the worker computes, and what it sees may not change.
        let acted = match self.over {
            true => Ok(()),
            false => self.told_round(from, said, fx),
        };
        if acted.is_ok() {
            self.traffic.received_from(from);
        }
        self.ends_step(acted, before, fx)
    }

    /// Another node says something in a round.
    pub(super) fn told_round(
        &mut self,
        from: NodeId,
        said: BarrierRound,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let in_collective = self.collectives.is_in_one();
        let site = self.barrier.check_round(from, &said, in_collective)?;
        if said.round == 0 {
            self.check_arrived(from, BarrierId::Program(said.number), site)?;
        }
        self.barrier.hear_round(&said);
        self.barrier.join_rounds();
        self.go_on_in_rounds(fx)
    }

    /// Whether a wait of the program for the end of rounds is over with this.
    pub fn ends_rounds(&self, said: &BarrierRound) -> bool {
        self.barrier.end_of_rounds_after(said).is_some()
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
            let ended = self.coherence.intervals.time().of(self.me);
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
        news: (WriteNotices, bool),
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_arrived(from, barrier, site)?;
        match self.barrier.arrived(from, barrier, news, site)? {
            Arrived::NotAll => Ok(()),
            Arrived::All(barrier, departures, rounds) => {
                let program = matches!(barrier, BarrierId::Program(_) | BarrierId::Once(_));
                let collect = program && self.coherence.treadmarks.collects();
                let mut departures = departures.into_iter();
                let own = departures.next();
                for (node, news) in departures.enumerate() {
                    let message = Message::BarrierDepart {
                        barrier,
                        news: Box::new(news),
                        collect,
                        rounds,
                    };
                    out.push(Command::Send {
                        to: NodeId::at(node + 1),
                        message,
                    });
                }
                own.map_or(Ok(()), |news| {
                    self.depart(self.me, barrier, &news, (collect, rounds), out)
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
        news: &WriteNotices,
        (collect, rounds): (bool, u32),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.over {
            return Ok(());
        }
        self.barrier.check_departure(barrier, from)?;
        let records = self.coherence.check(from, news)?;
        self.barrier.told_next(rounds);
        self.barrier.depart(news.time.of(self.me));
        self.coherence.apply(news, records, out);
        self.coherence.met(news);
        self.collectives.met();
        self.sync_objects.met(&news.time);
        if collect {
            self.coherence.treadmarks.begin_collection();
        }
        self.go_on(out);
        Ok(())
    }
}
