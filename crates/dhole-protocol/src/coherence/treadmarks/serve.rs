//! Questions for pages and diffs, and their answers.

use dhole_model::{NodeId, PageId};
use smallvec::SmallVec;

use super::TreadMarks;
use super::page::{Kept, Page};
use crate::Message;
use crate::coherence::deferred::DeferredRequests;
use crate::coherence::pending_fetches::Asked;
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::page_command::{Applied, DiffId, PageCommand, SentDiff, WantedDiffs};

/// Asks for a page, or for diffs of it where there are any.
pub(super) fn question(round: u32, page: PageId, wanted: SmallVec<[WantedDiffs; 1]>) -> Message {
    match wanted.is_empty() {
        true => Message::PageRequest { round, page },
        false => Message::DiffRequest {
            round,
            page,
            wanted,
        },
    }
}

impl TreadMarks {
    /// Takes a question for a page, or for diffs of it.
    pub fn asked(
        &mut self,
        (from, round, page): (NodeId, u32, PageId),
        wanted: SmallVec<[WantedDiffs; 1]>,
        (worker, deferred): (WorkerIs, &mut DeferredRequests),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if worker == WorkerIs::Computing && self.must_wait(page, &wanted) {
            return deferred.keep(from, question(round, page, wanted), out);
        }
        self.reply((from, round, page), wanted, out)
    }

    /// Whether an answer takes a diff of a page that the worker may be writing.
    fn must_wait(&self, page: PageId, wanted: &[WantedDiffs]) -> bool {
        let state = self.pages.get(&page);
        state.is_some_and(|state| {
            let writable = state.twin.is_some_and(|twin| twin.writable);
            writable && state.needs_diff(wanted, self.me)
        })
    }

    fn reply(
        &mut self,
        (to, round, page): (NodeId, u32, PageId),
        wanted: SmallVec<[WantedDiffs; 1]>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let kept_elsewhere = |state: &Page| {
            let keeper = state.keeper.filter(|keeper| *keeper != self.me);
            !state.here && keeper.is_some()
        };
        if wanted.is_empty() && self.pages.get(&page).is_some_and(kept_elsewhere) {
            return Err(ProtocolError::NoPage { from: to, page });
        }
        // Only a malicious peer asks for a page that nobody here has ever touched. It is zeros, and
        // nothing is kept of it.
        let Some(state) = self.pages.get_mut(&page) else {
            out.push(Command::Pages(match wanted.is_empty() {
                true => PageCommand::ReplyPage {
                    to,
                    round,
                    page,
                    twin: false,
                    applied: Applied::new(),
                },
                false => PageCommand::ReplyDiffs {
                    to,
                    round,
                    page,
                    got: SmallVec::new(),
                    diffs: SmallVec::new(),
                },
            }));
            return Ok(());
        };
        if state.needs_diff(&wanted, self.me) {
            state.make_diff(page, self.me, &self.floor, out);
            self.memory.untwinned();
        }
        if wanted.is_empty() {
            if !state.here {
                state.here = true;
                out.push(Command::Pages(PageCommand::ZeroFill(page)));
            }
            out.push(Command::Pages(PageCommand::ReplyPage {
                to,
                round,
                page,
                twin: state.twin.is_some(),
                applied: state.applied(),
            }));
            return Ok(());
        }
        let (mut got, mut diffs) = (SmallVec::new(), SmallVec::new());
        for wanted in wanted {
            let WantedDiffs { node, .. } = wanted;
            let Some(kept) = state.all(wanted) else {
                continue;
            };
            diffs.extend(kept.iter().map(|&Kept { index, lamport }| {
                let id = DiffId { page, node, index };
                (id, lamport)
            }));
            got.push(wanted);
        }
        out.push(Command::Pages(PageCommand::ReplyDiffs {
            to,
            round,
            page,
            got,
            diffs,
        }));
        Ok(())
    }
}

impl TreadMarks {
    /// Takes a page, if the worker still waits for it.
    pub fn page_reply(
        &mut self,
        from: NodeId,
        (round, page): (u32, PageId),
        applied: &Applied,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let Some(asked) = self.question(from, round, page)? else {
            return Ok(());
        };
        if *asked != [(from, None)] {
            let what = "a page where diffs were asked for";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.fetches.answered(from);
        let state = self.pages.get_or_default(page);
        for &(node, index) in applied.iter().filter(|(node, _)| *node != self.me) {
            let writer = state.writer(node, &self.floor);
            let index = writer.applied.max(index);
            (writer.applied, writer.fetched, writer.kept_after) = (index, index, index);
        }
        state.here = true;
        out.push(Command::Pages(PageCommand::Install(page)));
        self.go_on(out);
        Ok(())
    }

    /// Takes diffs, if the worker still waits for them.
    pub fn diff_reply(
        &mut self,
        from: NodeId,
        (round, page): (u32, PageId),
        got: &[WantedDiffs],
        diffs: &[SentDiff],
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let Some(asked) = self.question(from, round, page)? else {
            return Ok(());
        };
        let within = |diff: &SentDiff| {
            let fits = |got: &WantedDiffs| {
                let of_writer = got.node == diff.id.node && diff.id.page == page;
                of_writer && diff.id.index > got.after && diff.id.index <= got.up_to
            };
            got.iter().any(fits)
        };
        let own = |got: &WantedDiffs| got.node == from;
        let sound = got.iter().all(|got| asked.contains(&(from, Some(*got))))
            && got.iter().any(own)
            && diffs.iter().all(within);
        if !sound {
            let what = "diffs that were not asked for, or not the sender's own";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.fetches.answered(from);
        let state = self.pages.get_or_default(page);
        for &diff in diffs {
            let DiffId { node, index, .. } = diff.id;
            let kept = Kept {
                index,
                lamport: diff.lamport,
            };
            let writer = state.writer(node, &self.floor);
            out.push(Command::Pages(match writer.diffs.keep(kept) {
                true => PageCommand::Keep(diff),
                false => PageCommand::PassOver(diff),
            }));
        }
        for got in got {
            state.writer(got.node, &self.floor).fetched = got.up_to;
        }
        self.go_on(out);
        Ok(())
    }

    /// What the question of this number asks for, if it is open.
    fn question(
        &self,
        from: NodeId,
        round: u32,
        page: PageId,
    ) -> Result<Option<Asked<'_, Option<WantedDiffs>>>, ProtocolError> {
        let asked = self.fetches.question(from, round)?;
        if asked.is_some() && self.fault.is_some_and(|fault| fault.page != page) {
            let what = "an answer about a page that was not asked for";
            return Err(ProtocolError::BadMessage { from, what });
        }
        Ok(asked)
    }
}

impl Page {
    /// Whether an answer takes a diff that has not been made. What was not announced yet is not
    /// asked for, and a page with such changes is answered from its twin.
    fn needs_diff(&self, wanted: &[WantedDiffs], me: NodeId) -> bool {
        self.twin.is_some_and(|twin| {
            let asks = |wanted: &WantedDiffs| wanted.node == me && wanted.up_to >= twin.index;
            twin.lamport.is_some() && (wanted.is_empty() || wanted.iter().any(asks))
        })
    }

    /// These diffs, if all of them are kept here.
    fn all(&self, wanted: WantedDiffs) -> Option<&[Kept]> {
        let WantedDiffs { node, after, up_to } = wanted;
        let found = self
            .writers
            .binary_search_by_key(&node, |writer| writer.node);
        let writer = self.writers.get(found.ok()?)?;
        let has_all = writer.kept_after <= after && up_to <= writer.applied;
        has_all.then(|| writer.diffs.of(after, up_to))
    }
}
