//! A directory protocol: one writer or several readers of a unit at a time, release consistent.
//!
//! The *directory* of a unit is the node that allocated it, or that had its copy when the unit
//! changed to this protocol. It knows the *owner* of the unit, which alone may write it, and the
//! *readers*, which have copies (IVY's fixed distributed manager: Li and Hudak 1989). A node that
//! reads a unit asks the directory, and the owner sends a copy. A node that writes one asks the
//! directory too. The directory numbers the *grant*, has the owner pass the unit on, and
//! invalidates all other copies. So a message goes over at most two other nodes.
//!
//! Invalidation is not waited for where a unit is written, but before the writer's next release
//! (DASH: Lenoski et al. 1990). A reader acknowledges at once, and drops the copy at its next
//! acquire. Until then it may read it, which no synchronisation forbids.

use std::collections::BTreeSet;

use dhole_model::{NodeId, Oid, OidRange, SortedMap, Version};
use dhole_wire::Wire;

use crate::{CoherenceProtocol, Context, WorkerIs};

/// One node's part of the directory protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Directory {
    me: NodeId,
    /// The units whose directory is this node.
    entries: SortedMap<Oid, Entry>,
    units: SortedMap<Oid, Unit>,
    /// What the worker waits for.
    asked: SortedMap<Oid, Access>,
    /// Copies that become invalid at the next acquire.
    outdated: BTreeSet<Oid>,
    /// This node's grants whose invalidations are under way.
    unacknowledged: SortedMap<(Oid, u64), Unacknowledged>,
    /// Acknowledgements that came before their grant.
    early: SortedMap<(Oid, u64), u32>,
    /// The worker waits until all invalidations are acknowledged.
    releases: bool,
    /// Grants of this node that it has not announced.
    unannounced: SortedMap<Oid, u64>,
    /// The owner of each unit, and its grant, as far as it was announced.
    owners: SortedMap<Oid, (u64, NodeId)>,
}

/// What a directory knows of a unit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entry {
    owner: NodeId,
    grant: u64,
    /// The nodes that have asked for a copy under this grant, without the owner.
    readers: BTreeSet<NodeId>,
}

/// What a node knows of a unit that it has met.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Unit {
    directory: NodeId,
    state: State,
    /// The bytes here are those of this grant, or newer. None have come where there is none.
    grant: Option<u64>,
    /// Copies of earlier grants are outdated.
    outdated_by: u64,
    /// Another node has answered that it was freed, and this one has yet to hear of that.
    is_gone: bool,
}

/// The state of a node's copy: those of MOESI, and one for release consistency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is none that may be read.
    Invalid,
    /// It may be read until the next acquire.
    Outdated,
    /// It may be read.
    Shared,
    /// As shared, and this node is the owner.
    Owned,
    /// This node is the owner, and no other has a copy.
    Exclusive,
    /// As exclusive, and the worker may write it.
    Modified,
}

/// What a node wants to do with a unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
pub enum Access {
    /// To read it.
    Read,
    /// To write it.
    Write,
}

/// Invalidations that have yet to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Unacknowledged {
    missing: u32,
    /// The owner after this node waits for these acknowledgements too, under its grant.
    next: Option<(NodeId, u64)>,
}

/// A message of the directory protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Wire)]
pub enum DirectoryMessage {
    /// Asks the directory for a unit.
    Ask(Oid, Access),
    /// The directory has the owner of a unit answer a request.
    Forward(Forward),
    /// A copy for a reader, under this grant; the unit's bytes follow.
    Copy(Oid, u64),
    /// The receiver is the owner from now on.
    Grant(Grant),
    /// The directory says that copies of grants before this one are outdated. The receiver
    /// acknowledges that to the owner under this grant.
    Invalidate(Oid, u64, NodeId),
    /// Answers an invalidation under this grant.
    Acknowledge(Oid, u64),
    /// Answers that the unit was freed.
    Freed(Oid),
}

/// A request that the directory passes on to the owner of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Wire)]
pub struct Forward {
    /// The unit.
    pub unit: Oid,
    /// The node that asked.
    pub to: NodeId,
    /// What for.
    pub access: Access,
    /// The number of the grant: the owner's to read, that of the next owner to write.
    pub grant: u64,
    /// How many invalidations the next owner has to see acknowledged.
    pub invalidated: u32,
}

/// A grant of ownership.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Wire)]
pub struct Grant {
    /// The unit.
    pub unit: Oid,
    /// The number of the grant.
    pub grant: u64,
    /// How many invalidations the owner has to see acknowledged.
    pub invalidated: u32,
    /// Whether the unit's bytes follow; the new owner has a valid copy otherwise.
    pub has_bytes: bool,
}

