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

use crate::array::per_block;
use crate::cluster::{lock, read, write};
use crate::directory::{ArrayRun, Directory, Life, Run};
use crate::global::Lies;
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
mod tests {
    use std::sync::Arc;

    use dhole_model::{Detector, OidRange};

    use super::*;
    use crate::{ForeignKind, Monitor, Ref, Share};

    /// Node 1 of a cluster of 3, which has settled on a window.
    fn part() -> Arc<Cluster> {
        let cluster = Cluster::part(3, NodeId(1), Detector::Check).expect("room for a node");
        // Other tests of this process take ids meanwhile.
        let settled = || cluster.settle(Cluster::window_of(cluster.ids_left()), 1);
        while settled().is_err() {}
        cluster
    }

    /// The first id of a node in the first extent.
    fn first_of(cluster: &Cluster, node: u64) -> u64 {
        let mut parts = read(&cluster.parts);
        let first = parts.of_node(NodeId::at(node as usize)).next();
        first.expect("it is there from the beginning").start
    }

    fn name_of<T: Share>() -> u32 {
        TypeInfo::of::<T>().shipped.expect("a table of names")
    }

    fn objects(first: u64, ids: u64, ty: u32) -> Told {
        Told {
            first,
            ids,
            ty,
            len: 1,
            shape: Shape::Objects,
            coherence: Coherence::Lazy,
            site: 0,
        }
    }

    fn bytes(runs: Vec<Told>) -> Vec<u8> {
        let sites = vec![CallSite::runtime("elsewhere")];
        postcard::to_allocvec(&(sites, runs)).unwrap()
    }

    fn learn(cluster: &Cluster, told: Told) -> Result<(), LearnError> {
        cluster.learn(NodeId(2), &bytes(vec![told]))
    }

    #[test]
    fn what_one_is_told_it_knows_and_tells_on_but_not_to_who_knows_it() {
        let cluster = part();
        let theirs = first_of(&cluster, 2);
        let u64s = name_of::<u64>();
        learn(&cluster, objects(theirs, 70, u64s)).unwrap();
        let oid = Oid(theirs + 69);
        assert_eq!(cluster.binding(oid).unwrap().info.name, "u64");
        assert_eq!(cluster.creator(oid), Ok(NodeId(2)));
        assert!(cluster.binding(Oid(theirs + 70)).is_err());
        let node = Monitor::new(&cluster, NodeId(1), ());
        let own = node.lock().split().0.alloc(5_u8).unwrap();
        let mut told = Vec::new();
        assert!(cluster.has_to_tell(NodeId(2)));
        let telling = cluster.tell(NodeId(2), &mut told);
        let (_, runs): (Vec<CallSite>, Vec<Told>) = postcard::from_bytes(&told).unwrap();
        assert_eq!((runs.len(), runs[0].first), (1, own.oid().0));
        // Until it is on its way it is told again, and afterwards no more.
        let mut again = Vec::new();
        assert_eq!(cluster.tell(NodeId(2), &mut again), telling);
        assert_eq!(again, told);
        assert!(cluster.has_to_tell(NodeId(2)));
        cluster.told(NodeId(2), telling);
        assert!(!telling.more && !cluster.has_to_tell(NodeId(2)));
        again.clear();
        cluster.tell(NodeId(2), &mut again);
        assert!(again.is_empty());
        cluster.tell(NodeId(0), &mut again);
        let (_, runs): (Vec<CallSite>, Vec<Told>) = postcard::from_bytes(&again).unwrap();
        assert_eq!(runs.len(), 2);
    }

    #[test]
    fn many_runs_are_told_by_several_messages() {
        let cluster = part();
        let node = Monitor::new(&cluster, NodeId(1), ());
        let later = cluster.apart.as_ref().unwrap().later().start;
        let ids = (MOST_RUNS as u64 + 16) * CHUNK;
        let taken = node.lock().split().0.take_ids(later..later + ids);
        taken.unwrap();
        for i in 0..MOST_RUNS as u64 + 9 {
            node.lock().split().0.alloc_range(1, |_| i).unwrap();
        }
        let (mut all, mut messages) = (0, 0);
        loop {
            let mut told = Vec::new();
            let telling = cluster.tell(NodeId(0), &mut told);
            let (_, runs): (Vec<CallSite>, Vec<Told>) = postcard::from_bytes(&told).unwrap();
            (all, messages) = (all + runs.len(), messages + 1);
            cluster.told(NodeId(0), telling);
            if !telling.more {
                break;
            }
        }
        assert_eq!((all, messages), (MOST_RUNS + 10, 2));
    }

