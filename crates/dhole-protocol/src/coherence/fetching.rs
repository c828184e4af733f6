//! Fetches: a node asks the last writer of regions that it misses, or their home, for copies.
//!
//! Lazy, update and home share these two messages. They differ in whom the asker asks, and in what
//! both sides remember of it.

use dhole_model::{Elements, NodeId, Oid};
use smallvec::SmallVec;

use super::Protocols;
use crate::array_event::UnreadElements;
use crate::coherence::object_table::ObjectState;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::pending_fetches::{Fetching, SpareLists};
use crate::coherence::region::Table;
use crate::coherence::rules::rules;
use crate::command::{Command, Commands, Unread, WorkerIs};
use crate::effects::Effects;
use crate::error::{Freed, ProtocolError};
use crate::transfer::Reply;
use crate::{Fetch, FetchReply, Follow, Message, RegionCommand, RegionMessage, Sent, Wanted};

impl Protocols {
    /// The worker misses objects: fills with zeros what nobody has written, and asks each last
    /// writer once for the rest.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when one of them is.
    pub fn read_misses(
        &mut self,
        misses: &[Unread],
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        if let Err(freed) = misses
            .iter()
            .try_for_each(|miss| self.check_not_freed(miss.oid))
        {
            self.fetching.beside.clear();
            self.fetching.ahead = None;
            self.fetching.follow = Follow::default();
            return Err(freed);
        }
        self.fetching.fetches.begin();
        self.remembered.home.asks();
        let mut unversioned = SmallVec::<[_; 1]>::new();
        for miss in misses {
            let &Unread {
                oid,
                creator,
                zero_ok,
                coherence,
            } = miss;
            if !self.remembered.inbox.is_empty() {
                let known = self.objects.get(oid).coherence.unwrap_or(coherence);
                // A member takes what was pushed to it itself.
                if known.properties().has_versions() {
                    self.take_pushed(oid, creator, fx.commands());
                }
            }
            self.miss(oid, creator, fx.commands(), |object| {
                let known = object.coherence.get_or_insert(coherence).properties();
                if !known.has_versions() {
                    unversioned.push(miss);
                    return None;
                }
                Some(zero_ok && !object.had_home && !known.has_home)
            });
        }
        self.read_ahead(misses);
        self.aggregate(misses.first().map_or(Oid(0), |miss| miss.oid));
        self.ask::<Oid>(fx);
        for miss in &unversioned {
            self.members.awaits(miss.oid);
        }
        for &&Unread { oid, creator, .. } in &unversioned {
            let coherence = self.objects.get(oid).coherence;
            rules::<Oid>(coherence).read_miss(self, oid, creator, fx.commands());
        }
        self.brought(fx);
        Ok(())
    }

    /// The worker misses elements of arrays, as [objects](Protocols::read_misses), and with them
    /// those around that were written together with them.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when one of the arrays is.
    pub fn read_elements(
        &mut self,
        misses: &[UnreadElements],
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let mut arrays = misses.iter().map(|miss| miss.elements.array);
        arrays.try_for_each(|array| self.arrays.check_not_freed(array))?;
        self.arrays.fetching.fetches.begin();
        self.arrays.remembered.home.asks();
        for miss in misses {
            let (elements, may_be_zero) = self.arrays.table.missed(miss);
            let zero_ok = miss.zero_ok && may_be_zero;
            self.take_pushed(elements, miss.creator, out);
            self.miss(elements, miss.creator, out, |_| Some(zero_ok));
            if let Some(ahead) = &miss.ahead {
                self.arrays
                    .read_ahead(elements, (miss.creator, zero_ok), ahead);
            }
        }
        self.ask::<Elements>(out);
        self.brought(out);
        Ok(())
    }

    /// The worker misses a region: fills with zeros what nobody has written, and adds the rest of
    /// what is not valid to the round. `zero_ok` says of each part whether zeros are as good;
    /// nothing where it is not fetched.
    fn miss<R: HasParts>(
        &mut self,
        region: R,
        creator: NodeId,
        out: &mut Commands,
        mut zero_ok: impl FnMut(&mut ObjectState) -> Option<bool>,
    ) {
        let me = self.me;
        let Parts {
            table, fetching, ..
        } = R::parts(self);
        let before = fetching.fetches.wanted();
        table.update(region, |part, state| {
            let need = state.known(creator);
            let Some(zero_ok) = zero_ok(state).filter(|_| !state.is_valid()) else {
                return;
            };
            if need.lamport == 0 && zero_ok {
                state.hold(need);
                out.push(R::command(RegionCommand::ZeroFill(part)));
                return;
            }
            assert!(
                need.node != me,
                "{part}: a node's own last write is never invalid here"
            );
            // Parts that differ only in what is held here are asked for as one.
            let (beside, region) = (false, part);
            let wanted = Wanted { region, need };
            fetching.fetches.want(before, beside, wanted);
        });
    }

