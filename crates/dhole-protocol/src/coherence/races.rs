//! Races: writes of one object, or of one element of an array, by two nodes, of which neither
//! happened before the other. What follows holds for elements as for objects.
//!
//! A node knows when it last wrote an object, in Lamport time, and where in the program. When it
//! hears of an interval of another node for the first time, that interval's writes did not happen
//! before anything it did so far. If its own version of an object is the greater one, its write
//! did not happen before that interval either, for versions extend happens-before: a race, and
//! none is imagined. If its own version is the smaller one, the other node finds the race when it
//! hears of this node's interval, at the next barrier at the latest. Of two concurrent versions
//! one is greater, so exactly one of the two nodes finds the race, and none is missed.
//!
//! Two writes are ordered by what this run announced. A lock's grant announces all that its giver
//! knows, which may be more than what came before the release. A log that was compacted announces
//! only the newest of several writes. Both can hide a race; neither invents one.
//!
//! Objects that have a home are written without notices; their races are found there
//! ([`at_home`]).
//!
//! Nothing of this travels with the notices. The node that finds a race asks the other node where
//! it wrote, and its call waits for the answer.

use std::collections::VecDeque;

use std::ops::Range;

use dhole_model::{
    CHUNK, CallSite, Elements, IntervalIndex, NodeId, Oid, OidRange, SortedMap, Variants,
    VectorTime, Version,
};

use crate::Message;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::race::{Race, Raced, RacingWrite};

mod at_home;
mod own_elements;

use at_home::{HomeWrites, Last};
use own_elements::OwnElements;

/// What becomes of races.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Variants)]
#[variants(name, setting)]
pub enum Races {
    /// Races are not looked for. A node writes an object again without a write notice if no other
    /// node has got it since it was announced.
    Ignore,
    /// Races are reported at the end of the run. Two kinds of writes are overlooked, for they make
    /// no fault and no notice: to an object or elements that no other node has got since they were
    /// announced twice, and to an object at home before another node first asked for it.
    #[default]
    Warn,
    /// Races are reported at the end of the run. Every write is announced, which costs a call at
    /// the first one of each interval. So every race between two barriers is found. A lock's grant
    /// also announces what its holder wrote after the release, so a race beside a lock may show in
    /// one run and not in another.
    WarnAll,
    /// As `WarnAll`, and the first race ends the run.
    Fail,
}

impl Races {
    /// Whether every write is announced, so that no race is overlooked.
    pub fn finds_all(self) -> bool {
        matches!(self, Races::WarnAll | Races::Fail)
    }
}

/// A place in the program, by its number on this node; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct SiteId(u16);

/// Every place from which this node has written.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct Sites {
    all: Vec<CallSite>,
    ids: SortedMap<CallSite, SiteId>,
    last: SiteId,
}

impl Sites {
    fn id(&mut self, site: CallSite) -> SiteId {
        if self.get(self.last) != Some(site) {
            let known = self.ids.get(&site).copied();
            self.last = known.unwrap_or_else(|| self.add(site));
        }
        self.last
    }

    fn add(&mut self, site: CallSite) -> SiteId {
        let Ok(number) = u16::try_from(self.all.len() + 1) else {
            return SiteId::default();
        };
        self.all.push(site);
        self.ids.insert(site, SiteId(number));
        SiteId(number)
    }

    fn get(&self, SiteId(id): SiteId) -> Option<CallSite> {
        self.all.get(usize::from(id).checked_sub(1)?).copied()
    }
}

/// A write: its Lamport time, of 47 bits at most, where it was made, and whether it was a freeing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
struct Packed(u64);

impl Packed {
    const FREED: u64 = 1 << 63;

    fn new(lamport: u64, SiteId(site): SiteId) -> Packed {
        Packed(lamport << 16 | u64::from(site))
    }

    fn lamport(self) -> u64 {
        (self.0 & !Packed::FREED) >> 16
    }

    fn freed(self) -> bool {
        self.0 & Packed::FREED != 0
    }

    fn site(self) -> SiteId {
        SiteId(self.0 as u16)
    }
}

/// What this node wrote of one object: all writes after `before` were made where `last` was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Own {
    last: Packed,
    before: Packed,
}

impl Own {
    fn wrote(&mut self, lamport: u64, site: SiteId) {
        if self.last.site() != site {
            self.before = self.last;
        }
        self.last = Packed::new(lamport, site);
    }

    /// Where the interval of this Lamport time wrote it, if that is still known.
    fn site_at(&self, lamport: u64) -> SiteId {
        let Own { last, before } = self;
        match (before.lamport() < lamport, before.lamport() == lamport) {
            (true, _) if lamport <= last.lamport() => last.site(),
            (_, true) => before.site(),
            _ => SiteId::default(),
        }
    }
}