    #[test]
    fn a_lie_is_an_error_and_changes_nothing() {
        let cluster = part();
        let (own, theirs) = (first_of(&cluster, 1), first_of(&cluster, 2));
        let (u64s, chars) = (name_of::<u64>(), name_of::<char>());
        let (pages, nothings) = (name_of::<[u64; 512]>(), name_of::<[u64; 0]>());
        learn(&cluster, objects(theirs, 64, u64s)).unwrap();
        let end = theirs + 4096;
        let not_theirs = [
            objects(own, 64, u64s),
            objects(end - 64, 65, u64s),
            objects(theirs, 0, u64s),
            objects(theirs, u64::MAX, u64s),
            objects(u64::MAX - 10, 64, u64s),
            objects(0, 64, u64s),
            objects(own - 64 - 4096, 64, u64s),
        ];
        for lie in not_theirs {
            let error = learn(&cluster, lie);
            assert!(matches!(error, Err(LearnError::Ids { .. })), "{error:?}");
        }
        let next = theirs + 64;
        let rows = |len, ty| Told {
            len,
            shape: Shape::Rows,
            ..objects(next, 64, ty)
        };
        let array = |ids, len, ty, shape| Told {
            len,
            shape,
            ..objects(next, ids, ty)
        };
        let impossible = [
            objects(next + 1, 10, u64s),
            Told {
                len: 2,
                ..objects(next, 10, u64s)
            },
            rows(u64::MAX, u64s),
            rows(1 << 50, u64s),
            rows(4, chars),
            array(1, 0, u64s, Shape::Array),
            array(1, 513, u64s, Shape::Array),
            array(64, 5, u64s, Shape::Array),
            array(1, 5, chars, Shape::ArrayOfZeros),
            array(64, u64::MAX, pages, Shape::Array),
            array(64, u64::MAX, nothings, Shape::Array),
            rows(u64::MAX, nothings),
        ];
        for (i, lie) in impossible.into_iter().enumerate() {
            let error = learn(&cluster, lie);
            assert!(
                matches!(error, Err(LearnError::Impossible { .. })),
                "{i}: {error:?}"
            );
        }
        let clashes = [
            objects(theirs, 64, chars),
            objects(theirs, 63, u64s),
            Told {
                shape: Shape::Array,
                ids: 1,
                ..objects(theirs + 3, 1, u64s)
            },
        ];
        for lie in clashes {
            let error = learn(&cluster, lie);
            assert!(matches!(error, Err(LearnError::Clash { .. })), "{error:?}");
        }
        let nothing = learn(&cluster, objects(next, 64, u32::MAX));
        assert!(matches!(nothing, Err(LearnError::Type(_))));
        let malformed = cluster.learn(NodeId(2), &[1, 2, 3]);
        assert!(matches!(malformed, Err(LearnError::Malformed(_))));
        assert!(cluster.binding(Oid(next)).is_err() && cluster.binding(Oid(own)).is_err());
        assert_eq!(cluster.binding(Oid(theirs)).unwrap().info.name, "u64");
        // What is true may be said again.
        learn(&cluster, objects(theirs, 64, u64s)).unwrap();
    }

    /// A part as node 2 tells of it.
    fn part_of(ids: Range<u64>, node: u16) -> Told {
        Told::part(Oid(ids.start), ids.end - ids.start, NodeId(node))
    }

    #[test]
    fn a_part_is_another_nodes_once_it_is_told_of_and_is_told_on() {
        let cluster = part();
        let later = cluster.apart.as_ref().unwrap().later();
        let theirs = later.start + 512..later.start + 1536;
        let of_it = || objects(theirs.start, 64, name_of::<u64>());
        let unknown = learn(&cluster, of_it());
        assert!(matches!(unknown, Err(LearnError::Ids { .. })));
        learn(&cluster, part_of(theirs.clone(), 2)).unwrap();
        learn(&cluster, of_it()).unwrap();
        assert_eq!(cluster.creator(Oid(theirs.start)), Ok(NodeId(2)));
        // What is true may be said again, and node 0 hears of it with what lies there.
        learn(&cluster, part_of(theirs.clone(), 2)).unwrap();
        let mut told = Vec::new();
        cluster.tell(NodeId(0), &mut told);
        let (_, runs): (Vec<CallSite>, Vec<Told>) = postcard::from_bytes(&told).unwrap();
        let firsts: Vec<_> = runs.iter().map(|run| (run.first, run.len)).collect();
        assert_eq!(firsts, [(theirs.start, 2), (theirs.start, 1)]);
        // And this node gets another one.
        let node = Monitor::new(&cluster, NodeId(1), ());
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        assert_eq!(heap.ids_wanted(4096), None);
        assert_eq!(heap.ids_wanted(4097), Some(4160));
        let few = heap.alloc_rows::<u64>(4097, 1).unwrap_err().to_string();
        assert!(few.contains("4160 more wanted"), "{few}");
        let mine = theirs.end..theirs.end + 8192;
        heap.take_ids(mine.clone()).unwrap();
        assert_eq!(heap.ids_wanted(8192), None);
        let rows = heap.alloc_rows::<u64>(4097, 1).unwrap();
        assert_eq!(rows.oids().unwrap().first.0, mine.start);
        let again = heap.take_ids(mine);
        assert!(again.is_ok(), "they are its own already");
    }

