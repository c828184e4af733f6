//! How the processes of a cluster announce their objects to each other: which ids are bound to
//! what.
//!
//! A process learns of objects elsewhere only from references, and a reference is worth nothing
//! without the type of what it names. So every frame to another process begins with the *runs*,
//! ids that were allocated together, that this process knows and has not announced to that one.
//! A frame names no object that its receiver does not know by then, for whoever has a reference
//! knows its run. Runs learnt from others are announced too, but not to the node that allocated
//! them.
//!
//! A receiver believes an announcement as far as it cannot do harm. A run must lie within the part
//! of the ids of another node, and be of a type that is compiled here. It may not be large beyond
//! measure, and must agree with what is known. So an id is of one type here for ever, whatever a
//! peer says.
//!
//! A run all of whose objects are freed everywhere may not be announced any more. A reference that
//! names such an id makes it known as one that is null for ever. A run that is announced afterwards
//! is ignored as far as its ids are null already.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use dhole_model::unpoisoned::{lock, read, write};
use dhole_model::{CHUNK, CallSite, Coherence, NodeId, Oid};
use dhole_registry::Shipped;
use serde::{Deserialize, Serialize};

use crate::decoding::decode_whole;
use crate::directory::{ArrayRun, Directory, Life, Run};
use crate::geometry::per_block;
use crate::global::Addresses;
use crate::{ArrayBinding, Binding, Cluster, LearnError, TypeInfo, TypeRef};

/// The most runs that one message announces; more go in messages of their own.
const MOST_RUNS: usize = 2048;

/// A run as one process announces it to another.
#[derive(Serialize, Deserialize)]
struct RunRecord {
    first: u64,
    /// Ids that may name an object; of an array, all its ids.
    ids: u64,
    /// The place of the type in the table of names.
    ty: u32,
    len: u64,
    shape: Shape,
    coherence: Coherence,
    /// The place in the list of sites.
    site: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Shape {
    Objects,
    Rows,
    Array,
    ArrayOfZeros,
    /// No objects, but a part of the ids that node 0 handed out: `len` is the node's number.
    Part,
}

/// Up to where the log is announced to a node when it has got what [`Cluster::announce`] wrote.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Announcement {
    next: u64,
    /// Whether there is more to announce before anything else may go there.
    pub more: bool,
}

impl Cluster {
    /// Appends to `out` the objects known here that are not announced to `to` yet; nothing where it
    /// knows all. The caller sends it, in order with all that it sends there, and says so
    /// ([`announced`](Cluster::announced)); it lets no one else announce anything to `to`
    /// meanwhile.
    pub fn announce(&self, to: NodeId, out: &mut Vec<u8>) -> Announcement {
        match self.next_for(to) {
            None => Announcement::default(),
            Some((next, false)) => Announcement { next, more: false },
            Some((next, true)) => self.announce_from(next, to, out),
        }
    }

    /// The first entry that is not announced to another process, and whether there is one.
    fn next_for(&self, to: NodeId) -> Option<(u64, bool)> {
        let progress = self.multiprocess.as_ref()?.progress.get(to.index())?;
        let next = progress.next.load(Ordering::Acquire);
        Some((next, progress.behind.load(Ordering::Acquire) > next))
    }

    /// Whether another process has to be [sent](Cluster::announce) something.
    pub fn has_to_announce(&self, to: NodeId) -> bool {
        self.next_for(to).is_some_and(|(_, any)| any)
    }

