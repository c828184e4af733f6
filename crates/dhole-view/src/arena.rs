//! A node's memory object and its views: `views` mappings for the program, and one more that is
//! always open, for the runtime.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole_protocol::memory::{MINIPAGE_PAGE, Minipage, VIEW_BITS};
use dhole_space::{
    Catcher, DomainFile, Mapping, Protection, ProtectionError, SharedFile, keep_from_children,
    map_at, map_over,
};

use crate::borrowed;
use crate::fault::HandlerStack;

/// Where a memory lies in the addresses of its process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Placed {
    /// Where the views may begin, the first best first: at an address of the system's choice unless
    /// given.
    pub bases: Vec<usize>,
    /// Whole pages of the process that are a part of the memory, each range behind the one before
    /// from offset 0 on. The first view shows them there and nowhere else.
    pub globals: Vec<Range<usize>>,
    /// On which stack the program's threads handle faults.
    pub handlers: HandlerStack,
}

impl Placed {
    /// Refuses globals that node 0, which manages them, has no room for.
    pub fn check(&self, bytes: u64, nodes: usize) -> io::Result<()> {
        let part = bytes / nodes as u64 / MINIPAGE_PAGE * MINIPAGE_PAGE;
        let globals = self.globals_bytes() as u64;
        if globals <= part {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!(
                "the program's globals have {globals} bytes, where each of {nodes} nodes has \
                 {part} bytes of the memory, and node 0 keeps all globals"
            ),
        ))
    }

    /// Bytes of all globals.
    pub fn globals_bytes(&self) -> usize {
        self.globals.iter().map(Range::len).sum()
    }
}

/// The views of one memory object, in one piece of the space of addresses. The last is the
/// privileged one.
///
/// Where all nodes of a run have the same memory object no view is ever closed. So one is enough,
/// for the runtime too: it shows what lies in any view.
pub(crate) struct Arena {
    /// All of the views.
    space: Mapping,
    placed: Placed,
    /// Bytes of each view.
    bytes: usize,
    /// Views of the program, by the protocol's addresses.
    views: usize,
    /// Those that are mapped: all, or the first alone.
    mapped: usize,
    catcher: Catcher,
    file: Object,
    /// The file of a domain that this node leads is cleared when this is dropped.
    clears_file: AtomicBool,
}

/// A memory object.
pub(crate) enum Object {
    /// The node's own.
    Own(SharedFile),
    /// That of the node's domain, and whether this node leads it.
    Domain(Arc<DomainFile>, bool),
}

impl Object {
    /// A new one of so many bytes.
    pub fn new(bytes: u64) -> io::Result<Object> {
        SharedFile::make_own(c"dhole-memory", bytes).map(Object::Own)
    }

    fn file(&self) -> &SharedFile {
        match self {
            Object::Own(file) => file,
            Object::Domain(domain, _) => domain.file(),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        borrowed::forget(self.base()..self.base() + self.all_bytes());
        for range in &self.placed.globals {
            let at = std::ptr::with_exposed_provenance_mut(range.start);
            let at = NonNull::new(at).expect("globals are not at address zero");
            // SAFETY: `show_globals` mapped the memory object there. What comes after the run
            // (destructors of the program) finds memory there, and zeros in it.
            unsafe { map_over(at, range.len()) };
        }
        // The next run finds zeros. After a loss there is none, and other nodes may use the memory.
        if let Object::Domain(file, true) = &self.file
            && self.clears_file.load(Ordering::Relaxed)
        {
            file.clear();
        }
    }
}

/// How many views of the program are mapped, and how many with the privileged one.
fn mappings(views: usize, catcher: &Catcher) -> (usize, usize) {
    match catcher.catches() {
        false => (1, 1),
        true => (views, views + 1),
    }
}

/// Reserves so many bytes of addresses, there if an address is given.
fn reserve(base: Option<usize>, all: usize) -> io::Result<Mapping> {
    Mapping::reserve(base, all).map_err(|cause| match base {
        None => cause,
        Some(base) => {
            let why = format!("{all} bytes at {base:#x}, as in all processes: {cause}");
            io::Error::new(cause.kind(), why)
        }
    })
}

impl Arena {
    /// The first so many bytes of a memory object, whole pages, with so many views of the program,
    /// all of them closed unless the catcher catches nothing.
    pub fn new(
        bytes: u64,
        views: usize,
        file: Object,
        catcher: Catcher,
        base: Option<usize>,
    ) -> io::Result<Arena> {
        assert!(bytes.is_multiple_of(MINIPAGE_PAGE) && bytes <= 1 << VIEW_BITS);
        let (mapped, with_privileged) = mappings(views, &catcher);
        let all = bytes as usize * with_privileged;
        let arena = Arena {
            space: reserve(base, all)?,
            placed: Placed::default(),
            bytes: bytes as usize,
            views,
            mapped,
            catcher,
            file,
            clears_file: AtomicBool::new(false),
        };
        arena.map_views()?;
        Ok(arena)
    }

