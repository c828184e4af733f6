//! Pages as TreadMarks keeps them: valid or not as a whole, twinned, compared, changed by diffs.
//!
//! The objects are those of the global space. An object's read handle is set when the program
//! first reaches it while all its pages are valid, and its bytes have been tested; making a page
//! invalid makes the handles of all objects on it null. So bytes of an invalid page are nobody's
//! and may be written under the node lock in any call, as those of an absent object may.
//!
//! Padding of objects that the worker has written is not initialised. It is never read here: each
//! page knows these *holes*.

use dhole_model::{NodeId, Oid, PageId, PageRange};
use dhole_space::PAGE_BYTES;

use crate::foreign::Unheard;
use crate::geometry::KEPT_BYTES;
use crate::heap::{Heap, Place};
use crate::page_diff::{self, BYTES, PageDiffError, Snapshot, WORD};
use crate::page_diffs::{Diff, DiffKey};
use crate::pages::Page;
use crate::transfer::InstallError;
use crate::{AllocError, Binding, HeapMut, Presence, TypeInfo};

/// The pages of a node of a [paged](crate::Cluster::paged) cluster, as the holder of the node lock
/// may use them. No other heap has any: where objects are kept consistent one by one, a page that
/// is not valid may hold an object that is in use.
pub struct Paged<'h> {
    pub(crate) on: HeapMut<'h>,
}

/// Why something cannot be done to a page. Nothing was done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {page} on {node}: {refusal}")]
pub struct PageRefused {
    /// What was asked for.
    pub operation: &'static str,
    /// The page.
    pub page: PageId,
    /// The node.
    pub node: NodeId,
    /// Why not.
    pub refusal: PageRefusal,
}

