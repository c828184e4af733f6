//! The barrier, and values that one node makes for all.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dhole_heap::Share;
use dhole_model::CallSite;
use dhole_protocol::objects::Rendezvous;
use dhole_protocol::{AbortReason, Event};

use crate::error::{Error, Result};
use crate::fingerprint::fingerprint;
use crate::sync_error::SyncError;
use crate::worker::{Make, Worker};

fn bad_value(site: CallSite, what: &str) -> Error {
    Error::program(format!("the value of once at {site}: {what}"))
}

fn another_type(expected: &str) -> String {
    format!("node 0 made a value of another type than {expected}")
}

impl<'id> Worker<'id> {
    /// Waits until every node has reached this barrier. What any node wrote before it is visible
    /// to every node after it.
    ///
    /// It takes 2(n-1) messages, to node 0 and back. Where no node is expected to have written
    /// anything, because none had at the barrier before, it takes n ceil(log2 n) in ceil(log2 n)
    /// rounds, in which no node waits for more than one message at a time; where that was wrong,
    /// 2(n-1) follow. `dhole run --barrier central` leaves such rounds out
    /// ([`Barriers`](dhole_model::Barriers)).
    ///
    /// # Errors
    /// [`SyncError::Deadlock`] when not all nodes will reach it, [`SyncError::Ended`] when
    /// another node fails meanwhile.
    #[track_caller]
    pub fn barrier(&mut self) -> Result<(), SyncError> {
        self.arrive(false, CallSite::caller())
    }

    /// Runs `f` on node 0 alone and gives its value to every node. It is a barrier too, so what
    /// `f` allocated and wrote is visible to all. Whatever the program's roots are, this is how
    /// the other nodes learn of them.
    ///
    /// # Errors
    /// The error of `f` on node 0; [`SyncError::OnceWithinOnce`] where `f` calls `once`;
    /// otherwise as [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn once<T: Share + Copy>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let site = CallSite::caller();
        let mut f = Some(f);
        self.once_packed(site, &mut |w, packed| {
            let f = f.take().expect("a node makes the value once at most");
            let value = f(w)?;
            packed.extend_from_slice(&fingerprint::<T>());
            dhole_heap::pack(&value, packed);
            Ok(())
        })?;
        let mut guard = self.link.node.monitor.lock();
        let (heap, state) = guard.split();
        let value = match state.value.strip_prefix(&fingerprint::<T>()) {
            Some(packed) => heap.unpack::<T>(packed).map_err(|error| error.to_string()),
            None => Err(another_type(std::any::type_name::<T>())),
        };
        value.map_err(|what| bad_value(site, &what))
    }

    /// The part of [`once`](Worker::once) that is the same for every type.
    fn once_packed(&mut self, site: CallSite, make: &mut Make<'id, '_>) -> Result<()> {
        self.only_the_program("once", site)?;
        if self.link.survives() {
            return self.once_of_those_left(make, site);
        }
        if self.node().index() == 0 {
            self.make_for_all(make, site)?;
        }
        Ok(self.arrive(true, site)?)
    }

    /// Makes a value for all, which is kept packed.
    pub(crate) fn make_for_all(&mut self, make: &mut Make<'id, '_>, site: CallSite) -> Result<()> {
        if let Some(outer) = self.link.in_once {
            let node = self.node();
            return Err(SyncError::OnceWithinOnce { node, site, outer }.into());
        }
        self.link.in_once = Some(site);
        let mut packed = std::mem::take(&mut self.link.node.monitor.lock().split().1.value);
        packed.clear();
        let made = catch_unwind(AssertUnwindSafe(|| make(self, &mut packed)));
        self.link.in_once = None;
        made.unwrap_or_else(|panic| resume_unwind(panic))?;
        self.link.node.monitor.lock().split().1.value = packed;
        Ok(())
    }

    pub(crate) fn arrive(&mut self, once: bool, site: CallSite) -> Result<(), SyncError> {
        self.only_the_program("a barrier", site)?;
        if self.link.survives() {
            return self.meet_those_left(Rendezvous::Barrier, site);
        }
        let called = self.exclusive(site, |link, call| {
            match once {
                true => drop(link.and_wait(call, Event::Arrive { once, site })?),
                false => link.arrive(call, site)?,
            }
            call.split().1.counting.all.barriers += 1;
            link.collect_diffs(call, site)?;
            Ok(())
        });
        called.map_err(|failure| self.link.sync_error(*failure, site))
    }

    /// Waits until every node has finished the program.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.join_all()?;
        let site = CallSite::runtime("the end of the run");
        let survives = self.link.survives();
        let called = self.exclusive(site, |link, call| {
            link.release_forgotten(call)?;
            link.await_all_started(call)?;
            if survives {
                return Ok(());
            }
            link.and_wait(call, Event::Finish).map(drop)
        });
        called.map_err(|failure| self.link.sync_error(*failure, site))?;
        if survives {
            self.meet_those_left(Rendezvous::End, site)?;
            // Their parents are lost, and nobody waits for them.
            self.end_others(AbortReason::Failed("the run has ended".into()));
        }
        Ok(())
    }
}
