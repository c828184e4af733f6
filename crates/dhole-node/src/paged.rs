//! A run under TreadMarks: from a miss to the pages that an object lies in, and what the protocol's
//! commands do to pages.

use dhole_heap::{AllocError, ArrayMiss, HeapMut, Miss, MonitorCall, PageRefused, Paged, Share};
use dhole_model::{CallSite, Coherence, NodeId, PageId, PageRange};
use dhole_net::Payload;
use dhole_protocol::{DiffId, Event, Message, PageCommand, PageEvent, ProtocolError, SentDiff};

use crate::error::{AccessError, MixedProtocols};
use crate::node::State;
use crate::step::{Step, must};
use crate::worker::{Failure, Link, Worker};

impl Worker<'_> {
    /// Whether whole pages are kept consistent, not objects.
    pub(crate) fn is_paged(&self) -> bool {
        self.link.coherence.properties().keeps_pages()
    }

    /// A protocol was asked for that does not go with the run's.
    pub(crate) fn mixed(&self, asked: Coherence, site: CallSite) -> MixedProtocols {
        MixedProtocols {
            asked,
            run: self.link.coherence,
            node: self.node(),
            site,
        }
    }

    /// Makes an object readable whose pages are valid, or become so, one after the other.
    pub(crate) fn read_on_pages(&self, miss: &Miss) -> Result<(), AccessError> {
        let creator = self.locate(miss)?.creator;
        let called = self.shared(miss.site, |link, call| {
            if let Err(clash) = call.split().0.bind(miss) {
                return Ok(Err(clash));
            }
            let pages = pages_of(call, miss)?;
            link.awaits(miss);
            link.bring_pages(call, pages, asked_for(miss.row, creator))?;
            show(call, miss).map(Ok)
        });
        self.accessed(miss, called)
    }

    /// Makes an object writable.
    pub(crate) fn write_on_pages(&mut self, miss: &Miss) -> Result<(), AccessError> {
        let creator = self.locate(miss)?.creator;
        let called = self.exclusive(miss.site, |link, call| {
            if let Err(clash) = call.split().0.bind(miss) {
                return Ok(Err(clash));
            }
            let pages = pages_of(call, miss)?;
            link.awaits(miss);
            link.bring_pages_to_write(call, pages, asked_for(miss.row, creator))?;
            show(call, miss)?;
            let shown = on_pages(call, |pages| pages.show_writable(miss.oid));
            must(
                shown,
                "a writer is in a call with `&mut w`, and its pages are writable",
            );
            Ok(Ok(()))
        });
        self.accessed(miss, called)
    }

    /// Makes elements readable.
    pub(crate) fn read_elements_on_pages(&self, miss: &ArrayMiss) -> Result<(), AccessError> {
        let creator = self.creator(miss.into())?;
        let called = self.shared(miss.site, |link, call| {
            let bound = match call.split().0.bind_array(miss) {
                Ok(bound) => bound,
                Err(clash) => return Ok(Err(clash)),
            };
            let pages = pages_of_elements(call, miss)?;
            link.awaits(miss);
            link.bring_pages(call, pages, asked_for(bound.zeros, creator))?;
            show_elements(call, miss).map(Ok)
        });
        self.accessed(miss, called)
    }

    /// Makes elements writable, and then writes `values` over them, if there are any.
    pub(crate) fn write_elements_on_pages<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        values: Option<&[T]>,
    ) -> Result<(), AccessError> {
        let (creator, elements) = (self.creator(miss.into())?, miss.elements);
        let called = self.exclusive(miss.site, |link, call| {
            let bound = match call.split().0.bind_array(miss) {
                Ok(bound) => bound,
                Err(clash) => return Ok(Err(clash)),
            };
            link.bring_elements_on_pages(call, miss, asked_for(bound.zeros, creator))?;
            let mut heap = call.split().0;
            let written = values.map_or(Ok(()), |values| heap.overwrite_elements(elements, values));
            must(written, "what is writable may be written over");
            Ok(Ok(()))
        });
        self.accessed(miss, called)
    }
}

impl Link<'_> {
    /// Makes elements writable whose pages are valid, or become so.
    pub(crate) fn bring_elements_on_pages(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        asked: Option<NodeId>,
    ) -> Result<(), Box<Failure>> {
        let pages = pages_of_elements(call, miss)?;
        self.awaits(miss);
        self.bring_pages_to_write(call, pages, asked)?;
        show_elements(call, miss)?;
        let shown = on_pages(call, |pages| pages.show_elements_writable(miss.elements));
        must(
            shown,
            "a writer is in a call with `&mut w`, and its pages are writable",
        );
        Ok(())
    }
}

