//! TreadMarks: lazy release consistency of pages, with several writers (Keleher et al. 1994; Amza
//! et al. 1996). The baseline that objects are measured against.
//!
//! Every page begins as zeros on every node. The first write of a page makes a *twin*; the end of
//! the interval announces the page, and whoever acquires that drops its own copy's validity. The
//! *diff* between page and twin is made lazily: when somebody asks for it, or when a notice of
//! another writer arrives. Until then the page needs no second twin and no second notice, for
//! nobody has what it was before. A miss asks each node whose last announced changes no other
//! one's follow on, for its own and for those that it had seen; they are applied in the order of
//! happens-before. Writers of different parts of one page do not disturb each other.
//!
//! Diffs are kept, by their writers and by those that fetched them, until a
//! [collection](collect) at a barrier.

mod collect;
mod page;
mod serve;

use std::ops::Range;
use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, PageId, PageRange, SortedMap, VectorTime};
use smallvec::SmallVec;

use crate::coherence::pending_fetches::PendingFetches;
use crate::command::{Command, Commands};
use crate::page_command::{DiffId, PageCommand, PageEvent, WantedDiffs};
use crate::sync::written_pages::WrittenPages;
use crate::{Interval, Message, WriteNotices};

use collect::Memory;
use page::{Kept, Known, Page, Twin, Writer};

/// One node's pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TreadMarks {
    me: NodeId,
    /// The pages that objects may lie on; none where objects are kept consistent, not pages.
    space: Range<u64>,
    pages: SortedMap<PageId, Page>,
    /// Pages twinned in the current interval.
    written: Vec<PageId>,
    /// Pages that the worker may write.
    writable: Vec<PageId>,
    /// What the worker waits for.
    fault: Option<Fault>,
    /// Whom it is asked of: diffs, or the whole page.
    fetches: PendingFetches<Option<WantedDiffs>>,
    /// What all nodes had seen at the last collection.
    floor: VectorTime,
    /// What is kept since then.
    memory: Memory,
    /// How many bytes of it make the next barrier a collection.
    collect_from: u64,
    /// At the barrier's manager: a node that has arrived is full.
    somebody_full: bool,
    collecting: bool,
}

/// A page that the worker waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Fault {
    page: PageId,
    /// Nodes were asked for the diffs of others, and may not have them: ask the writers.
    directly: bool,
}

impl TreadMarks {
    pub fn new(me: NodeId, nodes: usize, collect_from: u64) -> TreadMarks {
        TreadMarks {
            me,
            space: 0..0,
            pages: SortedMap::new(),
            written: Vec::new(),
            writable: Vec::new(),
            fault: None,
            fetches: PendingFetches::default(),
            floor: VectorTime::zero(nodes),
            memory: Memory::default(),
            collect_from,
            somebody_full: false,
            collecting: false,
        }
    }

    /// Keeps these pages consistent, on which all objects lie.
    pub fn keep(&mut self, pages: Range<u64>) {
        self.space = pages;
    }

