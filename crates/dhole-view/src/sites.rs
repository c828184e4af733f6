//! Where minipages were allocated and freed, in words for errors.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dhole_model::{CallSite, NodeId};
use dhole_protocol::memory::{MINIPAGE_PAGE, MOST_WORDS, MinipageRun, VIEW_BITS};

/// Words of so many pages are kept.
const MOST_KEPT: usize = 4096;

/// So many allocations are looked at that begin before an address.
const MOST_LOOKED_AT: usize = 64;

/// Where minipages were allocated.
#[derive(Clone, Debug)]
pub(crate) enum AllocationSite {
    /// By this node, there.
    Own(CallSite),
    /// By another node, whose words these are.
    Others(Arc<str>),
}

impl fmt::Display for AllocationSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocationSite::Own(site) => site.fmt(f),
            AllocationSite::Others(words) => words.fmt(f),
        }
    }
}

/// An allocation that this node manages, as one view shows it.
struct Allocation {
    /// The address behind its last page.
    end: u64,
    count: u64,
    bytes: u32,
    site: AllocationSite,
}

/// What a node knows of the places in the program.
#[derive(Default)]
pub(crate) struct Sites {
    /// By the address of their first page, in each of their views.
    allocated: BTreeMap<u64, Allocation>,
    /// By page: which node frees a minipage that this node manages, and where, in words.
    freed: BTreeMap<u64, String>,
    /// By page and node of the domain: its words, until this node asks the manager for it.
    asked: BTreeMap<(u64, NodeId), String>,
    /// By page: the words of the manager, where this node was told that nothing is there.
    heard: BTreeMap<u64, String>,
}

fn page_of(address: u64) -> u64 {
    address / MINIPAGE_PAGE * MINIPAGE_PAGE
}

fn keep<K: Ord>(words: &mut BTreeMap<K, String>, key: K, of: String) {
    if words.len() < MOST_KEPT || words.contains_key(&key) {
        words.insert(key, of);
    }
}

impl Sites {
    /// This node manages minipages that were allocated at a place in the program, each of so many
    /// bytes there.
    pub fn allocated(&mut self, run: &MinipageRun, bytes: u64, site: &AllocationSite) {
        let pages = u64::from(run.bytes).div_ceil(MINIPAGE_PAGE);
        let on_page = u64::from(run.on_page).max(1);
        let all = run.count.div_ceil(on_page) * pages * MINIPAGE_PAGE;
        for view in 0..on_page.min(run.count) {
            let first = page_of(run.at) + (view << VIEW_BITS);
            let end = first + all;
            let forgotten: Vec<u64> = self
                .freed
                .range(first..end)
                .map(|(page, _)| *page)
                .collect();
            forgotten
                .iter()
                .for_each(|page| _ = self.freed.remove(page));
            let allocation = Allocation {
                end,
                count: run.count,
                bytes: bytes as u32,
                site: site.clone(),
            };
            self.allocated.insert(first, allocation);
        }
    }

    /// The minipage at an address was freed, in these words: by this node, its manager.
    pub fn freed(&mut self, address: u64, words: String) {
        keep(&mut self.freed, page_of(address), words);
    }

    /// A node wants to free the minipage at an address, which this node manages. Of several
    /// requests it carries the first out, whose words it keeps.
    pub fn asked_to_free(&mut self, address: u64, words: &[u8]) {
        let page = page_of(address);
        if !self.freed.contains_key(&page) {
            let words = String::from_utf8_lossy(words).into_owned();
            keep(&mut self.freed, page, words);
        }
    }

    /// A node of the domain wants to free the minipage at an address, which another one manages.
    pub fn member_frees(&mut self, member: NodeId, address: u64, words: &[u8]) {
        let words = String::from_utf8_lossy(words).into_owned();
        keep(&mut self.asked, (page_of(address), member), words);
    }

    /// The words of a node of the domain for which this node asks the manager to free the minipage
    /// at an address, or which hears now that nothing is there.
    pub fn take_members(&mut self, member: NodeId, address: u64) -> Option<String> {
        self.asked.remove(&(page_of(address), member))
    }

    /// The manager says that nothing is at an address, with its words.
    pub fn heard(&mut self, address: u64, words: &[u8]) {
        let words = String::from_utf8_lossy(words).into_owned();
        keep(&mut self.heard, page_of(address), words);
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
            words = format!("{words}, freed by {freed}");
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
        let own = AllocationSite::Own(CallSite::caller());
        let mut allocated = |run: &MinipageRun| {
            sites.allocated(run, run.bytes.into(), &own);
        };
        allocated(&run(0, 256, 2, 5));
        allocated(&run(second * 2 + 512, 100, 1, 1));
        allocated(&run(4096 * 3, 9000, 1, 2));
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
        sites.asked_to_free(second + 256, b"node 3 at some.rs:7:1");
        // A second request comes to nothing.
        sites.asked_to_free(second + 256, b"node 4 at other.rs:7:1");
        assert!(words(&sites, second + 256).ends_with(", freed by node 3 at some.rs:7:1"));
        assert!(!words(&sites, second + 4096).contains("freed"));
        sites.freed(second + 4096, "node 0 at own.rs:7:1".to_owned());
        // Both pages are allocated again.
        let others = AllocationSite::Others("its.rs:1:2".into());
        sites.allocated(&run(0, 256, 2, 5), 256, &others);
        assert_eq!(
            words(&sites, second + 256),
            "allocated at its.rs:1:2 (5 x 256 bytes)"
        );
        assert!(!words(&sites, second + 256).contains("freed"));
        assert!(!words(&sites, second + 4096).contains("freed"));
        // A node that asks for others has the words of each.
        for (node, words) in [(1, "node 1 at a.rs:1:1"), (2, "node 2 at b.rs:1:1")] {
            sites.member_frees(NodeId(node), 0, words.as_bytes());
        }
        let mut taken = |node| sites.take_members(NodeId(node), 8);
        assert_eq!(taken(1).as_deref(), Some("node 1 at a.rs:1:1"));
        assert_eq!(taken(2).as_deref(), Some("node 2 at b.rs:1:1"));
        assert_eq!(taken(2), None);
        assert_eq!(shortened("\u{e4}".repeat(400)).len(), 512);
    }
}
