//! The protocols that the program brings, as a node uses them.

use std::hash::{Hash, Hasher};

use dhole_model::{Coherence, Elements, MemberId, NodeId, Oid, Version};

use smallvec::SmallVec;

use crate::coherence::blocks::Kept;
use crate::coherence::member::{AnyMember, Around, Inboxes, Make, Said, Turn};
use crate::command::{Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::sync::interval::MemberNotice;

/// The most messages that a node keeps until its worker's next call, for each other node.
const MOST_DEFERRED: u32 = 1 << 16;

/// A node's part of one of them.
#[derive(Debug)]
struct Member {
    id: MemberId,
    part: Box<dyn AnyMember>,
}

impl Clone for Member {
    fn clone(&self) -> Member {
        let (id, part) = (self.id, self.part.boxed());
        Member { id, part }
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.id == other.id && self.part.is(&*other.part)
    }
}

impl Eq for Member {}

impl Hash for Member {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.id.hash(hasher);
        self.part.hashes(hasher);
    }
}

/// What a worker waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    /// Objects.
    Access,
    /// That it may synchronise.
    Release,
}

/// The members that this node has met, and what its worker waits for of theirs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Members {
    /// In the order of their numbers, made when each is first met.
    all: Vec<Member>,
    /// The objects that the worker waits for.
    awaited: Vec<Oid>,
    /// The members that have yet to say that the worker may synchronise.
    releasing: Vec<MemberId>,
    /// What the worker waited for, and was freed.
    gone: Option<Oid>,
    /// The elements of a block that the worker's call writes.
    pub writes: Option<Elements>,
    /// The elements that the worker's call has brought here, while it waits for more.
    pub kept: Option<Kept>,
    /// What the worker waited for has come: until its next event it counts as computing.
    settled: bool,
    /// The message that was just delivered is to be delivered again.
    keeps: bool,
    /// How many messages of each node wait for the worker's next call.
    deferred: Vec<u32>,
}

impl Members {
    /// The part of a member here.
    fn part(&mut self, id: MemberId, me: NodeId, nodes: usize) -> &mut dyn AnyMember {
        let place = match self.all.binary_search_by_key(&id, |member| member.id) {
            Ok(place) => place,
            Err(place) => {
                let part = (make(id).make)(me, nodes);
                self.all.insert(place, Member { id, part });
                place
            }
        };
        &mut *self.all[place].part
    }

    /// Whether this node has met no member.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// The members that this node has met.
    pub fn ids(&self) -> SmallVec<[MemberId; 1]> {
        self.all.iter().map(|member| member.id).collect()
    }

    /// Lets a member take an event. What it says goes to `out`, unless the event fails.
    pub fn take<R>(
        &mut self,
        mut around: Around<'_>,
        (objects, elements): Inboxes<'_>,
        out: &mut Commands,
        event: impl FnOnce(&mut dyn AnyMember, Turn<'_>) -> Result<R, &'static str>,
    ) -> Result<R, &'static str> {
        let member = around.member;
        if self.settled {
            around.worker = WorkerIs::Computing;
        }
        let is_new = self.all.iter().all(|other| other.id != member);
        // What another node says must not take away what the worker's call needs.
        let kept = self
            .kept
            .filter(|kept| kept.is_some() && around.from != around.me);
        let blocks = around.blocks;
        let part = self.part(member, around.me, around.nodes);
        let kept = kept.filter(|kept| {
            let about = around.message.and_then(|it| part.unit_of(&it.body));
            about.is_none_or(|unit| kept.has(blocks.unit(unit)))
        });
        let before = kept.map(|_| (part.boxed(), objects.clone(), elements.clone()));
        let mut said = Said::default();
        let turn = Turn {
            around,
            said: &mut said,
            inboxes: (&mut *objects, &mut *elements),
        };
        let taken = match event(part, turn) {
            Ok(taken) => taken,
            Err(what) => {
                // A message that is refused leaves no trace.
                if is_new {
                    self.all.retain(|other| other.id != member);
                }
                return Err(what);
            }
        };
        if let (Some(kept), Some(before)) = (kept, before)
            && said.commands.iter().any(|command| kept.loses(command))
        {
            let place = self.all.iter().position(|other| other.id == member);
            if let Some(place) = place {
                (self.all[place].part, *objects, *elements) = before;
            }
            said = Said {
                deferred: true,
                ..Said::default()
            };
        }
        out.append(&mut said.commands);
        let ready = said.ready.iter();
        self.kept = ready.fold(self.kept, |kept, unit| kept?.with(blocks.unit(*unit)));
        self.awaited.retain(|unit| !said.ready.contains(unit));
        self.gone = self.gone.or(said.gone);
        if said.released {
            self.releasing.retain(|other| *other != member);
        }
        self.keeps = said.deferred;
        Ok(taken)
    }