    /// Whether a message may name these pages.
    pub fn check(&self, pages: PageRange) -> Result<(), &'static str> {
        if self.space.is_empty() {
            return Err("pages, in a run that keeps objects consistent and no pages");
        }
        let end = pages.first.0.checked_add(u64::from(pages.count));
        match end.is_some_and(|end| end <= self.space.end) && pages.first.0 >= self.space.start {
            true => Ok(()),
            false => Err("pages beyond the space of addresses"),
        }
    }

    /// Whether news names only pages that this node may have.
    pub fn check_news(&self, news: &WriteNotices) -> Result<(), &'static str> {
        let of_pages = news.intervals.iter().filter_map(|one| one.attached.pages());
        let mut ranges = of_pages.flat_map(|pages| &pages.ranges);
        ranges.try_for_each(|range| self.check(*range))
    }

    /// Whether a message about a page names one that this node may have.
    pub fn check_message(&self, message: &Message) -> Result<(), &'static str> {
        match *message {
            Message::PageRequest { page: first, .. }
            | Message::PageReply { page: first, .. }
            | Message::DiffRequest { page: first, .. }
            | Message::DiffReply { page: first, .. } => self.check(PageRange { first, count: 1 }),
            _ => Ok(()),
        }
    }

    /// Whether no page was ever used, nor any memory for them.
    pub fn is_unused(&self) -> bool {
        self.pages.is_empty() && !self.somebody_full && !self.collecting
    }

    /// Takes what the worker does; `time` is what this node has seen.
    pub fn step(&mut self, event: PageEvent, time: &VectorTime, out: &mut Commands) {
        match event {
            PageEvent::Read { page, creator } => self.read(page, creator, out),
            PageEvent::Write { page } => self.write(page, time.of(self.me) + 1, out),
            PageEvent::Collect => self.collected(time, out),
        }
    }

    fn read(&mut self, page: PageId, creator: Option<NodeId>, out: &mut Commands) {
        let (me, directly) = (self.me, false);
        let state = self.pages.get_or_default(page);
        self.fetches.begin();
        self.fault = Some(Fault { page, directly });
        if !state.is_valid() && !state.here {
            let creator = creator.filter(|_| !state.was_written());
            let from = state.last_writer_but(me).or(state.keeper).or(creator);
            match from.filter(|from| *from != me) {
                Some(from) => self.fetches.add(from, None),
                None => {
                    state.here = true;
                    out.push(Command::Pages(PageCommand::ZeroFill(page)));
                }
            }
        }
        self.go_on(out);
    }

    /// Asks for what is missing of the page that the worker waits for: once no question is open,
    /// the diffs, which are applied when all have come.
    fn go_on(&mut self, out: &mut Commands) {
        let Some(Fault { page, directly }) = self.fault else {
            return;
        };
        if self.fetches.is_over() {
            let state = self.pages.get_or_default(page);
            let missing = state.missing();
            if missing.is_empty() {
                state.apply(page, self.me, out);
                self.fault = None;
                out.push(Command::Pages(PageCommand::MakeValid(page)));
                out.push(Command::Done);
                return;
            }
            for (ask, wanted) in missing {
                let from = if directly { wanted.node } else { ask };
                self.fetches.add(from, Some(wanted));
            }
            self.fault = Some(Fault {
                page,
                directly: true,
            });
        }
        self.fetches.ask(|to, round, asked| {
            let wanted: SmallVec<_> = asked.iter().filter_map(|(_, wanted)| *wanted).collect();
            let message = serve::question(round, page, wanted);
            out.push(Command::Send { to, message });
        });
    }

    /// The worker writes a page in the interval that will have this number.
    fn write(&mut self, page: PageId, index: IntervalIndex, out: &mut Commands) {
        let state = self.pages.get_or_default(page);
        debug_assert!(state.is_valid(), "{page}: only a valid page is written");
        match &mut state.twin {
            Some(twin) if twin.writable => return,
            Some(twin) => {
                twin.writable = true;
                out.push(Command::Pages(PageCommand::MakeWritable(page)));
            }
            none => {
                *none = Some(Twin {
                    index,
                    lamport: None,
                    writable: true,
                });
                self.written.push(page);
                self.memory.twinned();
                out.push(Command::Pages(PageCommand::MakeTwin(page)));
            }
        }
        self.writable.push(page);
    }

    /// Whether pages may be written, or were since the interval began.
    #[inline]
    pub fn is_writable(&self) -> bool {
        !self.writable.is_empty() || self.has_written()
    }

    /// Whether the current interval has something to announce.
    #[inline]
    pub fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// The interval ends: nothing is writable any more. A page that was written before, and of
    /// which nobody has asked for the diff, is not announced again.
    pub fn protect(&mut self, out: &mut Commands) {
        for page in self.writable.drain(..) {
            let twin = self
                .pages
                .get_mut(&page)
                .and_then(|page| page.twin.as_mut());
            if let Some(twin) = twin.filter(|twin| twin.writable) {
                twin.writable = false;
                out.push(Command::Pages(PageCommand::Protect(page)));
            }
        }
    }

    /// What an interval of this number and Lamport time announces; `time` has seen it.
    pub fn end_interval(
        &mut self,
        (index, lamport): (IntervalIndex, u64),
        time: &VectorTime,
        out: &mut Commands,
    ) -> Option<Arc<WrittenPages>> {
        if self.written.is_empty() {
            return None;
        }
        self.written.sort_unstable();
        let mut ranges = Vec::new();
        let written = self.written.drain(..);
        written.for_each(|page| PageRange::push(&mut ranges, page));
        let pages = Arc::new(WrittenPages::new(time.clone(), ranges));
        self.announced(self.me, (index, lamport), &pages, out);
        Some(pages)
    }

    /// Another node's interval has announced pages. The worker must be in a call that takes its
    /// token mutably, and its own interval must have ended.
    pub fn notice(&mut self, interval: &Interval, out: &mut Commands) {
        if let Some(pages) = interval.attached.pages() {
            let of = (interval.index, interval.lamport);
            self.announced(interval.node, of, pages, out);
        }
    }

    fn announced(
        &mut self,
        node: NodeId,
        (index, lamport): (IntervalIndex, u64),
        pages: &Arc<WrittenPages>,
        out: &mut Commands,
    ) {
        let (me, mut new_writers) = (self.me, 0);
        for page in pages.ranges.iter().flat_map(|range| range.iter()) {
            let state = self.pages.get_or_default(page);
            let (was_valid, before) = (state.is_valid(), state.writers.len());
            let writer = state.writer(node, &self.floor);
            writer.known = Some(Known {
                index,
                lamport,
                pages: Arc::clone(pages),
            });
            if node == me {
                writer.applied = index;
            }
            new_writers += state.writers.len() - before;
            match &mut state.twin {
                Some(twin) if node == me => twin.lamport = Some(lamport),
                // Whole pages may bring changes before their notices. Even so, what is written
                // from here on happens after them, and must not hide in a diff of an older
                // interval.
                Some(_) => {
                    state.make_diff(page, me, &self.floor, out);
                    self.memory.untwinned();
                }
                None => {}
            }
            if was_valid && !state.is_valid() {
                out.push(Command::Pages(PageCommand::Invalidate(page)));
            }
        }
        let nodes = self.floor.nodes();
        self.memory
            .announced(nodes, pages.ranges.len(), new_writers);
    }
}

