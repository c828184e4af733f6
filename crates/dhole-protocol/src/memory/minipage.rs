//! Minipages, and where they lie.

use dhole_wire::Wire;

/// Bytes of a page, on which the protection of a view is set.
pub const MINIPAGE_PAGE: u64 = 4096;

/// The log2 of the bytes of a view: an address is the number of a view, and behind it an offset in
/// the memory object that all views show.
pub const VIEW_BITS: u32 = 38;

/// Most bytes of a minipage.
pub const MOST_MINIPAGE_BYTES: u32 = 64 << 20;

/// A unit of sharing: so many bytes of the memory object, seen through one view (MultiView,
/// section 2.2).
///
/// A minipage that is no larger than a page lies on one page, and no other minipage lies on that
/// page in its view. So the protection of the page, in that view, is that of the minipage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Minipage {
    /// The address of its first byte.
    pub at: u64,
    /// How many bytes.
    pub bytes: u32,
}

impl Minipage {
    /// None: what messages name that are about no minipage.
    pub(super) const NONE: Minipage = Minipage { at: 0, bytes: 0 };

    /// Whether the page of the address is one of the minipage's.
    pub fn covers(&self, address: u64) -> bool {
        (first_of_page(self.at)..self.end_of_pages()).contains(&address)
    }

    /// The view through which it is seen.
    pub fn view(&self) -> u64 {
        self.at >> VIEW_BITS
    }

    /// Where it begins in the memory object.
    pub fn offset(&self) -> u64 {
        offset_of(self.at)
    }

    /// The address of its first page.
    pub fn first_page(&self) -> u64 {
        first_of_page(self.at)
    }

    /// The address behind its last page.
    pub fn end_of_pages(&self) -> u64 {
        (self.at + u64::from(self.bytes)).next_multiple_of(MINIPAGE_PAGE)
    }

    /// Whether it can be one where a memory object has `object_bytes` and `views` views: it is not
    /// empty, ends where the object does, and straddles no page unless it is larger than one.
    pub fn is_within(&self, object_bytes: u64, views: u64) -> bool {
        let within = self.offset() % MINIPAGE_PAGE;
        let fits_page = within + u64::from(self.bytes) <= MINIPAGE_PAGE;
        (1..=MOST_MINIPAGE_BYTES).contains(&self.bytes)
            && (fits_page || within == 0)
            && self.view() < views
            && self.offset() + u64::from(self.bytes) <= object_bytes
    }
}

/// Where an address is in the memory object.
pub(super) fn offset_of(address: u64) -> u64 {
    address & ((1 << VIEW_BITS) - 1)
}

/// The address of the page on which an address is, in its view.
pub(super) fn first_of_page(address: u64) -> u64 {
    address / MINIPAGE_PAGE * MINIPAGE_PAGE
}