    /// The worker does something next.
    pub fn worker_goes_on(&mut self) {
        self.settled = false;
    }

    /// The worker does something next that needs nothing of what its last call brought here.
    pub fn call_is_over(&mut self) {
        (self.writes, self.kept) = (None, None);
    }

    /// The worker waits for an object.
    pub fn awaits(&mut self, unit: Oid) {
        self.awaited.push(unit);
    }

    /// The objects that the worker waits for.
    pub fn awaited(&self) -> &[Oid] {
        &self.awaited
    }

    /// The members that have something to do before the worker synchronises.
    pub fn begin_to_release(&mut self) -> Vec<MemberId> {
        let must = self.all.iter().filter(|member| member.part.must_release());
        self.releasing = must.map(|member| member.id).collect();
        self.releasing.clone()
    }

    /// Whether a member has something to do before the worker synchronises.
    #[inline]
    pub fn must_release(&self) -> bool {
        self.all.iter().any(|member| member.part.must_release())
    }

    /// What the worker waits for of members, if it does.
    pub fn waited(&self) -> Option<Waited> {
        match (self.awaited.is_empty(), self.releasing.is_empty()) {
            (true, true) => None,
            (false, _) => Some(Waited::Access),
            (true, false) => Some(Waited::Release),
        }
    }

    /// Whether the worker waits for nothing of members.
    pub fn are_over(&self) -> bool {
        self.awaited.is_empty() && self.releasing.is_empty()
    }

    /// The worker's wait is over; what of it was freed, if anything was.
    pub fn settle(&mut self) -> Option<Oid> {
        self.settled = !self.all.is_empty();
        self.gone.take()
    }

    /// Whether nothing changes at the end of an interval, at an acquire, and at the worker's next
    /// call.
    pub fn are_quiescent(&self) -> bool {
        let mut all = self.all.iter();
        all.all(|member| member.part.is_quiescent()) && !self.have_deferred()
    }

    /// Whether messages wait for the worker's next call.
    pub fn have_deferred(&self) -> bool {
        !self.all.is_empty() && self.deferred.iter().any(|waiting| *waiting > 0)
    }

    /// How many messages wait for the worker's next call.
    #[inline]
    pub fn deferred(&self) -> usize {
        let each = self.deferred.iter();
        each.map(|waiting| *waiting as usize).sum()
    }

    /// Whether a node may send more that waits.
    ///
    /// # Errors
    /// [`ProtocolError::BadMessage`]
    pub fn check_room(&self, from: NodeId) -> Result<(), ProtocolError> {
        let waiting = self.deferred.get(from.index());
        if waiting.is_none_or(|waiting| *waiting < MOST_DEFERRED) {
            return Ok(());
        }
        let what = "more messages than wait for a worker's next call";
        Err(ProtocolError::BadMessage { from, what })
    }

    /// Whether the message of a node that was just delivered waits for the worker's next call.
    pub fn keeps(&mut self, from: NodeId) -> bool {
        let keeps = std::mem::take(&mut self.keeps);
        if keeps {
            *self.deferred_of(from) += 1;
        }
        keeps
    }

    /// It is delivered again.
    pub fn undefer(&mut self, from: NodeId) {
        let waiting = self.deferred_of(from);
        *waiting = waiting.saturating_sub(1);
    }

    fn deferred_of(&mut self, from: NodeId) -> &mut u32 {
        if self.deferred.len() <= from.index() {
            self.deferred.resize(from.index() + 1, 0);
        }
        &mut self.deferred[from.index()]
    }

    /// What members attach to the interval of this version.
    pub fn notices(&mut self, version: Version) -> Vec<MemberNotice> {
        let mut notices = Vec::new();
        for Member { id: member, part } in &mut self.all {
            let member = *member;
            let body = part.notice(version).map(Into::into);
            notices.extend(body.map(|body| MemberNotice { member, body }));
        }
        notices
    }

    /// An object of a member was freed.
    pub fn freed(&mut self, member: MemberId, unit: Oid) {
        let place = self.all.binary_search_by_key(&member, |member| member.id);
        if let Ok(place) = place {
            self.all[place].part.freed(unit);
        }
    }
}

/// Whether arrays can be kept consistent under a protocol: the nodes may write different elements
/// of one block at once.
pub fn keeps_arrays(coherence: Coherence) -> bool {
    let member = coherence.member();
    member.is_none_or(|member| make(member).several_writers)
}

fn make(id: MemberId) -> &'static Make {
    let make = id.entry().make.downcast_ref();
    make.expect("a protocol's entry says how to make it")
}

impl MemberNotice {
    /// Whether its bytes are a notice of its protocol.
    pub(crate) fn is_sound(&self) -> bool {
        (make(self.member).is_notice)(&self.body)
    }
}
