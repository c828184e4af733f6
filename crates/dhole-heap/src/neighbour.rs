//! One-sided reads: a node copies an object out of the memory of a neighbour, which neither takes
//! part nor is disturbed.
//!
//! What a neighbour publishes is not believed: place and length are checked against what is
//! mapped, and the bytes pass the tests that bytes of a message pass before they are a value.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dhole_model::{CHUNK, NodeId, Oid, OidRange, Version};
use dhole_space::gate::{FirstLooks, Shown};
use dhole_space::publication::{self, Publication};
use dhole_space::{Neighbour, Neighbours, OwnPublications, VisibleMemory, WindowPublications};

use crate::cluster::Cluster;
use crate::foreign::Unheard;
use crate::heap::{Heap, Place};
use crate::published::Published;
use crate::{HeapMut, InstallError, ObjectRefusal, ObjectRefused, Presence};

/// The most bytes of room that are kept for the next read.
const MOST_KEPT: usize = 64 << 10;

impl Cluster {
    /// From here on its nodes publish their objects for each other, if they can; whether they do.
    /// Called before any of them has a heap. All of them are in this process.
    pub fn publish(&self) -> bool {
        if !READS_NEIGHBOURS || self.multiprocess.is_some() || self.is_paged() {
            return false;
        }
        // SAFETY: the cluster gives its slots and views back after its neighbours (`drop`).
        let mapped = unsafe { Neighbours::map(&self.stores()) };
        mapped.is_some_and(|mapped| self.neighbours.set(mapped).is_ok())
    }

    /// From here on the node of this process publishes its objects in memory that other processes
    /// map, and reads those of the processes that show theirs: the files of each node. Files that
    /// are not what they should be are told to `unfit`; that node is asked by message. Called once
    /// the cluster has [settled](Cluster::settle), and before the node has a heap.
    ///
    /// # Errors
    /// The system's own, where this process's memory cannot be mapped;
    /// [`io::ErrorKind::Unsupported`] where objects are not published at all: on another
    /// processor, or once the node has its heap.
    pub fn publish_in(
        &self,
        memory: &Arc<VisibleMemory>,
        shown: Vec<Option<[OwnedFd; 2]>>,
        mut unfit: impl FnMut(NodeId, io::Error),
    ) -> io::Result<()> {
        let unsupported = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, what));
        let Some(multiprocess) = &self.multiprocess else {
            return unsupported("all nodes are in this process");
        };
        let mut unfit = |node, error| unfit(NodeId::at(node), error);
        let me = multiprocess.me.index();
        let mapped = self.with_free_store(|place| {
            if !READS_NEIGHBOURS || self.neighbours.get().is_some() {
                return unsupported("nothing is read in the memory of others here");
            }
            // SAFETY: slot and views are this cluster's, and there is no heap that could refer to
            // its store (`with_free_store`). When the cluster is dropped, which drops the
            // neighbours before it gives both back, there is none any more: a heap keeps the
            // cluster.
            let mapped = unsafe { Neighbours::between((me, place), memory, shown, &mut unfit)? };
            let _ = self.neighbours.set(mapped);
            Ok(())
        });
        mapped.unwrap_or_else(|| unsupported("the node has its heap already"))
    }

    /// Nothing that was published here is any more: what a later run publishes in the same memory
    /// is not taken for it.
    pub fn end_publishing(&self) {
        let published = self
            .multiprocess
            .as_ref()
            .and_then(|it| self.published(it.me));
        if let Some(published) = published {
            published.records.clear();
        }
    }

    /// Where a node of this process publishes in memory that others map.
    pub(crate) fn published(&self, node: NodeId) -> Option<&OwnPublications> {
        self.neighbours.get()?.published(node.index())
    }

    /// Whether a node of this process can keep gates: others read its objects where they lie.
    pub fn keeps_gates(&self, node: NodeId) -> bool {
        self.published(node).is_some()
    }

    /// Whether others read what a node of this process publishes.
    pub fn publishes(&self, node: NodeId) -> bool {
        self.windows.get().is_some() || self.published(node).is_some()
    }

    /// Where a node of this process publishes.
    pub(crate) fn publishes_in(&self, node: NodeId) -> Option<Published> {
        match self.windows.get() {
            Some(windows) => Some(Published::Window(WindowPublications::new(Arc::clone(
                windows,
            )))),
            None => self.published(node).cloned().map(Published::Mapped),
        }
    }

    /// The memory of a node, if it is seen from here.
    pub(crate) fn seen(&self, node: NodeId) -> Option<&Neighbour> {
        self.neighbours.get()?.seen(node.index())
    }

    /// Bytes at the beginning of the store of this process's node that are a file's.
    pub(crate) fn bytes_of_file(&self) -> u64 {
        self.neighbours.get().map_or(0, Neighbours::of_file)
    }

    /// The place of an object in the tables.
    pub(crate) fn record_of(&self, oid: Oid) -> u64 {
        oid.0.wrapping_sub(self.first_id())
    }
}

