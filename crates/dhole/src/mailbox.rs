//! Messages between nodes: each node has a mailbox, into which all nodes send.
//!
//! ```
//! use dhole::mailbox::Mailboxes;
//! use dhole::{Config, NodeId};
//!
//! let run = Config::nodes(3).run(|w| {
//!     let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
//!     let (me, nodes) = (w.node().index(), w.nodes());
//!     mail.send(w, NodeId::at((me + 1) % nodes), 10 * me as u64)?; // goes on at once
//!     let (from, number) = mail.recv(w)?; // waits for a message
//!     assert_eq!(number, 10 * from.index() as u64);
//!     Ok(number)
//! })?;
//! assert_eq!(run.value, 20);
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! A mailbox is an object with operations on its node, and a message is an operation that was
//! started. So what was written before [`send`](Mailboxes::send) is visible to the node that has
//! received the message.

mod error;
mod state;

use std::fmt;
use std::panic::Location;

use dhole_model::{CallSite, NodeId, kept_words};
use dhole_node::object::{Calling, Object, ObjectError, Pending, call_as, on, start_numbered};
use dhole_node::{Refusal, SyncError, Worker};
use serde::{Deserialize, Serialize};

use crate::job_queue::ByValue;
pub use error::MailboxError;
use state::Mailbox;

type Mailed<T> = Result<T, MailboxError>;

/// As many messages of one sender may wait in a mailbox, unless it is
/// [bounded](Mailboxes::bounded).
pub const MOST_WAITING: usize = 65_536;

const SENDS: &str = "sending to";
const RECEIVES: &str = "receiving from";

/// Mailboxes of all nodes for messages `T`. A handle of 8 bytes, copied freely.
///
/// - The messages of one node to another arrive in the order in which they were sent, also where
///   processes of one node send. Messages of different nodes arrive in any order.
/// - A message that is alone takes two messages of the network, and up to 64 that are sent in a row
///   to one node together take two. A message to the own node, and a receive, take none.
/// - At most [`MOST_WAITING`] messages of one sender wait in a mailbox, or as many as
///   [`bounded`](Mailboxes::bounded) says. Further ones wait at their sender, which goes on as long
///   as it has fewer than 1,024 operations under way.
/// - A message that no node receives is a warning of the run, with the line that sent it.
#[derive(dhole_heap::Share)]
#[share(crate = "dhole_heap", nullable, bound = "T: ByValue")]
#[repr(transparent)]
pub struct Mailboxes<T: ByValue> {
    /// The mailbox of node 0. Those of the others were made after it, in a row.
    first: Object<Mailbox<T>>,
}

impl<T: ByValue> Clone for Mailboxes<T> {
    fn clone(&self) -> Mailboxes<T> {
        *self
    }
}

impl<T: ByValue> Copy for Mailboxes<T> {}

impl<T: ByValue> fmt::Debug for Mailboxes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailboxes({})", Object::id(&self.first).0)
    }
}

impl<T: ByValue> Serialize for Mailboxes<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.first.serialize(to)
    }
}

impl<'de, T: ByValue> Deserialize<'de> for Mailboxes<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Object::deserialize(from).map(|first| Mailboxes { first })
    }
}

/// A call about a mailbox, and where in the program.
#[derive(Clone, Copy)]
struct Asked {
    doing: &'static str,
    other: NodeId,
    node: NodeId,
    site: CallSite,
}

impl Asked {
    #[track_caller]
    fn new(w: &Worker<'_>, doing: &'static str, other: NodeId) -> Mailed<Asked> {
        let asked = Asked {
            doing,
            other,
            node: w.node(),
            site: CallSite::caller(),
        };
        match other.index() < w.nodes() {
            true => Ok(asked),
            false => Err(MailboxError::NoNode {
                doing,
                other,
                node: asked.node,
                site: asked.site,
                nodes: w.nodes(),
            }),
        }
    }

    fn lost(&self) -> MailboxError {
        MailboxError::Lost {
            doing: self.doing,
            other: self.other,
            node: self.node,
            site: self.site,
        }
    }
}

