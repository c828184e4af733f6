//! What the processes of a cluster tell each other of their objects: which ids are bound to what.
//!
//! A process learns of objects elsewhere only from references, and a reference is worth nothing
//! without the type of what it names. So every frame to another process begins with what that one
//! has not been told yet of the *runs* that are known here: ids that were allocated together. It
//! names no object that the receiver does not know by then, for whoever has a reference knows its
//! run. Runs learnt from others are told on, but not to who allocated them.
//!
//! What comes is believed as far as it cannot do harm: a run must lie within the part of the ids
//! of another node than this one, and be of a type that is compiled here; it may not be large
//! beyond measure, and must agree with what is known. So an id is of one type here for ever,
//! whatever a peer says.
//!
//! Of a run all of whose objects are freed everywhere nothing may be left to tell. Who names such
//! an id in a reference makes it known as one that is null for ever; a run that is told of it
//! afterwards is ignored as far as its ids are null already.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{CHUNK, CallSite, Coherence, NodeId, Oid};
use dhole_ship::{NoEntry, Shipped};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::directory::{ArrayRun, Directory, Life, Run};
use crate::geometry::per_block;
use crate::global::Lies;
use crate::sync::{lock, read, write};
use crate::{ArrayBinding, Binding, Cluster, TypeInfo, TypeRef};

/// The most runs that one message tells of; more go in messages of their own.
const MOST_RUNS: usize = 2048;

/// The most runs that are known where others tell of more, unless something else is said.
pub const MOST_LEARNT: usize = 1 << 22;

/// The most ranges of ids that are known to be null for ever.
pub(crate) const MOST_BURIED: usize = 1 << 20;

/// The runs that others may have to be told of, in the order in which they became known.
#[derive(Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// How many there were ever.
    end: u64,
}

/// A run, an array, or a part of the ids.
#[derive(Clone, Copy)]
struct Entry {
    number: u64,
    first: Oid,
    /// The ids of a part, which never go out of mind; 0 for a run or an array.
    part: u64,
    creator: NodeId,
    /// Who told of it, if it was not this node's own.
    from: NodeId,
}

/// How far another node has been told.
#[derive(Default)]
pub(crate) struct Line {
    /// The number of the next entry to tell it.
    next: AtomicU64,
    /// There may be something to tell.
    behind: AtomicU64,
}

/// A run as one process tells another.
#[derive(Serialize, Deserialize)]
struct Told {
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

/// Up to where a node is told when it has got what [`Cluster::tell`] wrote.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Telling {
    next: u64,
    /// Whether there is more to tell before anything else may go there.
    pub more: bool,
}

/// Why what another process told of its objects is not believed. Only a process that lies, or
/// another program, says such things.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LearnError {
    /// The bytes are no list of runs.
    #[error("what it tells of its objects is malformed: {0}")]
    Malformed(postcard::Error),
    /// The type does not exist here.
    #[error("it tells of objects of a type that is not known here: {0}")]
    Type(NoEntry),
    /// There is such a name here, but of no shared type.
    #[error("it tells of objects of a type that is none: {name}")]
    NoType {
        /// What the name stands for.
        name: &'static str,
    },
    /// The ids are not in the part of one other node.
    #[error("it tells of {ids} objects from {first} on, which are not one other node's")]
    Ids {
        /// The first.
        first: Oid,
        /// How many.
        ids: u64,
    },
    /// No node could store it, or its type cannot be had in this form.
    #[error("it tells of {ids} times {len} {type_name} at {first}, which cannot be")]
    Impossible {
        /// The first id.
        first: Oid,
        /// Objects.
        ids: u64,
        /// Scalars in each row, or elements of the array.
        len: u64,
        /// Their type.
        type_name: &'static str,
    },
    /// A part of the ids cannot be that node's, or is not known to node 0.
    #[error("it tells of {ids} ids from {first} on that would be {node}'s, which cannot be")]
    Part {
        /// The first.
        first: Oid,
        /// How many.
        ids: u64,
        /// The node.
        node: NodeId,
    },
    /// Something else is known of the ids.
    #[error("it tells of {told} at {first}, where something else is")]
    Clash {
        /// The first id.
        first: Oid,
        /// What it tells.
        told: String,
    },
    /// It tells of more than a node keeps in mind.
    #[error("it tells of one run of objects more than the {most} that may be known")]
    TooMany {
        /// The most there may be.
        most: usize,
    },
}