/// What stands against something that is to be done to a page.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PageRefusal {
    /// References may live that it would break.
    #[error("{0}")]
    Presence(Presence),
    /// The page is valid, and its objects may be in use.
    #[error("it is valid, and may be in use")]
    Valid,
    /// The page is not valid.
    #[error("it is not valid")]
    Invalid,
    /// There is no twin, or no such diff.
    #[error("there is no {0}")]
    Lacks(&'static str),
    /// A page has another number of bytes.
    #[error("{0} bytes are no page")]
    Length(usize),
    /// The bytes are no diff.
    #[error("the diff: {0}")]
    Diff(#[from] PageDiffError),
    /// The space of addresses does not reach so far.
    #[error("it is beyond the space of addresses")]
    Beyond,
}

type Refusable<T> = Result<T, PageRefusal>;

fn only(allowed: bool, otherwise: PageRefusal) -> Refusable<()> {
    allowed.then_some(()).ok_or(otherwise)
}

impl Heap {
    fn page(&mut self, id: PageId) -> &mut Page {
        self.pages.known.entry(id).or_default()
    }

    /// Makes sure that the store has the page, which counts as in use from then on.
    fn touch(&mut self, id: PageId) -> Refusable<u64> {
        let at = id.0.checked_mul(PAGE_BYTES).ok_or(PageRefusal::Beyond)?;
        // What lies on the first pages stays when a cluster ends, and no object is put there.
        only(at >= KEPT_BYTES, PageRefusal::Beyond)?;
        self.store.touch(at).ok_or(PageRefusal::Beyond)?;
        Ok(at)
    }

    /// The page's bytes, zeros for its holes.
    ///
    /// # Safety
    /// Nobody may be writing objects on the page.
    unsafe fn snapshot(&mut self, id: PageId) -> Refusable<Snapshot> {
        let at = self.touch(id)?;
        let from = self.store.pointer(at).as_ptr();
        let spare = self.pages.spare.pop();
        let mut copy = spare.unwrap_or_else(|| Box::new([0; BYTES]));
        let known = self.pages.known.get(&id);
        let holes = known.map_or(&[][..], |page| &page.holes);
        let mut next = 0;
        for &(start, end) in holes.iter().chain(&[(BYTES as u16, BYTES as u16)]) {
            let (start, end) = (usize::from(start), usize::from(end));
            assert!(
                next <= start && end <= BYTES,
                "holes are in order and within the page"
            );
            // SAFETY: both ends lie within a page of the store, which `touch` has found, by the
            // test above. These bytes are initialised: the store began as zeros, and whatever is
            // written with padding is noted in the holes before. Nobody writes them, as the caller
            // promises, and no reference is formed to them.
            unsafe {
                let to = copy.as_mut_ptr().add(next);
                to.copy_from_nonoverlapping(from.add(next), start - next);
            }
            copy[start..end].fill(0);
            next = end;
        }
        Ok(copy)
    }

    /// Writes bytes into the page that begins at `at`, where [`touch`](Heap::touch) has found it.
    ///
    /// # Safety
    /// The page is not valid: no handle of an object on it is set, and no reference to one lives.
    unsafe fn overwrite(&mut self, at: u64, offset: usize, bytes: &[u8]) {
        let fits = offset
            .checked_add(bytes.len())
            .is_some_and(|end| end <= BYTES);
        assert!(fits, "within the page");
        let to = self.store.pointer(at).as_ptr();
        // SAFETY: within a page of the store, by the test just made. No reference to an object
        // there lives, as the caller promises; others wait for the node lock, which whoever has the
        // heap has.
        unsafe {
            to.add(offset)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Keeps a diff that this node has made.
    pub(crate) fn keep_made_diff(&mut self, key: DiffKey, diff: Diff) {
        let (page, node, number) = key;
        self.cluster.made_diffs.made(key, &diff);
        self.page(page).diffs.keep(node, number, diff);
    }

    /// A diff that is kept here.
    fn page_diff(&self, key: DiffKey) -> Option<Diff> {
        let (page, node, number) = key;
        let known = self.pages.known.get(&page);
        let kept = known.and_then(|page| page.diffs.get(node, number));
        kept.cloned().or_else(|| self.cluster.made_diffs.get(key))
    }

    /// # Safety
    /// It is a call of the worker.
    unsafe fn clear_written(&mut self, id: PageId) {
        let [_, write] = self.tables();
        let mut written = std::mem::take(&mut self.page(id).written);
        for oid in written.drain(..) {
            let found = self.place(oid);
            if let Some(at) = found.filter(|at| self.chunks[at.chunk].is_writable(at.slot)) {
                self.chunks[at.chunk].set_clean(at.slot);
                // SAFETY: it is a call, as the caller promises.
                unsafe { write.clear(oid) };
            }
        }
        self.page(id).written = written;
        self.page(id).writable = false;
    }

    /// # Safety
    /// It is an exclusive call of the worker.
    unsafe fn clear_shown(&mut self, id: PageId) {
        let [read, _] = self.tables();
        let mut shown = std::mem::take(&mut self.page(id).shown);
        for oid in shown.drain(..) {
            let found = self.place(oid);
            if let Some(at) = found.filter(|at| self.chunks[at.chunk].is_present(at.slot)) {
                self.chunks[at.chunk].set_absent(at.slot);
                // SAFETY: it is an exclusive call, as the caller promises.
                unsafe { read.clear(oid) };
            }
        }
        self.page(id).shown = shown;
        self.page(id).valid = false;
    }

    /// The pages that an object lies in.
    fn pages_of(&mut self, oid: Oid) -> Result<(Place, u64, PageRange), InstallError> {
        let node = self.node;
        let at = self.see(oid);
        let at = at.map_err(|foreign| InstallError::Foreign { node, foreign })?;
        let bytes = self.chunks[at.chunk].binding.bytes();
        let full = InstallError::Full {
            oid,
            node,
            capacity_bytes: self.store.capacity(),
        };
        let storage = self.storage(oid, at).ok_or(full)?;
        Ok((
            at,
            storage,
            PageRange::of(storage..storage + bytes, PAGE_BYTES),
        ))
    }

    fn are(&self, pages: PageRange, what: impl Fn(&Page) -> bool) -> bool {
        let mut pages = pages.iter();
        pages.all(|id| self.pages.known.get(&id).is_some_and(&what))
    }

    fn list(&mut self, pages: PageRange, oid: Oid, list: impl Fn(&mut Page) -> &mut Vec<Oid>) {
        for id in pages.iter() {
            let list = list(self.page(id));
            if pages.count == 1 || !list.contains(&oid) {
                list.push(oid);
            }
        }
    }

    /// A value of this type may be written at this place from now on.
    fn note_writes(&mut self, binding: &Binding, storage: u64, pages: PageRange) {
        if binding.info.smallest_leaf() < WORD {
            self.note_fine(pages);
        }
        if !binding.info.is_dense() {
            self.note_holes(binding.info, storage);
        }
    }

    /// Parts of values that are smaller than a word may be written on these pages.
    pub(crate) fn note_fine(&mut self, pages: PageRange) {
        pages.iter().for_each(|id| self.page(id).fine = true);
    }

    /// A value of this type, with padding, may be written at this place.
    pub(crate) fn note_holes(&mut self, info: &TypeInfo, storage: u64) {
        each_hole(info, storage, |start, end| self.note_hole(start, end));
    }

    fn note_hole(&mut self, start: u64, end: u64) {
        for id in PageRange::of(start..end, PAGE_BYTES).iter() {
            let base = id.0 * PAGE_BYTES;
            let hole = |at: u64| (at.clamp(base, base + PAGE_BYTES) - base) as u16;
            let (from, to) = (hole(start), hole(end));
            let holes = &mut self.page(id).holes;
            let at = holes.partition_point(|(start, _)| *start < from);
            if holes.get(at).is_none_or(|(start, _)| *start != from) {
                holes.insert(at, (from, to));
            }
        }
    }
}

/// Calls `f` with each part of an object at `storage` that belongs to no value.
fn each_hole(info: &TypeInfo, storage: u64, mut f: impl FnMut(u64, u64)) {
    let mut next = 0;
    let ends = info.data.iter().map(|range| (range.offset, range.bytes));
    for (offset, bytes) in ends.chain([(info.size, 0)]) {
        if offset > next {
            f(storage + next as u64, storage + offset as u64);
        }
        next = offset + bytes;
    }
}

impl HeapMut<'_> {
    /// The node's pages, if its cluster is [paged](crate::Cluster::paged).
    pub fn paged(&mut self) -> Option<Paged<'_>> {
        let paged = self.heap.is_paged();
        paged.then(|| Paged {
            on: self.reborrow(),
        })
    }
}

impl Paged<'_> {
    fn on_page<R>(
        &mut self,
        operation: &'static str,
        page: PageId,
        f: impl FnOnce(&mut Heap) -> Refusable<R>,
    ) -> Result<R, PageRefused> {
        f(self.on.heap).map_err(|refusal| PageRefused {
            operation,
            page,
            node: self.on.heap.node,
            refusal,
        })
    }

    /// Whether the objects on a page may be read here.
    pub fn is_page_valid(&self, page: PageId) -> bool {
        self.on
            .heap
            .pages
            .known
            .get(&page)
            .is_some_and(|page| page.valid)
    }

    /// Whether the objects on a page may be written here.
    pub fn is_page_writable(&self, page: PageId) -> bool {
        let known = self.on.heap.pages.known.get(&page);
        known.is_some_and(|page| page.writable)
    }

    /// What is in the store is the page's valid copy: zeros, where nothing was put there.
    ///
    /// # Errors
    /// [`PageRefusal::Presence`] while the worker computes.
    pub fn make_page_valid(&mut self, page: PageId) -> Result<(), PageRefused> {
        self.on_page("making valid", page, |heap| {
            heap.in_call()?;
            heap.touch(page)?;
            heap.page(page).valid = true;
            Ok(())
        })
    }

    /// Replaces the bytes of a page that is not valid.
    ///
    /// # Errors
    /// [`PageRefused`]; nothing was written.
    pub fn install_page(&mut self, page: PageId, bytes: &[u8]) -> Result<(), PageRefused> {
        self.on_page("installing", page, |heap| {
            heap.in_call()?;
            only(!heap.page(page).valid, PageRefusal::Valid)?;
            only(bytes.len() == BYTES, PageRefusal::Length(bytes.len()))?;
            let at = heap.touch(page)?;
            // SAFETY: the page is not valid, by the test above; what makes it so clears its
            // handles.
            unsafe { heap.overwrite(at, 0, bytes) };
            Ok(())
        })
    }

    /// Makes a page and all objects on it unreadable; the bytes stay.
    ///
    /// # Errors
    /// [`PageRefusal::Presence`] outside of an exclusive call.
    pub fn invalidate_page(&mut self, page: PageId) -> Result<(), PageRefused> {
        self.on_page("invalidating", page, |heap| {
            heap.own_call()?;
            // SAFETY: it is an exclusive call, by the test above.
            unsafe {
                heap.clear_written(page);
                heap.clear_shown(page);
                heap.clear_arrays(page, true);
            }
            Ok(())
        })
    }

    /// Lets the worker write a valid page; with `twin`, keeps a copy of it as it is now.
    ///
    /// # Errors
    /// [`PageRefusal::Presence`] outside of an exclusive call, [`PageRefusal::Invalid`] without a
    /// valid copy.
    pub fn make_page_writable(&mut self, page: PageId, twin: bool) -> Result<(), PageRefused> {
        self.on_page("making writable", page, |heap| {
            heap.own_call()?;
            only(heap.page(page).valid, PageRefusal::Invalid)?;
            if twin {
                // SAFETY: it is an exclusive call, by the first test, so nobody writes.
                let copy = unsafe { heap.snapshot(page) }?;
                heap.pages.twins.insert(page, copy);
            }
            only(
                heap.pages.twins.contains_key(&page),
                PageRefusal::Lacks("twin"),
            )?;
            heap.page(page).writable = true;
            Ok(())
        })
    }

    /// Takes the right to write a page away again; its twin stays.
    ///
    /// # Errors
    /// [`PageRefusal::Presence`] while the worker computes.
    pub fn protect_page(&mut self, page: PageId) -> Result<(), PageRefused> {
        self.on_page("protecting", page, |heap| {
            heap.in_call()?;
            // SAFETY: it is a call, by the test above.
            unsafe {
                heap.clear_written(page);
                heap.clear_arrays(page, false);
            }
            Ok(())
        })
    }

    /// Forgets the twin of a page, which becomes read-only.
    ///
    /// # Errors
    /// As [`protect_page`](Paged::protect_page).
    pub fn drop_twin(&mut self, page: PageId) -> Result<(), PageRefused> {
        self.protect_page(page)?;
        let twin = self.on.heap.pages.twins.remove(&page);
        twin.into_iter()
            .for_each(|twin| self.on.heap.pages.recycle(twin));
        Ok(())
    }

    /// Forgets what is here of a page that is not valid.
    ///
    /// # Errors
    /// [`PageRefused`]; nothing was done.
    pub fn drop_page(&mut self, page: PageId) -> Result<(), PageRefused> {
        self.on_page("dropping", page, |heap| {
            heap.in_call()?;
            only(!heap.page(page).valid, PageRefusal::Valid)?;
            let at = heap.touch(page)?;
            // SAFETY: the page is not valid, by the test above; what makes it so clears its
            // handles.
            unsafe { heap.overwrite(at, 0, &[0; BYTES]) };
            heap.store.forget(at);
            Ok(())
        })
    }

    /// Keeps how a page differs from its twin as `node`'s diff of this number, drops the twin, and
    /// makes the page read-only. How many bytes the diff has.
    ///
    /// # Errors
    /// [`PageRefused`]: it may be written at this moment, or has no twin.
    pub fn make_page_diff(&mut self, (page, node, number): DiffKey) -> Result<usize, PageRefused> {
        self.on_page("comparing", page, |heap| {
            only(
                !heap.is_being_written(page),
                PageRefusal::Presence(heap.presence()),
            )?;
            let twin = heap.pages.twins.remove(&page);
            let twin = twin.ok_or(PageRefusal::Lacks("twin"))?;
            // SAFETY: it is not being written, by the test above.
            let new = unsafe { heap.snapshot(page) }?;
            let grain = if heap.page(page).fine { 1 } else { WORD };
            let mut diff = Vec::new();
            page_diff::diff(&twin[..], &new[..], grain, &mut diff);
            let bytes = diff.len();
            heap.keep_made_diff((page, node, number), diff.into());
            heap.pages.recycle(twin);
            heap.pages.recycle(new);
            if heap.page(page).writable {
                // SAFETY: a page that is writable and not being written: the worker is in a call.
                unsafe {
                    heap.clear_written(page);
                    heap.clear_arrays(page, false);
                }
            }
            Ok(bytes)
        })
    }

    /// Appends the bytes of a page to `out`, or those of its twin.
    ///
    /// # Errors
    /// [`PageRefused`]: it may be written at this moment, or has no twin. `out` is unchanged.
    pub fn gather_page(
        &mut self,
        page: PageId,
        twin: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), PageRefused> {
        self.on_page("gathering", page, |heap| {
            if twin {
                let twin = heap.pages.twins.get(&page);
                out.extend_from_slice(&twin.ok_or(PageRefusal::Lacks("twin"))?[..]);
                return Ok(());
            }
            only(
                !heap.is_being_written(page),
                PageRefusal::Presence(heap.presence()),
            )?;
            // Whatever puts bytes on a page makes it known. Nothing is kept of others, so that
            // memory does not grow by what others ask for.
            if !heap.pages.known.contains_key(&page) {
                out.resize(out.len() + BYTES, 0);
                return Ok(());
            }
            // SAFETY: it is not being written, by the test above.
            let copy = unsafe { heap.snapshot(page) }?;
            out.extend_from_slice(&copy[..]);
            heap.pages.recycle(copy);
            Ok(())
        })
    }

    /// Keeps a diff that another node made.
    pub fn keep_page_diff(&mut self, key: DiffKey, bytes: &[u8]) {
        if !self.on.heap.cluster.made_diffs.has(key, bytes) {
            let (page, node, number) = key;
            let page = self.on.heap.page(page);
            page.diffs.keep(node, number, bytes.into());
        }
    }

    /// A diff that is kept here.
    pub fn page_diff(&self, key: DiffKey) -> Option<Diff> {
        self.on.heap.page_diff(key)
    }

    /// Forgets all diffs.
    pub fn forget_page_diffs(&mut self) {
        let heap = &mut *self.on.heap;
        let (node, pages) = (heap.node, &mut heap.pages.known);
        let own = pages.iter_mut().flat_map(|(&id, page)| {
            let numbers = page.diffs.forget(node);
            numbers.map(move |number| (id, node, number))
        });
        heap.cluster.made_diffs.forget(own);
    }

    /// Changes a page that is not valid by a diff that is kept here. How many bytes it has.
    ///
    /// # Errors
    /// [`PageRefused`]; nothing was written.
    pub fn apply_page_diff(&mut self, key: DiffKey) -> Result<usize, PageRefused> {
        let page = key.0;
        self.on_page("changing", page, |heap| {
            heap.in_call()?;
            only(!heap.page(page).valid, PageRefusal::Valid)?;
            let at = heap.touch(page)?;
            let diff = heap.page_diff(key);
            let diff = diff.ok_or(PageRefusal::Lacks("such diff"))?;
            // SAFETY: the page is not valid, by the test above; what makes it so clears its
            // handles.
            page_diff::runs(&diff, BYTES, |offset, run| unsafe {
                heap.overwrite(at, offset, run)
            })?;
            Ok(diff.len())
        })
    }

    /// The pages that an object lies in, which count as in use here.
    ///
    /// # Errors
    /// [`InstallError`] when the id names no object of this cluster, or it does not fit the store.
    pub fn pages_of(&mut self, oid: Oid) -> Result<PageRange, InstallError> {
        self.on.heap.pages_of(oid).map(|(_, _, pages)| pages)
    }

    /// Lets the worker read an object all of whose pages are valid, once its bytes are a value.
    ///
    /// # Errors
    /// [`InstallError`]; [`InstallError::Absent`] when a page is not valid.
    pub fn show(&mut self, oid: Oid) -> Result<(), InstallError> {
        let (node, presence) = (self.on.heap.node, self.on.heap.presence());
        if presence == Presence::Computing {
            return Err(InstallError::Presence {
                oid,
                node,
                presence,
            });
        }
        let (at, storage, pages) = self.on.heap.pages_of(oid)?;
        if !self.on.heap.are(pages, |page| page.valid) {
            return Err(InstallError::Absent { oid, node });
        }
        if self.on.heap.chunks[at.chunk].is_present(at.slot) {
            return Ok(());
        }
        let binding = self.on.heap.chunks[at.chunk].binding;
        if !(binding.info.leaves.is_empty() && binding.info.references.is_empty()) {
            let mut packed = self.on.heap.pre_images.buffer();
            // SAFETY: the pages of the object are valid, so that its bytes are initialised, and the
            // worker, which alone writes them, does not compute, by the first test.
            unsafe { self.on.heap.pack(at, storage, &mut packed) };
            let checked = self.on.check(oid, &binding, &packed, Unheard::IsGone);
            self.on.heap.pre_images.recycle(packed);
            checked?;
        }
        self.on.heap.list(pages, oid, |page| &mut page.shown);
        // SAFETY: the bytes are a value: any are, or these were tested.
        unsafe { self.on.heap.appear(oid, at, storage) };
        Ok(())
    }

    /// Lets the worker write an object that it may read and all of whose pages are writable.
    ///
    /// # Errors
    /// [`InstallError`]; [`InstallError::Absent`] when it may not be read, or a page not written.
    pub fn show_writable(&mut self, oid: Oid) -> Result<(), InstallError> {
        let (node, presence) = (self.on.heap.node, self.on.heap.presence());
        if presence != Presence::Exclusive {
            return Err(InstallError::Presence {
                oid,
                node,
                presence,
            });
        }
        let (at, storage, pages) = self.on.heap.pages_of(oid)?;
        let present = self.on.heap.chunks[at.chunk].is_present(at.slot);
        if !present || !self.on.heap.are(pages, |page| page.writable) {
            return Err(InstallError::Absent { oid, node });
        }
        if !self.on.heap.chunks[at.chunk].is_writable(at.slot) {
            let binding = self.on.heap.chunks[at.chunk].binding;
            self.on.heap.note_writes(&binding, storage, pages);
            self.on.heap.list(pages, oid, |page| &mut page.written);
            self.on.heap.chunks[at.chunk].set_writable(at.slot);
            let [_, write] = self.on.heap.tables();
            let object = self.on.heap.store.pointer(storage).as_ptr();
            // SAFETY: the object may be read, as was just found, and it is an exclusive call.
            unsafe { write.set(oid, object) };
        }
        Ok(())
    }

    /// The pages in which new objects of so many bytes will lie; they are where the next
    /// allocation puts them.
    ///
    /// # Errors
    /// [`AllocError::Full`] when the space of addresses is used up.
    pub fn next_pages<T: crate::Share>(&mut self, count: u64) -> Result<PageRange, AllocError> {
        self.on.next_pages::<T>(count)
    }
}