/// Whom to ask for an object on a page that nobody is known to have written: not needed where
/// zeros are as good.
pub(crate) fn asked_for(zero_ok: bool, creator: NodeId) -> Option<NodeId> {
    (!zero_ok).then_some(creator)
}

/// The pages of a heap, in a run under TreadMarks.
fn pages<'h>(heap: &'h mut HeapMut<'_>) -> Paged<'h> {
    heap.paged()
        .expect("a run under TreadMarks is of a paged cluster")
}

fn on_pages<R>(call: &mut MonitorCall<'_, State>, f: impl FnOnce(&mut Paged<'_>) -> R) -> R {
    f(&mut pages(&mut call.split().0))
}

/// The pages of an object that has not been freed.
fn pages_of(call: &mut MonitorCall<'_, State>, miss: &Miss) -> Result<PageRange, Box<Failure>> {
    let (mut heap, state) = call.split();
    state.protocol.check_not_freed(miss.oid)?;
    let pages = pages(&mut heap).pages_of(miss.oid);
    pages.map_err(|cause| not_shown(miss.oid, &cause))
}

fn pages_of_elements(
    call: &mut MonitorCall<'_, State>,
    miss: &ArrayMiss,
) -> Result<PageRange, Box<Failure>> {
    let pages = on_pages(call, |pages| pages.pages_of_elements(miss.elements));
    pages.map_err(|cause| not_shown(miss.elements.array, &cause))
}

fn show(call: &mut MonitorCall<'_, State>, miss: &Miss) -> Result<(), Box<Failure>> {
    call.split().1.faulted = false;
    let shown = on_pages(call, |pages| pages.show(miss.oid));
    shown.map_err(|cause| not_shown(miss.oid, &cause))
}

fn show_elements(call: &mut MonitorCall<'_, State>, miss: &ArrayMiss) -> Result<(), Box<Failure>> {
    call.split().1.faulted = false;
    let shown = on_pages(call, |pages| pages.show_elements(miss.elements));
    shown.map_err(|cause| not_shown(miss.elements.array, &cause))
}

fn not_shown(oid: dhole_model::Oid, cause: &dyn std::fmt::Display) -> Box<Failure> {
    let cause = cause.to_string();
    ProtocolError::NotStored { oid, cause }.into()
}

impl Link<'_> {
    /// Makes the pages writable in which `count` new objects will lie. While one is waited for,
    /// another process of this node may allocate.
    pub(crate) fn bring_next_pages<T: Share>(
        &self,
        call: &mut MonitorCall<'_, State>,
        count: u64,
    ) -> Result<Result<(), AllocError>, Box<Failure>> {
        let next = |call: &mut MonitorCall<'_, State>| {
            on_pages(call, |pages| pages.next_pages::<T>(count))
        };
        let mut found = next(call);
        while let Ok(pages) = found {
            self.bring_pages_to_write(call, pages, None)?;
            found = next(call);
            if found == Ok(pages) {
                return Ok(Ok(()));
            }
        }
        Ok(found.map(drop))
    }

    /// Makes pages valid here, one miss after the other.
    fn bring_pages(
        &self,
        call: &mut MonitorCall<'_, State>,
        pages: PageRange,
        creator: Option<NodeId>,
    ) -> Result<(), Box<Failure>> {
        let awaited = self.awaited.take();
        for page in pages.iter() {
            if !on_pages(call, |pages| pages.is_page_valid(page)) {
                self.awaits(awaited);
                let event = Event::Pages(PageEvent::Read { page, creator });
                self.and_wait(call, event)?;
            }
        }
        Ok(())
    }

    /// After a barrier: where diffs are collected, brings up to date what this node keeps, meets
    /// the others, and drops the rest.
    pub(crate) fn collect_diffs(
        &self,
        call: &mut MonitorCall<'_, State>,
        site: CallSite,
    ) -> Result<(), Box<Failure>> {
        let Some(pages) = call.split().1.protocol.pages_to_validate() else {
            return Ok(());
        };
        for first in pages {
            self.bring_pages(call, PageRange { first, count: 1 }, None)?;
        }
        self.and_wait(call, Event::ArriveToCollect { site })?;
        self.local(call, Some(Event::Pages(PageEvent::Collect)))
    }

    /// Makes pages writable here, all at once in the end: while one is waited for, a request for
    /// the diff of another may have taken the right to write that away.
    pub(crate) fn bring_pages_to_write(
        &self,
        call: &mut MonitorCall<'_, State>,
        pages: PageRange,
        creator: Option<NodeId>,
    ) -> Result<(), Box<Failure>> {
        let is_writable = |call: &mut MonitorCall<'_, State>, page| {
            on_pages(call, |pages| pages.is_page_writable(page))
        };
        while !pages.iter().all(|page| is_writable(call, page)) {
            self.bring_pages(call, pages, creator)?;
            for page in pages.iter() {
                if !is_writable(call, page) {
                    self.local(call, Some(Event::Pages(PageEvent::Write { page })))?;
                }
            }
        }
        Ok(())
    }
}

