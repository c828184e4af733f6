//! All coherence protocols of one node, over one table of objects.
//!
//! An object has one protocol at a time. [`Protocols`] takes what happens to objects, arrays and
//! pages, and asks the [rules] of the object's protocol: [lazy], [update], [home],
//! [TreadMarks](treadmarks) or one that the program brings ([`member`]). Locks, barriers and
//! intervals are [synchronisation](crate::sync), which carries write notices and knows no protocol.

mod aggregation;
mod along;
mod arrays;
mod blocks;
pub mod built_in;
mod combining;
mod deferred;
mod ending;
mod exclusive;
mod expected;
mod fetching;
mod flushing;
mod freeing;
mod gates;
mod home;
mod inbox;
mod invalidation_acks;
pub(crate) mod kind;
mod lazy;
pub(crate) mod member;
mod member_arrays;
mod member_events;
pub(crate) mod members;
mod notice_check;
mod object_table;
mod one_sided;
pub(crate) mod parts;
mod pending_fetches;
mod propagating;
mod pushes;
mod quiescence;
pub(crate) mod races;
mod read_ahead;
mod region;
mod remembered;
mod rules;
mod sections;
pub(crate) mod switch;
mod treadmarks;
mod twins;
mod update;
mod young;

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange, Version};

use crate::array_event::ArrayEvent;
use crate::command::{Command, Commands, Unread};
use crate::error::{Freed, ProtocolError};
use crate::page_command::PageEvent;
use crate::sync::collection::Gossip;
use crate::sync::interval_log::LogLimits;
use crate::sync::intervals::Intervals;
use crate::sync::notice_delta::Record;
use crate::{Interval, RegionCommand, WriteNotices};
use arrays::Arrays;
use blocks::BlockTable;
use deferred::DeferredRequests;
use lazy::Lazy;
use members::Members;
use object_table::ObjectTable;
use pending_fetches::Fetching;
use races::{RaceFinder, Races};
use remembered::Remembered;
use rules::{PROTOCOLS, rules};
use treadmarks::TreadMarks;

pub use aggregation::MOST_BESIDE;
pub use arrays::HeldElements;

/// One node's part of all coherence protocols.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Protocols {
    pub(crate) me: NodeId,
    pub(crate) intervals: Intervals,
    pub(crate) objects: ObjectTable,
    pub(crate) fetching: Fetching<Oid>,
    /// What the round under way asked for and was freed.
    pub(crate) gone: Option<Freed>,
    pub(crate) lazy: Lazy,
    pub(crate) remembered: Remembered<Oid>,
    pub arrays: Arrays,
    /// The pages of a run under TreadMarks.
    pub treadmarks: TreadMarks,
    /// Requests for bytes of what is written.
    deferred: DeferredRequests,
    /// The protocols that the program brings.
    pub(crate) members: Members,
    /// The arrays that they keep consistent.
    pub(crate) blocks: BlockTable,
    pub races: RaceFinder,
    /// Pushes of older versions are of no use: something has changed protocol since.
    pub(crate) pushes_from: u64,
    /// How much is kept of what others have written.
    most_heard: usize,
}

impl Protocols {
    pub fn new(me: NodeId, nodes: usize, limits: LogLimits, races: Races) -> Protocols {
        Protocols {
            me,
            intervals: Intervals::new(me, nodes, limits),
            objects: ObjectTable::default(),
            fetching: Fetching::default(),
            gone: None,
            lazy: Lazy::default(),
            remembered: Remembered::default(),
            arrays: Arrays::new(me),
            treadmarks: TreadMarks::new(me, nodes, limits.collect_pages_from),
            deferred: DeferredRequests::default(),
            members: Members::default(),
            blocks: BlockTable::default(),
            races: RaceFinder::new(me, races),
            pushes_from: 0,
            most_heard: limits.most_heard,
        }
    }

    pub fn allocated(&mut self, range: OidRange, coherence: Coherence, out: &mut Commands) {
        let version = Version {
            lamport: 0,
            node: self.me,
        };
        let has_version = coherence.properties().has_versions();
        self.objects.allocate(range, |_, object| {
            object.coherence = Some(coherence);
            if has_version {
                object.hold(version);
            }
        });
        rules::<Oid>(coherence).allocated(self, range, out);
    }

    /// The worker does something with a page.
    pub fn page_event(&mut self, event: PageEvent, out: &mut Commands) {
        self.treadmarks.step(event, self.intervals.time(), out);
    }