impl HeapMut<'_> {
    fn next_pages<T: crate::Share>(&mut self, count: u64) -> Result<PageRange, AllocError> {
        self.fits::<T>(count, 1)?;
        let bytes = (size_of::<T>() as u64).checked_mul(count);
        let next = bytes.and_then(|bytes| self.heap.next_address(bytes, align_of::<T>() as u64));
        let (Some(at), Some(bytes)) = (next, bytes) else {
            return Err(self.full::<T>());
        };
        Ok(PageRange::of(at..at + bytes, PAGE_BYTES))
    }

    /// Tests that the pages in which `count` new objects will lie may be written here, where pages
    /// are kept consistent.
    pub(crate) fn may_store<T: crate::Share>(&mut self, count: u64) -> Result<(), AllocError> {
        if !self.heap.is_paged() {
            return Ok(());
        }
        let pages = self.next_pages::<T>(count)?;
        match self.heap.are_pages_writable(pages) {
            true => Ok(()),
            false => Err(AllocError::Pages {
                what: std::any::type_name::<T>(),
                node: self.heap.node,
                pages,
            }),
        }
    }

    /// The value of a new object is written next, on pages that are valid and twinned. What is
    /// written first may unwind half way, and has written padding then.
    pub(crate) fn note_written(&mut self, oid: Oid) {
        if !self.heap.is_paged() {
            return;
        }
        if let Ok((at, storage, pages)) = self.heap.pages_of(oid) {
            let binding = self.heap.chunks[at.chunk].binding;
            self.heap.note_writes(&binding, storage, pages);
            self.heap.list(pages, oid, |page| &mut page.shown);
        }
    }
}

