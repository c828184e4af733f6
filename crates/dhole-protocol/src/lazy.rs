//! The lazy single-writer invalidate protocol (DOSA, sections 2 and 3.1).
//!
//! Nothing that a node writes is announced until another node acquires what it released. Then
//! the acquirer gets the *write notices* of all intervals that it has not seen, and its copies of
//! the objects named there become invalid. The first access to such an object fetches it from
//! its *last writer*, two messages. Versions are ordered by (Lamport time, node), which extends
//! happens-before: a notice invalidates only an older version, so of two racing writers exactly
//! one keeps its copy.

mod aggregation;
mod along;
pub(crate) mod arrays;
mod ending;
mod exclusive;
mod expected;
mod members;
mod notice_check;
mod one_sided;
mod pushes;
mod quiescence;
mod twins;

use std::collections::VecDeque;
use std::ops::Range;

use dhole_model::{CallSite, Coherence, NodeId, Oid, OidRange, VectorTime, Version};
use smallvec::SmallVec;

use self::arrays::Arrays;
use crate::array_command::{ArrayEvent, SentElements};
use crate::collection::Gossip;
use crate::command::{Command, Commands, Unread, WorkerIs};
use crate::copyset::CopySets;
use crate::effects::Effects;
use crate::error::{Freed, ProtocolError};
use crate::home::{Flush, Home};
use crate::interval_log::LogLimits;
use crate::intervals::Intervals;
use crate::members::Members;
use crate::notice_delta::Record;
use crate::object_table::ObjectTable;
use crate::page_command::PageEvent;
use crate::pending_fetches::PendingFetches;
use crate::races::{Changed, RaceFinder, Races, SiteId};
use crate::transfer::{MOST_ALONG, Reply};
use crate::treadmarks::TreadMarks;
use crate::update::Inbox;
use crate::{
    Fetch, FetchReply, Flushed, FlushedAt, Follow, Interval, Sent, Wanted, WantedList, WriteNotices,
};
use aggregation::{SpareLists, Want};
use exclusive::Ahead;
use expected::ExpectedWrites;