    /// Asks for what is missed. What should come along goes with what is asked first.
    fn ask<R: HasParts>(&mut self, fx: &mut impl Effects) {
        let Fetching {
            fetches,
            spare,
            follow,
            ..
        } = R::parts(self).fetching;
        let follow = std::mem::take(follow);
        fetches.ask(|to, round, asked| {
            let (wanted, beside) = spare.question(asked);
            let fetch = Fetch {
                round,
                follow: match usize::from(beside) < wanted.len() {
                    true => follow.clone(),
                    false => Follow::default(),
                },
                wanted,
                beside,
            };
            R::fetch(to, fetch, fx);
        });
    }

    /// Another node asks for regions. Where the worker may be writing one that is missed, the
    /// request waits for its next call.
    ///
    /// # Errors
    /// [`ProtocolError::NoCopy`], and [`ProtocolError::BadMessage`] for a second request while
    /// the first one waits.
    pub fn fetch<R: HasParts>(
        &mut self,
        from: NodeId,
        fetch: Fetch<R>,
        worker: WorkerIs,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let waits = worker == WorkerIs::Computing && self.must_wait(fetch.missed());
        if waits || self.leaves_a_member(fetch.missed()) {
            let request = R::fetch_message(fetch);
            return self.deferred.keep(from, request, fx.commands());
        }
        self.reply(from, fetch, fx)
    }

    /// A request for bytes has come.
    ///
    /// # Errors
    /// As [`fetch`](Protocols::fetch).
    pub fn requested(
        &mut self,
        from: NodeId,
        request: Message,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let (treadmarks, deferred) = (&mut self.treadmarks, &mut self.deferred);
        match request {
            Message::Fetch(fetch) => self.fetch(from, fetch, worker, out),
            Message::FetchElements {
                round,
                wanted,
                beside,
            } => {
                let follow = Follow::default();
                let fetch = Fetch::<Elements> {
                    round,
                    wanted,
                    beside,
                    follow,
                };
                self.fetch(from, fetch, worker, out)
            }
            Message::PageRequest { round, page } => {
                let (asks, all) = ((from, round, page), SmallVec::new());
                treadmarks.asked(asks, all, (worker, deferred), out)
            }
            Message::DiffRequest {
                round,
                page,
                wanted,
            } => treadmarks.asked((from, round, page), wanted, (worker, deferred), out),
            other => unreachable!("{other:?} asks for no bytes"),
        }
    }

    /// Answers the requests that waited for the worker.
    ///
    /// # Errors
    /// As [`requested`](Protocols::requested).
    pub fn serve(&mut self, out: &mut Commands) -> Result<(), ProtocolError> {
        let mut requests = self.deferred.take().into_iter();
        requests.try_for_each(|(from, it)| self.requested(from, it, WorkerIs::InCall, out))
    }

    /// Whether a region is asked for that this node knows under a protocol that the program
    /// brings: its asker has left the barrier first at which it changed protocol.
    fn leaves_a_member<R: HasParts>(&mut self, missed: &[Wanted<R>]) -> bool {
        if self.members.are_none() {
            return false;
        }
        let table = R::parts(self).table;
        let coherence = |wanted: &Wanted<R>| table.whole(wanted.region).coherence;
        let mut known = missed.iter().filter_map(coherence);
        known.any(|coherence| !coherence.properties().has_versions())
    }

    fn must_wait<R: HasParts>(&mut self, missed: &[Wanted<R>]) -> bool {
        let table = R::parts(self).table;
        missed.iter().any(|wanted| {
            let state = table.whole(wanted.region);
            state.exclusive || state.dirty && !state.pre_image
        })
    }