    #[cold]
    fn announce_from(&self, next: u64, to: NodeId, out: &mut Vec<u8>) -> Announcement {
        let Some(multiprocess) = &self.multiprocess else {
            return Announcement::default();
        };
        let log = lock(&multiprocess.log);
        let directory = read(&self.directory);
        let (mut sites, mut runs) = (Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        let begins = log.entries.partition_point(|entry| entry.number < next);
        let mut announcement = Announcement {
            next: log.end,
            more: false,
        };
        for entry in log.entries.range(begins..) {
            if runs.len() == MOST_RUNS {
                announcement = Announcement {
                    next: entry.number,
                    more: true,
                };
                break;
            }
            if entry.creator == to || entry.from == to {
                continue;
            }
            if entry.part > 0 {
                runs.push(RunRecord::part(entry.first, entry.part, entry.creator));
                continue;
            }
            if let Some((mut record, site)) = directory.record_of(entry.first) {
                let place = places.entry(site).or_insert_with(|| {
                    sites.push(site);
                    sites.len() as u32 - 1
                });
                record.site = *place;
                runs.push(record);
            }
        }
        if !runs.is_empty() {
            let begun = std::mem::take(out);
            *out = postcard::to_extend(&(sites, runs), begun)
                .expect("a list of plain values has a form in bytes");
        }
        announcement
    }

    /// What [`announce`](Cluster::announce) wrote is on its way.
    pub fn announced(&self, to: NodeId, announcement: Announcement) {
        let Some(multiprocess) = &self.multiprocess else {
            return;
        };
        let progress = &multiprocess.progress[to.index()];
        // Only one thread at a time announces to a node.
        let before = progress.next.load(Ordering::Relaxed);
        if before == announcement.next {
            return;
        }
        progress.next.store(announcement.next, Ordering::Release);
        if before / MOST_RUNS as u64 != announcement.next / MOST_RUNS as u64 {
            let others = multiprocess.progress.iter().enumerate();
            let others = others.filter(|(node, _)| *node != multiprocess.me.index());
            let announced = others.map(|(_, progress)| progress.next.load(Ordering::Acquire));
            let announced = announced.min().unwrap_or(0);
            let parts = read(&self.parts).len();
            lock(&multiprocess.log).trim(announced, &read(&self.directory), parts);
        }
    }

    /// Takes in what another process announces of the objects that it knows.
    ///
    /// # Errors
    /// [`LearnError`]: whoever says this is not to be listened to any more. What came before it
    /// in the list is known.
    pub fn learn(&self, from: NodeId, announced: &[u8]) -> Result<(), LearnError> {
        if announced.is_empty() {
            return Ok(());
        }
        let (sites, runs): (Vec<CallSite>, Vec<RunRecord>) =
            decode_whole(announced).map_err(LearnError::Malformed)?;
        let unknown = CallSite::runtime("a place in another process");
        runs.into_iter().try_for_each(|record| {
            let site = sites.get(record.site as usize).copied();
            self.learn_one(from, record, site.unwrap_or(unknown))
        })
    }

    fn learn_one(&self, from: NodeId, record: RunRecord, site: CallSite) -> Result<(), LearnError> {
        let first = Oid(record.first);
        if record.shape == Shape::Part {
            return self.learn_part(from, &record);
        }
        let found = Shipped::at(record.ty).map_err(LearnError::Type)?;
        let Some(ty) = found.is::<TypeRef>() else {
            let name = found.name();
            return Err(LearnError::NoType { name });
        };
        let info = ty.info();
        let ids = record.ids_with_rest();
        let creator = self.creator_of_record(&ids);
        let creator = creator.ok_or(LearnError::Ids {
            first,
            ids: record.ids,
        })?;
        if !record.is_possible(info, self.store_bytes()) {
            return Err(LearnError::Impossible {
                first,
                ids: record.ids,
                len: record.len,
                type_name: info.name,
            });
        }
        let mut directory = write(&self.directory);
        match directory.agrees(&record, info) {
            Some(true) => return Ok(()),
            Some(false) => {
                let announced = format!("{} {}, {} long", record.ids, info.name, record.len);
                return Err(LearnError::Clash { first, announced });
            }
            None => {}
        }
        let freed = directory.forgotten_of(ids.clone());
        if freed.covers(ids.clone()) {
            return Ok(());
        }
        let most = self.most_learnt();
        if directory.runs_kept() >= most {
            return Err(LearnError::TooMany { most });
        }
        match record.shape {
            Shape::Objects | Shape::Rows => directory.add(
                first.chunk(),
                Run {
                    chunks: (ids.end - ids.start) / CHUNK,
                    ids: record.ids,
                    binding: Binding {
                        info,
                        len: record.len,
                        row: record.shape == Shape::Rows,
                        coherence: record.coherence,
                    },
                    site,
                    life: Life::after_freeing(freed),
                    addresses: Addresses::Anywhere,
                },
            ),
            Shape::Array | Shape::ArrayOfZeros => directory.add_array(
                first,
                ArrayRun {
                    ids: record.ids as u32,
                    binding: ArrayBinding {
                        info,
                        len: record.len,
                        zeros: record.shape == Shape::ArrayOfZeros,
                        coherence: record.coherence,
                    },
                    site,
                    // An array is freed as a whole, and no part of one is null for ever else.
                    freed: freed.count() > 0,
                    records: 0,
                    address: None,
                },
            ),
            Shape::Part => {}
        }
        drop(directory);
        if let Some(multiprocess) = &self.multiprocess {
            multiprocess.note_run(first, creator, from);
        }
        Ok(())
    }

    /// A node says that a part of the ids is another's, or its own.
    fn learn_part(&self, from: NodeId, record: &RunRecord) -> Result<(), LearnError> {
        let Some(multiprocess) = &self.multiprocess else {
            return Ok(());
        };
        // One that no node has, where the number is none.
        let node = NodeId(u16::try_from(record.len).unwrap_or(u16::MAX));
        let ids = record.first..record.first.saturating_add(record.ids);
        let most = self.most_learnt();
        if read(&self.parts).len() >= most {
            return Err(LearnError::TooMany { most });
        }
        let is_mine = node == multiprocess.me && read(&self.parts).of_all(&ids) != Some(node);
        if is_mine {
            let (first, ids) = (Oid(record.first), record.ids);
            return Err(LearnError::Part { first, ids, node });
        }
        if self.add_part(multiprocess, ids.clone(), node)? {
            multiprocess.note_part(ids, node, from);
        }
        Ok(())
    }

    /// From now on announcements are refused when so many runs are known.
    pub fn learn_at_most(&self, runs: usize) {
        if let Some(multiprocess) = &self.multiprocess {
            multiprocess.most_learnt.store(runs, Ordering::Relaxed);
        }
    }

    fn most_learnt(&self) -> usize {
        let multiprocess = self.multiprocess.as_ref();
        multiprocess.map_or(0, |multiprocess| {
            multiprocess.most_learnt.load(Ordering::Relaxed)
        })
    }

    /// The node in whose part all these ids are, if it is another than this one.
    fn creator_of_record(&self, ids: &Range<u64>) -> Option<NodeId> {
        let multiprocess = self.multiprocess.as_ref()?;
        let creator = read(&self.parts).of_all(ids)?;
        (creator != multiprocess.me).then_some(creator)
    }
}

impl RunRecord {
    fn part(first: Oid, ids: u64, of: NodeId) -> RunRecord {
        RunRecord {
            first: first.0,
            ids,
            ty: 0,
            len: u64::from(of.0),
            shape: Shape::Part,
            coherence: Coherence::default(),
            site: 0,
        }
    }

