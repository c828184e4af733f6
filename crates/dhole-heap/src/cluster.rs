//! A cluster's share of the process: slots for its nodes and extents of object ids.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use dhole_model::unpoisoned::{lock, read, write};
use dhole_model::{CHUNK, CallSite, Detector, NodeId, Oid, OidRange, Placement};
use dhole_space::space::{self, Slot};
use dhole_space::{IDS_PER_PAGE, Neighbours, PAGE_BYTES, ReserveError, StorePlace, Views, Windows};

use crate::binding::{ArrayBinding, BindError, Binding};
use crate::catalog_log::LearnError;
use crate::directory::{ArrayRun, Directory, Run};
use crate::foreign::Unheard;
use crate::geometry::KEPT_BYTES;
use crate::global::GlobalSpace;
use crate::multiprocess::Multiprocess;
use crate::page_diffs::MadeDiffs;
use crate::parts::{FIRST_PER_NODE, IdParts, Parts};
use crate::share::type_map::Named;
use crate::{Foreign, ForeignKind, TypeRef};

/// The most ranges of ids that are known to be null for ever.
pub(crate) const MOST_BURIED: usize = 1 << 20;

/// The nodes of one cluster that live in this process. Every [`Monitor`](crate::Monitor) of the
/// cluster keeps it alive; when the last one is dropped its memory goes back to the system.
pub struct Cluster {
    me: Weak<Cluster>,
    pub(crate) ordinal: u64,
    /// The first id that was set aside for it.
    first_id: OnceLock<u64>,
    nodes: usize,
    /// Of the nodes that live in this process.
    slots: Box<[Slot]>,
    /// Of each slot, where the detector is `vm`.
    views: OnceLock<Box<[Views]>>,
    taken: Box<[AtomicBool]>,
    /// Which ids are whose.
    pub(crate) parts: RwLock<Parts>,
    pub(crate) directory: RwLock<Directory>,
    pub(crate) made_diffs: MadeDiffs,
    /// Where objects lie on all nodes alike.
    global: Option<GlobalSpace>,
    /// Whether pages are kept consistent, not objects.
    pages: bool,
    /// The memory of nodes that see each other, where they publish their objects.
    pub(crate) neighbours: OnceLock<Neighbours>,
    /// The windows of all nodes, if the others' are reached through a port.
    pub(crate) windows: OnceLock<Arc<Windows>>,
    /// What goes with the other nodes being in other processes, if they are.
    pub(crate) multiprocess: Option<Multiprocess>,
}

/// A slot that one heap has: [`Cluster::take_slot`] alone makes these, one for each slot of a
/// cluster, and nobody else gets at the memory there while the cluster lives.
pub(crate) struct TakenSlot(Slot);

impl std::ops::Deref for TakenSlot {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        &self.0
    }
}

impl Cluster {
    /// Reserves what `nodes` nodes need.
    ///
    /// # Errors
    /// [`ReserveError`] when there are too many nodes for the process, or no address space or
    /// object ids left.
    pub fn new(nodes: usize) -> Result<Arc<Cluster>, ReserveError> {
        Cluster::placing(Placement::FirstTouch, nodes)
    }

    /// As [`new`](Cluster::new), of nodes that place objects so.
    ///
    /// # Errors
    /// As [`new`](Cluster::new).
    pub fn placing(placement: Placement, nodes: usize) -> Result<Arc<Cluster>, ReserveError> {
        Cluster::placed(placement == Placement::Everywhere, false, nodes)
    }

    /// As [`new`](Cluster::new), of nodes that keep whole pages consistent in place of objects:
    /// each of their heaps offers [`HeapMut::paged`](crate::HeapMut::paged), and refuses what
    /// changes single objects. They place objects [everywhere](Placement::Everywhere).
    ///
    /// # Errors
    /// As [`new`](Cluster::new).
    pub fn paged(nodes: usize) -> Result<Arc<Cluster>, ReserveError> {
        Cluster::placed(true, true, nodes)
    }