impl Log {
    /// Adds a run, and says how many there were ever.
    fn add(&mut self, (first, part): (Oid, u64), creator: NodeId, from: NodeId) -> u64 {
        self.entries.push_back(Entry {
            number: self.end,
            first,
            part,
            creator,
            from,
        });
        self.end += 1;
        self.end
    }

    /// Drops what all have been told, and what is left of runs that are forgotten.
    fn trim(&mut self, told: u64, directory: &Directory, parts: usize) {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.number < told)
        {
            self.entries.pop_front();
        }
        let known = directory.runs_kept() + parts;
        if self.entries.len() > 2 * known + 1024 {
            self.entries
                .retain(|entry| entry.part > 0 || directory.begins_at(entry.first));
        }
    }
}

impl Cluster {
    /// A run or an array was allocated here.
    pub(crate) fn note_new(&self, first: Oid) {
        if let Some(apart) = &self.apart {
            self.note((first, 0), apart.me, apart.me);
        }
    }

    /// A node has a part of the ids, which others must know before what lies there.
    pub(crate) fn note_part(&self, ids: Range<u64>, of: NodeId, from: NodeId) {
        self.note((Oid(ids.start), ids.end - ids.start), of, from);
    }

    fn note(&self, what: (Oid, u64), creator: NodeId, from: NodeId) {
        let Some(apart) = &self.apart else { return };
        let end = lock(&apart.log).add(what, creator, from);
        for line in &apart.lines {
            line.behind.fetch_max(end, Ordering::Release);
        }
    }

    /// Appends to `out` what `to` has not been told of the objects that are known here; nothing
    /// where it knows all. The caller sends it, in order with all that it sends there, and says so
    /// ([`told`](Cluster::told)); it lets no one else tell `to` meanwhile.
    pub fn tell(&self, to: NodeId, out: &mut Vec<u8>) -> Telling {
        match self.next_for(to) {
            None => Telling::default(),
            Some((next, false)) => Telling { next, more: false },
            Some((next, true)) => self.tell_from(next, to, out),
        }
    }

    /// From where on another process has not been told, and whether there is anything.
    fn next_for(&self, to: NodeId) -> Option<(u64, bool)> {
        let line = self.apart.as_ref()?.lines.get(to.index())?;
        let next = line.next.load(Ordering::Acquire);
        Some((next, line.behind.load(Ordering::Acquire) > next))
    }

    /// Whether another process has to be [told](Cluster::tell) something.
    pub fn has_to_tell(&self, to: NodeId) -> bool {
        self.next_for(to).is_some_and(|(_, any)| any)
    }