impl Page {
    /// What has to be asked for, each beside the node that should have it: all changes that are
    /// known of, and neither applied nor kept here. That node is the writer, or one that had seen
    /// its changes when it wrote: so none is asked whose announced changes all precede another's.
    fn missing(&self) -> Vec<(NodeId, WantedDiffs)> {
        let ahead = || self.writers.iter().filter(|writer| writer.is_ahead());
        let last_after = |writer: &Writer| {
            let after = ahead().filter(|other| writer.precedes(other));
            // What nobody precedes in turn knows all that came before.
            after.max_by_key(|other| other.newest().map(|known| (known.lamport, other.node)))
        };
        let wanted = |writer: &Writer| {
            let up_to = writer.newest()?.index;
            let wanted = WantedDiffs {
                node: writer.node,
                after: writer.applied,
                up_to,
            };
            let ask = || last_after(writer).unwrap_or(writer).node;
            (writer.fetched < up_to).then(|| (ask(), wanted))
        };
        ahead().filter_map(wanted).collect()
    }

    /// Applies all diffs that are kept and not applied, in the order of happens-before.
    fn apply(&mut self, page: PageId, me: NodeId, out: &mut Commands) {
        let mut new: SmallVec<[(u64, NodeId, IntervalIndex); 4]> = SmallVec::new();
        for writer in self.writers.iter_mut().filter(|writer| writer.node != me) {
            let kept = writer.diffs.of(writer.applied, writer.fetched);
            let node = writer.node;
            new.extend(kept.iter().map(|kept| (kept.lamport, node, kept.index)));
            writer.applied = writer.applied.max(writer.fetched);
        }
        new.sort_unstable();
        out.extend(new.into_iter().map(|(_, node, index)| {
            Command::Pages(PageCommand::Apply(DiffId { page, node, index }))
        }));
    }

    /// Makes the diff of this node's own changes, which an interval has announced.
    fn make_diff(&mut self, page: PageId, me: NodeId, floor: &VectorTime, out: &mut Commands) {
        let Some(Twin { index, lamport, .. }) = self.twin.take() else {
            return;
        };
        let lamport = lamport.expect("a diff is made of what was announced");
        let node = me;
        let own = self.writer(me, floor);
        own.diffs.keep(Kept { index, lamport });
        out.push(Command::Pages(PageCommand::MakeDiff(DiffId {
            page,
            node,
            index,
        })));
    }
}
