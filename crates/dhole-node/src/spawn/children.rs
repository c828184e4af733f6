//! The processes that a worker has started, and what is still to be done about them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use dhole_model::{CallSite, NodeId};
use dhole_protocol::objects::{Bytes, Outcome, Refusal};
use dhole_protocol::{Event, Started, WaitingFor};

use crate::process_error::ProcessError;

/// A process, as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub on: NodeId,
    pub name: &'static str,
    pub site: CallSite,
}

impl Child {
    /// Why its parent, on `node`, has no result of it.
    pub fn ended(self, node: NodeId, cause: Refusal) -> ProcessError {
        let Child { on, name, site } = self;
        let cause = match cause {
            Refusal::Lost(node) => Refusal::WentWith(node),
            cause => cause,
        };
        ProcessError::Ended {
            name,
            on,
            node,
            site,
            cause,
        }
    }

    /// What its parent has of it, on `node`.
    pub fn came_to(self, node: NodeId, outcome: Outcome) -> Result<Bytes, ProcessError> {
        outcome.map_err(|cause| self.ended(node, cause))
    }

    /// That a worker waits for it.
    pub fn awaited(self, site: CallSite) -> Event {
        let Child {
            on,
            name,
            site: started,
        } = self;
        let what = WaitingFor::Process(Started {
            on,
            name: CallSite::runtime(name),
            site: started,
        });
        Event::Await { what, site }
    }
}

/// The processes that a worker has started and not waited for, by call. Their handles know of it
/// too, for one that is dropped says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children(Rc<RefCell<All>>);

#[derive(Debug, Default)]
struct All {
    unjoined: BTreeMap<u64, Child>,
    /// Those of them whose handle was dropped, in the order in which that happened.
    dropped: VecDeque<u64>,
    /// How the first of these failed that did.
    failed: Option<ProcessError>,
}

impl Children {
    pub fn started(&self, call: u64, child: Child) {
        self.0.borrow_mut().unjoined.insert(call, child);
    }

    /// Whether these are the same worker's.
    pub fn are(&self, others: &Children) -> bool {
        Rc::ptr_eq(&self.0, &others.0)
    }

    /// Takes a child, to wait for it.
    pub fn take(&self, call: u64) -> Option<Child> {
        self.0.borrow_mut().unjoined.remove(&call)
    }

    /// Takes the first child, to wait for it.
    pub fn take_first(&self) -> Option<(u64, Child)> {
        self.0.borrow_mut().unjoined.pop_first()
    }

    /// The handle of a child is dropped: nobody waits for it before its parent ends.
    pub fn drop_handle(&self, call: u64) {
        let mut all = self.0.borrow_mut();
        if all.unjoined.contains_key(&call) {
            all.dropped.push_back(call);
        }
    }

    /// The first child whose handle was dropped.
    pub fn first_dropped(&self) -> Option<u64> {
        self.0.borrow().dropped.front().copied()
    }

    /// Takes the first child whose handle was dropped, to wait for it.
    pub fn take_dropped(&self) -> Option<(u64, Child)> {
        let mut all = self.0.borrow_mut();
        loop {
            let call = all.dropped.pop_front()?;
            if let Some(child) = all.unjoined.remove(&call) {
                return Some((call, child));
            }
        }
    }

    /// A child whose handle was dropped has failed: its parent fails where it ends.
    pub fn has_failed(&self, error: ProcessError) {
        self.0.borrow_mut().failed.get_or_insert(error);
    }

    pub fn take_failed(&self) -> Option<ProcessError> {
        self.0.borrow_mut().failed.take()
    }
}
