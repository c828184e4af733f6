//! A node's part of what threads wait for beside pages, and its host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::NodeId;
use dhole_node::PartsOutbox;
use dhole_part::{Live, NodePart as _, PartHost};
use dhole_protocol::DeadlockProbe;
use dhole_protocol::memory::sync::{ThreadAct, ThreadId, ThreadMessage, ThreadSync};

use crate::context::Body;
use crate::domain_locks::RunLocks;
use crate::held_locks;
use crate::waiters::{Waiters, WaitsFor};

/// What threads of a node wait for beside pages.
pub(crate) struct NodeSync {
    me: NodeId,
    machine: Mutex<ThreadSync>,
    /// The locks of all nodes, if these are one domain.
    pub locks: Option<RunLocks>,
    /// The program has a body.
    has_body: AtomicBool,
    /// What begins the threads that nodes start here, if the program has said that.
    begins: Mutex<Option<Begins>>,
}

/// What begins threads that were started.
type Begins = Box<dyn Fn(&mut ThreadSync, &mut ThreadEffects<'_, '_>) -> bool + Send>;

/// The effects of a step, carried out.
pub(crate) type ThreadEffects<'a, 'o> = Live<'a, ThreadHost, PartsOutbox<'o>>;

/// Keeps what is done when the step is over and the machine is not locked any more.
#[derive(Default)]
pub(crate) struct ThreadHost {
    over: Vec<ThreadId>,
    has_started: bool,
}

impl PartHost<ThreadSync, PartsOutbox<'_>> for ThreadHost {
    fn act(&mut self, act: ThreadAct, _: &mut PartsOutbox<'_>) {
        match act {
            ThreadAct::Started => self.has_started = true,
        }
    }

    fn over(&mut self, thread: ThreadId, _: &mut PartsOutbox<'_>) {
        self.over.push(thread);
    }
}

impl NodeSync {
    pub fn new(me: NodeId, nodes: usize, locks: Option<RunLocks>) -> NodeSync {
        let mut machine = ThreadSync::new(me, nodes);
        if let Some(locks) = &locks {
            machine.share_locks(locks.known());
        }
        NodeSync {
            me,
            machine: Mutex::new(machine),
            locks,
            has_body: AtomicBool::new(false),
            begins: Mutex::new(None),
        }
    }

    pub fn node(&self) -> NodeId {
        self.me
    }

    pub fn machine(&self) -> MutexGuard<'_, ThreadSync> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a body of the node: the first is the program itself.
    pub fn number_body(&self) -> ThreadId {
        match self.has_body.swap(true, Ordering::SeqCst) {
            false => ThreadId::new(self.me, self.me, 0),
            true => {
                let mut machine = self.machine();
                let body = machine.number_thread();
                machine.runs_in_place(body);
                body
            }
        }
    }

    /// The number of a thread that is to begin beside the worker.
    pub fn number_thread_beside(&self) -> ThreadId {
        let mut machine = self.machine();
        let thread = machine.number_thread();
        machine.runs_beside(thread);
        thread
    }

    /// The thread that calls this has run beside the worker, and ends.
    pub fn ends_beside(&self, thread: ThreadId) {
        let mut machine = self.machine();
        held_locks::note(thread, |locks| machine.acquired_at(thread, locks));
        machine.ends_beside(thread);
    }

    /// From here on threads that are started begin so, unless others do; whether they do. It is
    /// asked to begin what the machine has to, and says whether the worker is to look.
    pub fn begin_by(&self, begins: Begins) -> bool {
        let mut own = self.begins();
        let is_free = own.is_none();
        if is_free {
            *own = Some(begins);
            self.machine().begins();
        }
        is_free
    }

    /// None begins any more, if this says so: whether it does. Meanwhile none begins.
    pub fn begin_no_more_if(&self, is_over: impl FnOnce() -> bool) -> bool {
        let mut own = self.begins();
        let is_over = is_over();
        if is_over {
            *own = None;
        }
        is_over
    }

    fn begins(&self) -> MutexGuard<'_, Option<Begins>> {
        self.begins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn deliver(
        &self,
        from: NodeId,
        message: ThreadMessage,
        waiters: &Waiters,
        out: &mut PartsOutbox<'_>,
    ) -> Result<(), &'static str> {
        let step = |machine: &mut ThreadSync, fx: &mut ThreadEffects<'_, '_>| {
            machine.deliver(from, message, 0, fx)
        };
        self.step(waiters, out, step)
    }

    /// Takes a step of the machine. Threads for which something is over go on when it is not locked
    /// any more, and threads begin that were started.
    pub fn step<R>(
        &self,
        waiters: &Waiters,
        out: &mut PartsOutbox<'_>,
        step: impl FnOnce(&mut ThreadSync, &mut ThreadEffects<'_, '_>) -> R,
    ) -> R {
        let host = ThreadHost::default();
        let mut fx = Live { host, out };
        let result = step(&mut self.machine(), &mut fx);
        if fx.host.has_started
            && let Some(begins) = &*self.begins()
        {
            let worker_looks = begins(&mut self.machine(), &mut fx);
            fx.out.wakes_worker |= worker_looks;
        }
        for thread in fx.host.over {
            // One that does not wait beside the worker is the worker's.
            let is_beside = waiters.wake(WaitsFor::Thread(thread));
            out.wakes_worker |= !is_beside;
        }
        result
    }

    /// The threads of this node add their edges to a probe of the wait-for graph.
    pub fn answers(&self, probe: &mut DeadlockProbe) {
        let machine = self.machine();
        probe.edges.visit(&*machine);
        if machine.computes_beside() {
            probe.edges.finds_computing();
        }
    }

    /// The worker may wait next in another part of the node: the machine notes where it acquired
    /// the locks that it has.
    pub fn worker_may_wait(&self) {
        if held_locks::have_changed()
            && let Some(Body { thread, .. }) = Body::current()
        {
            held_locks::note(thread, |locks| self.machine().acquired_at(thread, locks));
        }
    }

    /// What threads wait for, where nobody uses the machine: who asks wonders why nothing happens.
    pub fn describe(&self) -> Vec<String> {
        let machine = self.machine.try_lock();
        machine.map_or(Vec::new(), |machine| machine.describe())
    }
}
