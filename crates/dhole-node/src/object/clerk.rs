//! Clerks of the program's, which group objects (VOTE, section 3.3).

use dhole_heap::Share;
use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_protocol::objects::{ClerkId, Refusal, Strategy};
use serde::{Deserialize, Serialize};

use super::handle::outside;
use super::invoke::malformed;
use crate::object_error::ObjectError;
use crate::worker::Worker;

/// How many calls of the objects of a [`Clerk`] may be in progress at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Concurrency {
    /// One call at a time, of all its objects: the paper's sequential domain, a monitor.
    Sequential,
    /// So many calls at a time, one or more. Each object has a monitor of its own beside that:
    /// calls that read it together, or one that writes it.
    AtMost(u32),
}

/// A clerk: objects of one node whose calls it admits. Made by [`Worker::new_clerk`]. Objects are
/// made in it by their constructors, or by [`new_object`](Worker::new_object), which take it in the
/// place of [`on`](super::on). It is copied freely and travels by value.
///
/// A call of an object in a clerk begins when the clerk admits it, also one that takes no worker.
/// An object that [`Object::strategy`](super::Object::strategy) moves leaves its clerk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap")]
pub struct Clerk {
    number: u64,
    node: u32,
    most: u32,
}

impl Clerk {
    /// The node of its objects.
    pub fn node(self) -> NodeId {
        NodeId::at(self.node as usize)
    }
}

impl From<Clerk> for Strategy {
    fn from(clerk: Clerk) -> Strategy {
        Strategy::In(ClerkId {
            node: clerk.node(),
            number: ObjectId(clerk.number),
            most: clerk.most,
        })
    }
}

impl Worker<'_> {
    /// Makes a clerk on a node, without a message. It groups objects: so many of their calls are in
    /// progress at a time. An object without a clerk has a monitor of its own if its type has
    /// operations that take a worker.
    ///
    /// ```
    /// # use dhole_model::NodeId;
    /// # use dhole_node::{Clerk, Concurrency, Error, Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<Clerk> {
    /// let bank = w.new_clerk(NodeId(0), Concurrency::Sequential)?;
    /// assert_eq!(bank.node(), NodeId(0));
    /// # Ok(bank) }
    /// ```
    ///
    /// # Errors
    /// [`ObjectError::NotMade`] when the run has no such node, and for `AtMost(0)`.
    #[track_caller]
    pub fn new_clerk(
        &mut self,
        node: NodeId,
        concurrency: Concurrency,
    ) -> Result<Clerk, ObjectError> {
        let most = match concurrency {
            Concurrency::Sequential => 1,
            Concurrency::AtMost(most) => most,
        };
        let clerk = Clerk {
            number: self.new_ids(1).0,
            node: u32::from(node.0),
            most,
        };
        let cause = match outside(clerk.into(), self.nodes()) {
            Some(cause) => *malformed(cause),
            None if most == 0 => Refusal::Malformed("it would admit no call".into()),
            None => return Ok(clerk),
        };
        Err(ObjectError::NotMade {
            type_name: "Clerk",
            node: self.node(),
            site: CallSite::caller(),
            cause,
        })
    }
}
