//! Hints: what a program says of its accesses. They change messages, and no result.

use std::panic::Location;

use dhole_heap::{Name, Names};
use dhole_model::{Counted, NodeId};
use dhole_protocol::{Event, ProtocolError};

use crate::access::Accessed;
use crate::error::{AccessError, Error, Result};
use crate::worker::Worker;

impl Worker<'_> {
    /// Sends objects and elements of arrays, which this node wrote last, to other nodes before they
    /// ask (VOTE, section 4). What this node has written since it last synchronised goes when it
    /// synchronises next, and all else at once. `what` is as for [`prefetch`](Worker::prefetch).
    ///
    /// A receiver keeps up to 16 MiB of what was sent to it, and its first access takes the bytes
    /// from there, without a message. The bytes are of no use to it where another node has written
    /// the object since. So propagation changes no result: what comes late is fetched. It is for
    /// what is kept consistent under `lazy` or `update`.
    ///
    /// ```
    /// # use dhole_node::{Result, Worker};
    /// # use dhole_model::{Counted, NodeId};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let row = w.once(|w| Ok(w.alloc([0.0_f64; 100])))?;
    /// if w.node() == NodeId(0) {
    ///     row.get_mut(w).fill(1.0);
    ///     let others: Vec<NodeId> = (1..w.nodes()).map(NodeId::at).collect();
    ///     w.propagate(row, &others)?;
    /// }
    /// w.barrier()?;
    /// assert_eq!(row.get(w)[7], 1.0); // without a message
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`AccessError::Protocol`] when another node wrote one of them last, or one is under another
    /// protocol; [`AccessError::Freed`] when one was freed; an error of the program when a node is
    /// not of the run. Then nothing is sent.
    #[track_caller]
    pub fn propagate(&mut self, what: impl Names, to: &[NodeId]) -> Result<()> {
        let site = Location::caller();
        let (mut objects, mut elements) = (Vec::new(), Vec::new());
        let mut first: Option<Accessed> = None;
        what.each(site, &mut |name| match name {
            Name::Object(miss) => {
                first.get_or_insert_with(|| (&miss).into());
                objects.push(miss.oid);
            }
            Name::Elements(miss) if miss.elements.count == 0 => {}
            Name::Elements(miss) => {
                first.get_or_insert_with(|| (&miss).into());
                elements.push(miss.elements);
            }
        });
        let Some(first) = first else {
            return Ok(());
        };
        let (me, nodes) = (self.node(), self.nodes());
        if let Some(other) = to.iter().find(|it| it.index() >= nodes) {
            let nodes = Counted(nodes as u64, "node", "nodes");
            let said = format!("propagating to {other} at {site}: the run has {nodes}");
            return Err(Error::program(said));
        }
        if self.is_paged() {
            let (oid, coherence) = (first.oid, self.link.coherence);
            return Err(Error::Access(AccessError::Protocol {
                oid,
                node: me,
                site: site.into(),
                cause: ProtocolError::NotPropagated { oid, coherence },
            }));
        }
        let mut to: Vec<NodeId> = to.iter().copied().filter(|it| *it != me).collect();
        to.sort_unstable();
        to.dedup();
        let event = Event::Propagate {
            objects,
            elements,
            to,
        };
        let called = self.exclusive(site, |link, call| link.local(call, Some(event)));
        Ok(self.accessed(first, called.map(Ok))?)
    }
}