type Cx<'a> = Context<'a, Directory>;

type Delivered = Result<(), &'static str>;

impl Entry {
    fn new(owner: NodeId, grant: u64) -> Entry {
        let readers = BTreeSet::new();
        Entry {
            owner,
            grant,
            readers,
        }
    }
}

impl Forward {
    /// What the next owner gets.
    fn granted(self, has_bytes: bool) -> Grant {
        let Forward {
            unit,
            grant,
            invalidated,
            ..
        } = self;
        Grant {
            unit,
            grant,
            invalidated,
            has_bytes,
        }
    }
}

impl Unit {
    fn new(directory: NodeId) -> Unit {
        Unit {
            directory,
            state: State::Invalid,
            grant: None,
            outdated_by: 0,
            is_gone: false,
        }
    }

    /// The first owner's.
    fn first(directory: NodeId) -> Unit {
        let (state, grant) = (State::Exclusive, Some(0));
        Unit {
            state,
            grant,
            ..Unit::new(directory)
        }
    }

    fn is_owned(&self) -> bool {
        matches!(
            self.state,
            State::Owned | State::Exclusive | State::Modified
        )
    }
}

impl Directory {
    /// The worker waits for a unit.
    fn ask(&mut self, unit: Oid, access: Access, cx: &mut Cx<'_>) {
        self.asked.insert(unit, access);
        match self.units.get(&unit).map(|known| known.directory) {
            Some(directory) if directory != self.me => {
                cx.send(directory, &DirectoryMessage::Ask(unit, access));
            }
            _ => self.ask_directory((unit, access), self.me, cx),
        }
    }

    /// At the directory of a unit: a node asks for it.
    fn ask_directory(&mut self, (unit, access): (Oid, Access), by: NodeId, cx: &mut Cx<'_>) {
        if self.is_gone(unit, cx) {
            return self.refuse(unit, by, cx);
        }
        let me = self.me;
        let Some(entry) = self.entries.get(&unit) else {
            return cx.defer(); // The barrier at which it changes protocol is not left here yet.
        };
        let (owner, last, is_reader) = (entry.owner, entry.grant, entry.readers.contains(&by));
        let mut forward = Forward {
            unit,
            to: by,
            access,
            grant: last,
            invalidated: 0,
        };
        if access == Access::Read {
            if owner != me {
                cx.send(owner, &DirectoryMessage::Forward(forward));
            } else if !self.send_copy(forward, cx) {
                return cx.defer();
            }
            if let Some(entry) = self.entries.get_mut(&unit) {
                entry.readers.insert(by);
            }
            return;
        }
        // A reader's copy is the owner's: the bytes need not travel.
        let has_bytes = owner != by && !is_reader;
        if has_bytes && owner == me && !self.may_pass_on(unit, last, cx) {
            return cx.defer();
        }
        forward.grant = last + 1;
        let before = self.entries.insert(unit, Entry::new(by, forward.grant));
        let mut others = before.map_or(BTreeSet::new(), |before| before.readers);
        if is_reader {
            others.insert(owner);
        }
        others.remove(&by);
        forward.invalidated = others.len() as u32;
        for other in others {
            match other == me {
                true => self.invalidate((unit, forward.grant), by, cx),
                false => {
                    let message = DirectoryMessage::Invalidate(unit, forward.grant, by);
                    cx.send(other, &message);
                }
            }
        }
        match has_bytes {
            true if owner == me => self.pass_on(forward, cx),
            true => cx.send(owner, &DirectoryMessage::Forward(forward)),
            false if by == me => self.own(forward.granted(false), cx),
            false => cx.send(by, &DirectoryMessage::Grant(forward.granted(false))),
        }
    }

    /// Whether a unit was freed, as far as it is known here.
    fn is_gone(&self, unit: Oid, cx: &Cx<'_>) -> bool {
        cx.is_freed(unit) || self.units.get(&unit).is_some_and(|known| known.is_gone)
    }

    /// Answers that a unit was freed.
    fn refuse(&mut self, unit: Oid, to: NodeId, cx: &mut Cx<'_>) {
        match to == self.me {
            true => self.gone(unit, cx),
            false => cx.send(to, &DirectoryMessage::Freed(unit)),
        }
    }

    /// What the worker waits for was freed.
    fn gone(&mut self, unit: Oid, cx: &mut Cx<'_>) {
        self.asked.remove(&unit);
        self.early.retain(|(other, _), _| *other != unit);
        if let Some(known) = self.units.get_mut(&unit) {
            known.is_gone = true;
        }
        cx.gone(unit);
    }