    /// How many bytes of addresses such an arena takes.
    pub fn extent(bytes: u64, views: usize, catcher: &Catcher) -> usize {
        bytes as usize * mappings(views, catcher).1
    }

    /// Where the first view begins.
    pub fn base(&self) -> usize {
        self.space.start().addr().get()
    }

    /// Maps all views at another address, before the program has used any. All of them are closed
    /// then.
    ///
    /// # Errors
    /// The system's own, where something lies there, say.
    pub fn move_to(&mut self, base: usize) -> io::Result<()> {
        // What was mapped before is unmapped. Nothing refers to it: this has the only reference to
        // the arena.
        self.space = reserve(Some(base), self.all_bytes())?;
        self.catcher.forget();
        self.map_views()
    }

    /// Maps all views in their places.
    fn map_views(&self) -> io::Result<()> {
        (0..=self.privileged_view()).try_for_each(|view| self.map(view))?;
        // A child of `fork` would share the memory and see no faults; it has no views at all.
        self.space.keep_from_children()
    }

    /// Maps a view in its place.
    fn map(&self, view: usize) -> io::Result<()> {
        assert!(view <= self.privileged_view());
        let is_privileged = view == self.privileged_view();
        let protection = match is_privileged {
            true => Protection::Open,
            false => self.catcher.closed(),
        };
        let (bytes, file) = (self.bytes, self.file.file());
        // SAFETY: the view's place in what `new` has reserved, by the test above, to which nothing
        // refers yet.
        unsafe {
            self.space
                .show(view * bytes, file, 0..bytes as u64, protection)?;
            match is_privileged {
                true => Ok(()),
                false => self.catcher.watch(self.view_at(view), bytes),
            }
        }
    }

    /// Makes globals of the process a part of the memory, all of them closed. Where `keeps` says
    /// so the memory gets the bytes that are there.
    ///
    /// # Safety
    /// The ranges are whole pages that the process has mapped, that are the program's own, and of
    /// which no Rust reference exists. No thread accesses them while this runs.
    pub unsafe fn show_globals(&mut self, globals: &[Range<usize>], keeps: bool) -> io::Result<()> {
        let protection = self.catcher.closed();
        let mut offset = 0;
        for range in globals {
            let bytes = range.len();
            let whole = |at: usize| (at as u64).is_multiple_of(MINIPAGE_PAGE);
            assert!(whole(range.start) && whole(range.end) && offset + bytes <= self.bytes);
            let at = std::ptr::with_exposed_provenance_mut::<u8>(range.start);
            if keeps {
                // SAFETY: the caller's: the bytes are mapped and not accessed meanwhile.
                unsafe { self.keep_bytes(at, offset, bytes) };
            }
            let at = NonNull::new(at).expect("globals are not at address zero");
            let part = offset as u64..(offset + bytes) as u64;
            // SAFETY: as many pages as the caller names, which are the program's; every access to
            // them may fault from here on.
            unsafe {
                map_at(at, self.file.file(), part, protection)?;
                keep_from_children(at, bytes)?;
                self.placed.globals.push(range.clone());
                self.catcher.watch(at, bytes)?;
            }
            offset += bytes;
        }
        Ok(())
    }

    /// Copies pages into the memory object, but those of zeros, which it has already.
    ///
    /// # Safety
    /// So many bytes, whole pages, are mapped there, and not accessed meanwhile.
    unsafe fn keep_bytes(&self, from: *const u8, offset: usize, bytes: usize) {
        // SAFETY: within the privileged view, by the test of the caller.
        let to = unsafe { self.view_at(self.privileged_view()).add(offset) };
        let page = MINIPAGE_PAGE as usize;
        for at in (0..bytes).step_by(page) {
            // SAFETY: the page is mapped, and nothing writes it meanwhile (the caller's). The two
            // do not overlap: one is the program's, the other the memory object's.
            unsafe {
                let bytes = std::slice::from_raw_parts(from.add(at), page);
                if bytes.iter().any(|byte| *byte != 0) {
                    std::ptr::copy_nonoverlapping(from.add(at), to.as_ptr().add(at), page);
                }
            }
        }
    }