    #[test]
    fn parts_that_cannot_be_are_not_believed() {
        let cluster = part();
        let later = cluster.apart.as_ref().unwrap().later();
        let start = later.start;
        learn(&cluster, part_of(start..start + 1024, 2)).unwrap();
        let lies = [
            part_of(start..start + 512, 0),
            part_of(start + 512..start + 2048, 2),
            part_of(start + 512..start + 2048, 0),
            part_of(start + 2048..start + 4096, 1),
            part_of(start + 2048..start + 4096, 3),
            part_of(start + 2048..start + 2049, 2),
            part_of(start + 2049..start + 4096, 2),
            part_of(start + 2048..start + 2048, 2),
            part_of(later.end - 512..later.end + 512, 2),
            part_of(start - 512..start, 0),
            part_of(start - 512..start + 512, 0),
            part_of(0..512, 2),
            Told {
                len: 1 << 32,
                ..part_of(start + 2048..start + 4096, 2)
            },
            Told {
                ids: u64::MAX,
                ..part_of(start + 2048..start + 4096, 2)
            },
        ];
        for (i, lie) in lies.into_iter().enumerate() {
            let error = learn(&cluster, lie);
            assert!(
                matches!(error, Err(LearnError::Part { .. })),
                "{i}: {error:?}"
            );
        }
        cluster.learn_at_most(1);
        let more = learn(&cluster, part_of(start + 2048..start + 4096, 0));
        assert!(matches!(more, Err(LearnError::TooMany { .. })));
    }

    #[test]
    fn ids_that_come_without_a_run_are_null_for_ever() {
        let cluster = part();
        let theirs = first_of(&cluster, 2);
        let node = Monitor::new(&cluster, NodeId(1), ());
        let u64s = name_of::<u64>();
        let packed = |oid: u64| oid.to_le_bytes();
        let named = |oid: u64| {
            node.lock()
                .split()
                .0
                .unpack::<Ref<u64>>(&packed(oid))
                .is_ok()
        };
        // Nobody else allocates for this node, and an id that no part has is nobody's.
        assert!(!named(first_of(&cluster, 1)) && !named(u64::MAX) && !named(1));
        assert!(named(theirs) && named(theirs + 7));
        assert!(cluster.is_freed(Oid(theirs)));
        learn(&cluster, objects(theirs, 8, u64s)).unwrap();
        assert!(cluster.is_freed(Oid(theirs + 7)) && !cluster.is_freed(Oid(theirs + 6)));
        let (_, freed) = cluster.hold(Oid(theirs)).unwrap();
        assert_eq!(freed, 1 | 1 << 7);
        // A run of which nothing is left is none.
        let gone = theirs + 64;
        assert!(named(gone));
        cluster.hear_freed(OidRange {
            first: Oid(gone),
            count: 64,
        });
        learn(&cluster, objects(gone, 64, u64s)).unwrap();
        let foreign = cluster.binding(Oid(gone)).unwrap_err();
        assert_eq!(foreign.kind, ForeignKind::Freed);
    }

    #[test]
    fn a_freeing_that_is_heard_of_first_holds_for_what_is_told_later() {
        let cluster = part();
        let theirs = first_of(&cluster, 0);
        let range = OidRange {
            first: Oid(theirs + 2),
            count: 3,
        };
        cluster.hear_freed(range);
        learn(&cluster, objects(theirs, 10, name_of::<u64>())).unwrap();
        for place in 0..10 {
            let freed = cluster.is_freed(Oid(theirs + place));
            assert_eq!(freed, (2..5).contains(&place));
        }
        // What this node allocates itself is its own business.
        let own = first_of(&cluster, 1);
        cluster.hear_freed(OidRange {
            first: Oid(own),
            count: 64,
        });
        let node = Monitor::new(&cluster, NodeId(1), ());
        let one = node.lock().split().0.alloc(7_u64).unwrap();
        assert!(!cluster.is_freed(one.oid()));
    }
}