    /// Whether the worker may be writing a unit.
    fn is_in_use(&self, known: &Unit, cx: &Cx<'_>) -> bool {
        known.state == State::Modified && cx.worker() == WorkerIs::Computing
    }

    /// At the owner: sends a copy, if the bytes are here and not in use.
    fn send_copy(&mut self, forward: Forward, cx: &mut Cx<'_>) -> bool {
        let (unit, grant) = (forward.unit, forward.grant);
        let known = self.units.get(&unit);
        let Some(known) = known.filter(|it| it.grant >= Some(grant)) else {
            return false;
        };
        if self.is_in_use(known, cx) {
            return false;
        }
        if known.state == State::Modified {
            cx.make_clean(unit);
        }
        if known.is_owned() {
            self.set_state(unit, State::Owned);
        }
        cx.send_bytes(forward.to, &DirectoryMessage::Copy(unit, grant), &[unit]);
        true
    }

    fn set_state(&mut self, unit: Oid, state: State) {
        if let Some(known) = self.units.get_mut(&unit) {
            known.state = state;
        }
    }

    /// At the owner: whether a unit is here under this grant, and not in use.
    fn may_pass_on(&self, unit: Oid, grant: u64, cx: &Cx<'_>) -> bool {
        let known = self.units.get(&unit);
        known.is_some_and(|it| it.is_owned() && it.grant == Some(grant) && !self.is_in_use(it, cx))
    }

    /// At the owner: another node becomes the owner.
    fn pass_on(&mut self, forward: Forward, cx: &mut Cx<'_>) {
        let (unit, mut granted) = (forward.unit, forward.granted(true));
        let Some(known) = self.units.get_mut(&unit) else {
            return;
        };
        if known.state == State::Modified {
            cx.make_clean(unit);
        }
        known.state = State::Outdated;
        self.outdated.insert(unit);
        let own = known.grant.map(|own| (unit, own));
        if let Some(pending) = own.and_then(|own| self.unacknowledged.get_mut(&own)) {
            pending.next = Some((forward.to, forward.grant));
            granted.invalidated += 1;
        }
        cx.send_bytes(forward.to, &DirectoryMessage::Grant(granted), &[unit]);
    }

    /// Copies of grants before this one are outdated.
    fn invalidate(&mut self, (unit, grant): (Oid, u64), owner: NodeId, cx: &mut Cx<'_>) {
        if let Some(known) = self.units.get_mut(&unit) {
            known.outdated_by = known.outdated_by.max(grant);
            if known.grant < Some(grant) && known.state != State::Invalid {
                known.state = State::Outdated;
                self.outdated.insert(unit);
            }
        }
        cx.send(owner, &DirectoryMessage::Acknowledge(unit, grant));
    }

    /// This node becomes the owner of a unit whose bytes are here.
    fn own(&mut self, granted: Grant, cx: &mut Cx<'_>) {
        let (unit, grant) = (granted.unit, granted.grant);
        self.asked.remove(&unit);
        self.outdated.remove(&unit);
        let early = self.early.remove(&(unit, grant)).unwrap_or(0);
        let missing = granted.invalidated.saturating_sub(early);
        if missing > 0 {
            let next = None;
            let pending = Unacknowledged { missing, next };
            self.unacknowledged.insert((unit, grant), pending);
        }
        if let Some(known) = self.units.get_mut(&unit) {
            (known.state, known.grant) = (State::Modified, Some(grant));
        }
        self.unannounced.insert(unit, grant);
        self.owners.insert(unit, (grant, self.me));
        cx.make_writable(unit);
        cx.ready(unit);
    }

    fn forwarded(&mut self, forward: Forward, cx: &mut Cx<'_>) -> Delivered {
        let (unit, grant) = (forward.unit, forward.grant);
        if self.is_gone(unit, cx) {
            self.refuse(unit, forward.to, cx);
            return Ok(());
        }
        // The bytes are on their way where this node has asked for them.
        let comes = self.asked.contains_key(&unit);
        let Some(known) = self.units.get(&unit) else {
            return Err("a request for a unit that this node has not met");
        };
        match forward.access {
            Access::Read if known.grant < Some(grant) && !comes => {
                return Err("a request for a copy that is not here");
            }
            Access::Read => {
                if !self.send_copy(forward, cx) {
                    cx.defer();
                }
            }
            Access::Write => {
                let last = grant.checked_sub(1).ok_or("a first grant of ownership")?;
                let is_here = known.is_owned() && known.grant == Some(last);
                if !(is_here || comes && known.grant < Some(last)) {
                    return Err("a request for a unit that this node does not own");
                }
                if !self.may_pass_on(unit, last, cx) {
                    cx.defer();
                    return Ok(());
                }
                self.pass_on(forward, cx);
            }
        }
        Ok(())
    }