/// A change of an object at home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Changed {
    /// The object.
    pub oid: Oid,
    /// The node that wrote it.
    pub by: NodeId,
    /// Where in the program it wrote the object first since its last flush.
    pub site: Option<CallSite>,
}

/// A race found here, of which the other side's place was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Found {
    raced: Raced,
    here: RacingWrite,
    there: Version,
    freed_there: bool,
    answered: bool,
}

/// The most races that a node asks about; others are only counted.
const MOST_ASKED: usize = 16;

/// The most races with the interval that goes on; others are told before it ends.
const MOST_OPEN: usize = 1 << 10;

/// The most chunks that are freed and still remembered.
const MOST_FREED: usize = 64;

/// One node's record of its own writes, and the races that it found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RaceFinder {
    me: NodeId,
    races: Races,
    /// Everything written before the last barrier is at most of this Lamport time.
    barrier: u64,
    sites: Sites,
    /// By chunk of ids, where this node has written any.
    own: SortedMap<u64, Box<[Own; CHUNK as usize]>>,
    own_elements: OwnElements,
    at_home: HomeWrites,
    /// Races found at home with the interval that goes on here.
    open_at_home: Vec<(Raced, [Last; 2])>,
    found: Vec<Found>,
    /// Races that were found and told at home.
    told: Vec<Race>,
    /// Chunks that are all freed, since the last barrier.
    freed: VecDeque<u64>,
}

impl RaceFinder {
    pub fn new(me: NodeId, races: Races) -> RaceFinder {
        RaceFinder {
            me,
            races,
            barrier: 0,
            sites: Sites::default(),
            own: SortedMap::new(),
            own_elements: OwnElements::default(),
            at_home: HomeWrites::default(),
            open_at_home: Vec::new(),
            found: Vec::new(),
            told: Vec::new(),
            freed: VecDeque::new(),
        }
    }

    /// Whether writes of a node that has an object to itself may go unannounced.
    pub fn allows_exclusive(&self) -> bool {
        !self.races.finds_all()
    }

    /// A place from which an object is written.
    pub fn site(&mut self, site: CallSite) -> SiteId {
        match self.is_looking() {
            true => self.sites.id(site),
            false => SiteId::default(),
        }
    }

    /// An interval of this node ends that wrote these objects, in ascending order.
    pub fn wrote(&mut self, lamport: u64, written: &[(Oid, SiteId)]) {
        if !self.is_looking() {
            return;
        }
        for of_chunk in written.chunk_by(|(a, _), (b, _)| a.chunk() == b.chunk()) {
            let make = || Box::new([Own::default(); CHUNK as usize]);
            let own = self.own.get_or_insert_with(of_chunk[0].0.chunk(), make);
            for (oid, site) in of_chunk {
                own[oid.slot()].wrote(lamport, *site);
            }
        }
    }

    /// What an interval of this node [wrote](RaceFinder::wrote) of an object was its freeing.
    pub fn freed(&mut self, oid: Oid) {
        if let Some(own) = self.own.get_mut(&oid.chunk()) {
            own[oid.slot()].last.0 |= Packed::FREED;
        }
    }

    /// An interval of this node ends that wrote these elements of arrays.
    pub fn wrote_elements(&mut self, lamport: u64, written: &[(Elements, SiteId)]) {
        if self.is_looking() {
            self.own_elements.wrote(lamport, written, false);
        }
    }

    /// An interval of this node ends that freed an array, with these elements.
    pub fn freed_elements(&mut self, lamport: u64, elements: Elements, site: SiteId) {
        if self.is_looking() {
            self.own_elements.wrote(lamport, &[(elements, site)], true);
        }
    }

    /// Whether races are looked for.
    pub fn is_looking(&self) -> bool {
        self.races != Races::Ignore
    }

    /// Whether a home keeps a twin of what it writes, to know which leaves it wrote: where other
    /// nodes may have copies, or where every race must be found.
    pub fn wants_twin_at_home(&self, served: bool) -> bool {
        self.is_looking() && (served || self.races.finds_all())
    }

    /// Leaves of an object at home here were changed.
    pub fn changed_at_home(
        &mut self,
        Changed { oid, by, site }: Changed,
        leaves: impl Iterator<Item = Range<u64>>,
        time: &VectorTime,
        out: &mut Commands,
    ) {
        let last = Last {
            node: by,
            index: time.of(by),
            site: site.map_or_else(SiteId::default, |site| self.sites.id(site)),
        };
        let raced = self.at_home.wrote(oid, leaves, last, time);
        if let Some((_, before)) = raced.first() {
            self.found_at_home(Raced::Object(oid), [*before, last], out);
        }
    }

