//! Collecting diffs, and what is known of them (Keleher 1994, section 4.4).
//!
//! A node whose diffs, twins and records take more memory than they may says so as it arrives at a
//! barrier, where all hear of the same announcements. Then the last writer of each page becomes its
//! *keeper* and brings its copy up to date; all meet again, and everybody drops the diffs, what
//! they knew of the writers, and the copies that are not valid. Whoever needs such a page later
//! asks its keeper for all of it.

use dhole_model::{NodeId, PageId, PageRange, VectorTime};

use super::TreadMarks;
use super::page::Page;
use crate::command::{Command, Commands};
use crate::page_command::PageCommand;

/// Bytes of a page's twin.
const TWIN: u64 = 4096;

/// Bytes of what is known of a diff, and of a writer of a page, as they are counted: when diffs are
/// collected does not depend on how they are laid out here.
const DIFF: u64 = 16;
const WRITER: u64 = 40;

/// Bytes that are kept until the next collection.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Memory(u64);

impl Memory {
    /// A page has a twin.
    pub fn twinned(&mut self) {
        self.0 += TWIN;
    }

    /// A page's twin was dropped.
    pub fn untwinned(&mut self) {
        self.0 = self.0.saturating_sub(TWIN);
    }

    /// A diff of so many bytes is kept.
    pub fn diff(&mut self, bytes: u64) {
        self.0 += bytes + DIFF;
    }

    /// An interval of one of `nodes` nodes announced pages, so many of them written by that node
    /// for the first time.
    pub fn announced(&mut self, nodes: usize, ranges: usize, new_writers: usize) {
        let interval = size_of::<u32>() * nodes + size_of::<PageRange>() * ranges;
        self.0 += interval as u64 + WRITER * new_writers as u64;
    }
}

impl TreadMarks {
    /// Whether this node's memory is full, and nobody empties it yet.
    pub fn is_full(&self) -> bool {
        !self.collecting && self.memory.0 >= self.collect_from
    }

    /// At the barrier's manager: a node has arrived whose memory is full, or is not.
    pub fn arrived(&mut self, full: bool) {
        self.somebody_full |= full;
    }

    /// At the barrier's manager, where all have arrived: whether diffs are collected next.
    pub fn collects(&mut self) -> bool {
        std::mem::take(&mut self.somebody_full)
    }

    /// A diff that was made or kept here has so many bytes.
    pub fn keeps_diff(&mut self, bytes: u64) {
        self.memory.diff(bytes);
    }

    /// The barrier was one at which diffs are collected.
    pub fn begin_collection(&mut self) {
        self.collecting = true;
    }

    /// What this node keeps from now on and has to bring up to date first, if diffs are being
    /// collected.
    pub fn to_validate(&self) -> Option<Vec<PageId>> {
        let mine = |(id, page): (&PageId, &Page)| {
            let keeps = page.last_writer() == Some(self.me);
            (keeps && !page.is_valid()).then_some(*id)
        };
        let collecting = self.collecting;
        collecting.then(|| self.pages.iter().filter_map(mine).collect())
    }

    /// All keepers have done so; `time` is what all nodes have seen.
    pub(super) fn collected(&mut self, time: &VectorTime, out: &mut Commands) {
        for (&id, page) in &mut self.pages {
            if let Some(keeper) = page.last_writer() {
                if page.twin.take().is_some() {
                    out.push(Command::Pages(PageCommand::DropTwin(id)));
                }
                if page.here && !page.is_valid() {
                    page.here = false;
                    out.push(Command::Pages(PageCommand::Drop(id)));
                }
                page.keeper = Some(keeper);
            }
            // Also of who announced nothing, but is in a page that came since the last collection:
            // that would be taken for what is known of what it announces from here on.
            page.writers.clear();
        }
        out.push(Command::Pages(PageCommand::ForgetDiffs));
        self.floor = time.clone();
        self.memory = Memory::default();
        self.collecting = false;
    }

    /// Diffs that are kept here, and writers of pages that are remembered.
    pub fn kept(&self) -> [usize; 2] {
        let writers = self.pages.values().flat_map(|page| &page.writers);
        let diffs = writers.map(|writer| writer.diffs.len()).sum();
        let writers = self.pages.values().map(|page| page.writers.len()).sum();
        [diffs, writers]
    }
}

impl Page {
    /// Who announced the page last since the last collection, the same on all nodes that have
    /// heard the same.
    fn last_writer(&self) -> Option<NodeId> {
        let known = |writer: &super::page::Writer| {
            let known = writer.known.as_ref()?;
            Some((known.lamport, writer.node))
        };
        let last = self.writers.iter().filter_map(known).max();
        last.map(|(_, node)| node)
    }
}