    #[cold]
    fn tell_from(&self, next: u64, to: NodeId, out: &mut Vec<u8>) -> Telling {
        let Some(apart) = &self.apart else {
            return Telling::default();
        };
        let log = lock(&apart.log);
        let directory = read(&self.directory);
        let (mut sites, mut runs) = (Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        let begins = log.entries.partition_point(|entry| entry.number < next);
        let mut telling = Telling {
            next: log.end,
            more: false,
        };
        for entry in log.entries.range(begins..) {
            if runs.len() == MOST_RUNS {
                telling = Telling {
                    next: entry.number,
                    more: true,
                };
                break;
            }
            if entry.creator == to || entry.from == to {
                continue;
            }
            if entry.part > 0 {
                runs.push(Told::part(entry.first, entry.part, entry.creator));
                continue;
            }
            if let Some((mut told, site)) = directory.told(entry.first) {
                let place = places.entry(site).or_insert_with(|| {
                    sites.push(site);
                    sites.len() as u32 - 1
                });
                told.site = *place;
                runs.push(told);
            }
        }
        if !runs.is_empty() {
            let begun = std::mem::take(out);
            *out = postcard::to_extend(&(sites, runs), begun)
                .expect("a list of plain values has a form in bytes");
        }
        telling
    }

    /// What [`tell`](Cluster::tell) wrote is on its way.
    pub fn told(&self, to: NodeId, telling: Telling) {
        let Some(apart) = &self.apart else { return };
        let line = &apart.lines[to.index()];
        // Who tells this node of it does so alone.
        let before = line.next.load(Ordering::Relaxed);
        if before == telling.next {
            return;
        }
        line.next.store(telling.next, Ordering::Release);
        if before / MOST_RUNS as u64 != telling.next / MOST_RUNS as u64 {
            let others = apart.lines.iter().enumerate();
            let others = others.filter(|(node, _)| *node != apart.me.index());
            let told = others.map(|(_, line)| line.next.load(Ordering::Acquire));
            let told = told.min().unwrap_or(0);
            let parts = read(&self.parts).len();
            lock(&apart.log).trim(told, &read(&self.directory), parts);
        }
    }

    /// Takes what another process told of objects that it knows.
    ///
    /// # Errors
    /// [`LearnError`]: whoever says this is not to be listened to any more. What came before it
    /// in the list is known.
    pub fn learn(&self, from: NodeId, told: &[u8]) -> Result<(), LearnError> {
        if told.is_empty() {
            return Ok(());
        }
        let (sites, runs): (Vec<CallSite>, Vec<Told>) =
            postcard::from_bytes(told).map_err(LearnError::Malformed)?;
        let unknown = CallSite::runtime("a place in another process");
        runs.into_iter().try_for_each(|told| {
            let site = sites.get(told.site as usize).copied();
            self.learn_one(from, told, site.unwrap_or(unknown))
        })
    }

    fn learn_one(&self, from: NodeId, told: Told, site: CallSite) -> Result<(), LearnError> {
        let first = Oid(told.first);
        if told.shape == Shape::Part {
            return self.learn_part(from, &told);
        }
        let found = Shipped::at(told.ty).map_err(LearnError::Type)?;
        let Some(ty) = found.is::<TypeRef>() else {
            let name = found.name();
            return Err(LearnError::NoType { name });
        };
        let info = ty.info();
        let ids = told.ids_with_rest();
        let creator = self.creator_of_told(&ids);
        let creator = creator.ok_or(LearnError::Ids {
            first,
            ids: told.ids,
        })?;
        if !told.is_possible(info, self.store_bytes()) {
            return Err(LearnError::Impossible {
                first,
                ids: told.ids,
                len: told.len,
                type_name: info.name,
            });
        }
        let mut directory = write(&self.directory);
        match directory.agrees(&told, info) {
            Some(true) => return Ok(()),
            Some(false) => {
                let told = format!("{} {}, {} long", told.ids, info.name, told.len);
                return Err(LearnError::Clash { first, told });
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
        match told.shape {
            Shape::Objects | Shape::Rows => directory.add(
                first.chunk(),
                Run {
                    chunks: (ids.end - ids.start) / CHUNK,
                    ids: told.ids,
                    binding: Binding {
                        info,
                        len: told.len,
                        row: told.shape == Shape::Rows,
                        coherence: told.coherence,
                    },
                    site,
                    life: Life::after_freeing(freed),
                    lies: Lies::Anywhere,
                },
            ),
            Shape::Array | Shape::ArrayOfZeros => directory.add_array(
                first,
                ArrayRun {
                    ids: told.ids as u32,
                    binding: ArrayBinding {
                        info,
                        len: told.len,
                        zeros: told.shape == Shape::ArrayOfZeros,
                        coherence: told.coherence,
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
        self.note((first, 0), creator, from);
        Ok(())
    }

    /// A node says that a part of the ids is another's, or its own.
    fn learn_part(&self, from: NodeId, told: &Told) -> Result<(), LearnError> {
        let Some(apart) = &self.apart else {
            return Ok(());
        };
        // One that no node has, where the number is none.
        let node = NodeId(u16::try_from(told.len).unwrap_or(u16::MAX));
        let ids = told.first..told.first.saturating_add(told.ids);
        let most = self.most_learnt();
        if read(&self.parts).len() >= most {
            return Err(LearnError::TooMany { most });
        }
        let is_mine = node == apart.me && read(&self.parts).of_all(&ids) != Some(node);
        if is_mine {
            let (first, ids) = (Oid(told.first), told.ids);
            return Err(LearnError::Part { first, ids, node });
        }
        if self.add_part(apart, ids.clone(), node)? {
            self.note_part(ids, node, from);
        }
        Ok(())
    }

    /// From now on others are not believed who tell of runs when so many are known.
    pub fn learn_at_most(&self, runs: usize) {
        if let Some(apart) = &self.apart {
            apart.most_learnt.store(runs, Ordering::Relaxed);
        }
    }

    fn most_learnt(&self) -> usize {
        let apart = self.apart.as_ref();
        apart.map_or(0, |apart| apart.most_learnt.load(Ordering::Relaxed))
    }

    /// The node in whose part all these ids are, if it is another than this one.
    fn creator_of_told(&self, ids: &Range<u64>) -> Option<NodeId> {
        let apart = self.apart.as_ref()?;
        let creator = read(&self.parts).of_all(ids)?;
        (creator != apart.me).then_some(creator)
    }
}

impl Told {
    fn part(first: Oid, ids: u64, of: NodeId) -> Told {
        Told {
            first: first.0,
            ids,
            ty: 0,
            len: u64::from(of.0),
            shape: Shape::Part,
            coherence: Coherence::Lazy,
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
    /// What to tell of a run or an array, without its place in a list of sites; nothing of one that
    /// is forgotten, or of a type that has no name elsewhere.
    fn told(&self, first: Oid) -> Option<(Told, CallSite)> {
        if let Some(ArrayRun {
            ids, binding, site, ..
        }) = self.array_at(first)
        {
            let shape = match binding.zeros {
                true => Shape::ArrayOfZeros,
                false => Shape::Array,
            };
            let told = Told {
                first: first.0,
                ids: u64::from(*ids),
                ty: binding.info.shipped?,
                len: binding.len,
                shape,
                coherence: binding.coherence,
                site: 0,
            };
            return Some((told, *site));
        }
        let Run {
            ids, binding, site, ..
        } = self.run_at(first.chunk())?;
        let told = Told {
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
        Some((told, *site))
    }

    /// Whether what is known of the ids is what is told; `None` where nothing is known.
    fn agrees(&self, told: &Told, info: &'static TypeInfo) -> Option<bool> {
        let first = Oid(told.first);
        let is_type = |known: &TypeInfo| known.type_id == info.type_id;
        if !self.knows_any(told.ids_with_rest()) {
            return None;
        }
        Some(match told.shape {
            Shape::Objects | Shape::Rows => self.run_at(first.chunk()).is_some_and(|run| {
                let row = told.shape == Shape::Rows;
                let binding = &run.binding;
                let alike = is_type(binding.info) && binding.row == row;
                alike && (run.ids, binding.len) == (told.ids, told.len)
            }),
            Shape::Array | Shape::ArrayOfZeros => self.array_at(first).is_some_and(|run| {
                let zeros = told.shape == Shape::ArrayOfZeros;
                let binding = &run.binding;
                let alike = is_type(binding.info) && binding.zeros == zeros;
                alike && (u64::from(run.ids), binding.len) == (told.ids, told.len)
            }),
            Shape::Part => false,
        })
    }
}

#[cfg(test)]
mod tests;