    fn placed(everywhere: bool, pages: bool, nodes: usize) -> Result<Arc<Cluster>, ReserveError> {
        let (slots, ordinal) = space::take_slots(nodes)?;
        let global = everywhere.then(|| GlobalSpace::new(slots[0].store_bytes()));
        let cluster = Cluster::of(nodes, (slots, ordinal), (global, pages), None);
        let all = FIRST_PER_NODE * nodes as u64;
        let ids = space::take_ids(all..all, cluster.me.clone())?;
        cluster.first_id.get_or_init(|| ids.start);
        let mut parts = write(&cluster.parts);
        for (node, start) in ids.step_by(FIRST_PER_NODE as usize).enumerate() {
            parts.add(start..start + FIRST_PER_NODE, NodeId::at(node));
        }
        drop(parts);
        Ok(cluster)
    }

    /// Whether whole pages are kept consistent, not objects.
    pub(crate) fn is_paged(&self) -> bool {
        self.pages
    }

    /// The pages that objects may lie on, where whole pages are kept consistent.
    pub fn pages(&self) -> Option<Range<u64>> {
        let objects = KEPT_BYTES..self.store_bytes();
        let pages = objects.start / PAGE_BYTES..objects.end / PAGE_BYTES;
        self.pages.then_some(pages)
    }

    /// Reserves what node `me` needs, the one of `nodes` that is in this process. It has no ids
    /// before it has [settled](Cluster::settle) with the other processes which.
    ///
    /// # Errors
    /// As [`new`](Cluster::new), and [`ReserveError::Views`].
    pub fn part(
        nodes: usize,
        me: NodeId,
        detector: Detector,
    ) -> Result<Arc<Cluster>, ReserveError> {
        let taken = space::take_slots(1)?;
        let multiprocess = Multiprocess::new(me, nodes);
        let cluster = Cluster::of(nodes, taken, (None, false), Some(multiprocess));
        cluster.detect_by(detector)?;
        Ok(cluster)
    }

    /// The ids that this process has not used yet.
    pub fn ids_left(&self) -> Range<u64> {
        space::ids_left()
    }

    /// Of the ids that all processes of a cluster have left, those of its next run; on every
    /// process that is told the same, the same.
    pub fn window_of(left: Range<u64>) -> Range<u64> {
        let ids = left.end.saturating_sub(left.start) / 4 / IDS_PER_PAGE * IDS_PER_PAGE;
        let start = left.start.next_multiple_of(IDS_PER_PAGE);
        start..start + ids
    }

    /// Takes the ids that all processes of the cluster agreed on, under a stamp that no other
    /// cluster has.
    ///
    /// # Errors
    /// [`ReserveError::Taken`] when some of them are used here already, [`ReserveError::Ids`] when
    /// there are none so high, and [`ReserveError::Settled`] the second time.
    pub fn settle(&self, window: Range<u64>, stamp: u64) -> Result<(), ReserveError> {
        let unsettled = self
            .multiprocess
            .as_ref()
            .filter(|multiprocess| multiprocess.window().is_empty());
        let multiprocess = unsettled.ok_or(ReserveError::Settled)?;
        let (ids, left) = (
            FIRST_PER_NODE * self.nodes as u64,
            window.end - window.start,
        );
        if left < ids {
            let all = left;
            return Err(ReserveError::Ids { ids, left, all });
        }
        space::take_window(window.clone(), stamp, self.me.clone())?;
        self.first_id.get_or_init(|| window.start);
        multiprocess.settle(window);
        let mut parts = write(&self.parts);
        for node in (0..self.nodes).map(NodeId::at) {
            if let Some(first) = multiprocess.first(node) {
                parts.add(first, node);
            }
        }
        Ok(())
    }

    /// The ids with which a node begins.
    pub(crate) fn first_part(&self, node: NodeId) -> IdParts {
        let mut ids = IdParts::default();
        let parts = read(&self.parts);
        let first = parts.of_node(node);
        first.for_each(|part| ids.add(part));
        ids
    }

    /// More ids for a node, at least so many that follow on each other.
    pub(crate) fn take_part(&self, node: NodeId, ids: u64) -> Result<Range<u64>, ReserveError> {
        let mut parts = write(&self.parts);
        let size = parts.next_size(node, ids);
        if let Some(multiprocess) = &self.multiprocess {
            let all = multiprocess.window();
            let left = lock(&multiprocess.refused).take().unwrap_or(0);
            let all = all.end - all.start;
            return Err(ReserveError::Ids { ids, left, all });
        }
        let size = size.unwrap_or(u64::MAX..u64::MAX);
        let part = space::take_ids(size, self.me.clone())?;
        parts.add(part.clone(), node);
        Ok(part)
    }

