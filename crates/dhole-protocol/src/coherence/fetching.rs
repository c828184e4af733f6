//! Fetches: a node asks the last writer of an object that it misses, or its home, for a copy.
//!
//! Lazy, update and home share these two messages. They differ in whom the asker asks, and in what
//! both sides remember of it.

use std::collections::VecDeque;

use dhole_model::{Coherence, NodeId, Oid};
use smallvec::SmallVec;

use super::Protocols;
use crate::coherence::aggregation::{SpareLists, Want};
use crate::coherence::deferred::defer;
use crate::coherence::pending_fetches::PendingFetches;
use crate::command::{Command, Commands, Unread, WorkerIs};
use crate::effects::Effects;
use crate::error::{Freed, ProtocolError};
use crate::transfer::{MOST_ALONG, Reply};
use crate::{Fetch, FetchReply, Follow, Sent, Wanted, WantedList};

/// What is asked for, here and of this node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Fetching {
    /// What the worker waits for, and from whom.
    pub fetches: PendingFetches<Want>,
    /// What lies on the page of the object that is missed next.
    pub beside: Vec<Oid>,
    /// What should come along with it.
    pub follow: Follow,
    pub spare: SpareLists,
    /// What the round under way asked for and was freed.
    pub gone: Option<Freed>,
    /// Requests for dirty objects; at most one from each other node, which waits for it.
    deferred: VecDeque<Request>,
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

impl Fetching {
    pub fn new() -> Fetching {
        Fetching {
            fetches: PendingFetches::new(),
            beside: Vec::new(),
            follow: Follow::default(),
            spare: SpareLists::default(),
            gone: None,
            deferred: VecDeque::new(),
        }
    }

    /// Whether requests wait for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }
}

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
            self.fetching.follow = Follow::default();
            return Err(freed);
        }
        self.fetching.fetches.begin();
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
            let mut pushed = None;
            let inbox = &mut self.update.inbox;
            inbox.take(oid, need, fx.commands(), |_, version| {
                pushed = Some(version)
            });
            if let Some(version) = pushed {
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
            self.fetching
                .fetches
                .want(need.node, Want { beside, wanted });
        }
        self.aggregate(misses.first().map_or(Oid(0), |miss| miss.oid));
        let follow = std::mem::take(&mut self.fetching.follow);
        let Fetching { fetches, spare, .. } = &mut self.fetching;
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
            let what = "a second fetch while its first one is open";
            let deferred = &mut self.fetching.deferred;
            return defer(deferred, request, |it| it.from, what, fx.commands());
        }
        self.reply(request, fx)
    }

    /// Answers the requests that waited for the worker.
    pub fn serve(&mut self, worker: WorkerIs, out: &mut Commands) -> Result<(), ProtocolError> {
        let open = self.intervals.open();
        let Protocols { objects, races, .. } = self;
        self.home.serve(worker, objects, (races, open), out);
        let mut leaving = VecDeque::new();
        while let Some(request) = self.fetching.deferred.pop_front() {
            match self.leaves_a_member(&request) {
                true => leaving.push_back(request),
                false => self.reply(request, out)?,
            }
        }
        self.fetching.deferred = leaving;
        self.treadmarks.serve(out)?;
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
            self.update.copysets.join(oid, to);
        }
        if was_exclusive && self.lazy.publishes {
            self.end_exclusive_beside(oid, fx);
        }
        Some(Sent { oid, version })
    }

    /// Takes a reply, if its round is still awaited: what was asked for, and then what
    /// [came along](along). What came another way meanwhile stays.
    pub fn fetch_reply(
        &mut self,
        from: NodeId,
        FetchReply { round, sent, keep }: FetchReply,
        fx: &mut impl Effects,
    ) -> Result<(), ProtocolError> {
        let Some(asked) = self.fetching.fetches.question(from, round)? else {
            return Ok(());
        };
        let bad = |what| ProtocolError::BadMessage { from, what };
        let answers = Protocols::answers(asked, &sent).map_err(bad)?;
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
                    _ => self.update.inbox.forget(sent.oid, fx.commands()),
                }
                fx.install(sent);
            }
        }
        self.take_along(along, fx.commands());
        self.fetching.spare.keep(sent);
        self.answered(from, fx);
        Ok(())
    }

    /// A question of the round was answered.
    pub(crate) fn answered(&mut self, from: NodeId, fx: &mut impl Effects) {
        let Fetching { fetches, spare, .. } = &mut self.fetching;
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
