//! Sizes on which all of the heap agrees.

use dhole_space::PAGE_BYTES;

/// Bytes at the start of a page store that stay with the slot when its cluster ends. What lies
/// there is never read before it is written.
pub(crate) const KEPT_BYTES: u64 = 64 << 10;

/// Elements of `element_bytes` bytes that lie in one block: as many as fit a page. `None` for
/// elements that an array cannot have.
pub(crate) const fn per_block(element_bytes: usize) -> Option<u64> {
    match element_bytes as u64 {
        1..=PAGE_BYTES => Some(PAGE_BYTES / element_bytes as u64),
        _ => None,
    }
}