/// The nodes that may have read what another one published. Nodes from the 63rd on are one for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenBy(u64);

impl SeenBy {
    /// The bit of a node.
    fn bit(node: NodeId) -> u64 {
        1 << node.index().min(63)
    }

    /// What a reader of this node marks with.
    pub(crate) fn of_node(node: NodeId) -> u64 {
        SeenBy::bit(node)
    }

    /// The nodes whose bits these are.
    pub(crate) fn of_bits(bits: u64) -> SeenBy {
        SeenBy(bits)
    }

    /// Whether nobody has read it.
    #[inline]
    pub fn is_nobody(self) -> bool {
        self.0 == 0
    }

    /// The nodes, of a cluster with so many.
    pub fn of(self, nodes: usize) -> impl Iterator<Item = NodeId> {
        let all = (0..nodes).map(NodeId::at);
        all.filter(move |node| self.0 & SeenBy::bit(*node) != 0)
    }
}

/// What a reader found at its first look at a neighbour's object.
#[derive(Clone, Copy, Debug)]
pub struct PublishedObject {
    of: NodeId,
    oid: Oid,
    version: u64,
    found: Found,
}

/// How it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// In memory that is mapped here, by this look.
    Mapped(FirstLooks),
    /// In a window, where both looks are over: its packed bytes are set aside.
    Window,
}

impl PublishedObject {
    /// An object that was read in a window.
    pub(crate) fn of_window(of: NodeId, oid: Oid, version: Version) -> PublishedObject {
        PublishedObject {
            of,
            oid,
            version: word_of(version),
            found: Found::Window,
        }
    }

    /// The object.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// The version that the neighbour says the bytes have.
    pub fn version(&self) -> Version {
        version_of(self.version)
    }
}

/// A version as one word of a record.
pub(crate) fn word_of(version: Version) -> u64 {
    version.lamport << 16 | u64::from(version.node.0)
}

/// The version that a word of a record says.
pub(crate) fn version_of(word: u64) -> Version {
    Version {
        lamport: word >> 16,
        node: NodeId(word as u16),
    }
}

impl Heap {
    /// The bytes of the object may change from here on: neighbours do not read it any more. Who
    /// may have read it since the last time, one bit a node.
    #[inline]
    pub(crate) fn unpublish(&mut self, oid: Oid) -> u64 {
        match &mut self.published {
            None => 0,
            Some(Published::Mapped(own)) => {
                let record = own.records.record(self.cluster.record_of(oid));
                record.map_or(0, Publication::unpublish)
            }
            Some(Published::Window(own)) => own.unpublish(oid.0),
        }
    }

