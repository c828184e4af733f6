//! Primitives of objects with operations: VOTE's remote object invocation (Tables 1 to 3).

use std::time::Duration;

use dhole::sim::Settings;
use dhole::{NodeId, Object, Result, RunError, Worker, on};
use serde::{Deserialize, Serialize};

use super::{QUIET_NS, measured_us};

/// The bytes of a page whose fault is measured.
const PAGE_BYTES: usize = 4_096;

/// What is measured of objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// An operation with so many bytes of arguments.
    Of(usize),
    /// Starting one without arguments, until the program goes on.
    Started,
    /// Making an object on another node.
    Creation,
    /// An operation that gives so many bytes back.
    Copy(usize),
    /// A read fault on a page that the node of its adviser has: an operation there, which puts the
    /// page to the node that faults.
    ReadFault,
}

/// An object on the node that is called.
#[derive(Serialize, Deserialize)]
struct Served {
    page: Vec<u8>,
}

#[dhole::object]
impl Served {
    #[new]
    pub fn open() -> Self {
        Served { page: Vec::new() }
    }

    pub fn nothing(&self) {}

    pub fn take(&self, data: &[u8]) {
        let _ = data;
    }

    pub fn copy(&self, #[out] data: &mut [u8]) {
        data.fill(1);
    }

    pub fn put(&mut self, data: &[u8]) {
        self.page = data.to_vec();
    }
}

/// The knowing site of a page.
#[derive(Serialize, Deserialize)]
struct Adviser {
    page: Vec<u8>,
}

#[dhole::object]
impl Adviser {
    /// Handles a read fault: it has the page.
    pub fn handle(&mut self, w: &mut Worker<'_>, by: Object<Served>) -> Result<()> {
        Ok(by.put(w, &self.page)?)
    }
}

/// Node 1 calls an object of node 0, which waits at a barrier.
pub(super) fn invocation_us(settings: Settings, what: Invocation) -> Result<f64, RunError> {
    let fault_ns = settings.network.page_fault_ns;
    let program = |w: &mut Worker<'_>, took: &dyn Fn(Duration)| {
        let (there, here) = (NodeId(0), NodeId(1));
        let (served, mine, adviser) = w.once(|w| {
            let page = vec![0; PAGE_BYTES];
            let adviser = w.new_object(on(there), Adviser { page })?;
            let served = Served::open_in(w, on(there))?;
            Ok((served, Served::open_in(w, on(here))?, adviser))
        })?;
        if w.node() == here {
            served.nothing(w)?; // where it is kept is known
            w.work(QUIET_NS);
            let begun = w.now();
            let mut started = None;
            match what {
                Invocation::Of(0) => served.nothing(w)?,
                Invocation::Of(bytes) => served.take(w, &vec![1; bytes])?,
                Invocation::Started => started = Some(served.start_nothing(w)?),
                Invocation::Creation => drop(Served::open_in(w, on(there))?),
                Invocation::Copy(bytes) => served.copy(w, &mut vec![0; bytes])?,
                Invocation::ReadFault => {
                    w.work(fault_ns); // a unit of work is a nanosecond here
                    adviser.handle(w, mine)?;
                }
            }
            took(w.now() - begun);
            if let Some(started) = started {
                started.wait(w)?;
            }
        }
        Ok(w.barrier()?)
    };
    measured_us(settings, program)
}
