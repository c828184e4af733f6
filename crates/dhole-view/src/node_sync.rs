//! A node's part of what threads wait for beside pages: the machine, and how its commands are
//! carried out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::NodeId;
use dhole_node::AnnexOutbox;
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::sync::{ThreadCommand, ThreadId, ThreadMessage, ThreadSync};

use crate::domain_locks::RunLocks;
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
type Begins = Box<dyn Fn(&mut ThreadSync, &mut Vec<ThreadCommand>) -> bool + Send>;

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
            true => self.machine().number_thread(),
        }
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
        out: &mut AnnexOutbox<'_>,
    ) -> Result<(), ProtocolError> {
        let mut commands = Vec::new();
        let taken = self.machine().deliver(from, message, &mut commands);
        self.carry_out(commands, waiters, out);
        taken
    }

    /// Carries out what a step of the machine wants done, which is not locked.
    pub fn carry_out(
        &self,
        mut commands: Vec<ThreadCommand>,
        waiters: &Waiters,
        out: &mut AnnexOutbox<'_>,
    ) {
        let mut started = Vec::new();
        if commands.contains(&ThreadCommand::Started)
            && let Some(begins) = &*self.begins()
        {
            out.wakes_worker |= begins(&mut self.machine(), &mut started);
        }
        commands.append(&mut started);
        for command in commands {
            match command {
                ThreadCommand::Send { to, message } => out.send_threads(to, message),
                ThreadCommand::Wake(thread) => {
                    // One that does not wait beside the worker is the worker's.
                    let is_beside = waiters.wake(WaitsFor::Thread(thread));
                    out.wakes_worker |= !is_beside;
                }
                ThreadCommand::Started => {}
            }
        }
    }

    /// What threads wait for, where nobody uses the machine: who asks wonders why nothing happens.
    pub fn describe(&self) -> Vec<String> {
        let machine = self.machine.try_lock();
        machine.map_or(Vec::new(), |machine| machine.describe())
    }
}
