//! Sizes on which all of the heap agrees.

/// Bytes of a page: what aggregation fetches together.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of a huge page.
pub(crate) const HUGE_BYTES: u64 = 2 << 20;

/// Bytes at the start of a page store that stay with the slot when its cluster ends. What lies
/// there is never read before it is written.
pub(crate) const KEPT_BYTES: u64 = 64 << 10;

/// Entries of a handle table that share a page of memory: extents of ids are multiples of it, so
/// that dropping a cluster's part of a table touches no other cluster's part.
pub(crate) const IDS_PER_PAGE: u64 = 512;

/// The log2 of the bytes of handle tables and page store for each id: 8 + 8 + 16.
pub(crate) const SLOT_BITS_PER_ID: u32 = 5;

/// Elements of `element_bytes` bytes that lie in one block: as many as fit a page. `None` for
/// elements that an array cannot have.
pub(crate) const fn per_block(element_bytes: usize) -> Option<u64> {
    match element_bytes as u64 {
        1..=PAGE_BYTES => Some(PAGE_BYTES / element_bytes as u64),
        _ => None,
    }
}