    /// Whether this process asks another for ids.
    pub(crate) fn asks_for_ids(&self) -> bool {
        let multiprocess = self.multiprocess.as_ref();
        multiprocess.is_some_and(|multiprocess| lock(&multiprocess.refused).is_none())
    }

    /// Node 0 hands ids out, at least so many, where they are left; and how many were left.
    pub fn hand_ids_out(&self, to: NodeId, ids: u64) -> (Option<Range<u64>>, u64) {
        let Some(multiprocess) = &self.multiprocess else {
            return (None, 0);
        };
        let mut parts = write(&self.parts);
        let size = parts.next_size(to, ids).unwrap_or(u64::MAX..u64::MAX);
        let (part, left) = multiprocess.hand_out(size);
        if let Some(part) = part.clone().filter(|_| to != multiprocess.me) {
            parts.add(part.clone(), to);
            drop(parts);
            multiprocess.note_part(part, to, multiprocess.me);
        }
        (part, left)
    }

    /// Node 0 hands out no more ids; so many were left.
    pub fn no_more_ids(&self, left: u64) {
        if let Some(multiprocess) = &self.multiprocess {
            lock(&multiprocess.refused).get_or_insert(left);
        }
    }

    /// A node of this process got a part of the ids. It allocates from these ids, so it must not
    /// have had any of them before: an id is of one type for ever.
    pub(crate) fn got_part(&self, ids: Range<u64>, node: NodeId) -> Result<(), LearnError> {
        let multiprocess = self
            .multiprocess
            .as_ref()
            .filter(|multiprocess| multiprocess.me == node);
        // Where all nodes are in one process they take ids themselves, and none is given any.
        if let Some(multiprocess) = multiprocess
            && self.add_part(multiprocess, ids.clone(), node)?
        {
            multiprocess.note_part(ids, node, node);
            return Ok(());
        }
        Err(LearnError::Part {
            first: Oid(ids.start),
            ids: ids.end.saturating_sub(ids.start),
            node,
        })
    }

    /// Adds a part that was handed out elsewhere; whether it is new here.
    pub(crate) fn add_part(
        &self,
        multiprocess: &Multiprocess,
        ids: Range<u64>,
        node: NodeId,
    ) -> Result<bool, LearnError> {
        let mut parts = write(&self.parts);
        if parts.of_all(&ids) == Some(node) {
            return Ok(false);
        }
        let later = multiprocess.later();
        let whole = [ids.start, ids.end].map(|id| id % IDS_PER_PAGE) == [0, 0];
        let within = later.start <= ids.start && ids.start < ids.end && ids.end <= later.end;
        let can_be = whole && within && node.index() < self.nodes && parts.is_free(ids.clone());
        // Node 0 knows of all parts but its own before anyone else does.
        let is_news = multiprocess.me != NodeId(0) || node == multiprocess.me;
        if !can_be || !is_news {
            return Err(LearnError::Part {
                first: Oid(ids.start),
                ids: ids.end.saturating_sub(ids.start),
                node,
            });
        }
        parts.add(ids, node);
        Ok(true)
    }

    /// A run or an array was allocated here.
    fn note_new(&self, first: Oid) {
        if let Some(multiprocess) = &self.multiprocess {
            multiprocess.note_run(first, multiprocess.me, multiprocess.me);
        }
    }

    fn of(
        nodes: usize,
        (slots, ordinal): (Box<[Slot]>, u64),
        (global, pages): (Option<GlobalSpace>, bool),
        multiprocess: Option<Multiprocess>,
    ) -> Arc<Cluster> {
        Arc::new_cyclic(|me| Cluster {
            me: me.clone(),
            ordinal,
            first_id: OnceLock::new(),
            nodes,
            taken: slots.iter().map(|_| AtomicBool::new(false)).collect(),
            slots,
            views: OnceLock::new(),
            neighbours: OnceLock::new(),
            windows: OnceLock::new(),
            parts: RwLock::default(),
            directory: RwLock::new(Directory::default()),
            made_diffs: MadeDiffs::default(),
            global,
            pages,
            multiprocess,
        })
    }

