//! Minipages that were allocated together.

use super::minipage::{MINIPAGE_PAGE, Minipage, VIEW_BITS, first_of_page, offset_of};

/// Minipages of one size that were allocated together: a manager keeps one entry for them all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MinipageRun {
    /// The address of the first.
    pub at: u64,
    /// Bytes of each.
    pub bytes: u32,
    /// Bytes from one to the next on the same page.
    pub stride: u32,
    /// How many lie on a page, each in a view of its own; 1 where each has pages of its own.
    pub on_page: u32,
    /// How many there are.
    pub count: u64,
}

impl MinipageRun {
    /// Minipages from an address on as a manager lays them out that has so many views: as many on a
    /// page as fit. If they are fewer, they may begin behind others on the page.
    pub(super) fn laid_out(
        at: u64,
        (count, bytes, align): (u64, u64, u64),
        views: u64,
    ) -> MinipageRun {
        let stride = bytes.next_multiple_of(align);
        MinipageRun {
            at,
            bytes: bytes as u32,
            stride: stride.min(MINIPAGE_PAGE) as u32,
            on_page: (MINIPAGE_PAGE / stride).clamp(1, views).min(count) as u32,
            count,
        }
    }

    /// Pages from the first minipage of one page to that of the next.
    fn pages_each(&self) -> u64 {
        u64::from(self.bytes).div_ceil(MINIPAGE_PAGE)
    }

    /// Minipage `index`, if there are so many.
    pub fn minipage(&self, index: u64) -> Option<Minipage> {
        if index >= self.count || self.on_page == 0 {
            return None;
        }
        let (page, place) = (
            index / u64::from(self.on_page),
            index % u64::from(self.on_page),
        );
        let pages = page.checked_mul(self.pages_each() * MINIPAGE_PAGE)?;
        let on_page = place * (u64::from(self.stride) + (1 << VIEW_BITS));
        Some(Minipage {
            at: self.at.checked_add(pages)?.checked_add(on_page)?,
            bytes: self.bytes,
        })
    }

    /// The number of the minipage whose page, in its view, has this address.
    pub(super) fn index_of(&self, address: u64) -> Option<u64> {
        let first = first_of_page(offset_of(self.at));
        let page = first_of_page(offset_of(address)).checked_sub(first)? / MINIPAGE_PAGE;
        let place = (address >> VIEW_BITS).checked_sub(self.at >> VIEW_BITS)?;
        if place >= u64::from(self.on_page) {
            return None;
        }
        let index = page / self.pages_each() * u64::from(self.on_page) + place;
        let found = self.minipage(index).filter(|it| it.covers(address));
        found.map(|_| index)
    }

    /// The minipage whose page, in its view, has this address.
    pub(super) fn find(&self, address: u64) -> Option<Minipage> {
        self.minipage(self.index_of(address)?)
    }
}