pub use aggregation::MOST_BESIDE;

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lazy {
    pub(crate) me: NodeId,
    pub(crate) intervals: Intervals,
    pub(crate) objects: ObjectTable,
    /// Who reads what is written here under the update protocol.
    pub(crate) copysets: CopySets,
    /// What was pushed here under it.
    pub(crate) inbox: Inbox,
    /// Pushes of older versions are of no use: objects have changed protocol since.
    pub(crate) pushes_from: u64,
    /// The part of objects that have a home.
    pub(crate) home: Home,
    /// What the round under way asked for and was freed.
    pub(crate) gone: Option<Freed>,
    /// Objects written in the current interval, in the order of their first write, and where that
    /// was.
    pub(crate) dirty: Vec<(Oid, SiteId)>,
    ahead: Ahead,
    expected: ExpectedWrites,
    pub races: RaceFinder,
    /// Requests for dirty objects; at most one from each other node, which waits for it.
    deferred: VecDeque<Request>,
    /// What the worker waits for, and from whom.
    pub(crate) fetches: PendingFetches<Want>,
    /// What lies on the page of the object that is missed next.
    beside: Vec<Oid>,
    /// What should come along with it.
    follow: Follow,
    spare: SpareLists,
    /// What was written is found by comparing with twins.
    compares: bool,
    /// Others may read the clean objects here without a message.
    publishes: bool,
    /// Intervals in a row that write an object here while nobody reads it, before it is exclusive.
    exclusive_after: u8,
    /// How much is kept of what others have written.
    most_heard: usize,
    pub arrays: Arrays,
    /// The pages of a run under TreadMarks.
    pub treadmarks: TreadMarks,
    /// The protocols that the program brings.
    pub(crate) members: Members,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Request {
    from: NodeId,
    round: u32,
    wanted: WantedList,
    beside: usize,
    follow: Follow,
}

impl Request {
    /// What its asker waits for.
    fn missed(&self) -> &[Wanted] {
        &self.wanted[..self.wanted.len() - self.beside]
    }
}

impl Lazy {
    pub fn new(me: NodeId, nodes: usize, limits: LogLimits, races: Races) -> Lazy {
        Lazy {
            me,
            intervals: Intervals::new(me, nodes, limits),
            objects: ObjectTable::default(),
            copysets: CopySets::default(),
            inbox: Inbox::default(),
            pushes_from: 0,
            home: Home::default(),
            gone: None,
            dirty: Vec::new(),
            ahead: Ahead::default(),
            expected: ExpectedWrites::default(),
            races: RaceFinder::new(me, races),
            deferred: VecDeque::new(),
            fetches: PendingFetches::new(),
            beside: Vec::new(),
            follow: Follow::default(),
            spare: SpareLists::default(),
            compares: false,
            publishes: false,
            exclusive_after: 0,
            most_heard: limits.most_heard,
            arrays: Arrays::new(me),
            treadmarks: TreadMarks::new(me, nodes, limits.collect_pages_from),
            members: Members::default(),
        }
    }

    pub fn allocated(&mut self, range: OidRange, coherence: Coherence, out: &mut Commands) {
        let version = Version {
            lamport: 0,
            node: self.me,
        };
        let member = coherence.member();
        self.objects.allocate(range, |_, object| {
            object.coherence = Some(coherence);
            if member.is_none() {
                object.hold(version);
            }
        });
        if let Some(member) = member {
            self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                it.allocated(range, turn);
            });
        }
    }

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
            self.beside.clear();
            self.follow = Follow::default();
            return Err(freed);
        }
        self.fetches.begin();
        self.home.asks();
        let mut of_members = SmallVec::<[_; 1]>::new();
        for &Unread {
            oid,
            creator,
            zero_ok,
            coherence,
        } in misses
        {
            let object = self.objects.get_mut(oid);
            let coherence = *object.coherence.get_or_insert(coherence);
            if let Coherence::Member(member) = coherence {
                of_members.push((member, oid, creator));
                continue;
            }
            let need = object.known(creator);
            if object.is_valid() {
                continue;
            }
            if let Some(version) = self.inbox.take(oid, need, fx.commands()) {
                self.intervals.sees(version.lamport);
                object.hold(version);
                fx.commands()
                    .push(Command::InstallKept(Sent { oid, version }));
                continue;
            }
            let has_home = object.had_home || coherence == Coherence::Home;
            if need.lamport == 0 && zero_ok && !has_home {
                object.hold(need);
                fx.commands().push(Command::ZeroFill(oid));
                continue;
            }
            assert!(
                need.node != self.me,
                "{oid}: a node's own last write is never invalid here"
            );
            let (beside, wanted) = (false, Wanted { oid, need });
            self.fetches.want(need.node, Want { beside, wanted });
        }
        self.aggregate(misses.first().map_or(Oid(0), |miss| miss.oid));
        let follow = std::mem::take(&mut self.follow);
        let Lazy { fetches, spare, .. } = self;
        fetches.ask(|to, number, asked| {
            let (wanted, beside) = spare.question(asked);
            let fetch = Fetch {
                round: number,
                follow: match usize::from(beside) < wanted.len() {
                    true => follow.clone(),
                    false => Follow::default(),
                },
                wanted,
                beside,
            };
            fx.fetch(to, fetch);
        });
        if !of_members.is_empty() {
            self.members_miss(&of_members, fx.commands());
        }
        self.brought(fx);
        Ok(())
    }

    pub fn write_fault(&mut self, oid: Oid, site: CallSite, out: &mut Commands) {
        let object = self.objects.get_mut(oid);
        if let Some(Coherence::Member(member)) = object.coherence {
            return self.member_write_fault(member, oid, out);
        }
        debug_assert!(object.is_valid(), "{oid}: only a valid copy is written");
        if self.compares && object.coherence == Some(Coherence::Lazy) {
            return self.make_page_writable(oid, site, out);
        }
        self.beside.clear();
        if object.coherence == Some(Coherence::Home) {
            let at = (oid, self.races.site(site));
            let Lazy { objects, races, .. } = self;
            return self.home.write_fault(self.me, at, objects, races, out);
        }
        if object.dirty || object.exclusive {
            return;
        }
        let tells = self.races.is_looking() || self.compares;
        if !tells && object.may_be_exclusive(self.me, self.exclusive_after) {
            return self.write_exclusive(oid, out);
        }
        // At the time of its last version, if that is this node's.
        let written_before = object.is_held_by(self.me).then(|| object.newest());
        object.dirty = true;
        object.pre_image = object.is_served();
        self.dirty.push((oid, self.races.site(site)));
        out.push(Command::MakeWritable {
            oid,
            pre_image: object.pre_image,
        });
        if let Some(since) = written_before {
            self.expect_after(oid, since, out);
        }
    }

    /// Sends home what was written of objects that have one.
    pub fn flush(&mut self, out: &mut Commands) {
        let time = self.intervals.open_time();
        self.arrays.flush(&time, &self.races, out);
        let Lazy { objects, races, .. } = self;
        self.home.flush((self.me, &time), objects, races, out);
        self.members_release(out);
        self.is_home(out);
    }

    /// A node flushes what is at home here.
    pub fn flushed(
        &mut self,
        flush: Flush,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let from = flush.from;
        let is_home = |at: &Flushed| {
            let object = self.objects.get(at.oid);
            object.freed || object.is_held_by(self.me)
        };
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        if !flush.flushed.iter().all(is_home) {
            return bad("a flush of an object that is not at home here");
        }
        self.check_flushed_at(from, flush.at.as_deref())?;
        let Lazy { objects, races, .. } = self;
        self.home.flushed(flush, worker, objects, races, out)
    }

    /// Whether a flush is of an interval that may still go on.
    pub(crate) fn check_flushed_at(
        &self,
        from: NodeId,
        at: Option<&FlushedAt>,
    ) -> Result<(), ProtocolError> {
        match at.is_some_and(|at| at.time.of(from) <= self.intervals.time().of(from)) {
            true => {
                let what = "a flush of an interval that has ended";
                Err(ProtocolError::BadMessage { from, what })
            }
            false => Ok(()),
        }
    }

    /// The home of objects says that copies of them are outdated.
    pub fn outdated(
        &mut self,
        from: NodeId,
        number: u32,
        objects: &SmallVec<[Oid; 1]>,
        out: &mut Commands,
    ) {
        let awaited = |oid| self.fetches.awaits(|want| want.wanted.oid == oid);
        self.home.outdated((from, number), objects, awaited, out);
    }

    /// A node knows that its copies of what is at home here are outdated.
    pub fn knows(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.home.knows(from, number, out)? {
            self.is_home(out);
        }
        Ok(())
    }

    /// Homes have made part of their objects what was flushed there.
    pub fn acknowledged(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.home.acknowledged(from, number)?;
        self.is_home(out);
        Ok(())
    }

    /// Leaves of an object at home here were changed, by a node that had seen `time`, or by this
    /// one.
    pub fn changed_at_home(
        &mut self,
        changed: Changed,
        leaves: impl Iterator<Item = Range<u64>>,
        time: Option<&VectorTime>,
        out: &mut Commands,
    ) {
        let open = self.intervals.open_time();
        self.races
            .changed_at_home(changed, leaves, time.unwrap_or(&open), out);
    }

    /// The worker does something with a page.
    pub fn page_event(
        &mut self,
        event: PageEvent,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.treadmarks.step(event, self.intervals.time(), out)
    }

    /// Applies what a releaser told and was [checked](Lazy::check). The worker must be in a call
    /// that takes its token mutably.
    pub fn apply(&mut self, news: &WriteNotices, records: Vec<Record>, out: &mut Commands) {
        debug_assert!(
            self.dirty.is_empty() && !self.arrays.is_dirty(),
            "an acquire begins with the end of an interval"
        );
        let mut races = 0;
        for record in records {
            let interval = &record.whole;
            self.intervals.see(interval);
            races += self.notice(interval, out) + self.notice_freed(interval, out);
            self.treadmarks.notice(interval, out);
            self.members_noticed(interval, out);
            self.intervals.keep(record);
        }
        self.intervals.sees(news.lamport);
        self.acquired(out);
        if races > 0 {
            out.push(Command::RacesFound(races));
        }
    }

    /// Something was acquired. There may be no news of it: objects that have a home are written
    /// without notices.
    pub fn acquired(&mut self, out: &mut Commands) {
        self.home.drop_cached(&mut self.objects, out);
        self.arrays.drop_cached(out);
        self.members_acquired(out)
    }

    /// Applies the notices of an interval; how many of them race with writes of this node.
    fn notice(&mut self, interval: &Interval, out: &mut Commands) -> u64 {
        let (version, finder, mut races) = (interval.version(), &mut self.races, 0);
        self.objects.for_each(&interval.written, |oid, object| {
            self.copysets.forget(oid);
            self.inbox.outdate(oid, version, out);
            if finder.suspects(object.newest()) {
                races += u64::from(finder.is_race(oid, (version, false), out));
            }
            if !object.freed && object.hear(version) {
                object.exclusive = false;
                out.push(Command::Invalidate(oid));
            }
        });
        for elements in &interval.elements {
            races += finder.element_races(*elements, (version, false), out);
            self.arrays.notice(*elements, version, out);
        }
        races
    }

    /// All have met at a barrier and told each other everything: forgets the intervals, which
    /// every node has seen. What was told there ends with `told`; processes of this node may have
    /// gone on since it arrived.
    pub fn met(&mut self, told: &WriteNotices) {
        self.intervals.met(&told.time);
        self.races.seen_by_all(&told.time);
        self.races.met(told.lamport);
    }

    /// Takes gossip that may be true, and drops what all have seen.
    pub fn hear(&mut self, gossip: &Gossip) {
        let floor = self.intervals.hear(gossip);
        self.races.seen_by_all(floor);
    }

    /// Another node asks for objects. Where the worker may be writing one that is missed, the
    /// request waits for its next call.
    ///
    /// # Errors
    /// [`ProtocolError::NoCopy`], and [`ProtocolError::BadMessage`] for a second request while
    /// the first one waits.
    pub fn fetch(
        &mut self,
        from: NodeId,
        fetch: Fetch,
        worker: WorkerIs,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let Fetch {
            round,
            wanted,
            beside,
            follow,
        } = fetch;
        let beside = usize::from(beside);
        let request = Request {
            from,
            round,
            wanted,
            beside,
            follow,
        };
        let waits = worker == WorkerIs::Computing && self.must_wait(&request);
        if waits || self.leaves_a_member(&request) {
            if self.deferred.iter().any(|other| other.from == from) {
                let what = "a second fetch while its first one is open";
                return Err(ProtocolError::BadMessage { from, what });
            }
            self.deferred.push_back(request);
            fx.commands().push(Command::Deferred);
            return Ok(());
        }
        self.reply(request, fx)
    }

    /// Answers the requests that waited for the worker.
    pub fn serve(&mut self, worker: WorkerIs, out: &mut Commands) -> Result<(), ProtocolError> {
        let Lazy { objects, races, .. } = self;
        self.home.serve(worker, objects, races, out);
        let mut leaving = VecDeque::new();
        while let Some(request) = self.deferred.pop_front() {
            match self.leaves_a_member(&request) {
                true => leaving.push_back(request),
                false => self.reply(request, out)?,
            }
        }
        self.deferred = leaving;
        self.treadmarks.serve(out)?;
        let open = self.intervals.open();
        self.arrays.serve(worker, (&mut self.races, open), out)
    }

    /// Whether an object is asked for that this node knows under a protocol that the program
    /// brings: its asker has left the barrier first at which it changed protocol.
    fn leaves_a_member(&self, request: &Request) -> bool {
        let mut missed = request.missed().iter();
        !self.members.are_none() && missed.any(|wanted| self.member_of(wanted.oid).is_some())
    }

    fn must_wait(&self, request: &Request) -> bool {
        request.missed().iter().any(|wanted| {
            let object = self.objects.get(wanted.oid);
            object.exclusive || object.dirty && !object.pre_image
        })
    }

    fn reply(&mut self, request: Request, fx: &mut impl Effects) -> Result<(), ProtocolError> {
        let (to, round) = (request.from, request.round);
        let missed = request.missed().len();
        let mut all_at_home = true;
        for (place, &Wanted { oid, need }) in request.wanted.iter().enumerate() {
            let object = self.objects.get(oid);
            if place < missed && object.freed {
                let gone = self.gone(to, round, oid);
                fx.commands().push(gone);
                return Ok(());
            }
            if place < missed && object.held() < Some(need) {
                let from = to;
                return Err(ProtocolError::NoCopy { from, oid, need });
            }
            let at_home = object.coherence == Some(Coherence::Home) && object.is_held_by(self.me);
            all_at_home &= at_home;
        }
        let wanted = request.wanted.iter().map(|wanted| wanted.oid);
        let keep = all_at_home && self.home.fetched(to, wanted);
        let (mut place, mut pre_images) = (0, SmallVec::new());
        let sent = SpareLists::reply(request.wanted, |wanted| {
            place += 1;
            let goes = place <= missed || self.may_go_beside(&wanted);
            goes.then(|| self.sends(wanted.oid, to, &mut pre_images, fx))?
        });
        fx.reply(Reply {
            to,
            message: FetchReply { round, sent, keep },
            follow: request.follow,
            pre_images,
        });
        Ok(())
    }

    /// An object goes to a node that asked for it, from its pre-image where there is one.
    fn sends(
        &mut self,
        oid: Oid,
        to: NodeId,
        pre_images: &mut SmallVec<[Oid; 1]>,
        fx: &mut impl Effects,
    ) -> Option<Sent> {
        let object = self.objects.get_mut(oid);
        let version = object.held()?;
        object.serve();
        let was_exclusive = std::mem::take(&mut object.exclusive);
        if was_exclusive {
            fx.make_clean(oid);
        }
        if object.pre_image {
            pre_images.push(oid);
        }
        if object.coherence == Some(Coherence::Update) {
            self.copysets.join(oid, to);
        }
        if was_exclusive && self.publishes {
            self.end_exclusive_beside(oid, fx);
        }
        Some(Sent { oid, version })
    }

    /// The worker does something with an array.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when the array is.
    pub fn array(&mut self, event: ArrayEvent, out: &mut Commands) -> Result<(), ProtocolError> {
        if matches!(event, ArrayEvent::Switched { .. }) {
            // As where objects are switched.
            self.pushes_from = self.intervals.lamport() + 1;
        }
        let time = (&mut self.races, self.intervals.time());
        let seen = self.arrays.step(event, time, out)?;
        self.intervals.sees(seen);
        Ok(())
    }

    /// Takes a reply of elements of arrays.
    pub fn elements_reply(
        &mut self,
        from: NodeId,
        round: u32,
        (sent, keep): (&[SentElements], bool),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let seen = self.arrays.fetch_reply(from, round, (sent, keep), out)?;
        // What this node writes next must be newer than what it sees, told of it or not.
        self.intervals.sees(seen);
        Ok(())
    }

    /// Takes a reply, if its round is still awaited: what was asked for, and then what
    /// [came along](along). What came another way meanwhile stays.
    pub fn fetch_reply(
        &mut self,
        from: NodeId,
        FetchReply { round, sent, keep }: FetchReply,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let Some(asked) = self.fetches.question(from, round)? else {
            return Ok(());
        };
        let bad = |what| ProtocolError::BadMessage { from, what };
        let answers = Lazy::answers(asked, &sent).map_err(bad)?;
        let (asked, along) = sent.split_at(answers);
        if along.len() > MOST_ALONG {
            return Err(bad("more objects with a reply than go along"));
        }
        for &sent in asked {
            // What this node writes next must be newer than what it sees, told of it or not.
            self.intervals.sees(sent.version.lamport);
            let object = self.objects.get_mut(sent.oid);
            if object.is_valid() {
                fx.commands().push(Command::Skip(sent));
            } else {
                object.hold(sent.version);
                match object.coherence {
                    Some(Coherence::Home) => self.home.cache(sent.oid, keep),
                    _ => self.inbox.forget(sent.oid, fx.commands()),
                }
                fx.install(sent);
            }
        }
        self.take_along(along, fx.commands());
        self.spare.keep(sent);
        self.answered(from, fx);
        Ok(())
    }

    /// A question of the round was answered.
    pub(crate) fn answered(&mut self, from: NodeId, fx: &mut impl Effects) {
        let Lazy { fetches, spare, .. } = self;
        fetches.answered(from, |to, number, asked| {
            let (wanted, beside) = spare.question(asked);
            let fetch = Fetch {
                round: number,
                wanted,
                beside,
                // It goes with what is asked first.
                follow: Follow::default(),
            };
            fx.fetch(to, fetch);
        });
        self.brought(fx);
    }
}