    /// Like [`new`](Cluster::new), for nodes whose accesses are detected so.
    ///
    /// # Errors
    /// As [`new`](Cluster::new), and [`ReserveError::Views`].
    pub fn with_detector(nodes: usize, detector: Detector) -> Result<Arc<Cluster>, ReserveError> {
        let cluster = Cluster::new(nodes)?;
        cluster.detect_by(detector)?;
        Ok(cluster)
    }

    fn detect_by(&self, detector: Detector) -> Result<(), ReserveError> {
        if detector == Detector::Check {
            return Ok(());
        }
        let mut views = Vec::new();
        // SAFETY: `take_slots` gave the slots to this cluster, which is new: this is called once,
        // where it is made. Who had them before has unmapped their views before it gave them back.
        let mut mapped = self.slots.iter().map(|slot| unsafe { Views::map(slot) });
        let failed = mapped.find_map(|mapped| mapped.map(|mapped| views.push(mapped)).err());
        self.views.get_or_init(|| views.into());
        failed.map_or(Ok(()), |failed| {
            let cause = failed.to_string();
            Err(ReserveError::Views { cause })
        })
    }

    /// The place of a node among those of this process.
    fn seat(&self, node: NodeId) -> usize {
        match &self.multiprocess {
            Some(multiprocess) => {
                assert!(node == multiprocess.me, "{node} is in another process");
                0
            }
            None => node.index(),
        }
    }

    /// The first id that was set aside for the cluster.
    pub(crate) fn first_id(&self) -> u64 {
        self.first_id.get().copied().unwrap_or(0)
    }

    /// Where the stores of the nodes of this process begin, and their bytes. They are mapped as
    /// long as the cluster lives.
    pub(crate) fn stores(&self) -> Vec<(NonNull<u8>, u64)> {
        match self.views.get() {
            Some(views) => {
                let views = views.iter();
                views.map(|it| (it.store(), it.store_bytes())).collect()
            }
            None => {
                let slots = self.slots.iter();
                slots.map(|it| (it.store(), it.store_bytes())).collect()
            }
        }
    }

    /// Calls `f` with where the store of the one node of a process lies, whose heap is not there
    /// yet and does not come meanwhile; `None` where it is there.
    pub(crate) fn with_free_store<R>(&self, f: impl FnOnce(StorePlace) -> R) -> Option<R> {
        let ([slot], [taken]) = (&*self.slots, &*self.taken) else {
            return None;
        };
        if taken.swap(true, Ordering::AcqRel) {
            return None;
        }
        let views = self.views.get().and_then(|views| views.first());
        let result = f(views.map_or(StorePlace::Slot(*slot), |it| StorePlace::Views(*it)));
        taken.store(false, Ordering::Release);
        Some(result)
    }