fn key(DiffId { page, node, index }: DiffId) -> (PageId, NodeId, u32) {
    (page, node, index)
}

fn not_stored(refused: PageRefused) -> ProtocolError {
    ProtocolError::PageNotStored {
        page: refused.page,
        cause: refused.to_string(),
    }
}

impl State {
    pub(crate) fn carry_out_on_page(
        &mut self,
        command: PageCommand,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let counted = &mut self.counting.all;
        let heap = &mut pages(step.heap);
        match command {
            PageCommand::ZeroFill(_) => counted.zero_fills += 1,
            PageCommand::MakeValid(page) => heap.make_page_valid(page).map_err(not_stored)?,
            PageCommand::Install(page) => {
                let bytes = step.next_bytes(dhole_heap::PAGE_BYTES)?;
                let installed = pages(step.heap).install_page(page, bytes);
                installed.map_err(not_stored)?;
                self.counting.waits.came(bytes.len());
            }
            PageCommand::Apply(id) => {
                let bytes = heap.apply_page_diff(key(id)).map_err(not_stored)?;
                step.out.work().applied_bytes += bytes as u64;
                self.counting.waits.came(bytes);
            }
            PageCommand::Invalidate(page) => {
                counted.invalidations += 1;
                step.out.work().protections += 1;
                let done = heap.invalidate_page(page);
                must(done, "an acquirer is in a call with `&mut w`");
            }
            PageCommand::MakeTwin(page) => {
                counted.write_faults += 1;
                counted.pre_images += 1;
                let work = step.out.work();
                work.faults += u64::from(!std::mem::take(&mut self.faulted));
                work.twin_bytes += dhole_heap::PAGE_BYTES;
                let made = heap.make_page_writable(page, true);
                must(made, "a writer is in a call with `&mut w`");
            }
            PageCommand::MakeWritable(page) => {
                let made = heap.make_page_writable(page, false);
                must(made, "a writer is in a call with `&mut w`");
            }
            PageCommand::Protect(page) => {
                must(
                    heap.protect_page(page),
                    "a releaser is in a call with `&mut w`",
                );
            }
            PageCommand::DropTwin(page) => {
                must(
                    heap.drop_twin(page),
                    "who meets others is in a call with `&mut w`",
                );
            }
            PageCommand::MakeDiff(id) => {
                let made = heap.make_page_diff(key(id));
                let bytes = made.map_err(not_stored)?;
                counted.diffs += 1;
                counted.diff_bytes += bytes as u64;
                self.protocol.keeps_diff(bytes as u64);
                let work = step.out.work();
                work.made_bytes += bytes as u64;
                work.protections += 1;
            }
            PageCommand::Keep(SentDiff { id, bytes, .. }) => {
                let diff = step.next_bytes(u64::from(bytes))?;
                pages(step.heap).keep_page_diff(key(id), diff);
                self.protocol.keeps_diff(u64::from(bytes));
            }
            PageCommand::PassOver(SentDiff { bytes, .. }) => {
                step.next_bytes(u64::from(bytes))?;
            }
            PageCommand::Drop(page) => {
                must(
                    heap.drop_page(page),
                    "who meets others is in a call with `&mut w`",
                );
            }
            PageCommand::ForgetDiffs => heap.forget_page_diffs(),
            reply => self.reply_on_page(reply, step)?,
        }
        Ok(())
    }

    fn reply_on_page(
        &mut self,
        reply: PageCommand,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let mut payload: Payload = step.pool.take();
        let (to, message) = match reply {
            PageCommand::ReplyPage {
                to,
                round,
                page,
                twin,
                applied,
            } => {
                let gathered = pages(step.heap).gather_page(page, twin, payload.buffer());
                gathered.map_err(not_stored)?;
                let message = Message::PageReply {
                    round,
                    page,
                    applied,
                };
                (to, message)
            }
            PageCommand::ReplyDiffs {
                to,
                round,
                page,
                got,
                diffs,
            } => {
                let pages = pages(step.heap);
                let sent = diffs.into_iter().map(|(id, lamport)| {
                    let diff = pages.page_diff(key(id)).unwrap_or_default();
                    payload.extend(&diff);
                    let bytes = diff.len() as u32;
                    SentDiff { id, lamport, bytes }
                });
                let diffs = sent.collect();
                let message = Message::DiffReply {
                    round,
                    page,
                    got,
                    diffs,
                };
                (to, message)
            }
            _ => unreachable!("no other command about pages is a reply"),
        };
        self.send(to, message, payload, step.out);
        Ok(())
    }
}