    fn reply<R: HasParts>(
        &mut self,
        to: NodeId,
        fetch: Fetch<R>,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let (missed, me) = (fetch.missed().len(), self.me);
        let Fetch {
            round,
            wanted,
            follow,
            ..
        } = fetch;
        let Parts {
            table, remembered, ..
        } = R::parts(self);
        let mut says = true;
        for (place, &Wanted { region, need }) in wanted.iter().enumerate() {
            let state = table.whole(region);
            if place < missed && state.freed {
                let Freed { oid, by, .. } = self.freed(region.id());
                let message = R::message(RegionMessage::Gone { round, oid, by });
                fx.commands().push(Command::Send { to, message });
                return Ok(());
            }
            if place < missed && state.held() < Some(need) {
                return Err(region.no_copy(to, need));
            }
            says &= rules(state.coherence).says_what_is_kept(region, me, table);
        }
        let regions = wanted.iter().map(|wanted| wanted.region);
        let keep = says && remembered.home.fetched(to, regions);
        let (mut place, mut pre_images) = (0, SmallVec::new());
        let sent = SpareLists::reply(wanted, |wanted| {
            place += 1;
            let goes = place <= missed || self.may_go_beside(&wanted);
            goes.then(|| self.sends(wanted.region, to, &mut pre_images, fx))?
        });
        let message = FetchReply { round, sent, keep };
        let reply = Reply {
            to,
            message,
            follow,
            pre_images,
        };
        R::reply(reply, fx);
        Ok(())
    }

    /// A region goes to a node that asked for it, from its pre-image where there is one.
    fn sends<R: HasParts>(
        &mut self,
        region: R,
        to: NodeId,
        pre_images: &mut SmallVec<[R; 1]>,
        fx: &mut impl Effects,
    ) -> Option<Sent<R>> {
        let Parts {
            table, remembered, ..
        } = R::parts(self);
        let whole = table.update_whole(region, |part, state| {
            state.serve();
            if std::mem::take(&mut state.exclusive) {
                part.make_clean(fx);
            }
        });
        let version = whole.held()?;
        if whole.pre_image {
            pre_images.push(region);
        }
        rules(whole.coherence).read_by(to, region, remembered);
        if whole.exclusive && self.lazy.publishes {
            region.was_exclusive(self, fx);
        }
        Some(Sent { region, version })
    }

    /// Takes a reply, if its round is still awaited: what was asked for, and then what
    /// [came along](along). What came another way meanwhile stays.
    pub fn fetch_reply<R: HasParts>(
        &mut self,
        from: NodeId,
        FetchReply { round, sent, keep }: FetchReply<R>,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let Parts {
            table,
            fetching,
            remembered,
            ..
        } = R::parts(self);
        let Some(asked) = fetching.fetches.question(from, round)? else {
            return Ok(());
        };
        let bad = |what| ProtocolError::BadMessage { from, what };
        let answers = Protocols::answers(asked, &sent).map_err(bad)?;
        let (asked, along) = sent.split_at(answers);
        if along.len() > R::MOST_ALONG {
            return Err(bad("more objects with a reply than go along"));
        }
        for &sent in asked {
            let whole = table.update_whole(sent.region, |_, state| {
                if !state.is_valid() {
                    state.hold(sent.version);
                }
            });
            if whole.is_valid() {
                fx.commands().push(R::command(RegionCommand::Skip(sent)));
                continue;
            }
            rules(whole.coherence).brought(sent.region, keep, remembered, fx.commands());
            R::install(sent, fx);
        }
        // What this node writes next must be newer than what it sees, told of it or not.
        let seen = asked.iter().map(|sent| sent.version.lamport);
        seen.for_each(|lamport| self.intervals.sees(lamport));
        R::take_along(along, self, fx.commands());
        R::parts(self).fetching.spare.keep(sent);
        self.answered::<R>(from, fx);
        Ok(())
    }

    /// Whom this node asked answers that what has this id was freed.
    pub fn told_gone<R: HasParts>(
        &mut self,
        from: NodeId,
        round: u32,
        freed: Freed,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let fetches = &R::parts(self).fetching.fetches;
        let Some(mut asked) = fetches.question(from, round)?.map(<[_]>::iter) else {
            return Ok(());
        };
        if !asked.any(|(_, want)| want.wanted.region.id() == freed.oid && !want.beside) {
            let what = "something is gone that was not asked for";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.gone = Some(freed);
        self.answered::<R>(from, out);
        Ok(())
    }

    /// A question of the round was answered: asks for what is left there.
    fn answered<R: HasParts>(&mut self, from: NodeId, fx: &mut impl Effects) {
        R::parts(self).fetching.fetches.answered(from);
        self.ask::<R>(fx);
        self.brought(fx);
    }
}