    /// Bytes of a node's store, on all nodes of this process alike.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.slots[0].store_bytes()
    }

    /// The views of a node's store, if there are any.
    pub(crate) fn views(&self, node: NodeId) -> Option<Views> {
        self.views.get().map(|views| views[self.seat(node)])
    }

    /// Tells the cluster from all others of its processes, on each of them alike: the number of the
    /// first ids that were set aside for it. It is below 2^24.
    pub fn number(&self) -> u64 {
        self.first_id
            .get()
            .map_or(0, |first| first / FIRST_PER_NODE)
    }

    /// How many nodes the cluster has.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The node that allocated `oid`. For ids of a chunk that a node fills one by one this is
    /// known as soon as the chunk is begun.
    ///
    /// # Errors
    /// [`Foreign`] when no node of this cluster has.
    pub fn creator(&self, oid: Oid) -> Result<NodeId, Foreign> {
        let found = read(&self.parts).of(oid).map(|(node, _)| node);
        let kind = match found {
            Some(node) if read(&self.directory).is_allocated(oid) => return Ok(node),
            Some(_) if self.is_freed(oid) => ForeignKind::Freed,
            Some(creator) => ForeignKind::NotYet { creator },
            None => return Err(self.foreign(oid)),
        };
        Err(Foreign { oid, kind })
    }

    /// What `oid` was allocated as.
    ///
    /// # Errors
    /// [`Foreign`] when no node of this cluster has allocated it.
    pub fn binding(&self, oid: Oid) -> Result<Binding, Foreign> {
        let bound = read(&self.directory).binding(oid);
        bound.ok_or_else(|| self.unbound(oid))
    }

    /// What the chunk of `oid` is bound to and which of its objects were freed, as bits, for a
    /// heap that has a record of the chunk from now on.
    pub(crate) fn hold(&self, oid: Oid) -> Result<(Binding, u64), Foreign> {
        let held = read(&self.directory).hold(oid);
        held.ok_or_else(|| self.unbound(oid))
    }

    /// A heap has no record of a chunk any longer.
    pub(crate) fn let_go(&self, chunk: u64) {
        write(&self.directory).let_go(chunk);
    }

    /// Why `oid` is bound to nothing.
    fn unbound(&self, oid: Oid) -> Foreign {
        match self.creator(oid) {
            Ok(creator) => Foreign {
                oid,
                kind: ForeignKind::NotYet { creator },
            },
            Err(foreign) => foreign,
        }
    }

    /// The array whose first block is `oid`.
    ///
    /// # Errors
    /// [`Foreign`] when no node of this cluster has allocated one there.
    pub(crate) fn array(&self, oid: Oid) -> Result<ArrayBinding, Foreign> {
        let bound = read(&self.directory).array(oid);
        bound.ok_or_else(|| self.unbound(oid))
    }

    /// As [`array`](Cluster::array), for a node that has a record of it from now on.
    pub(crate) fn hold_array(&self, oid: Oid) -> Result<ArrayBinding, Foreign> {
        let bound = write(&self.directory).hold_array(oid);
        bound.ok_or_else(|| self.unbound(oid))
    }

    /// A node has no record of an array any longer.
    pub(crate) fn let_array_go(&self, oid: Oid) {
        write(&self.directory).let_array_go(oid);
    }

    /// Binds the blocks of an array, from `first` on.
    pub(crate) fn bind_array(&self, first: Oid, run: ArrayRun) {
        write(&self.directory).add_array(first, run);
        self.note_new(first);
    }

    /// The ids that go with an array: those of its blocks, and those behind them that never name
    /// one. `None` where no array is.
    pub fn ids_of_array(&self, array: Oid) -> Option<OidRange> {
        read(&self.directory).ids_of_array(array)
    }

    /// An array of this cluster is freed, for all nodes that do not know it yet.
    pub fn free_array(&self, array: Oid) {
        write(&self.directory).free_array(array);
    }

    /// Remembers for a while who freed something, and where in the program.
    pub fn note_freed(&self, ids: OidRange, by: NodeId, at: CallSite) {
        write(&self.directory).note_freed(ids, by, at);
    }

    /// Who freed an object or an array, and where in the program, if that is still known.
    pub fn who_freed(&self, oid: Oid) -> Option<(NodeId, CallSite)> {
        read(&self.directory).who_freed(oid)
    }

    /// The first of these ranges of which no node was given some id, as far as is known here. What
    /// another process knows of the parts of nodes it announces before it names anything that lies
    /// there, so one that names such ids is malicious. Where all nodes are in this process there
    /// is none that announces anything.
    pub fn given_to_nobody(&self, ranges: impl IntoIterator<Item = OidRange>) -> Option<OidRange> {
        self.multiprocess.as_ref()?;
        let parts = read(&self.parts);
        ranges.into_iter().find(|range| {
            let end = range.first.0.saturating_add(u64::from(range.count));
            !parts.have(range.first.0..end)
        })
    }

    /// Tests that a reference found in bytes is one that allocation gave out, in this cluster or
    /// in another one of the process.
    ///
    /// A reference to freed objects may be left in others.
    pub(crate) fn check(
        &self,
        named: &Named,
        seen: TypeRef,
        unheard: Unheard,
    ) -> Result<(), BindError> {
        self.check_also(named, seen, unheard, || Ok(None))
    }

    /// The same, where others may also know what this part of a cluster has not heard of.
    fn check_also(
        &self,
        named: &Named,
        seen: TypeRef,
        unheard: Unheard,
        others_say: impl FnOnce() -> Result<Option<()>, String>,
    ) -> Result<(), BindError> {
        let oid = named.first;
        let clash = |bound| {
            let (len, row) = (named.len, named.row);
            let seen = match (row, named.count) {
                _ if named.array => format!("array of {len} {}", seen.info().name),
                (true, count) => format!("range of {count} rows of {len} {}", seen.info().name),
                (false, count) => format!("range of {count} {}", seen.info().name),
            };
            BindError::TypeClash { oid, bound, seen }
        };
        let directory = read(&self.directory);
        let known = directory.check(named, seen).map_err(clash)?;
        if known.is_some() || directory.are_forgotten(oid, named.count) {
            return Ok(());
        }
        drop(directory);
        if self.multiprocess.is_some() {
            let part = read(&self.parts).of(oid);
            if let Some((creator, end)) = part {
                if others_say().map_err(clash)?.is_some() {
                    return Ok(());
                }
                return match unheard {
                    Unheard::IsGone => self.bury(oid, named.count, creator, end),
                    Unheard::IsEarly => Err(not_yet(oid, creator)),
                };
            }
        }
        // Ids of runs that are forgotten and of clusters that have ended stay null everywhere for
        // ever, whatever type they are taken for. Those of one that lives must agree with its
        // directory. Those that nobody has yet must not come into the world before they are
        // allocated.
        let known = match owner(oid) {
            Some(Owner {
                cluster: None,
                rest,
            }) => (named.count <= rest).then_some(()),
            Some(Owner {
                cluster: Some(other),
                ..
            }) => read(&other.directory).check(named, seen).map_err(clash)?,
            None => None,
        };
        known.ok_or(never(oid))
    }

    /// Ids of another node that are named in bytes, and of which this process knows nothing: of
    /// objects that are freed everywhere by now, or a lie. They stay null here for ever.
    #[cold]
    fn bury(&self, oid: Oid, count: u64, creator: NodeId, end: u64) -> Result<(), BindError> {
        let foreign = Err(not_yet(oid, creator));
        let ids = oid.0..oid.0.saturating_add(count);
        let mut directory = write(&self.directory);
        let here = self
            .multiprocess
            .as_ref()
            .map(|multiprocess| multiprocess.me);
        let too_many = directory.buried() >= MOST_BURIED;
        if here == Some(creator) || ids.end > end || too_many || directory.knows_any(ids.clone()) {
            return foreign;
        }
        directory.bury(ids);
        Ok(())
    }

    /// This node has heard that objects or arrays were freed, which it may not know.
    pub(crate) fn hear_freed(&self, range: OidRange) {
        let Some(multiprocess) = &self.multiprocess else {
            return;
        };
        let mut directory = write(&self.directory);
        let ids = range.first.0..range.first.0.saturating_add(u64::from(range.count));
        let parts = read(&self.parts);
        for unknown in directory.unknown_of(ids).ranges() {
            for (part, creator) in parts.within(unknown) {
                if creator != multiprocess.me && directory.buried() < MOST_BURIED {
                    directory.bury(part);
                }
            }
        }
        drop(parts);
        directory.free(range);
        directory.free_arrays(range);
    }

    /// The space in which objects lie on all nodes alike, if they do.
    pub(crate) fn global(&self) -> Option<&GlobalSpace> {
        self.global.as_ref()
    }

    /// Where an object lies in the global space, once that is decided.
    pub(crate) fn address(&self, oid: Oid) -> Option<u64> {
        read(&self.directory).address(oid)
    }

    /// An object that was allocated alone lies at this address of the global space.
    pub(crate) fn put_at(&self, oid: Oid, address: u64) {
        write(&self.directory).put_at(oid, address);
    }

    /// Where an array lies in the global space.
    pub(crate) fn address_of_array(&self, oid: Oid) -> Option<u64> {
        read(&self.directory).address_of_array(oid)
    }

    /// Marks the slot of `node` as in use, for ever.
    ///
    /// # Panics
    /// When it is in use already, or the cluster has no such node.
    pub(crate) fn take_slot(&self, node: NodeId) -> TakenSlot {
        assert!(
            node.index() < self.nodes(),
            "{node} is not one of the cluster's {}",
            self.nodes()
        );
        let seat = self.seat(node);
        let taken = self.taken[seat].swap(true, Ordering::Relaxed);
        assert!(!taken, "{node} has its monitor already");
        TakenSlot(self.slots[seat])
    }

    /// Calls `f` with each range of ids that nodes have.
    pub(crate) fn each_range(&self, f: impl FnMut(Range<u64>)) {
        read(&self.parts).taken().for_each(f);
    }

    /// Binds `chunks` chunks from `first` on, of which `ids` ids may name an object.
    pub(crate) fn bind(&self, first: u64, run: Run) {
        debug_assert_eq!(run.ids.div_ceil(CHUNK), run.chunks);
        write(&self.directory).add(first, run);
        self.note_new(Oid(first * CHUNK));
    }

    /// What is freed with these objects of one run: where they are its last ones, also the ids
    /// behind them, which never name an object.
    pub fn with_rest(&self, range: OidRange) -> OidRange {
        read(&self.directory).with_rest(range)
    }

    /// Objects of this cluster are freed, for all nodes that do not know them yet. Ids that name
    /// none of it may be among them; nothing happens to those.
    pub fn free(&self, range: OidRange) {
        write(&self.directory).free(range);
    }

    /// Whether an object was freed on any node.
    pub fn is_freed(&self, oid: Oid) -> bool {
        read(&self.directory).is_freed(oid)
    }

    /// What the array is whose first block is `oid`, if a node of this cluster has allocated it.
    pub fn array_binding(&self, oid: Oid) -> Option<ArrayBinding> {
        read(&self.directory).array(oid)
    }

    /// Where the program allocated `oid`, if a node of this cluster has.
    pub fn allocated_at(&self, oid: Oid) -> Option<CallSite> {
        read(&self.directory).site(oid)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Slots go back as they were.
        drop(self.neighbours.take());
        let parts = std::mem::take(self.parts.get_mut().unwrap_or_else(PoisonError::into_inner));
        for views in self.views.get().into_iter().flatten() {
            // SAFETY: only heaps use the views, each of which keeps the cluster, which is dropped
            // here.
            unsafe { views.unmap() };
        }
        let taken = parts.taken().map(|ids| ids.start);
        // SAFETY: `of` alone makes clusters, of slots and ids that were taken for them, and they
        // are given back here alone. No heap is left that uses the slots, for each keeps the
        // cluster; it has cleared what was its own (`Heap::drop`). Ids behind the parts have no
        // node, so they have no object.
        unsafe {
            match &self.multiprocess {
                None => space::give_back(&self.slots, taken),
                Some(multiprocess) => {
                    let window = multiprocess.window();
                    let used = parts.taken().last().map_or(window.start, |last| last.end);
                    space::give_back_window(&self.slots, window, used);
                }
            }
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cluster {} of {} nodes", self.ordinal, self.nodes())
    }
}