    /// The offset of a place in the globals, if it is one.
    fn offset_in_globals(&self, place: usize) -> Option<usize> {
        let mut before = 0;
        for range in &self.placed.globals {
            if range.contains(&place) {
                return Some(before + place - range.start);
            }
            before += range.len();
        }
        None
    }

    /// Where so many bytes from an offset of the first view on are among the globals, if they are.
    fn place_in_globals(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        let mut before = 0;
        for range in &self.placed.globals {
            let end = before + range.len();
            if (before..end).contains(&offset) && offset + bytes <= end {
                let place = range.start + offset - before;
                return NonNull::new(std::ptr::with_exposed_provenance_mut(place));
            }
            before = end;
        }
        None
    }

    /// The programs of all nodes have ended: none uses the memory any more.
    pub fn clears_file(&self) {
        self.clears_file.store(true, Ordering::Relaxed);
    }

    fn all_bytes(&self) -> usize {
        self.bytes * (self.privileged_view() + 1)
    }

    /// The view that is always open.
    fn privileged_view(&self) -> usize {
        match self.catcher.catches() {
            false => 0,
            true => self.mapped,
        }
    }

    /// Whether views are closed and opened. Otherwise no access faults that the memory has.
    pub fn catches(&self) -> bool {
        self.catcher.catches()
    }

    /// Where a view begins.
    fn view_at(&self, view: usize) -> NonNull<u8> {
        assert!(view <= self.privileged_view());
        // SAFETY: a place in the reservation, by the test above.
        unsafe { self.space.start().add(view * self.bytes) }
    }

    /// How faults are caught.
    pub fn faults(&self) -> &'static str {
        self.catcher.name()
    }

    /// The addresses at which the program's views are, and its globals.
    pub fn program_views(&self) -> impl Iterator<Item = Range<usize>> {
        let base = self.base();
        let views = base..base + self.bytes * self.mapped;
        std::iter::once(views).chain(self.placed.globals.iter().cloned())
    }

    /// The protocol's address of a place in the views of the program, if it is one.
    pub fn address_of(&self, place: usize) -> Option<u64> {
        if let Some(offset) = self.offset_in_globals(place) {
            return Some(offset as u64);
        }
        let within = place.checked_sub(self.base())?;
        let (view, offset) = (within / self.bytes, within % self.bytes);
        (view < self.mapped).then_some(((view as u64) << VIEW_BITS) | offset as u64)
    }

    /// Where `bytes` bytes from an address of the protocol's are in the program's view, if they
    /// are.
    pub fn place_of(&self, address: u64, bytes: usize) -> Option<NonNull<u8>> {
        let offset = (address & ((1 << VIEW_BITS) - 1)) as usize;
        let view = (address >> VIEW_BITS) as usize;
        if view >= self.views || bytes > self.bytes || offset > self.bytes - bytes {
            return None;
        }
        if view == 0 && offset < self.placed.globals_bytes() {
            return self.place_in_globals(offset, bytes);
        }
        let view = view.min(self.mapped - 1);
        // SAFETY: within the view, by the test above.
        Some(unsafe { self.view_at(view).add(offset) })
    }

    /// Where bytes from an address on are in the view that is always open, which shows the memory
    /// object in its order. Only what is held may be read there.
    pub fn coarse_at(&self, address: u64, bytes: usize) -> NonNull<u8> {
        let offset = (address & ((1 << VIEW_BITS) - 1)) as usize;
        assert!(bytes <= self.bytes && offset <= self.bytes - bytes);
        // SAFETY: within the view, by the test above.
        unsafe { self.view_at(self.privileged_view()).add(offset) }
    }

    /// Where a minipage is in the privileged view.
    fn privileged(&self, minipage: Minipage) -> NonNull<u8> {
        let (offset, bytes) = (minipage.offset() as usize, minipage.bytes as usize);
        assert!(bytes <= self.bytes && offset <= self.bytes - bytes);
        // SAFETY: within the view, by the test above.
        unsafe { self.view_at(self.privileged_view()).add(offset) }
    }