    /// Lets neighbours read the node's copy of `oid`, which has this version, if it is clean, not
    /// published yet, and lies where they see it or can be copied there.
    fn publish_at(&mut self, oid: Oid, at: Place, version: Version) {
        let chunk = &self.chunks[at.chunk];
        let is_clean = chunk.is_present(at.slot) && !chunk.is_writable(at.slot);
        let Some(storage) = chunk.storage(at.slot).filter(|_| is_clean) else {
            return;
        };
        match &mut self.published {
            None => (),
            Some(Published::Mapped(own)) => {
                let record = own.records.record(self.cluster.record_of(oid));
                let record = record.filter(|it| !it.is_published());
                let place = own.seen(storage, chunk.binding.bytes());
                if let Some((place, record)) = place.zip(record) {
                    record.publish(place, word_of(version));
                }
            }
            Some(Published::Window(own)) => {
                let bytes = chunk.binding.packed_bytes() as usize;
                let Some(room) = own.reserve(oid.0, bytes) else {
                    return;
                };
                let mut packed = self.pre_images.buffer();
                // SAFETY: the object is present, so its storage holds a value, and it is not
                // writable, so nobody writes it, by the tests above.
                unsafe { self.pack(at, storage, &mut packed) };
                if let Some(Published::Window(own)) = &mut self.published {
                    own.publish(room, word_of(version), &packed);
                }
                self.pre_images.recycle(packed);
            }
        }
    }

    /// Whether the object is published; `None` where nothing is.
    fn is_published(&self, oid: Oid) -> Option<bool> {
        Some(match self.published.as_ref()? {
            Published::Mapped(own) => {
                let record = own.records.record(self.cluster.record_of(oid))?;
                record.is_published()
            }
            Published::Window(own) => own.is_published(oid.0),
        })
    }
}