/// The owner of an id, as the process knows it.
pub(crate) struct Owner {
    /// The cluster, if it lives.
    pub cluster: Option<Arc<Cluster>>,
    /// How many ids from this one on have the same owner, or owners that have ended like it.
    pub rest: u64,
}

/// Which cluster of this process an id belongs to; `None` if nobody ever had it.
pub(crate) fn owner(oid: Oid) -> Option<Owner> {
    let space::Owner { cluster, rest } = space::owner(oid)?;
    let cluster = cluster.map(|it| it.downcast().expect("clusters alone take ids"));
    Some(Owner { cluster, rest })
}

fn not_yet(oid: Oid, creator: NodeId) -> BindError {
    let kind = ForeignKind::NotYet { creator };
    BindError::Foreign(Foreign { oid, kind })
}

fn never(oid: Oid) -> BindError {
    let kind = ForeignKind::Never;
    BindError::Foreign(Foreign { oid, kind })
}

/// As [`Cluster::check`], for whoever does not know the cluster.
pub(crate) fn check_anywhere(named: &Named, seen: TypeRef) -> Result<(), BindError> {
    match owner(named.first) {
        Some(Owner {
            cluster: Some(cluster),
            ..
        }) => cluster.check_also(named, seen, Unheard::IsGone, || {
            for part in space::other_parts(named.first) {
                let part = part.downcast::<Cluster>();
                let part = part.expect("clusters alone take ids");
                if let Some(()) = read(&part.directory).check(named, seen)? {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        }),
        // Null everywhere and for ever.
        Some(Owner {
            cluster: None,
            rest,
        }) if named.count <= rest => Ok(()),
        _ => Err(never(named.first)),
    }
}