impl Heap {
    /// Whether objects are kept consistent by pages.
    pub(crate) fn is_paged(&self) -> bool {
        self.cluster.is_paged()
    }

    fn in_call(&self) -> Refusable<()> {
        let presence = self.presence();
        only(
            presence != Presence::Computing,
            PageRefusal::Presence(presence),
        )
    }

    fn own_call(&self) -> Refusable<()> {
        let presence = self.presence();
        only(
            presence == Presence::Exclusive,
            PageRefusal::Presence(presence),
        )
    }

    fn is_being_written(&self, page: PageId) -> bool {
        let writable = self
            .pages
            .known
            .get(&page)
            .is_some_and(|page| page.writable);
        writable && self.presence() == Presence::Computing
    }

    /// Takes the right to write, and with `read` the right to read too, away from all elements
    /// of arrays that lie on the page.
    ///
    /// # Safety
    /// It is a call of the worker, an exclusive one with `read`.
    unsafe fn clear_arrays(&mut self, id: PageId, read: bool) {
        let mut arrays = std::mem::take(&mut self.page(id).arrays);
        for &array in &arrays {
            // SAFETY: the caller's promise.
            unsafe { self.hide_elements(array, id, read) };
        }
        if read {
            arrays.clear();
        }
        self.page(id).arrays = arrays;
    }

    pub(crate) fn are_pages_valid(&self, pages: PageRange) -> bool {
        self.are(pages, |page| page.valid)
    }

    pub(crate) fn are_pages_writable(&self, pages: PageRange) -> bool {
        self.are(pages, |page| page.writable)
    }

    pub(crate) fn list_array(&mut self, pages: PageRange, array: Oid) {
        for id in pages.iter() {
            let arrays = &mut self.page(id).arrays;
            if !arrays.contains(&array) {
                arrays.push(array);
            }
        }
    }
}
