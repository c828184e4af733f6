//! Blocks that `mmap` gives out: whole pages, with a mark in front of their header, by which every
//! node knows them.

use std::ffi::c_void;

use super::{HEADER, PAGE, allocate, dh_free_from, header};

/// What stands in front of the header of such a block: this, and its bytes as they were asked for.
const MARK: u64 = 0x6d61_7070_6564_2e64;

/// Bytes of both in front of the header.
const MARK_BYTES: usize = 2 * size_of::<u64>();

fn mark(block: *mut c_void) -> *mut u64 {
    block.cast::<u8>().wrapping_sub(HEADER + MARK_BYTES).cast()
}

/// Whole pages that begin at one, and whether they are zero.
pub(crate) fn map_pages(bytes: usize) -> Option<(*mut u8, bool)> {
    let (block, is_zero) = allocate(bytes, PAGE, 0)?;
    set_mapped_bytes(block.cast(), bytes);
    Some((block, is_zero))
}

/// Such a block has so many bytes now.
pub(crate) fn set_mapped_bytes(block: *mut c_void, bytes: usize) {
    // SAFETY: a block that begins at a page has a page in front of it, of which the header takes
    // the end alone (`allocate`).
    unsafe {
        mark(block).write(MARK);
        mark(block).add(1).write(bytes as u64);
    }
}

/// How many bytes were mapped at an address, if a mapping begins there.
///
/// # Safety
/// The address is one of shared memory, at which a page begins.
pub(crate) unsafe fn mapped_bytes(block: *mut c_void) -> Option<usize> {
    // SAFETY: as in `set_mapped_bytes`, if a block begins there. If none does, the page in front is
    // shared memory too, or the access ends the process with words about it.
    unsafe {
        let is_one = mark(block).read() == MARK;
        is_one.then(|| mark(block).add(1).read() as usize)
    }
}

/// How many bytes such a block has room for.
pub(crate) fn capacity_of_pages(block: *mut c_void) -> usize {
    // SAFETY: a block of `map_pages`, which its caller has not given back.
    let bytes = unsafe { (*header(block, "mapping again", 0)).bytes() };
    bytes / PAGE * PAGE
}

/// Gives such a block back.
pub(crate) fn unmap_pages(block: *mut u8) {
    // SAFETY: a block of `map_pages`, which its caller gives back once.
    unsafe {
        mark(block.cast()).write(0);
        dh_free_from(block.cast(), 0);
    }
}