impl HeapMut<'_> {
    /// Whether neighbours read what this node [publishes](HeapMut::publish).
    #[inline]
    pub fn publishes(&self) -> bool {
        self.heap.published.is_some()
    }

    /// Lets neighbours read the node's copy of `oid`, which has this version, until it may change.
    /// Nothing happens where it may be written, is not here, is published already, or lies where
    /// neighbours do not see it.
    pub fn publish(&mut self, oid: Oid, version: Version) {
        if self.heap.is_published(oid) == Some(false)
            && let Some(at) = self.heap.place(oid)
        {
            self.heap.publish_at(oid, at, version);
        }
    }

    /// Objects become clean that no other node has, and neighbours may read them in this version:
    /// as [`make_clean`](HeapMut::make_clean) and [`publish`](HeapMut::publish) of each, but by
    /// chunks.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`](crate::ObjectRefusal::Presence) while the worker computes.
    pub fn end_young(&mut self, range: OidRange, version: Version) -> Result<(), ObjectRefused> {
        if self.presence() == Presence::Computing {
            let refusal = ObjectRefusal::Presence(Presence::Computing);
            return Err(self.refuse("making clean", range.first, refusal));
        }
        for chunk in range.first.chunk()..=range.last().chunk() {
            let first = Oid(chunk * CHUNK);
            let Some(at) = self.heap.place(first) else {
                continue;
            };
            let within = |slot: &usize| range.contains(Oid(first.0 + *slot as u64));
            let slots = (0..CHUNK as usize).filter(within);
            let slots = slots.fold(0, |all, slot| all | 1 << slot);
            let mut clean = self.heap.chunks[at.chunk].set_all_clean(slots);
            while clean != 0 {
                let slot = clean.trailing_zeros() as usize;
                clean &= clean - 1;
                let oid = Oid(first.0 + slot as u64);
                // SAFETY: it is a call, as was tested first.
                unsafe { self.heap.close(oid, Place { slot, ..at }) };
                self.heap.publish_at(oid, Place { slot, ..at }, version);
            }
        }
        Ok(())
    }

    /// The bytes of `oid` may change from here on. Who may have read them: whoever is not among
    /// these has not read the version that ends.
    #[inline]
    pub fn unpublish(&mut self, oid: Oid) -> SeenBy {
        SeenBy(self.heap.unpublish(oid))
    }

    /// As [`unpublish`](HeapMut::unpublish) of each of these, which costs less than one by one.
    /// `read` is called with those that somebody may have read.
    pub fn unpublish_all(
        &mut self,
        objects: impl Iterator<Item = Oid> + Clone,
        mut read: impl FnMut(Oid, SeenBy),
    ) {
        let heap = &mut *self.heap;
        match &mut heap.published {
            None => (),
            Some(Published::Mapped(own)) => {
                let record = |oid| Some((oid, own.records.record(heap.cluster.record_of(oid))?));
                publication::unpublish_all(objects.filter_map(record), |oid, readers| {
                    read(oid, SeenBy(readers));
                });
            }
            Some(Published::Window(own)) => {
                own.unpublish_all(objects.map(|oid| oid.0), |id, readers| {
                    read(Oid(id), SeenBy(readers));
                });
            }
        }
    }

    /// Another node's object as it is shown, if it can be seen from here.
    fn shown(&self, of: NodeId, oid: Oid) -> Option<Shown<'_>> {
        let cluster = &self.heap.cluster;
        let seen = cluster.seen(of).filter(|_| of != self.heap.node)?;
        let id = cluster.record_of(oid);
        Some(Shown {
            record: seen.records.record(id)?,
            gate: seen.records.gate(id)?,
            slot: oid.slot(),
        })
    }

    /// Looks at what `of` publishes of an object, and marks it as read by this node. `None` where
    /// it publishes nothing, the object is behind an open gate, or cannot be seen from here.
    pub fn look_there(&self, of: NodeId, oid: Oid) -> Option<PublishedObject> {
        let shown = self.shown(of, oid)?;
        let look = shown.look()?;
        shown.mark(&look, SeenBy::bit(self.heap.node));
        let (version, found) = (look.record.version, Found::Mapped(look));
        Some(PublishedObject {
            of,
            oid,
            version,
            found,
        })
    }

    /// Copies what was looked at, and keeps it aside until it is
    /// [installed](HeapMut::install_there). Whether there is such a place.
    pub fn copy_there(&mut self, object: &PublishedObject) -> bool {
        let heap = &mut *self.heap;
        let Some(at) = heap.place(object.oid) else {
            return false;
        };
        let Found::Mapped(look) = object.found else {
            return true;
        };
        let bytes = heap.chunks[at.chunk].binding.bytes();
        let seen = heap.cluster.seen(object.of);
        let Some(from) = seen.and_then(|seen| seen.at(look.record.place(), bytes)) else {
            return false;
        };
        heap.there.clear();
        heap.there.reserve(bytes as usize);
        // SAFETY: as many bytes are mapped there as long as the neighbour is seen, which is as long
        // as the cluster lives (`Neighbour::at`). `there` has room for as many, and is initialised
        // as far as it was written. No reference to either is formed.
        unsafe {
            copy(from.as_ptr(), heap.there.as_mut_ptr(), bytes as usize);
            heap.there.set_len(bytes as usize);
        }
        true
    }

    /// Whether what was copied is whole, and of the version that was looked at.
    pub fn still_there(&self, object: &PublishedObject) -> bool {
        let Found::Mapped(look) = object.found else {
            return true;
        };
        let shown = self.shown(object.of, object.oid);
        shown.is_some_and(|shown| shown.still(&look))
    }

    /// Makes what was copied the node's valid copy of the object, as
    /// [`install`](HeapMut::install) does. Its bytes as they travel.
    ///
    /// # Errors
    /// [`InstallError`]; nothing was written. The bytes may be no value, or name objects of which
    /// this node has yet to hear: the neighbour allocated them after it last sent metadata here.
    pub fn install_there(&mut self, object: &PublishedObject) -> Result<usize, InstallError> {
        let copied = std::mem::take(&mut self.heap.there);
        let mut buffer = self.heap.pre_images.buffer();
        let packed = match (self.binding(object.oid), object.found) {
            (Some(binding), Found::Mapped(_)) => binding.packed(&copied, &mut buffer),
            (Some(_), Found::Window) => &copied,
            (None, _) => &[],
        };
        let installed = self.install_whole(object.oid, packed, Unheard::IsEarly);
        let installed = installed.map(|()| packed.len());
        self.heap.pre_images.recycle(buffer);
        if copied.capacity() <= MOST_KEPT {
            self.heap.there = copied;
        }
        installed
    }
}