    /// Elements at home here are written, from this place, in an interval that had seen `time`:
    /// by the interval's number on its node. `open` is the number of the interval that goes on
    /// here: as its worker may be about to write, races with it are told when it
    /// [ends](RaceFinder::ends_at_home).
    pub fn elements_changed_at_home(
        &mut self,
        elements: Elements,
        (by, index): (NodeId, IntervalIndex),
        site: SiteId,
        (time, open): (&VectorTime, IntervalIndex),
        out: &mut Commands,
    ) {
        let last = Last {
            node: by,
            index,
            site,
        };
        let (me, array) = (self.me, elements.array);
        let parts = std::iter::once(elements.range());
        for (part, before) in self.at_home.wrote(array, parts, last, time) {
            let raced = Raced::Elements(Elements::new(array, part));
            let sides = [before, last];
            match sides
                .iter()
                .any(|side| (side.node, side.index) == (me, open))
            {
                true if self.open_at_home.len() < MOST_OPEN => {
                    self.open_at_home.push((raced, sides));
                }
                _ => self.found_at_home(raced, sides, out),
            }
        }
    }

    /// Whether a race is told when the interval ends, or its other side is not known.
    pub fn has_to_tell(&self) -> bool {
        !self.open_at_home.is_empty() || self.is_asking()
    }

    /// The interval ends that goes on here.
    pub fn ends_at_home(&mut self, out: &mut Commands) {
        for (raced, sides) in std::mem::take(&mut self.open_at_home) {
            self.found_at_home(raced, sides, out);
        }
    }

    fn found_at_home(&mut self, raced: Raced, sides: [Last; 2], out: &mut Commands) {
        out.push(Command::RacesFound(1));
        let mut writes = sides.map(|side| RacingWrite {
            node: side.node,
            site: self.sites.get(side.site),
            freed: false,
        });
        writes.sort_unstable();
        let told = |told: &Race| told.raced.covers(raced) && told.writes == writes;
        if self.told.len() < MOST_ASKED && !self.told.iter().any(told) {
            let race = Race { raced, writes };
            self.told.push(race);
            out.push(Command::Race(race));
        }
    }

    /// Objects or arrays have no home here any more.
    pub fn forget_at_home(&mut self, ids: OidRange) {
        self.open_at_home
            .retain(|(raced, _)| !ids.contains(raced.oid()));
        self.at_home.forget(ids);
    }

    /// All intervals that `time` has seen happened before whatever any node writes from now on.
    pub fn seen_by_all(&mut self, time: &VectorTime) {
        self.at_home.forget_up_to(time);
    }

    /// Whether an object of this newest version may have been written here since the last
    /// barrier, and so be raced for.
    pub fn suspects(&self, newest: u64) -> bool {
        newest > self.barrier && self.is_looking()
    }

    /// Another node's interval, heard of for the first time, wrote this version of the object, or
    /// freed it. Whether that is a race which is this node's to report; it asks the other one
    /// about it.
    pub fn is_race(
        &mut self,
        oid: Oid,
        (there, freed): (Version, bool),
        out: &mut Commands,
    ) -> bool {
        let Some(Own { last, .. }) = self.own_of(oid) else {
            return false;
        };
        if !self.races_with(last, there) {
            return false;
        }
        self.found(Raced::Object(oid), last, (there, freed), out);
        true
    }

    /// As [`is_race`](RaceFinder::is_race), for elements of an array: how many races.
    pub fn element_races(
        &mut self,
        written: Elements,
        there: (Version, bool),
        out: &mut Commands,
    ) -> u64 {
        let races = |last| self.races_with(last, there.0);
        let racing = self.own_elements.racing(written, races);
        for (elements, here) in &racing {
            self.found(Raced::Elements(*elements), *here, there, out);
        }
        racing.len() as u64
    }

    /// Another node's interval of this version freed the arrays with these ids. Returns how many
    /// races that makes. What was written of them here is remembered for a while.
    pub fn arrays_freed(&mut self, ids: OidRange, there: Version, out: &mut Commands) -> u64 {
        let mut races = 0;
        for array in self.own_elements.arrays_within(ids) {
            let whole = Elements::new(array, 0..u64::MAX);
            races += self.element_races(whole, (there, true), out);
            self.forget_array(array);
        }
        self.forget_at_home(ids);
        races
    }

    /// Whether this node's last write of something races with another node's, of which it hears
    /// for the first time, and is the newer one.
    fn races_with(&self, last: Packed, there: Version) -> bool {
        let (lamport, node) = (last.lamport(), self.me);
        lamport > self.barrier && (Version { lamport, node }) >= there
    }

