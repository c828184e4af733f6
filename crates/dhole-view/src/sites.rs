//! Where minipages were allocated and freed, in words for errors.

use std::collections::BTreeMap;
use std::panic::Location;

use dhole_model::NodeId;
use dhole_protocol::memory::{MINIPAGE_PAGE, MOST_WORDS, MinipageRun, VIEW_BITS};

/// Words of so many pages are kept.
const MOST_KEPT: usize = 4096;

/// So many allocations are looked at that begin before an address.
const MOST_LOOKED_AT: usize = 64;

/// An allocation of this node, as one view shows it.
struct Allocation {
    /// The address behind its last page.
    end: u64,
    count: u64,
    bytes: u32,
    site: &'static Location<'static>,
}

/// What a node knows of the places in the program.
#[derive(Default)]
pub(crate) struct Sites {
    /// By the address of their first page, in each of their views.
    allocated: BTreeMap<u64, Allocation>,
    /// By page: where a minipage that this node manages was freed, in words.
    freed: BTreeMap<u64, String>,
    /// By page: the words of the manager, where this node was told that nothing is there.
    heard: BTreeMap<u64, String>,
}

fn page_of(address: u64) -> u64 {
    address / MINIPAGE_PAGE * MINIPAGE_PAGE
}

fn keep(words: &mut BTreeMap<u64, String>, address: u64, of: String) {
    let page = page_of(address);
    if words.len() < MOST_KEPT || words.contains_key(&page) {
        words.insert(page, of);
    }
}

impl Sites {
    /// This node has allocated minipages at a place in the program.
    pub fn allocated(&mut self, run: &MinipageRun, site: &'static Location<'static>) {
        let pages = u64::from(run.bytes).div_ceil(MINIPAGE_PAGE);
        let on_page = u64::from(run.on_page).max(1);
        let all = run.count.div_ceil(on_page) * pages * MINIPAGE_PAGE;
        for view in 0..on_page.min(run.count) {
            let first = page_of(run.at) + (view << VIEW_BITS);
            self.freed.remove(&first);
            let allocation = Allocation {
                end: first + all,
                count: run.count,
                bytes: run.bytes,
                site,
            };
            self.allocated.insert(first, allocation);
        }
    }

    /// A node frees the minipage at an address, of which it has words.
    pub fn freed(&mut self, address: u64, node: NodeId, words: &[u8]) {
        let at = String::from_utf8_lossy(words);
        keep(&mut self.freed, address, format!("freed by {node} at {at}"));
    }

    /// The manager says that nothing is at an address, with its words.
    pub fn heard(&mut self, address: u64, words: &[u8]) {
        let words = String::from_utf8_lossy(words).into_owned();
        keep(&mut self.heard, address, words);
    }

    /// Words of the allocation that is at an address, or was: of the manager, if it has said some.
    pub fn words(&self, address: u64) -> Option<String> {
        let page = page_of(address);
        if let Some(heard) = self.heard.get(&page) {
            return Some(heard.clone());
        }
        let mut before = self.allocated.range(..=page).rev().take(MOST_LOOKED_AT);
        let (_, allocation) = before.find(|(_, it)| page < it.end)?;
        let Allocation {
            count, bytes, site, ..
        } = allocation;
        let mut words = format!("allocated at {site} ({count} x {bytes} bytes)");
        if let Some(freed) = self.freed.get(&page) {
            words = format!("{words}, {freed}");
        }
        Some(shortened(words))
    }
}

/// As much of words as comes with a message.
pub(crate) fn shortened(mut words: String) -> String {
    let mut end = words.len().min(MOST_WORDS as usize);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_the_words_of_its_allocation() {
        let mut sites = Sites::default();
        let run = |at, bytes, on_page, count| MinipageRun {
            at,
            bytes,
            stride: bytes,
            on_page,
            count,
        };
        let second = 1 << VIEW_BITS;
        let site = Location::caller();
        sites.allocated(&run(0, 256, 2, 5), site);
        sites.allocated(&run(second * 2 + 512, 100, 1, 1), site);
        sites.allocated(&run(4096 * 3, 9000, 1, 2), site);
        let words = |sites: &Sites, address| sites.words(address).unwrap_or_default();
        for address in [0, 255, second + 300, 4096 * 2, second + 4096] {
            assert!(
                words(&sites, address).contains("5 x 256 bytes"),
                "{address:#x}"
            );
        }
        assert!(words(&sites, second * 2 + 4000).contains("1 x 100 bytes"));
        assert!(words(&sites, 4096 * 8).contains("2 x 9000 bytes"));
        assert_eq!(sites.words(4096 * 9), None);
        assert_eq!(sites.words(second * 2 + 4096), None);
        sites.freed(second + 256, NodeId(3), b"some.rs:7:1");
        assert!(words(&sites, second + 256).ends_with(", freed by node 3 at some.rs:7:1"));
        assert!(!words(&sites, second + 4096).contains("freed"));
        assert_eq!(shortened("\u{e4}".repeat(400)).len(), 512);
    }
}