    /// Appends the bytes of a minipage.
    ///
    /// The node's threads may only read it, or nothing, as the protocol has it before its bytes are
    /// sent; unless they write it together with those of other nodes. A thread that writes then, or
    /// through a view that is not the minipage's, gets another value, or this copy does: bytes are
    /// copied as they are, of which every pattern is one.
    pub fn gather(&self, minipage: Minipage, into: &mut Vec<u8>) {
        let bytes = minipage.bytes as usize;
        into.reserve(bytes);
        let from = self.privileged(minipage);
        // SAFETY: so many bytes are mapped there (`privileged`) and reserved here, and the two do
        // not overlap: one is the vector's own. After the copy they are initialised.
        unsafe {
            let to = into.as_mut_ptr().add(into.len());
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, bytes);
            into.set_len(into.len() + bytes);
        }
    }

    /// Puts bytes into a minipage, of which the node's threads have no copy.
    ///
    /// # Panics
    /// Unless they are as many as it has.
    pub fn scatter(&self, minipage: Minipage, bytes: &[u8]) {
        assert_eq!(bytes.len(), minipage.bytes as usize);
        let to = self.privileged(minipage);
        // SAFETY: so many bytes are mapped there (`privileged`). Rust references to them are to
        // atomics (`shared`), and of a view that is closed none is followed; or slices that are
        // held (`held`). A minipage is installed only where the node has no copy of it, nor of one
        // with bytes in common (`Millipage::take_data`), and what is held is not taken away
        // (`Millipage::defers`): so these bytes are in no slice.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    /// Puts bytes into a part of a minipage, of which the node's threads may write other bytes
    /// meanwhile.
    ///
    /// # Panics
    /// Unless they lie within it.
    pub fn merge(&self, minipage: Minipage, at: usize, bytes: &[u8]) {
        let all = minipage.bytes as usize;
        assert!(bytes.len() <= all && at <= all - bytes.len());
        let to = self.privileged(minipage);
        // SAFETY: within the minipage, by the test above, which is mapped there (`privileged`).
        // Rust references to its bytes are to atomics (`shared`): none of the minipage is in a
        // slice, for what is flushed is not held meanwhile (`Millipage::flush`, `Millipage::hold`).
        // A program in which two nodes write one number at once, without an order, gets one of the
        // two: every pattern is a number.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr().add(at), bytes.len());
        }
    }

    /// Makes the bytes of a minipage zero, of which the node's threads have no copy.
    pub fn clear(&self, minipage: Minipage) {
        let to = self.privileged(minipage);
        // SAFETY: as in `scatter`: a minipage is cleared by its manager where no node has a copy
        // of it (`MemoryOperation::Free`), and so none of its bytes is in a slice.
        unsafe { std::ptr::write_bytes(to.as_ptr(), 0, minipage.bytes as usize) };
    }

    /// From here on all threads may do this with pages of a view, and no more: by one call of the
    /// system where none of them was open before, and one more where some were.
    ///
    /// # Errors
    /// [`ProtectionError`]
    pub fn protect(
        &self,
        pages: Range<u64>,
        protection: Protection,
    ) -> Result<(), ProtectionError> {
        if !self.catches() {
            return Ok(());
        }
        let bytes = (pages.end - pages.start) as usize;
        let Some(place) = self.place_of(pages.start, bytes) else {
            // Globals are in several places.
            if bytes as u64 > MINIPAGE_PAGE {
                let (first, last) = (pages.start, pages.end);
                let middle = first + MINIPAGE_PAGE;
                self.protect(first..middle, protection)?;
                return self.protect(middle..last, protection);
            }
            return Err(io::Error::other("a page that is in no view").into());
        };
        if protection != Protection::Closed {
            self.populate(pages);
        }
        // SAFETY: pages of a view, or of the globals (`place_of`), which are watched since they
        // were mapped.
        unsafe { self.catcher.protect(place, bytes, protection) }
    }

    /// Makes pages exist: a view can be opened on none that does not.
    fn populate(&self, pages: Range<u64>) {
        let bytes = (pages.end - pages.start) as usize;
        let first = self.coarse_at(pages.start, bytes);
        for page in (0..bytes).step_by(MINIPAGE_PAGE as usize) {
            // SAFETY: within the privileged view (`coarse_at`); the byte is only read.
            unsafe { first.add(page).read_volatile() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_s_file_is_cleared_where_all_nodes_have_ended_alone() {
        let file = Arc::new(DomainFile::make().expect("a file"));
        let arena = || {
            let object = Object::Domain(Arc::clone(&file), true);
            Arena::new(1 << 20, 1, object, Catcher::NOTHING, None).expect("an arena")
        };
        let first = arena();
        // SAFETY: the byte is mapped, and only this thread uses it, here and below.
        unsafe { first.coarse_at(0, 1).write_volatile(7) };
        drop(first);
        let second = arena();
        // SAFETY: as above.
        assert_eq!(unsafe { second.coarse_at(0, 1).read_volatile() }, 7);
        second.clears_file();
        drop(second);
        // SAFETY: as above.
        assert_eq!(unsafe { arena().coarse_at(0, 1).read_volatile() }, 0);
    }
}