    /// Applies what a releaser told and was [checked](Protocols::check). The worker must be in a
    /// call that takes its token mutably.
    pub fn apply(&mut self, news: &WriteNotices, records: Vec<Record>, out: &mut Commands) {
        debug_assert!(
            self.lazy.dirty.is_empty() && !self.arrays.is_dirty(),
            "an acquire begins with the end of an interval"
        );
        let mut races = 0;
        for record in records {
            let interval = &record.whole;
            self.intervals.see(interval);
            races += self.notice(interval, out) + self.notice_freed(interval, out);
            for protocol in PROTOCOLS {
                protocol.noticed(self, interval, out);
            }
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
        for protocol in PROTOCOLS {
            protocol.after_acquire(self, out);
        }
    }

    /// Applies the notices of an interval; how many of them race with writes of this node.
    fn notice(&mut self, interval: &Interval, out: &mut Commands) -> u64 {
        let (version, finder, mut races) = (interval.version(), &mut self.races, 0);
        self.objects.for_each(&interval.written, |oid, object| {
            self.remembered.copysets.forget(oid);
            self.remembered.inbox.outdate(oid, version, out);
            if finder.suspects(object.newest()) {
                races += u64::from(finder.is_race(oid, (version, false), out));
            }
            if !object.freed && object.hear(version) {
                object.exclusive = false;
                out.push(Command::Objects(RegionCommand::Invalidate(oid)));
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

    /// The worker does something with an array.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when the array is.
    pub fn array(&mut self, event: ArrayEvent, out: &mut Commands) -> Result<(), ProtocolError> {
        match event {
            ArrayEvent::Blocks(event) => return self.block_event(event, out),
            ArrayEvent::Read(misses) => return self.read_elements(&misses, out),
            ArrayEvent::Allocated { blocks, coherence } => {
                self.array_allocated(blocks, coherence, out);
            }
            ArrayEvent::Write { elements, site } => {
                self.arrays.check_not_freed(elements.array)?;
                self.write_elements(elements, site, out);
            }
            ArrayEvent::Overwrite {
                elements,
                creator,
                coherence,
                site,
            } => {
                self.arrays.check_not_freed(elements.array)?;
                self.arrays.table.meet(elements.array, coherence);
                self.overwrite_elements(elements, creator, out);
                self.write_elements(elements, site, out);
            }
            ArrayEvent::Switched {
                blocks,
                creator,
                allocated,
                to,
            } => self.array_switched(blocks, creator, [allocated, to], out)?,
            ArrayEvent::Free { ids, site } => {
                self.arrays.check_not_freed(ids.first)?;
                self.blocks_freed(ids);
                self.remembered.freed_pushes(ids, out);
                let site = self.races.site(site);
                self.arrays.free(ids, site, &mut self.races, out);
            }
        }
        Ok(())
    }

    /// Whether the worker waits before it writes an object: its protocol says when it may.
    pub fn waits_to_write(&self, oid: Oid) -> bool {
        rules::<Oid>(self.objects.get(oid).coherence).waits_to_write()
    }

    /// The worker writes an object that is not writable here.
    pub fn write_fault(&mut self, oid: Oid, site: CallSite, out: &mut Commands) {
        let coherence = self.objects.get(oid).coherence;
        rules::<Oid>(coherence).write_fault(self, oid, site, out);
    }

    /// Whether an object may be written as a whole without being fetched.
    pub fn may_overwrite(&self, unread: &Unread) -> bool {
        let object = self.objects.get(unread.oid);
        let known = object.coherence.unwrap_or(unread.coherence);
        known.properties().announces && !self.lazy.compares
    }

    /// The worker has put a value in the place of an object of which there is no valid copy here.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when the object is.
    pub fn overwrite(&mut self, unread: Unread, out: &mut Commands) -> Result<(), ProtocolError> {
        self.check_not_freed(unread.oid)?;
        let object = self.objects.get_mut(unread.oid);
        object.coherence.get_or_insert(unread.coherence);
        let version = object.known(unread.creator);
        object.hold(version);
        self.remembered.inbox.forget(unread.oid, out);
        Ok(())
    }

    /// The worker writes all of these elements next. What they were is as good as fetched.
    fn overwrite_elements(&mut self, elements: Elements, creator: NodeId, out: &mut Commands) {
        let unread = self.arrays.overwrite(elements, creator);
        let rules = rules::<Elements>(self.arrays.table.coherence(elements.array));
        let remembered = &mut self.arrays.remembered;
        for part in unread {
            rules.brought(part, false, remembered, out);
        }
        remembered.inbox.forget(elements, out);
    }

    fn write_elements(&mut self, elements: Elements, site: CallSite, out: &mut Commands) {
        let coherence = self.arrays.table.coherence(elements.array);
        rules::<Elements>(coherence).write_fault(self, elements, site, out);
    }
}