/// Whether nodes of one process read each other's memory here: bytes are copied that others write
/// meanwhile.
pub const READS_NEIGHBOURS: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Copies bytes that others may be writing meanwhile. What arrives may be a mixture.
///
/// No rule of the language's memory model speaks of what other processes do to memory, and a
/// neighbour may be one. So the bytes are copied by instructions that the compiler knows nothing
/// about but that they may read and write any memory: it neither takes the bytes for stable nor
/// moves an access over them. The processor reads in order, so whoever looks at the record before
/// and after has the copy between the two looks.
///
/// # Safety
/// `bytes` bytes from `from` on are mapped and may be read; as many from `to` on are the caller's.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    /// From so many bytes on the processor's own loop is the faster one.
    const LONG: usize = 512;
    // SAFETY: the instructions read `bytes` bytes from `from` on and write as many from `to` on,
    // as the caller allows, change the named registers and the flags, and leave the direction.
    unsafe {
        if bytes >= LONG {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack)
            );
            return;
        }
        std::arch::asm!(
            "xor {i:e}, {i:e}",
            "cmp {i}, {words}",
            "jae 3f",
            "2:",
            "mov {t}, qword ptr [{from} + {i}]",
            "mov qword ptr [{to} + {i}], {t}",
            "add {i}, 8",
            "cmp {i}, {words}",
            "jb 2b",
            "3:",
            "cmp {i}, {bytes}",
            "jae 5f",
            "4:",
            "movzx {t:e}, byte ptr [{from} + {i}]",
            "mov byte ptr [{to} + {i}], {t:l}",
            "inc {i}",
            "cmp {i}, {bytes}",
            "jb 4b",
            "5:",
            i = out(reg) _,
            t = out(reg) _,
            from = in(reg) from,
            to = in(reg) to,
            words = in(reg) bytes & !7,
            bytes = in(reg) bytes,
            options(nostack)
        );
    }
}

/// Nothing is published where bytes cannot be copied.
///
/// # Safety
/// None.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) unsafe fn copy(_: *const u8, _: *mut u8, _: usize) {
    unreachable!("no table is mapped here");
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod visible;

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
pub(crate) mod tests {
    use dhole_model::OidRange;

    use super::*;
    use crate::Monitor;

    pub(crate) const OWNER: NodeId = NodeId(0);
    pub(crate) const READER: NodeId = NodeId(1);

    pub(crate) fn version(lamport: u64) -> Version {
        let node = OWNER;
        Version { lamport, node }
    }

    pub(crate) fn nodes() -> [Monitor<()>; 2] {
        let cluster = Cluster::new(2).expect("room for two nodes");
        assert!(cluster.publish());
        [OWNER, READER].map(|node| Monitor::new(&cluster, node, ()))
    }

    /// An object of the owner's, published, of which the reader knows.
    fn published([owner, reader]: &[Monitor<()>; 2]) -> Oid {
        let mut guard = owner.lock();
        let mut heap = guard.split().0;
        let oid = heap.alloc(7_u64).unwrap().oid();
        heap.publish(oid, version(1));
        reader.lock().split().0.make_room(oid).unwrap();
        oid
    }

