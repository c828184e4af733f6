//! Calling sections: at the home of the lock's object, or at the caller under the lock.

use dhole_heap::{Share, pack};
use dhole_model::{CallSite, ObjectId, WaitCause};
use dhole_protocol::RwLockId;
use dhole_protocol::objects::{self, Bytes, Refusal};

use crate::error::Result;
use crate::object::copies;
use crate::object::invoke::{Over, Wanted};
use crate::object::section::{Rest, Section, SectionOp, Stopped};
use crate::object_lock::ObjectLock;
use crate::sync_object::Waits;
use crate::worker::Worker;

impl ObjectLock {
    /// Runs a section under the lock, at the home of the lock's object, in one round trip; at the
    /// home itself without a message (Jackal, section 6).
    ///
    /// The section sees what was written under the lock before, and so does the caller after it.
    /// Objects under the `home` protocol whose home is that of the lock's object can be read and
    /// written there. If the section meets another object, makes more than 4,096 accesses, or
    /// writes more than 256 objects or 64 KiB, or if all races are looked for, the caller runs it:
    /// it acquires the lock, runs the section, and releases the lock. So it does at the next 64
    /// calls of the line. A section that waits, or begins again, has changed nothing.
    ///
    /// While the home computes, the section waits for the home's next call that synchronises, or
    /// [`pause`](Worker::pause).
    ///
    /// ```
    /// # use dhole_heap::Ref;
    /// # use dhole_model::Coherence;
    /// # use dhole_node::{Lockable, Result, Section, Worker, section};
    /// fn add(s: &mut Section<'_>, (x, by): (Ref<i64>, i64)) -> Result<i64> {
    ///     let x = s.get_mut(x)?;
    ///     *x += by;
    ///     Ok(*x)
    /// }
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let x = w.once(|w| Ok(w.under(Coherence::Home).alloc(0_i64)))?;
    /// x.lock().run(w, (x, 3), section!(add))?;
    /// w.barrier()?;
    /// assert_eq!(x.read(w), 3 * w.nodes() as i64);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ObjectError::Refused`](crate::object::ObjectError) when the section returns an error or
    /// panics, with its words: nothing has changed then.
    /// [`SyncError::Protocol`](crate::SyncError) when this node holds the lock. An
    /// [`ObjectError::Sync`](crate::object::ObjectError) with
    /// [`SyncError::Deadlock`](crate::SyncError) when its condition will never be true, or the lock
    /// never be free, and with [`SyncError::Ended`](crate::SyncError) when another node fails
    /// meanwhile.
    #[track_caller]
    pub fn run<A: Share + Copy, R: Share + Copy>(
        self,
        w: &mut Worker<'_>,
        arguments: A,
        section: SectionOp<A, R>,
    ) -> Result<R> {
        let site = CallSite::caller();
        let waits = self.at_home(w, site)?;
        w.section(waits, arguments, section, site)
    }
}

