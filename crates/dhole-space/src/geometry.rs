//! Sizes on which all that is mapped agrees.

/// Bytes of a page: what aggregation fetches together.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of a huge page.
pub const HUGE_BYTES: u64 = 2 << 20;

/// Entries of a handle table that share a page of memory: extents of ids are multiples of it, so
/// that dropping a cluster's part of a table touches no other cluster's part.
pub const IDS_PER_PAGE: u64 = 512;

/// The log2 of the bytes of handle tables and page store for each id: 8 + 8 + 16.
pub(crate) const SLOT_BITS_PER_ID: u32 = 5;