    fn copied(&mut self, unit: Oid, grant: u64, cx: &mut Cx<'_>) -> Delivered {
        if self.asked.get(&unit) != Some(&Access::Read) {
            return Err("a copy that was not asked for");
        }
        self.asked.remove(&unit);
        let Some(known) = self.units.get_mut(&unit) else {
            cx.skip();
            cx.gone(unit);
            return Ok(());
        };
        known.grant = Some(grant);
        known.state = State::Shared;
        if grant < known.outdated_by {
            known.state = State::Outdated;
            self.outdated.insert(unit);
        }
        cx.install(unit);
        cx.ready(unit);
        Ok(())
    }

    fn granted(&mut self, granted: Grant, cx: &mut Cx<'_>) -> Delivered {
        let (unit, has_bytes) = (granted.unit, granted.has_bytes);
        if self.asked.get(&unit) != Some(&Access::Write) {
            return Err("a grant that was not asked for");
        }
        let early = self.early.get(&(unit, granted.grant)).copied();
        let invalidated = granted.invalidated;
        if early > Some(invalidated) || invalidated as usize > cx.nodes() {
            return Err("a grant with another number of invalidations");
        }
        let Some(known) = self.units.get(&unit) else {
            if has_bytes {
                cx.skip();
            }
            self.gone(unit, cx);
            return Ok(());
        };
        match has_bytes {
            true => {
                if known.state != State::Invalid {
                    cx.invalidate(unit);
                }
                cx.install(unit);
            }
            false if matches!(known.state, State::Shared | State::Owned) => {}
            false => return Err("a grant without the bytes, of which there is no valid copy"),
        }
        self.own(granted, cx);
        Ok(())
    }

    fn acknowledged(&mut self, unit: Oid, grant: u64, cx: &mut Cx<'_>) -> Delivered {
        let Some(pending) = self.unacknowledged.get_mut(&(unit, grant)) else {
            if self.asked.get(&unit) == Some(&Access::Write) {
                let early = self.early.get_or_default((unit, grant));
                *early = early.saturating_add(1);
            } else if !self.is_gone(unit, cx) {
                return Err("an acknowledgement of what was not invalidated");
            }
            return Ok(());
        };
        pending.missing -= 1;
        if pending.missing > 0 {
            return Ok(());
        }
        if let Some((next, grant)) = pending.next {
            cx.send(next, &DirectoryMessage::Acknowledge(unit, grant));
        }
        self.unacknowledged.remove(&(unit, grant));
        if self.releases && self.unacknowledged.is_empty() {
            self.releases = false;
            cx.released();
        }
        Ok(())
    }

    /// Whether a node that a message names can be the receiver of an answer.
    fn is_other(&self, node: NodeId, cx: &Cx<'_>) -> Delivered {
        match node != self.me && node.index() < cx.nodes() {
            true => Ok(()),
            false => Err("a node that cannot be answered"),
        }
    }

    /// Whether a message about a unit comes from its directory.
    fn is_directory(&self, unit: Oid, from: NodeId) -> Delivered {
        let known = self.units.get(&unit);
        match known.is_none_or(|known| known.directory == from) {
            true => Ok(()),
            false => Err("a message of a node that is not the unit's directory"),
        }
    }
}

