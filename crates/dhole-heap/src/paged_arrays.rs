//! Arrays on pages that are kept as a whole: elements may be touched where all their pages may.

use dhole_model::{Elements, Oid, PageId, PageRange};

use crate::array_store::{ElementsRefused, Refusable};
use crate::foreign::Unheard;
use crate::heap::Heap;
use crate::page_diff::WORD;
use crate::paged::Paged;
use crate::{ElementsRefusal, PAGE_BYTES, Presence};

impl Heap {
    /// Where elements of an array are in the global space.
    pub(crate) fn pages_of_elements(&mut self, elements: Elements) -> Refusable<PageRange> {
        let local = self.array(elements)?;
        let size = local.binding.info.size as u64;
        let start = local.storage + elements.first * size;
        let bytes = start..start + elements.count * size;
        Ok(PageRange::of(bytes, PAGE_BYTES))
    }

    /// The elements of an array that some byte of these pages belongs to, or with `whole`, all of
    /// whose bytes lie there.
    fn elements_on(&self, array: Oid, pages: PageRange, whole: bool) -> Option<Elements> {
        let local = self.arrays.get(&array)?;
        let size = local.binding.info.size as u64;
        let start = pages.first.0 * PAGE_BYTES;
        let end = start + u64::from(pages.count) * PAGE_BYTES;
        let [start, end] = [start, end].map(|at| at.saturating_sub(local.storage));
        let range = match whole {
            true => start.div_ceil(size)..end / size,
            false => start / size..end.div_ceil(size),
        };
        let range = range.start..range.end.min(local.binding.len);
        (range.start < range.end).then(|| Elements::new(array, range))
    }

    /// Takes the right to write, and with `read` the right to read too, away from the elements of
    /// an array on a page.
    ///
    /// # Safety
    /// It is a call of the worker, an exclusive one with `read`.
    pub(crate) unsafe fn hide_elements(&mut self, array: Oid, page: PageId, read: bool) {
        let pages = PageRange {
            first: page,
            count: 1,
        };
        let Some(elements) = self.elements_on(array, pages, false) else {
            return;
        };
        // SAFETY: as the caller promises; whoever has the heap has the node lock.
        unsafe {
            self.set_writable(elements, false);
            if read {
                self.set_readable(elements, false);
            }
        }
    }

    /// Elements may be written from now on, or were when they were allocated.
    pub(crate) fn note_array_writes(&mut self, elements: Elements) {
        let Ok(pages) = self.pages_of_elements(elements) else {
            return;
        };
        self.list_array(pages, elements.array);
        let local = &self.arrays[&elements.array];
        let (info, storage) = (local.binding.info, local.storage);
        if info.smallest_leaf() < WORD {
            self.note_fine(pages);
        }
        if !info.is_dense() {
            for i in elements.range() {
                self.note_holes(info, storage + i * info.size as u64);
            }
        }
    }

    /// Whether every value of the elements' type is valid, whatever its bytes.
    fn takes_any_bytes(&self, array: Oid) -> bool {
        let info = self.arrays[&array].binding.info;
        info.leaves.is_empty() && info.references.is_empty()
    }
}

impl Paged<'_> {
    /// The pages that elements of an array lie in.
    ///
    /// # Errors
    /// [`ElementsRefused`] when there are no such elements.
    pub fn pages_of_elements(&mut self, elements: Elements) -> Result<PageRange, ElementsRefused> {
        self.on
            .refusable("placing", elements, |heap| heap.pages_of_elements(elements))
    }

    /// Lets the worker read elements all of whose pages are valid, once their bytes are values,
    /// and where any bytes are, all other elements of these pages too.
    ///
    /// # Errors
    /// [`ElementsRefused`]; [`ElementsRefusal::Absent`] when a page is not valid.
    pub fn show_elements(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        self.on.refusable("showing", elements, |heap| {
            if heap.presence() == Presence::Computing {
                return Err(ElementsRefusal::Presence(Presence::Computing));
            }
            let pages = heap.pages_of_elements(elements)?;
            if !heap.are_pages_valid(pages) {
                return Err(ElementsRefusal::Absent);
            }
            heap.list_array(pages, elements.array);
            let shown = match heap.takes_any_bytes(elements.array) {
                true => heap.elements_on(elements.array, pages, true),
                false => {
                    let mut packed = heap.pre_images.buffer();
                    // SAFETY: `pages_of_elements` has found them, and the worker, which alone
                    // writes them, does not compute, by the first test.
                    unsafe { heap.pack_elements(elements, &mut packed) };
                    let checked = heap.check_elements(elements, &packed, Unheard::IsGone);
                    heap.pre_images.recycle(packed);
                    checked?;
                    None
                }
            };
            heap.store_blocks(shown.unwrap_or(elements));
            // SAFETY: they are elements of an array that is found, and their bytes are values: any
            // bytes are, or these were tested.
            unsafe { heap.elements_appear(shown.unwrap_or(elements)) };
            Ok(())
        })
    }

    /// Lets the worker write elements that it may read and all of whose pages are writable.
    ///
    /// # Errors
    /// [`ElementsRefused`]; [`ElementsRefusal::Absent`] when they may not be read, or a page not
    /// written.
    pub fn show_elements_writable(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        if !self.on.has_elements(elements) {
            self.show_elements(elements)?;
        }
        self.on.refusable("making writable", elements, |heap| {
            let pages = heap.pages_of_elements(elements)?;
            let exclusive = heap.presence() == Presence::Exclusive;
            if !exclusive || !heap.are_pages_writable(pages) {
                return Err(ElementsRefusal::Absent);
            }
            let written = match heap.takes_any_bytes(elements.array) {
                true => heap.elements_on(elements.array, pages, true),
                false => None,
            };
            let written = written.unwrap_or(elements);
            heap.note_array_writes(written);
            // SAFETY: it is an exclusive call, by the test above. The elements may be read, or may
            // have any bytes on pages that are writable, and so valid.
            unsafe { heap.set_writable(written, true) };
            Ok(())
        })
    }
}
