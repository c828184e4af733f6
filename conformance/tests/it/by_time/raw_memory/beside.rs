//! Waits of threads beside their node's worker, each of which sleeps at a place of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use conformance::{OnThreads, Unwoken};
use dhole::memory::threads::{ThreadError, scope};
use dhole::memory::{MemorySettings, alloc};
use dhole::{Counters, Domains};
use dhole_check::Changed;
use dhole_node::{
    NodeParts, PartsLink, PartsMaker, PartsOutbox, PartsPlace, PartsStep, PartsWaitError,
    PartsWaiter, Settings,
};
use dhole_protocol::{DeadlockProbe, ProtocolError, Waiter};

use super::super::{Platform, Result, Waits, Worker, is_said, said};
use super::{
    MessageKind, NodeId, acquire, barrier, join, lock, post, run, serve, signal, site, start,
    unlock, wait,
};

/// Nodes as threads, with raw memory whose threads beside the workers may never be woken.
#[derive(Clone, Copy)]
struct Beside {
    are_woken: bool,
}

impl Changed for Beside {
    fn name(&self) -> String {
        format!("threads, raw memory, woken: {}", self.are_woken)
    }

    fn on(&self) -> &dyn Platform {
        &OnThreads
    }

    fn change(&self, settings: &mut Settings) {
        let memory = MemorySettings::default();
        settings.domains = Domains::Node;
        settings.parts = Some(match self.are_woken {
            true => Arc::new(memory),
            false => Arc::new(Unheard(memory)),
        });
    }
}

/// Memory whose threads beside the workers are not woken.
#[derive(Debug)]
struct Unheard(MemorySettings);

impl PartsMaker for Unheard {
    fn make(&self, place: PartsPlace) -> io::Result<Box<dyn NodeParts>> {
        Ok(Box::new(Asleep(self.0.make(place)?)))
    }
}

struct Asleep(Box<dyn NodeParts>);

impl NodeParts for Asleep {
    fn as_any(&self) -> &dyn std::any::Any {
        self.0.as_any()
    }

    fn places(&self) -> &[String] {
        self.0.places()
    }

    fn settle(&mut self, leaders: &[NodeId], place: usize) -> io::Result<()> {
        self.0.settle(leaders, place)
    }

    fn deliver(
        &self,
        from: NodeId,
        part: u8,
        message: &[u8],
        payload: &[u8],
        out: &mut PartsOutbox<'_>,
    ) -> Option<std::result::Result<(), ProtocolError>> {
        self.0.deliver(from, part, message, payload, out)
    }

    fn answers(&self, probe: &mut DeadlockProbe) {
        self.0.answers(probe);
    }

    fn told(&self, wait: &Waiter, waits: Arc<[Waiter]>, out: &mut PartsOutbox<'_>) {
        self.0.told(wait, waits, out);
    }

    fn before_release(&self) {
        self.0.before_release();
    }

    fn ended(&self) {
        self.0.ended();
    }

    fn around(&self, link: &dyn PartsLink, body: &mut dyn FnMut()) {
        // It lasts as long as the link in it, by which threads of other bodies may wait.
        self.0.around(Box::leak(Box::new(Elsewhere(link))), body);
    }

    fn program_over(&self) -> Result<()> {
        self.0.program_over()
    }

    fn all_have_ended(&self) {
        self.0.all_have_ended();
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

/// Lets a thread beside the worker sleep at another place than the one where it is woken.
struct Elsewhere<'a>(&'a dyn PartsLink);

type Step<'a> = &'a mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep;

impl PartsLink for Elsewhere<'_> {
    fn wait(&self, step: Step<'_>) -> std::result::Result<(), PartsWaitError> {
        self.0.wait(step)
    }

    fn wait_beside(
        &self,
        _: &PartsWaiter,
        step: Step<'_>,
    ) -> std::result::Result<(), PartsWaitError> {
        self.0.wait_beside(&PartsWaiter::default(), step)
    }

    fn has_threads(&self) -> bool {
        self.0.has_threads()
    }

    fn moves_worker(&self) -> bool {
        self.0.moves_worker()
    }

    fn look(&self, is_beside: bool) -> std::result::Result<(), PartsWaitError> {
        self.0.look(is_beside)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn fail(&self, words: &str) {
        self.0.fail(words);
    }

    fn exits(&self, code: u8) {
        self.0.exits(code);
    }
}

/// The wake-up of a thread that waits so beside its worker is found if it is lost, and only then.
#[track_caller]
fn is_found(kind: MessageKind, waits: Waits) {
    assert_eq!(said(&Beside { are_woken: true }, kind, waits), None);
    let unwoken = Unwoken {
        on: Beside { are_woken: false },
        kind,
        node: None,
    };
    is_said(said(&unwoken, kind, waits), &unwoken);
}

/// Each node runs this on a thread beside its worker.
fn beside(w: &mut Worker<'_>, body: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let joined = scope(w, |_, scope| {
        Ok::<_, ThreadError>(scope.spawn(body)?.join())
    })??;
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn a_fault_beside_that_is_not_woken_is_found() {
    is_found(MessageKind::MemoryData, |w| {
        let cell = w.once(|w| Ok(alloc::<u64>(w)?))?.get(w);
        if w.node() == NodeId(0) {
            cell.store(7, Relaxed);
        }
        w.barrier()?;
        beside(w, || {
            assert_eq!(cell.load(Relaxed), 7);
            Ok(())
        })?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_lock_beside_that_is_not_woken_is_found() {
    is_found(MessageKind::ThreadLock, |w| {
        beside(w, || {
            lock(1, site())?;
            Ok(unlock(1)?)
        })?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_barrier_beside_that_is_not_woken_is_found() {
    is_found(MessageKind::ThreadBarrier, |w| {
        beside(w, || {
            barrier(1, 2, site())?;
            Ok(())
        })?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_condition_beside_that_is_not_woken_is_found() {
    is_found(MessageKind::ThreadLock, |w| {
        let (cell, me) = (w.once(|w| Ok(alloc::<u64>(w)?))?.get(w), w.node());
        beside(w, || {
            lock(1, site())?;
            match me {
                NodeId(0) => {
                    while cell.load(Relaxed) == 0 {
                        wait(2, 1, site())?;
                    }
                }
                _ => {
                    cell.store(1, Relaxed);
                    signal(2)?;
                }
            }
            Ok(unlock(1)?)
        })?;
        Ok(w.barrier()?)
    });
}

#[test]
fn a_semaphore_beside_that_is_not_woken_is_found() {
    // One of the nodes does not manage it, and asks the other.
    is_found(MessageKind::ThreadSemaphore, |w| {
        beside(w, || {
            post(3, 1)?;
            Ok(acquire(3, site())?)
        })?;
        Ok(w.barrier()?)
    });
}

#[test]
fn the_end_of_a_thread_that_wakes_none_beside_is_found() {
    is_found(MessageKind::ThreadStart, |w| {
        let handler = |entry: u64, argument: u64| entry * argument;
        if w.node() != NodeId(0) {
            return Ok(serve(w, &handler)?);
        }
        run(w, &handler, |w| {
            let thread = start(NodeId(1), 6, 7)?;
            beside(w, || {
                assert_eq!(join(thread)?, 42);
                Ok(())
            })
        })?
    });
}