    /// Asks the other node about a race, unless it was asked before or too much was.
    fn found(
        &mut self,
        raced: Raced,
        here: Packed,
        (there, freed_there): (Version, bool),
        out: &mut Commands,
    ) {
        let here = RacingWrite {
            node: self.me,
            site: self.sites.get(here.site()),
            freed: here.freed(),
        };
        self.ask(raced, here, (there, freed_there), out);
    }

    fn ask(
        &mut self,
        raced: Raced,
        here: RacingWrite,
        (there, freed_there): (Version, bool),
        out: &mut Commands,
    ) {
        let known =
            |f: &Found| f.raced.meets(raced) && (f.here, f.there.node) == (here, there.node);
        if self.found.len() >= MOST_ASKED || self.found.iter().any(known) {
            return;
        }
        self.found.push(Found {
            raced,
            here,
            there,
            freed_there,
            answered: false,
        });
        let lamport = there.lamport;
        out.push(Command::Send {
            to: there.node,
            message: Message::WhereWritten { raced, lamport },
        });
    }

    fn own_of(&self, oid: Oid) -> Option<Own> {
        self.own.get(&oid.chunk()).map(|own| own[oid.slot()])
    }

    /// The place of this number.
    pub fn site_of(&self, site: SiteId) -> Option<CallSite> {
        self.sites.get(site)
    }

    /// Where this node last wrote an object, or freed it.
    pub fn last_site(&self, oid: Oid) -> Option<CallSite> {
        self.own_of(oid)
            .and_then(|own| self.sites.get(own.last.site()))
    }

    /// Whether a race was found whose other side is not known yet.
    pub fn is_asking(&self) -> bool {
        self.found.iter().any(|found| !found.answered)
    }

    /// Another node has found a race with what this one wrote at `lamport`, and asks where.
    pub fn asked(&self, from: NodeId, raced: Raced, lamport: u64, out: &mut Commands) {
        let (raced, site) = match raced {
            Raced::Object(oid) => {
                let own = self.own_of(oid).unwrap_or_default();
                (raced, own.site_at(lamport))
            }
            Raced::Elements(elements) => {
                let (first, site) = self.own_elements.written_at(elements, lamport);
                (Raced::Elements(first), site)
            }
        };
        let message = Message::WrittenAt {
            raced,
            lamport,
            site: self.sites.get(site),
        };
        out.push(Command::Send { to: from, message });
    }

    /// The answer. Where it holds for the first of several elements alone, the others are asked
    /// about next.
    pub fn answered(
        &mut self,
        from: NodeId,
        raced: Raced,
        lamport: u64,
        site: Option<CallSite>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let there = Version {
            lamport,
            node: from,
        };
        let asked = |f: &&mut Found| !f.answered && f.there == there && f.raced.begins_with(raced);
        let Some(found) = self.found.iter_mut().find(asked) else {
            let what = "where it wrote, which was not asked";
            return Err(ProtocolError::BadMessage { from, what });
        };
        found.answered = true;
        let asked = std::mem::replace(&mut found.raced, raced);
        let (here, freed) = (found.here, found.freed_there);
        let there_side = RacingWrite {
            node: from,
            site,
            freed,
        };
        let mut writes = [here, there_side];
        writes.sort_unstable();
        out.push(Command::Race(Race { raced, writes }));
        if let Some(rest) = asked.behind(raced) {
            self.ask(rest, here, (there, freed), out);
        }
        Ok(())
    }

    /// All objects of these chunks were freed. What was written there is remembered for a while,
    /// for races with the freeing.
    pub fn forget(&mut self, chunks: Range<u64>) {
        let written = self.own.range(chunks).map(|(chunk, _)| *chunk);
        self.freed.extend(written);
        while self.freed.len() > MOST_FREED {
            let oldest = self.freed.pop_front();
            oldest.and_then(|chunk| self.own.remove(&chunk));
        }
    }

    /// An array was freed. What was written of it is remembered for a while, for races with the
    /// freeing.
    pub fn forget_array(&mut self, array: Oid) {
        self.own_elements.forget_later(array);
    }

    /// Chunks of ids in which what this node wrote is remembered.
    pub fn kept(&self) -> usize {
        self.own.len()
    }

    /// All have met at a barrier, and this node's Lamport time is `lamport`: what was written
    /// before happened before all that follows.
    pub fn met(&mut self, lamport: u64) {
        // Who left an earlier barrier later may still ask about what came before this one.
        self.own_elements.forget_up_to(self.barrier);
        self.barrier = lamport;
        for chunk in self.freed.drain(..) {
            self.own.remove(&chunk);
        }
    }
}
