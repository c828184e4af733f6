//! The waits of which a node keeps account without its lock: those of threads in raw memory, and
//! the record of all waits for a timeline.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::{CallSite, LineCosts, NodeId, PhaseTimes, Timeline, Track};

use crate::timeline::{Recorder, Waited};
use crate::waits::{Awaited, Waits};

/// The waits of a node's threads in raw memory, and for each other, counted without the node lock.
#[derive(Default)]
pub(crate) struct PartWaits(Mutex<PartWaited>);

#[derive(Default)]
struct PartWaited {
    waits: Waits,
    /// Records all waits of the node, if they are to be.
    recorder: Option<Recorder>,
    /// Those of the worker.
    times: PhaseTimes,
}

impl PartWaits {
    fn lock(&self) -> MutexGuard<'_, PartWaited> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread has waited, the worker or one beside it, since a time of the node's clock.
    pub fn add(
        &self,
        awaited: Awaited,
        site: Option<CallSite>,
        [began_ns, took_ns]: [u64; 2],
        is_worker: bool,
    ) {
        let mut all = self.lock();
        if is_worker {
            *all.times.of_mut(awaited.phase()) += took_ns;
        }
        if let Some(site) = site {
            all.waits.waited(awaited, site, took_ns);
        }
        if let Some(recorder) = &mut all.recorder {
            let track = match is_worker {
                true => Track::Process(0),
                false => recorder.track_of(std::thread::current().id()),
            };
            let waited = Waited {
                track,
                began_ns,
                took_ns,
                processor_ns: None,
                reads: None,
            };
            let site = site.unwrap_or(CallSite::runtime("raw memory"));
            recorder.add(awaited, site, waited);
        }
    }

    /// All waits of the node are recorded from here on.
    pub fn record(&self) {
        self.lock().recorder = Some(Recorder::default());
    }

    /// Records a wait of the engine.
    pub fn records(&self, (awaited, site): (Awaited, CallSite), waited: Waited) {
        if let Some(recorder) = &mut self.lock().recorder {
            recorder.add(awaited, site, waited);
        }
    }

    /// The waits of the node, if they were recorded.
    pub fn timeline(&self, took_ns: u64, processor_ns: u64) -> Option<Timeline> {
        let mut all = self.lock();
        let recorder = all.recorder.as_mut()?;
        Some(recorder.take(took_ns, processor_ns))
    }

    /// How long the worker waited.
    pub fn times(&self) -> PhaseTimes {
        self.lock().times
    }

    /// What the lines cost on this node.
    pub fn costs(&self, node: NodeId) -> LineCosts {
        self.lock().waits.costs(node)
    }
}