impl CoherenceProtocol for Directory {
    const NAME: &'static str = "directory";
    type Message = DirectoryMessage;
    type Notice = Vec<(Oid, u64)>;
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, _nodes: usize) -> Directory {
        Directory {
            me,
            entries: SortedMap::default(),
            units: SortedMap::default(),
            asked: SortedMap::default(),
            outdated: BTreeSet::new(),
            unacknowledged: SortedMap::default(),
            early: SortedMap::default(),
            releases: false,
            unannounced: SortedMap::default(),
            owners: SortedMap::default(),
        }
    }

    fn allocated(&mut self, units: OidRange, cx: &mut Cx<'_>) {
        for unit in units.iter() {
            self.adopt(unit, self.me, cx);
        }
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Cx<'_>) {
        self.units.get_or_insert_with(unit, || Unit::new(creator));
        self.ask(unit, Access::Read, cx);
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Cx<'_>) {
        let state = self.units.get(&unit).map(|known| known.state);
        if matches!(state, Some(State::Exclusive | State::Modified)) {
            self.set_state(unit, State::Modified);
            cx.make_writable(unit);
            return cx.ready(unit);
        }
        self.ask(unit, Access::Write, cx);
    }

    fn must_release(&self) -> bool {
        !self.unacknowledged.is_empty()
    }

    fn before_release(&mut self, cx: &mut Cx<'_>) {
        self.releases = !self.unacknowledged.is_empty();
        if !self.releases {
            cx.released();
        }
    }

    fn notice(&mut self, _: Version) -> Option<Vec<(Oid, u64)>> {
        let grants = std::mem::take(&mut self.unannounced);
        (!grants.is_empty()).then(|| grants.into_iter().collect())
    }

    fn noticed(&mut self, version: Version, grants: Vec<(Oid, u64)>, cx: &mut Cx<'_>) {
        for (unit, grant) in grants {
            if !cx.is_freed(unit) {
                let owner = (grant, version.node);
                let last = self.owners.get_or_insert_with(unit, || owner);
                *last = (*last).max(owner);
            }
        }
    }

    fn after_acquire(&mut self, cx: &mut Cx<'_>) {
        for unit in std::mem::take(&mut self.outdated) {
            self.set_state(unit, State::Invalid);
            cx.invalidate(unit);
        }
    }

    fn unit_of(message: &DirectoryMessage) -> Option<Oid> {
        use DirectoryMessage::{Acknowledge, Ask, Copy, Forward, Freed, Grant, Invalidate};
        Some(match *message {
            Ask(unit, _) | Copy(unit, _) | Acknowledge(unit, _) | Freed(unit) => unit,
            Invalidate(unit, ..) => unit,
            Forward(forward) => forward.unit,
            Grant(granted) => granted.unit,
        })
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: DirectoryMessage,
        cx: &mut Cx<'_>,
    ) -> Result<(), &'static str> {
        match message {
            DirectoryMessage::Ask(unit, access) => {
                self.ask_directory((unit, access), from, cx);
                Ok(())
            }
            DirectoryMessage::Forward(forward) => {
                self.is_other(forward.to, cx)?;
                self.is_directory(forward.unit, from)?;
                self.forwarded(forward, cx)
            }
            DirectoryMessage::Copy(unit, grant) => self.copied(unit, grant, cx),
            DirectoryMessage::Grant(granted) => self.granted(granted, cx),
            DirectoryMessage::Invalidate(unit, grant, owner) => {
                self.is_other(owner, cx)?;
                self.is_directory(unit, from)?;
                let known = self.units.get(&unit);
                let is_exclusive = |known: &Unit| {
                    let alone = matches!(known.state, State::Exclusive | State::Modified);
                    alone && known.grant < Some(grant)
                };
                if known.is_some_and(is_exclusive) {
                    return Err("an invalidation of the only copy");
                }
                if known.is_none() && !cx.is_freed(unit) {
                    return Err("an invalidation of a unit that this node has not met");
                }
                self.invalidate((unit, grant), owner, cx);
                Ok(())
            }
            DirectoryMessage::Acknowledge(unit, grant) => self.acknowledged(unit, grant, cx),
            DirectoryMessage::Freed(unit) if !self.asked.contains_key(&unit) => {
                Err("a unit is gone that was not asked for")
            }
            DirectoryMessage::Freed(unit) => {
                self.gone(unit, cx);
                Ok(())
            }
        }
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, _: &mut Cx<'_>) {
        self.owners.remove(&unit);
        if holder != self.me {
            self.units.insert(unit, Unit::new(holder));
            return;
        }
        self.units.insert(unit, Unit::first(holder));
        self.entries.insert(unit, Entry::new(holder, 0));
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Cx<'_>) -> NodeId {
        let known = self.units.get(&unit);
        let directory = known.map_or(creator, |known| known.directory);
        let owner = self
            .owners
            .get(&unit)
            .map_or(directory, |(_, owner)| *owner);
        match known.map(|known| known.state) {
            Some(State::Modified) => cx.make_clean(unit),
            Some(State::Shared | State::Outdated) => cx.invalidate(unit),
            _ => {}
        }
        self.freed(unit);
        owner
    }

    fn freed(&mut self, unit: Oid) {
        self.entries.remove(&unit);
        self.units.remove(&unit);
        self.outdated.remove(&unit);
        self.unannounced.remove(&unit);
        self.owners.remove(&unit);
    }

    fn is_quiescent(&self) -> bool {
        self.outdated.is_empty() && self.unacknowledged.is_empty() && self.unannounced.is_empty()
    }
}

#[cfg(test)]
mod tests;