impl<T: ByValue> Mailboxes<T> {
    /// Makes a mailbox on each node. The other nodes get the handle through
    /// [`once`](Worker::once), another object or a [name](crate::names).
    ///
    /// # Errors
    /// [`MailboxError::Object`] if they cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Mailed<Mailboxes<T>> {
        Mailboxes::bounded(w, MOST_WAITING)
    }

    /// The same, where at most `most` messages of one sender wait in a mailbox, at least one.
    ///
    /// A sender that fills a mailbox which nobody empties is a deadlock, at the latest at the end
    /// of the run.
    ///
    /// # Errors
    /// As [`new`](Mailboxes::new).
    #[track_caller]
    pub fn bounded(w: &mut Worker<'_>, most: usize) -> Mailed<Mailboxes<T>> {
        let nodes = w.nodes();
        let each = (0..nodes).map(|node| {
            let mailbox = Mailbox::new(nodes, most.max(1));
            (on(NodeId::at(node)), mailbox)
        });
        let first = w.new_row(Location::caller(), each)?;
        Ok(Mailboxes { first })
    }

    /// The mailbox of a node.
    fn of(&self, w: &Worker<'_>, node: NodeId) -> Object<Mailbox<T>> {
        Object::nth(&self.first, w, node.index())
    }

    /// Sends a message to the mailbox of a node and goes on. What this node wrote before is visible
    /// to the node that receives the message.
    ///
    /// The next synchronisation of this node, a barrier say, waits until the message is in the
    /// mailbox, or waits for room there. A receive does not. The sender waits here if it has 1,024
    /// operations under way.
    ///
    /// # Errors
    /// [`MailboxError::NoNode`] if there is no such node, [`MailboxError::Lost`] if it is known to
    /// be lost, [`MailboxError::Object`] if the value cannot be written as bytes. A node that is
    /// lost before it has the message is a warning of the run.
    #[track_caller]
    pub fn send(&self, w: &mut Worker<'_>, to: NodeId, value: T) -> Mailed<()> {
        let asked = Asked::new(w, SENDS, to)?;
        let (mailbox, from) = (self.of(w, to), asked.node);
        w.suppose(&mailbox, to);
        let push = |number, site| (from, number, site, &value);
        let sent = start_numbered(w, mailbox, "Mailbox::push", push);
        let sent: Result<(), _> = sent.and_then(|sent: Pending<()>| w.forget_unless_refused(sent));
        sent.map_err(|error| match error {
            ObjectError::Refused { cause, .. } if is_loss(&cause) => asked.lost(),
            error => error.into(),
        })
    }

    /// Receives the message that came first, and who sent it. Waits for one.
    ///
    /// # Errors
    /// [`MailboxError::Endless`] if no node can send one any more.
    #[track_caller]
    pub fn recv(&self, w: &mut Worker<'_>) -> Mailed<(NodeId, T)> {
        let asked = Asked::new(w, RECEIVES, w.node())?;
        let mailbox = self.of(w, asked.node);
        let taken = call_as(
            w,
            mailbox,
            Calling::of("Mailbox::receive", "Mailboxes::recv").unsettled(),
            (),
            |mailbox, ()| mailbox.has_message(),
            |mailbox, ()| mailbox.receive(),
        );
        let taken = taken.map_err(|error| endless(asked, None, error))?;
        taken.ok_or_else(|| asked.lost())
    }

    /// Receives the first message of a node. Waits for one. Messages of others stay.
    ///
    /// # Errors
    /// [`MailboxError::NoNode`] if there is no such node; [`MailboxError::Endless`] if it can send
    /// none any more; [`MailboxError::Lost`] if it is lost and all its messages are received.
    #[track_caller]
    pub fn recv_from(&self, w: &mut Worker<'_>, from: NodeId) -> Mailed<T> {
        let asked = Asked::new(w, RECEIVES, from)?;
        let mailbox = self.of(w, asked.node);
        let words = kept_words(&format!("Mailboxes::recv_from({from})"));
        let words = words.unwrap_or("Mailboxes::recv_from");
        let taken = call_as(
            w,
            mailbox,
            Calling::of("Mailbox::receive_from", words).unsettled(),
            (from,),
            |mailbox, (from,)| mailbox.has_message_of(*from),
            |mailbox, (from,)| mailbox.receive_from(from),
        );
        let taken = taken.map_err(|error| endless(asked, Some(from), error))?;
        taken.ok_or_else(|| asked.lost())
    }

    /// Receives the message that came first, if there is one. It takes what has come to this node
    /// meanwhile, and does not wait.
    ///
    /// # Errors
    /// [`MailboxError::Object`] if the mailboxes are freed, or the run has ended.
    #[track_caller]
    pub fn try_recv(&self, w: &mut Worker<'_>) -> Mailed<Option<(NodeId, T)>> {
        w.poll().map_err(ObjectError::from)?;
        let mailbox = self.of(w, w.node());
        let calling = Calling::of("Mailbox::pop", "Mailboxes::try_recv").unsettled();
        Ok(call_as(
            w,
            mailbox,
            calling,
            (),
            |_, ()| true,
            |it, ()| it.pop(),
        )?)
    }

    /// Frees all mailboxes, with the messages in them.
    ///
    /// # Errors
    /// [`MailboxError::Object`] if they were freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Mailed<()> {
        for node in 0..w.nodes() {
            let mailbox = self.of(w, NodeId::at(node));
            match Object::free(&mailbox, w) {
                // Its node is lost.
                Err(ObjectError::Refused { cause, .. }) if is_loss(&cause) => {}
                freed => freed?,
            }
        }
        Ok(())
    }
}

/// Whether a mailbox is not there because its node is lost.
fn is_loss(cause: &Refusal) -> bool {
    matches!(
        cause,
        Refusal::Lost(_) | Refusal::Unanswered(_) | Refusal::Unknown
    )
}

fn endless(asked: Asked, from: Option<NodeId>, error: ObjectError) -> MailboxError {
    match error {
        ObjectError::Sync(cause @ SyncError::Deadlock { .. }) => MailboxError::Endless {
            from,
            node: asked.node,
            site: asked.site,
            cause: Box::new(cause),
        },
        error => error.into(),
    }
}
