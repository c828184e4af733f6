//! Pages under TreadMarks in the model. A page has as many words as a shared object has leaves, and
//! each is a place of the heap. A diff has a value for each of them, or says that it is unchanged.

use dhole_model::PageId;
use dhole_protocol::{DiffId, Event, Message, PageCommand, PageEvent, SentDiff};

use crate::Bug;
use crate::model::node::{Around, Failed};
use crate::model::{Fault, Heap, Node, Phase, Presence, Program, Wait, WriteId};

impl Program {
    /// With so many pages of two words each, which are kept consistent in place of objects. A node
    /// with so many bytes of diffs, twins and records has them collected at the next barrier.
    pub fn on_pages(mut self, pages: usize, collect_from: u64) -> Program {
        self.limits.collect_pages_from = collect_from;
        let words = self.zeros(2 * pages).in_leaves(2);
        words.under(dhole_model::Coherence::TreadMarks)
    }

    /// Whether pages are kept consistent.
    pub(crate) fn is_paged(&self) -> bool {
        self.coherence.properties().keeps_pages()
    }

    /// How many pages there are.
    pub(crate) fn pages(&self) -> u64 {
        self.objects.len() as u64 / u64::from(self.leaves)
    }

    fn words(&self, page: PageId) -> std::ops::Range<usize> {
        self.leaves(self.oid(0).plus(page.0))
    }
}

/// The page of a word.
fn page_of(word: u8, program: &Program) -> PageId {
    PageId(u64::from(word / program.leaves))
}

/// The worker reads a page that is not valid here.
pub(crate) fn read(word: u8, program: &Program) -> Event {
    let (page, creator) = (page_of(word, program), None);
    Event::Pages(PageEvent::Read { page, creator })
}

/// The worker writes a page that is not writable.
pub(crate) fn write(word: u8, program: &Program) -> Event {
    let page = page_of(word, program);
    Event::Pages(PageEvent::Write { page })
}

impl Node {
    /// Past a barrier at which diffs are collected: the worker brings the pages up to date that
    /// this node keeps, meets the others, and drops the rest, as the engine does.
    pub(crate) fn collect_diffs(
        &mut self,
        pages: &[PageId],
        around: &mut Around<'_>,
    ) -> Result<(), Failed> {
        self.full = false;
        if self.collecting.take().is_some() {
            self.call(Some(Event::Pages(PageEvent::Collect)), around)?;
            self.phase = Phase::Computing;
            self.done += 1;
            return Ok(());
        }
        let event = match pages.first() {
            Some(&page) => {
                let creator = None;
                Event::Pages(PageEvent::Read { page, creator })
            }
            None => {
                self.collecting = Some(true);
                let site = self.site();
                Event::ArriveToCollect { site }
            }
        };
        self.phase = Phase::Call(Presence::Exclusive, Some(Wait::Object));
        self.call(Some(event), around)
    }

    pub(crate) fn carry_out_on_page(
        &mut self,
        command: PageCommand,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, program) = (self.presence(), around.program);
        let mut next_diff = || {
            let diff: Vec<_> = payload.take(usize::from(program.leaves)).collect();
            let is_whole = diff.len() == usize::from(program.leaves);
            is_whole.then_some(diff).ok_or(Fault::Heap)
        };
        match command {
            PageCommand::ZeroFill(page) => self.on_words(page, program, Heap::store_zero)?,
            PageCommand::MakeValid(page) => self.on_words(page, program, Heap::make_readable)?,
            PageCommand::Install(page) => {
                for (word, value) in program.words(page).zip(next_diff()?) {
                    self.heap.store(word, value, at)?;
                }
            }
            PageCommand::Apply(id) => {
                let diff = self.diffs.get(&id).cloned().ok_or(Fault::Heap)?;
                for (word, value) in program.words(id.page).zip(diff) {
                    if value != WriteId::UNCHANGED {
                        self.heap.store(word, value, at)?;
                    }
                }
            }
            PageCommand::Invalidate(page) => {
                self.on_words(page, program, |heap, word| heap.invalidate(word, at))?
            }
            PageCommand::MakeTwin(page) => self.on_words(page, program, |heap, word| {
                heap.make_writable(word, true, at)
            })?,
            PageCommand::MakeWritable(page) => self.on_words(page, program, |heap, word| {
                heap.make_twinned_writable(word, at)
            })?,
            PageCommand::Protect(page) => {
                self.on_words(page, program, |heap, word| heap.protect(word, true))?
            }
            PageCommand::DropTwin(page) => {
                self.on_words(page, program, |heap, word| heap.protect(word, false))?
            }
            PageCommand::MakeDiff(id) => {
                let words = program.words(id.page);
                let diff = words.clone().map(|word| self.heap.diff(word, at));
                let diff = diff.collect::<Result<_, _>>()?;
                for word in words.filter(|_| around.bug != Some(Bug::KeepTwin)) {
                    self.heap.protect(word, false)?;
                }
                self.keep_diff(id, diff);
            }
            PageCommand::Keep(SentDiff { id, .. }) => {
                let diff = next_diff()?;
                self.keep_diff(id, diff);
            }
            PageCommand::PassOver(_) => drop(next_diff()?),
            PageCommand::Drop(page) => self.on_words(page, program, Heap::drop_copy)?,
            PageCommand::ForgetDiffs => self.diffs.clear(),
            PageCommand::ReplyPage {
                to,
                round,
                page,
                twin,
                applied,
            } => {
                let values = program.words(page).map(|word| match twin {
                    true => self.heap.gather_pre_image(word),
                    false => self.heap.gather(word, at),
                });
                let values = values.collect::<Result<_, _>>()?;
                let message = Message::PageReply {
                    round,
                    page,
                    applied,
                };
                self.send(to, message, values, twin, around);
            }
            PageCommand::ReplyDiffs {
                to,
                round,
                page,
                got,
                diffs,
            } => {
                let mut values = Vec::new();
                let mut sent = |(id, lamport)| {
                    values.extend(self.diffs.get(&id).ok_or(Fault::Heap)?);
                    let bytes = 0;
                    Ok(SentDiff { id, lamport, bytes })
                };
                let sent = diffs.into_iter().map(&mut sent);
                let message = Message::DiffReply {
                    round,
                    page,
                    got,
                    diffs: sent.collect::<Result<_, _>>()?,
                };
                self.send(to, message, values, false, around);
            }
        }
        Ok(())
    }

    fn on_words(
        &mut self,
        page: PageId,
        program: &Program,
        mut f: impl FnMut(&mut Heap, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut words = program.words(page);
        words.try_for_each(|word| f(&mut self.heap, word))
    }

    fn keep_diff(&mut self, id: DiffId, diff: Vec<WriteId>) {
        let changed = diff.iter().filter(|value| **value != WriteId::UNCHANGED);
        self.protocol.keeps_diff(changed.count() as u64);
        self.diffs.insert(id, diff);
    }
}
