use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::Duration;

use corosensei::Yielder;
use dhole_net::Envelope;
use dhole_node::{Fiber, Woken};
use dhole_protocol::Message;

use crate::random::Stream;
use crate::stopwatch::Stopwatch;

/// The state of a node's worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    /// It goes on when the agenda says so.
    Ready,
    /// Its coroutine runs.
    Running,
    /// It waits for a wake or its deadline.
    Waiting,
    /// Its body has returned.
    Done,
    /// The node has crashed.
    Crashed,
}

/// One simulated node: a processor that its worker and its message handlers share, handlers first.
pub(crate) struct Node {
    pub(crate) worker: Worker,
    /// The worker's virtual time in nanoseconds. Unless the worker waits or is done, it is never
    /// before `handlers_done`.
    pub(crate) clock: u64,
    /// The last time for which the program computed, before the worker entered the runtime.
    pub(crate) computes: Range<u64>,
    /// When the last handler is done.
    pub(crate) handlers_done: u64,
    /// When it looks for messages next, if it has yet to take some.
    pub(crate) sweeps_at: u64,
    /// Until when it takes messages that had come while it computed.
    pub(crate) swept_until: u64,
    /// Those that it has yet to take.
    pub(crate) held: Vec<Envelope<Message>>,
    /// A delivery woke the worker while it did not wait.
    pub(crate) woken: bool,
    /// Why the last wait ended.
    pub(crate) wait_ended: Woken,
    /// The node's own random numbers.
    pub(crate) random: Stream,
    /// Nanoseconds of computation.
    pub(crate) computed_ns: u64,
    /// The rest of charged work below a whole nanosecond.
    fraction_ns: f64,
    /// The computation time of the node, divided by the time measured on this host.
    compute_scale: f64,
    /// Runs while the program computes, if computation is measured.
    pub(crate) stopwatch: Option<Stopwatch>,
    /// The body of the node that goes on.
    pub(crate) fiber: Fiber,
    /// What suspends the coroutine of each body while it runs, and the addresses of its stack.
    pub(crate) bodies: BTreeMap<Fiber, Suspended>,
}

/// What suspends a coroutine, and the addresses of its stack.
#[derive(Clone, Debug)]
pub(crate) struct Suspended {
    yielder: NonNull<Yielder<(), ()>>,
    stack: Range<usize>,
}

impl Suspended {
    /// What suspends the coroutine that the caller is, whose stack has these addresses.
    ///
    /// # Safety
    /// They are those of its stack, at the bottom of which the yielder lies. When the coroutine is
    /// over, this is forgotten, or no coroutine ever runs on its stack again.
    pub(crate) unsafe fn new(yielder: &Yielder<(), ()>, stack: Range<usize>) -> Suspended {
        let yielder = NonNull::from(yielder);
        Suspended { yielder, stack }
    }

    /// Whether the caller is this coroutine.
    pub(crate) fn is_running(&self) -> bool {
        let here = 0_u8;
        self.stack.contains(&std::ptr::from_ref(&here).addr())
    }

    /// Suspends the coroutine.
    ///
    /// # Panics
    /// Unless the caller is this coroutine.
    pub(crate) fn suspend(&self) {
        assert!(self.is_running(), "only a coroutine itself suspends itself");
        // SAFETY: the caller is on the stack of the yielder's own coroutine, by the test above: it
        // is that coroutine, and not one that it has resumed itself, which is on a stack of its
        // own. The yielder lies at the bottom of the stack, and its coroutine is not over, by the
        // contract of `new`.
        unsafe { self.yielder.as_ref() }.suspend(());
    }
}

impl Node {
    /// A node at time 0.
    pub(crate) fn new(random: Stream, compute_scale: f64) -> Node {
        Node {
            worker: Worker::Ready,
            clock: 0,
            computes: 0..0,
            handlers_done: 0,
            sweeps_at: 0,
            swept_until: 0,
            held: Vec::new(),
            woken: false,
            wait_ended: Woken::ByTime,
            random,
            computed_ns: 0,
            fraction_ns: 0.0,
            compute_scale,
            stopwatch: None,
            fiber: Fiber::PROGRAM,
            bodies: BTreeMap::new(),
        }
    }

    /// Advances the worker's clock.
    pub(crate) fn spend(&mut self, ns: u64) {
        self.clock = self.clock.saturating_add(ns);
    }

    /// Gives the processor to a handler from `begun` to `done`, instead of the worker.
    pub(crate) fn steal(&mut self, begun: u64, done: u64) {
        self.spend(done - begun);
        if begun < self.computes.end {
            self.computes.end = self.computes.end.saturating_add(done - begun);
        }
    }

    /// Charges `units` of work.
    pub(crate) fn work(&mut self, units: u64, unit_ns: f64) {
        let ns = self.units_ns(units, unit_ns);
        self.compute(ns);
    }

    /// The virtual nanoseconds that `units` of work take.
    pub(crate) fn units_ns(&mut self, units: u64, unit_ns: f64) -> u64 {
        // No computation takes longer than a year: clocks must not come to their end.
        const YEAR_NS: f64 = 3.15e16;
        let exact = (units as f64 * unit_ns).min(YEAR_NS) + self.fraction_ns;
        let whole = exact.floor();
        self.fraction_ns = exact - whole;
        whole as u64
    }

    /// Stops the stopwatch and charges what it shows.
    pub(crate) fn stop_computing(&mut self) {
        if let Some(stopwatch) = self.stopwatch.take() {
            self.compute(self.scaled_ns(stopwatch.elapsed()));
        }
    }

    /// The virtual nanoseconds of computation that took `elapsed` on this host.
    pub(crate) fn scaled_ns(&self, elapsed: Duration) -> u64 {
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        match self.compute_scale {
            1.0 => ns,
            scale => (ns as f64 * scale) as u64,
        }
    }

    fn compute(&mut self, ns: u64) {
        self.computed_ns = self.computed_ns.saturating_add(ns);
        self.spend(ns);
    }

    /// Handles a message that arrived at `arrived`, after those before it, for `ns`. Returns when
    /// the processor is done.
    pub(crate) fn handle(&mut self, arrived: u64, ns: u64) -> u64 {
        self.handlers_done.max(arrived).saturating_add(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_nanosecond_add_up() {
        let mut node = Node::new(Stream::new(0, 0), 1.0);
        for _ in 0..1000 {
            node.work(1, 0.25);
        }
        node.work(3, 2.0);
        assert_eq!((node.clock, node.computed_ns), (256, 256));
    }

    #[test]
    fn measured_time_is_scaled() {
        let of = |scale| Node::new(Stream::new(0, 0), scale).scaled_ns(Duration::from_micros(3));
        assert_eq!([of(1.0), of(7.0), of(0.5)], [3_000, 21_000, 1_500]);
    }
}