    fn bytes(node: &Monitor<()>, oid: Oid) -> Vec<u8> {
        let mut bytes = Vec::new();
        node.lock().split().0.gather(oid, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_published_object_is_read_and_its_reader_is_known() {
        let nodes = nodes();
        let oid = published(&nodes);
        let [owner, reader] = &nodes;
        {
            let mut guard = reader.lock();
            let mut heap = guard.split().0;
            let object = heap.look_there(OWNER, oid).expect("it is published");
            assert_eq!((object.oid(), object.version()), (oid, version(1)));
            assert!(heap.copy_there(&object) && heap.still_there(&object));
            assert_eq!(heap.install_there(&object).unwrap(), 8);
        }
        assert_eq!(bytes(reader, oid), 7_u64.to_ne_bytes());
        let readers = owner.lock().split().0.unpublish(oid);
        assert_eq!(readers.of(2).collect::<Vec<_>>(), [READER]);
    }

    #[test]
    fn a_record_that_names_a_place_beyond_the_store_is_not_followed() {
        let nodes = nodes();
        let oid = published(&nodes);
        let mut guard = nodes[1].lock();
        let mut heap = guard.split().0;
        let cluster = Arc::clone(&heap.heap.cluster);
        let seen = cluster.seen(OWNER).unwrap();
        let record = seen.records.record(cluster.record_of(oid)).unwrap();
        let mut copies = |place| {
            record.unpublish();
            record.publish(place, 1 << 16);
            let object = heap.look_there(OWNER, oid).expect("it is published");
            heap.copy_there(&object)
        };
        let end = cluster.store_bytes();
        assert!(copies(end - 8), "the last bytes of the store");
        let most = u64::MAX >> 1;
        for beyond in [end - 7, end, end + 1, most - 7, most] {
            assert!(!copies(beyond), "{beyond} of {end}");
        }
        // Likewise behind a gate, which is said to be shut.
        let gate = seen.records.gate(cluster.record_of(oid)).unwrap();
        gate.shut();
        for beyond in [u64::MAX - 7, u64::MAX] {
            assert!(!copies(beyond), "{beyond} of {end}");
        }
    }

    /// Whatever changes an object's bytes makes it unpublished, and a reader that has looked before
    /// finds that out.
    #[test]
    fn no_byte_of_a_published_object_changes() {
        type Change = (&'static str, fn(&mut HeapMut<'_>, Oid));
        let changes: [Change; 6] = [
            ("write", |heap, oid| heap.make_writable(oid, true).unwrap()),
            ("expected write", |heap, oid| {
                heap.expect_write(oid, true).unwrap()
            }),
            ("invalidation", |heap, oid| heap.invalidate(oid).unwrap()),
            ("install", |heap, oid| heap.install(oid, &[9; 8]).unwrap()),
            ("merge", |heap, oid| heap.merge(oid, &[]).unwrap()),
            ("free", |heap, oid| heap.free(OidRange::one(oid)).unwrap()),
        ];
        for (what, change) in changes {
            let nodes = nodes();
            let oid = published(&nodes);
            let [owner, reader] = &nodes;
            let look = reader.lock().split().0.look_there(OWNER, oid);
            let look = look.expect("it is published");
            assert!(reader.lock().split().0.copy_there(&look));
            change(&mut owner.lock().split().0, oid);
            let mut guard = reader.lock();
            let heap = guard.split().0;
            assert!(!heap.still_there(&look), "{what}");
            assert!(heap.look_there(OWNER, oid).is_none(), "{what}");
        }
    }

    /// Memory of records that is given back holds zeros, at which nothing is published.
    #[test]
    fn what_is_freed_or_ends_between_two_looks_is_not_taken() {
        let [owner, reader] = nodes();
        let (freed, kept) = {
            let mut guard = owner.lock();
            let mut heap = guard.split().0;
            let mut all = || heap.alloc_range(2048, |i| i).unwrap().oids().unwrap();
            let (freed, kept) = (all(), all());
            heap.publish(freed.first, version(1));
            heap.publish(kept.first, version(1));
            (freed, kept)
        };
        let look = |oid| {
            let mut guard = reader.lock();
            let mut heap = guard.split().0;
            heap.make_room(oid).unwrap();
            heap.look_there(OWNER, oid).expect("it is published")
        };
        let looks = [freed.first, kept.first].map(look);
        let still = || {
            let guard = &mut reader.lock();
            let heap = guard.split().0;
            looks.map(|look| heap.still_there(&look))
        };
        assert_eq!(still(), [true, true]);
        owner.lock().split().0.free(freed).unwrap();
        assert_eq!(still(), [false, true]);
        drop(owner);
        assert_eq!(still(), [false, false]);
    }
}