    /// Its ids, and those behind them that never name an object.
    fn ids_with_rest(&self) -> Range<u64> {
        let ids = match self.shape {
            Shape::Objects | Shape::Rows => self.ids.checked_next_multiple_of(CHUNK),
            Shape::Array | Shape::ArrayOfZeros | Shape::Part => Some(self.ids),
        };
        let end = ids.and_then(|ids| self.first.checked_add(ids));
        self.first..end.unwrap_or(0)
    }

    /// Whether an allocation could have made it, on a node whose store has so many bytes.
    fn is_possible(&self, info: &TypeInfo, store_bytes: u64) -> bool {
        let bytes = (info.size as u64).checked_mul(self.len);
        let fits = bytes.is_some_and(|bytes| bytes <= store_bytes);
        // First of all: what follows counts with numbers that fit.
        if !fits || u32::try_from(self.ids).is_err() || isize::try_from(self.len).is_err() {
            return false;
        }
        let starts_a_chunk = self.first.is_multiple_of(CHUNK);
        let scalar = info.is_dense() && info.leaves.is_empty() && info.references.is_empty();
        let blocks = per_block(info.size).map(|elements| self.len.div_ceil(elements));
        let is_array = match blocks {
            None | Some(0) => false,
            Some(1) => self.ids == 1,
            Some(blocks) => starts_a_chunk && blocks.next_multiple_of(CHUNK) == self.ids,
        };
        match self.shape {
            Shape::Objects => starts_a_chunk && self.len == 1,
            Shape::Rows => starts_a_chunk && scalar,
            Shape::Array => is_array,
            Shape::ArrayOfZeros => is_array && scalar,
            Shape::Part => false,
        }
    }
}

impl Directory {
    /// The record of a run or an array, without its place in a list of sites; nothing of one that
    /// is forgotten, or of a type that has no name elsewhere.
    fn record_of(&self, first: Oid) -> Option<(RunRecord, CallSite)> {
        if let Some(ArrayRun {
            ids, binding, site, ..
        }) = self.array_at(first)
        {
            let shape = match binding.zeros {
                true => Shape::ArrayOfZeros,
                false => Shape::Array,
            };
            let record = RunRecord {
                first: first.0,
                ids: u64::from(*ids),
                ty: binding.info.shipped?,
                len: binding.len,
                shape,
                coherence: binding.coherence,
                site: 0,
            };
            return Some((record, *site));
        }
        let Run {
            ids, binding, site, ..
        } = self.run_at(first.chunk())?;
        let record = RunRecord {
            first: first.0,
            ids: *ids,
            ty: binding.info.shipped?,
            len: binding.len,
            shape: if binding.row {
                Shape::Rows
            } else {
                Shape::Objects
            },
            coherence: binding.coherence,
            site: 0,
        };
        Some((record, *site))
    }

    /// Whether the record agrees with what is known of its ids; `None` where nothing is known.
    fn agrees(&self, record: &RunRecord, info: &'static TypeInfo) -> Option<bool> {
        let first = Oid(record.first);
        let is_type = |known: &TypeInfo| known.type_id == info.type_id;
        if !self.knows_any(record.ids_with_rest()) {
            return None;
        }
        Some(match record.shape {
            Shape::Objects | Shape::Rows => self.run_at(first.chunk()).is_some_and(|run| {
                let row = record.shape == Shape::Rows;
                let binding = &run.binding;
                let alike = is_type(binding.info) && binding.row == row;
                alike && (run.ids, binding.len) == (record.ids, record.len)
            }),
            Shape::Array | Shape::ArrayOfZeros => self.array_at(first).is_some_and(|run| {
                let zeros = record.shape == Shape::ArrayOfZeros;
                let binding = &run.binding;
                let alike = is_type(binding.info) && binding.zeros == zeros;
                alike && (u64::from(run.ids), binding.len) == (record.ids, record.len)
            }),
            Shape::Part => false,
        })
    }
}

#[cfg(test)]
mod tests;