impl Worker<'_> {
    fn section<A: Share + Copy, R: Share + Copy>(
        &mut self,
        lock: Waits,
        arguments: A,
        section: SectionOp<A, R>,
        site: CallSite,
    ) -> Result<R> {
        self.check_section(lock.0, site)?;
        let wanted = Wanted {
            object: ObjectId(lock.0.0),
            name: section.name,
            site,
            cause: WaitCause::Write,
        };
        if let Some(place) = section.place.filter(|_| self.goes_home(site)) {
            match self.section_at_home(wanted, place, &arguments)? {
                AtHome::Ran(result) => return Ok(result),
                AtHome::Bounced => self.bounced(site),
                AtHome::Rest(kind, arguments) => {
                    self.bounced(site);
                    let mut rest = |s: &mut Section<'_>| s.run_sent(kind, &arguments);
                    return self.section_here(lock, wanted, &mut rest);
                }
            }
        }
        self.section_here(lock, wanted, &mut |s| s.run(section.function, arguments))
    }

    fn check_section(&self, lock: RwLockId, site: CallSite) -> Result<()> {
        let mut node = self.link.node.monitor.lock();
        let checked = node.split().1.protocol.check_section(lock, site);
        drop(node);
        let refused = |cause| {
            self.link
                .sync_error(crate::worker::Failure::Refused(cause), site)
        };
        Ok(checked.map_err(refused)?)
    }

    fn goes_home(&self, site: CallSite) -> bool {
        !self.is_paged() && {
            let mut node = self.link.node.monitor.lock();
            node.split().1.here.sections.goes(site)
        }
    }

    fn bounced(&self, site: CallSite) {
        let mut node = self.link.node.monitor.lock();
        let state = node.split().1;
        state.here.sections.bounced(site);
        state.counting.all.sections_elsewhere += 1;
    }

    /// Has the home run a section.
    fn section_at_home<A: Share + Copy, R: Share + Copy>(
        &mut self,
        wanted: Wanted,
        place: u32,
        arguments: &A,
    ) -> Result<AtHome<R>> {
        let called = self.in_turn(wanted, |link, call| {
            link.settle_started(call)?;
            let here = &mut call.split().1.here;
            copies::empty(&mut here.arguments);
            pack(arguments, &mut here.arguments);
            let called = objects::CallRef {
                id: here.machine.next_call(),
                object: wanted.object,
                kind: place.into(),
                operation: 0,
                writes: true,
                started: false,
                chain: &[],
                arguments: &[],
            };
            let over = link.call(call, wanted, called)?;
            let (heap, state) = call.split();
            let unpacked = match over {
                Over::Answered => heap.unpack(&state.here.result),
                Over::Finished(outcome) => match *outcome {
                    Ok(bytes) => heap.unpack(&bytes),
                    Err(Refusal::Elsewhere) => return Ok(Ok(AtHome::Bounced)),
                    Err(Refusal::Rest { kind, arguments }) => {
                        return Ok(Ok(AtHome::Rest(kind, arguments)));
                    }
                    Err(refusal) => return Ok(Err(Box::new(refusal))),
                },
            };
            let malformed = |cause| Refusal::Malformed(format!("the result: {cause}").into());
            Ok(unpacked
                .map(AtHome::Ran)
                .map_err(|cause| Box::new(malformed(cause))))
        });
        Ok(called?)
    }

    /// Runs a section by this worker, under the lock.
    fn section_here<R: Share + Copy>(
        &mut self,
        lock: Waits,
        wanted: Wanted,
        section: &mut RunsHere<'_, R>,
    ) -> Result<R> {
        let site = wanted.site;
        let mut held = lock.write(self, site)?;
        let mut rest: Option<Box<RunsHere<'_, R>>> = None;
        // A section that went on with this one has written, and no other node has heard of it.
        let mut has_news = false;
        loop {
            let node = self.node();
            let mut here = Section::at_caller(self, node);
            let ran = match &mut rest {
                Some(rest) => rest(&mut here),
                None => section(&mut here),
            };
            let ran = match ran {
                Ok(result) => Ok(here.write_to_objects().map(|()| result)),
                Err(Stopped::Then(then)) => match here.write_to_objects() {
                    Ok(()) => {
                        rest = Some(goes_on(then));
                        has_news = true;
                        continue;
                    }
                    Err(error) => Ok(Err(error)),
                },
                Err(stopped) => Err(stopped),
            };
            let refusal = match ran {
                Ok(result) => {
                    let released = held.release(self);
                    let result = result?;
                    released?;
                    return Ok(result);
                }
                Err(Stopped::Waits) if std::mem::take(&mut has_news) => {
                    // A release wakes those that wait for what was written; a wait does not.
                    held.release(self)?;
                    held = lock.write(self, site)?;
                    continue;
                }
                Err(Stopped::Waits) => {
                    held = lock.wait_until_written(self, held, site)?;
                    continue;
                }
                Err(Stopped::Failed(error)) => {
                    let released = held.release(self);
                    if error.is_consequence() {
                        return Err(error);
                    }
                    released?;
                    return Err(self
                        .refused(wanted, Refusal::Failed(error.to_string().into()))
                        .into());
                }
                Err(Stopped::Panicked(words)) => Refusal::Panicked(words),
                Err(Stopped::Malformed(words)) => Refusal::Malformed(words),
                Err(Stopped::Elsewhere | Stopped::Then(_)) => Refusal::Elsewhere,
            };
            held.release(self)?;
            return Err(self.refused(wanted, refusal).into());
        }
    }
}

/// Runs the section with which one goes on, whose result is that of the call.
fn goes_on<R: Share + Copy>(mut rest: Rest) -> Box<RunsHere<'static, R>> {
    Box::new(move |s| {
        let result = (rest.run)(s)?.downcast::<R>();
        let other = "it goes on with a section of another result";
        let result = result.map_err(|_| Stopped::Malformed(other.into()))?;
        Ok(*result)
    })
}

/// Runs a section at its caller.
type RunsHere<'a, R> = dyn FnMut(&mut Section<'_>) -> std::result::Result<R, Stopped> + 'a;

/// What a home answers to a section.
enum AtHome<R> {
    Ran(R),
    /// This node has to run it.
    Bounced,
    /// This node has to run the rest of it: that section, of these arguments.
    Rest(u64, Bytes),
}
