//! Collecting diffs, and what is known of them (Keleher 1994, section 4.4).
//!
//! At a barrier all nodes have heard of the same announcements. When there are many, the last
//! writer of each page becomes its *keeper* and brings its copy up to date; then all meet again,
//! and everybody drops the diffs, what they knew of the writers, and the copies that are not
//! valid. Whoever needs such a page later asks its keeper for all of it.

use dhole_model::{NodeId, PageId, VectorTime};

use super::TreadMarks;
use super::page::Page;
use crate::command::{Command, Commands};
use crate::page_command::PageCommand;

/// With so many announcements of pages heard of since the last collection, the next barrier is
/// one more. Each takes some 64 bytes on every node and leads to at most one diff of its writer:
/// 16 MB of records, and as much again for diffs of 64 bytes. Programs that share finely make
/// small ones: those of Barnes-Hut have 230 bytes.
pub(crate) const COLLECT_FROM: usize = 1 << 18;

impl TreadMarks {
    /// At the barrier's manager, which has heard of everything: whether it is time.
    pub fn wants_collection(&self) -> bool {
        self.announced >= self.collect_from
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
            let Some(keeper) = page.last_writer() else {
                continue;
            };
            if page.twin.take().is_some() {
                out.push(Command::Pages(PageCommand::DropTwin(id)));
            }
            if page.here && !page.is_valid() {
                page.here = false;
                out.push(Command::Pages(PageCommand::Drop(id)));
            }
            page.keeper = Some(keeper);
            page.writers.clear();
            page.diffs = Vec::new();
        }
        out.push(Command::Pages(PageCommand::ForgetDiffs));
        self.floor = time.clone();
        self.announced = 0;
        self.collecting = false;
    }

    /// Diffs that are kept here, and writers of pages that are remembered.
    pub fn kept(&self) -> [usize; 2] {
        let diffs = self.pages.values().map(|page| page.diffs.len()).sum();
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
