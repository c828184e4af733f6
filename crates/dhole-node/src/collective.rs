//! Collectives: values that every node has a part in, and which travel along a tree, or from each
//! node to each other.

use std::fmt::Display;

use dhole_model::{CallSite, NodeId};
use dhole_protocol::{AbortReason, CollectiveEvent, CollectiveKind, Event, Legs, Tree, Way};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collective_error::CollectiveError;
use crate::collective_values::Part;
use crate::ended::Ended;
use crate::fingerprint::fingerprint;
use crate::node::State;
use crate::object::kind;
use crate::step::Step;
use crate::sync_error::RunEnded;
use crate::worker::Worker;

/// The most bytes that one message of a collective carries: a value as it is serialised, or of a
/// gather those of all nodes below the one that sends.
pub const MOST_COLLECTIVE_BYTES: usize = 64 << 20;

/// A node keeps no more memory than this between collectives.
const MOST_KEPT: usize = 64 << 10;

/// A collective that the worker calls.
#[derive(Clone, Copy)]
struct Calling {
    kind: CollectiveKind,
    of: u64,
    type_name: &'static str,
    node: NodeId,
    nodes: usize,
    site: CallSite,
}

impl Worker<'_> {
    /// Returns node 0's `value` on every node: any value that can be serialised. The values that
    /// other nodes pass are dropped. What node 0 wrote before is visible to every node after it.
    ///
    /// It takes n-1 messages along a tree, and node 0 does not wait for the others. (After eight
    /// collectives of this kind in a row without a barrier the next one waits for all nodes: then
    /// it takes n-1 messages more. The same holds for
    /// [`reduce`](Worker::reduce) and [`gather`](Worker::gather).)
    ///
    /// All nodes call the same collectives and barriers in the same order, with values of the same
    /// types.
    ///
    /// # Errors
    /// [`CollectiveError`]: where nodes call different things the error names both calls; a value
    /// longer than [`MOST_COLLECTIVE_BYTES`], serialised; a call within `once`, in a process that
    /// was started, or in a run that survives the loss of nodes; or as
    /// [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn broadcast<T>(&mut self, value: T) -> Result<T, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::Broadcast, CallSite::caller());
        let mut bytes = Vec::new();
        if call.is_root() && call.nodes > 1 {
            call.encode(&value, &mut bytes)?;
        }
        let legs = self.enter_collective(&call)?;
        self.send_up(&call, legs, &[])?;
        let came = self.share(&call, legs, bytes)?;
        match call.is_root() {
            true => Ok(value),
            false => self.come(&call, &came),
        }
    }

    /// Combines the values of all nodes by `op`, for node 0; other nodes get none. What any node
    /// wrote before is visible to node 0 after it. n-1 messages, along a tree; other nodes do not
    /// wait for node 0.
    ///
    /// The values are combined in the order of their nodes' numbers: neighbours first, always in
    /// the same pairs for as many nodes. So `op` must be associative and need not be commutative,
    /// and sums of floating-point numbers are the same in every run.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast).
    #[track_caller]
    pub fn reduce<T>(
        &mut self,
        value: T,
        op: impl FnMut(T, T) -> T,
    ) -> Result<Option<T>, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::Reduce, CallSite::caller());
        let legs = self.enter_collective(&call)?;
        let combined = self.combine(&call, value, op)?;
        let mut bytes = Vec::new();
        if !call.is_root() {
            self.midway(call.encode(&combined, &mut bytes))?;
        }
        self.send_up(&call, legs, &bytes)?;
        self.share(&call, legs, Vec::new())?;
        Ok(call.is_root().then_some(combined))
    }

    /// As [`reduce`](Worker::reduce), for all nodes: each gets the same value, to the last bit. It
    /// is a barrier too: what any node wrote before is visible to every node after it. 2(n-1)
    /// messages: to node 0 along a tree, and back.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast).
    #[track_caller]
    pub fn all_reduce<T>(
        &mut self,
        value: T,
        op: impl FnMut(T, T) -> T,
    ) -> Result<T, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::AllReduce, CallSite::caller());
        let legs = self.enter_collective(&call)?;
        let combined = self.combine(&call, value, op)?;
        let mut bytes = Vec::new();
        if call.nodes > 1 {
            self.midway(call.encode(&combined, &mut bytes))?;
        }
        self.send_up(&call, legs, &bytes)?;
        let came = self.share(&call, legs, bytes)?;
        match call.is_root() {
            true => Ok(combined),
            false => self.come(&call, &came),
        }
    }

    /// The values of all nodes, in the order of their numbers, for node 0; other nodes get none.
    /// What any node wrote before is visible to node 0 after it. n-1 messages, along a tree; other
    /// nodes do not wait for node 0.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast); the limit holds for all values together.
    #[track_caller]
    pub fn gather<T>(&mut self, value: T) -> Result<Option<Vec<T>>, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::Gather, CallSite::caller());
        let (legs, bytes) = self.gather_bytes(&call, &value)?;
        self.share(&call, legs, Vec::new())?;
        match call.is_root() {
            true => self.values(&call, &bytes).map(Some),
            false => Ok(None),
        }
    }

    /// As [`gather`](Worker::gather), for all nodes. It is a barrier too: what any node wrote
    /// before is visible to every node after it. 2(n-1) messages: to node 0 along a tree, and back.
    ///
    /// # Errors
    /// As [`gather`](Worker::gather).
    #[track_caller]
    pub fn all_gather<T>(&mut self, value: T) -> Result<Vec<T>, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::AllGather, CallSite::caller());
        let (legs, bytes) = self.gather_bytes(&call, &value)?;
        let all = self.share(&call, legs, bytes)?;
        self.values(&call, &all)
    }

    /// Combines the values of nodes by `op`: each node gets those of the nodes up to itself, in the
    /// order of their numbers. (MPI's `MPI_Scan`.) It is a barrier too: what any node wrote before
    /// is visible to every node after it. 2(n-1) messages: to node 0 along a tree, and back.
    ///
    /// As for [`reduce`](Worker::reduce), `op` must be associative and need not be commutative, and
    /// sums of floating-point numbers are the same in every run with as many nodes.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast).
    #[track_caller]
    pub fn scan<T>(&mut self, value: T, mut op: impl FnMut(T, T) -> T) -> Result<T, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::Scan, CallSite::caller());
        match self.before(&call, &value, &mut op)? {
            Some(before) => Ok(op(before, value)),
            None => Ok(value),
        }
    }

    /// As [`scan`](Worker::scan), but each node gets the values of the nodes before itself, and
    /// node 0 none. (MPI's `MPI_Exscan`.) Of the lengths of all nodes' parts it is where a node's
    /// own part begins.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast).
    #[track_caller]
    pub fn exclusive_scan<T>(
        &mut self,
        value: T,
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<Option<T>, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::ExclusiveScan, CallSite::caller());
        self.before(&call, &value, &mut op)
    }

    /// Gives each node one of the values that node `from` passes, which has one for each node, in
    /// the order of their numbers. What other nodes pass is dropped. What `from` wrote before is
    /// visible to every node after it. n-1 messages, along a tree whose root is `from`; that node
    /// does not wait for the others.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast), where the limit holds for what goes to all nodes below
    /// one together; if there is no node `from`; or if it passes more or fewer values than there
    /// are nodes.
    #[track_caller]
    pub fn scatter<T>(&mut self, from: NodeId, mut parts: Vec<T>) -> Result<T, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::Scatter { from }, CallSite::caller());
        if from.index() >= call.nodes {
            let (node, nodes, site) = (call.node, call.nodes, call.site);
            return Err(CollectiveError::NoSuchNode {
                from,
                node,
                nodes,
                site,
            });
        }
        let mut bytes = Vec::new();
        if call.is_root() {
            call.check_parts(parts.len())?;
            parts.rotate_left(from.index());
            for part in &parts {
                call.encode_with_length(part, &mut bytes)?;
            }
            for (_, row) in call.rows(&bytes)?.1 {
                call.check_length(row.len())?;
            }
        }
        let legs = self.enter_collective(&call)?;
        self.send_up(&call, legs, &[])?;
        if !call.is_root() {
            bytes = self.take_from_parent(&call, legs);
        }
        let (mine, rows) = self.midway(call.rows(&bytes))?;
        self.send_down(&call, legs, &bytes, &rows)?;
        match call.is_root() {
            true => Ok(parts.swap_remove(0)),
            false => self.midway(call.decode(call.above(), mine)),
        }
    }

    /// Each node passes a value for each node, in the order of their numbers, and gets what each
    /// node has passed for it, in the same order. (MPI's `MPI_Alltoallv`: the values can be of any
    /// lengths.) It is a barrier too: what any node wrote before is visible to every node after it.
    /// n(n-1) messages, from each node to each other.
    ///
    /// # Errors
    /// As [`broadcast`](Worker::broadcast), where the limit holds for each value; or if `per_node`
    /// has more or fewer values than there are nodes.
    #[track_caller]
    pub fn all_to_all<T>(&mut self, per_node: Vec<T>) -> Result<Vec<T>, CollectiveError>
    where
        T: Serialize + DeserializeOwned,
    {
        let call = self.collective::<T>(CollectiveKind::AllToAll, CallSite::caller());
        call.check_parts(per_node.len())?;
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        let others = || {
            (0..call.nodes)
                .map(NodeId::at)
                .filter(|it| *it != call.node)
        };
        let mut own = None;
        for (node, value) in per_node.into_iter().enumerate() {
            if node == call.node.index() {
                own = Some(value);
                continue;
            }
            let begins = bytes.len();
            call.encode(&value, &mut bytes)?;
            parts.push((NodeId::at(node), begins..bytes.len()));
        }
        self.enter_collective(&call)?;
        self.step_collective(CollectiveEvent::Across, (&bytes, &parts), call.site)?;
        drop(bytes);
        let came = self.take(Way::Across, others());
        self.step_collective(CollectiveEvent::Down, (&[], &[]), call.site)?;
        let mut values = Vec::with_capacity(call.nodes);
        for (from, bytes) in came {
            if from > call.node {
                values.extend(own.take());
            }
            values.push(self.midway(call.decode(from, &bytes))?);
        }
        values.extend(own);
        Ok(values)
    }

    fn collective<T>(&self, kind: CollectiveKind, site: CallSite) -> Calling {
        Calling {
            kind,
            of: u64::from_le_bytes(fingerprint::<T>()),
            type_name: std::any::type_name::<T>(),
            node: self.node(),
            nodes: self.nodes(),
            site,
        }
    }

    /// Calls the collective, and waits for what the worker needs first.
    fn enter_collective(&mut self, call: &Calling) -> Result<Legs, CollectiveError> {
        let Calling {
            kind,
            of,
            node,
            site,
            ..
        } = *call;
        self.only_the_program(kind.name(), site)?;
        if let Some(outer) = self.link.in_once {
            return Err(CollectiveError::WithinOnce {
                kind,
                node,
                site,
                outer,
            });
        }
        if self.link.survives() {
            return Err(CollectiveError::Survives { kind, node, site });
        }
        let enter = CollectiveEvent::Enter { kind, of, site };
        self.step_collective(enter, (&[], &[]), site)
    }

    /// The values of the nodes before this one, combined; none of the first.
    fn before<T: Serialize + DeserializeOwned>(
        &mut self,
        call: &Calling,
        value: &T,
        op: &mut impl FnMut(T, T) -> T,
    ) -> Result<Option<T>, CollectiveError> {
        let mut own = Vec::new();
        call.encode(value, &mut own)?;
        let legs = self.enter_collective(call)?;
        let rows = self.take_from_children(call);
        let mut bytes = Vec::new();
        if let Some(_parent) = call.parent() {
            let mut combined = self.midway(call.decode(call.node, &own))?;
            for (child, row) in &rows {
                combined = op(combined, self.midway(call.decode(*child, row))?);
            }
            self.midway(call.encode(&combined, &mut bytes))?;
        }
        self.send_up(call, legs, &bytes)?;
        let came = self.take_from_parent(call, legs);
        let before = |worker: &mut Self| match call.parent() {
            Some(parent) => worker.midway(call.decode(parent, &came)).map(Some),
            None => Ok(None),
        };
        // Each child gets what comes before its row.
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        if !rows.is_empty() {
            let mine = self.midway(call.decode(call.node, &own))?;
            let mut so_far = match before(self)? {
                Some(before) => op(before, mine),
                None => mine,
            };
            for (at, (child, row)) in rows.iter().enumerate() {
                let begins = bytes.len();
                self.midway(call.encode(&so_far, &mut bytes))?;
                parts.push((*child, begins..bytes.len()));
                if at + 1 < rows.len() {
                    so_far = op(so_far, self.midway(call.decode(*child, row))?);
                }
            }
        }
        self.send_down(call, legs, &bytes, &parts)?;
        before(self)
    }

    /// The children's values combined with this node's own, in the order of their numbers.
    fn combine<T: DeserializeOwned>(
        &mut self,
        call: &Calling,
        value: T,
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<T, CollectiveError> {
        let mut combined = value;
        for (from, bytes) in self.take_from_children(call) {
            let next = self.midway(call.decode(from, &bytes))?;
            combined = op(combined, next);
        }
        Ok(combined)
    }

    /// The bytes of all values below this node, each behind its length.
    fn gather_bytes<T: Serialize>(
        &mut self,
        call: &Calling,
        value: &T,
    ) -> Result<(Legs, Vec<u8>), CollectiveError> {
        let mut all = Vec::new();
        call.encode_with_length(value, &mut all)?;
        call.check_length(all.len())?;
        let legs = self.enter_collective(call)?;
        for (_, bytes) in self.take_from_children(call) {
            all.extend_from_slice(&bytes);
            self.midway(call.check_length(all.len()))?;
        }
        self.send_up(call, legs, &all)?;
        Ok((legs, all))
    }

    /// The values of all nodes, which their bytes must be.
    fn values<T: DeserializeOwned>(
        &mut self,
        call: &Calling,
        mut bytes: &[u8],
    ) -> Result<Vec<T>, CollectiveError> {
        let from = call.above();
        let mut values = Vec::with_capacity(call.nodes);
        for _ in 0..call.nodes {
            let value = split_value(bytes)
                .ok_or_else(|| call.malformed(from, "it holds fewer values than there are nodes"))
                .and_then(|(value, rest)| {
                    bytes = rest;
                    call.decode(from, value)
                });
            values.push(self.midway(value)?);
        }
        match bytes {
            [] => Ok(values),
            _ => {
                let more = call.malformed(from, "it holds more values than there are nodes");
                self.midway(Err(more))
            }
        }
    }

    fn take_from_children(&mut self, call: &Calling) -> Vec<(NodeId, Vec<u8>)> {
        self.take(Way::Up, call.tree().children(call.node))
    }

    /// What has come down; nothing on the root, or where nothing goes down.
    fn take_from_parent(&mut self, call: &Calling, legs: Legs) -> Vec<u8> {
        let parent = call.parent().filter(|_| legs.down);
        let mut came = self.take(Way::Down, parent.into_iter());
        came.pop().map_or(Vec::new(), |(_, bytes)| bytes)
    }

    fn take(&mut self, way: Way, from: impl Iterator<Item = NodeId>) -> Vec<(NodeId, Vec<u8>)> {
        let mut guard = self.link.node.monitor.lock();
        guard.split().1.values.take(way, from)
    }

    /// Gives what has come, and is combined, to the parent; waits for what comes down.
    fn send_up(&mut self, call: &Calling, legs: Legs, bytes: &[u8]) -> Result<(), CollectiveError> {
        if !legs.up {
            return Ok(());
        }
        if !call.kind.goes_up() {
            // That nobody is behind: nothing has come with it.
            self.take_from_children(call);
        }
        self.step_collective(CollectiveEvent::Up, (bytes, &[]), call.site)
            .map(drop)
    }

    /// Gives what has come down, or is node 0's, to the children: it is returned.
    fn share(
        &mut self,
        call: &Calling,
        legs: Legs,
        own: Vec<u8>,
    ) -> Result<Vec<u8>, CollectiveError> {
        let bytes = match legs.down && !call.is_root() {
            true => self.take_from_parent(call, legs),
            false => own,
        };
        self.send_down(call, legs, &bytes, &[])?;
        Ok(bytes)
    }

    /// Gives the children what goes down: all of it to each, or to each its part.
    fn send_down(
        &mut self,
        call: &Calling,
        legs: Legs,
        bytes: &[u8],
        parts: &[Part],
    ) -> Result<(), CollectiveError> {
        if legs.down {
            self.step_collective(CollectiveEvent::Down, (bytes, parts), call.site)?;
        }
        Ok(())
    }

    /// Takes a step in the collective; the bytes are what it sends, and the parts what of that goes
    /// to whom, where not all goes to each.
    fn step_collective(
        &mut self,
        event: CollectiveEvent,
        (bytes, parts): (&[u8], &[Part]),
        site: CallSite,
    ) -> Result<Legs, CollectiveError> {
        let passed = self.exclusive(site, |link, call| {
            call.split().1.values.send(bytes, parts);
            let waits = event != CollectiveEvent::Down;
            let passed = match waits {
                true => link.and_wait(call, Event::Collective(event)).map(drop),
                false => link.local(call, Some(Event::Collective(event))),
            };
            let state = call.split().1;
            state.values.sent(MOST_KEPT);
            passed?;
            Ok(state.protocol.legs().unwrap_or_default())
        });
        let legs = passed.map_err(|failure| self.link.sync_error(*failure, site))?;
        Ok(legs)
    }

    /// The value that came down.
    fn come<T: DeserializeOwned>(
        &mut self,
        call: &Calling,
        bytes: &[u8],
    ) -> Result<T, CollectiveError> {
        let value = call.decode(call.above(), bytes);
        self.midway(value)
    }

    /// A node that fails within a collective ends the run, whatever its program makes of the error:
    /// others wait for its value.
    fn midway<T>(&mut self, done: Result<T, CollectiveError>) -> Result<T, CollectiveError> {
        if let Err(error) = &done {
            self.end_run(error);
        }
        done
    }

    /// Ends the run on all nodes: something failed here that the others wait for.
    #[doc(hidden)]
    pub fn end_run(&self, error: &dyn Display) {
        // Whoever started this process hears it before the others can.
        if let Some(multiprocess) = self.link.machine.multiprocess() {
            multiprocess.failed(&error.to_string());
        }
        let reason = AbortReason::Failed(error.to_string().into());
        self.link.abort(reason.clone());
        let on = self.node();
        let mut guard = self.link.node.monitor.lock();
        let ended = Ended::Elsewhere(RunEnded { on, reason });
        guard.split().1.end(ended);
    }
}

/// Bytes of the length of a gathered value.
const LENGTH: usize = 4;

/// The first of gathered values, and the rest.
fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl Calling {
    fn tree(&self) -> Tree {
        self.kind.tree(self.nodes)
    }

    fn parent(&self) -> Option<NodeId> {
        self.tree().parent(self.node)
    }

    fn is_root(&self) -> bool {
        self.parent().is_none()
    }

    /// Whose values come down here: the parent's, or on the root its own.
    fn above(&self) -> NodeId {
        self.parent().unwrap_or(self.node)
    }

    /// Of the values of the nodes below this one, behind their lengths: its own, and what of the
    /// bytes goes to which child.
    fn rows<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], Vec<Part>), CollectiveError> {
        let tree = self.tree();
        let split = || {
            let (own, mut rest) = split_value(bytes)?;
            let mut parts = Vec::new();
            for child in tree.children(self.node) {
                let begins = bytes.len() - rest.len();
                for _ in 0..tree.row(child) {
                    rest = split_value(rest)?.1;
                }
                parts.push((child, begins..bytes.len() - rest.len()));
            }
            rest.is_empty().then_some((own, parts))
        };
        let other = "it holds other values than those of the nodes below";
        split().ok_or_else(|| self.malformed(self.above(), other))
    }

    /// Whether there are as many values as nodes.
    fn check_parts(&self, parts: usize) -> Result<(), CollectiveError> {
        let Calling {
            kind,
            node,
            nodes,
            site,
            ..
        } = *self;
        match parts == nodes {
            true => Ok(()),
            false => Err(CollectiveError::Parts {
                kind,
                node,
                site,
                parts,
                nodes,
            }),
        }
    }

    /// Appends the bytes of a value behind their length.
    fn encode_with_length<T: Serialize>(
        &self,
        value: &T,
        bytes: &mut Vec<u8>,
    ) -> Result<(), CollectiveError> {
        let begins = bytes.len();
        bytes.extend([0; LENGTH]);
        self.encode(value, bytes)?;
        let length = (bytes.len() - begins - LENGTH) as u32;
        bytes[begins..][..LENGTH].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    /// Appends the bytes of a value.
    fn encode<T: Serialize>(&self, value: &T, bytes: &mut Vec<u8>) -> Result<(), CollectiveError> {
        let Calling {
            kind,
            node,
            site,
            type_name,
            ..
        } = *self;
        let begins = bytes.len();
        let encoded = kind::encode_to("the value", value, bytes);
        encoded.map_err(|cause| CollectiveError::Unserialisable {
            kind,
            node,
            site,
            type_name,
            cause: cause.to_string(),
        })?;
        self.check_length(bytes.len() - begins)
    }

    fn check_length(&self, bytes: usize) -> Result<(), CollectiveError> {
        let Calling {
            kind, node, site, ..
        } = *self;
        let most = MOST_COLLECTIVE_BYTES;
        match bytes <= most {
            true => Ok(()),
            false => Err(CollectiveError::TooLong {
                kind,
                node,
                site,
                bytes,
                most,
            }),
        }
    }

    fn decode<T: DeserializeOwned>(
        &self,
        from: NodeId,
        bytes: &[u8],
    ) -> Result<T, CollectiveError> {
        let decoded = kind::decode("the value", bytes);
        decoded.map_err(|cause| self.malformed(from, &cause.to_string()))
    }

    fn malformed(&self, from: NodeId, cause: &str) -> CollectiveError {
        let Calling {
            kind,
            node,
            site,
            type_name,
            ..
        } = *self;
        CollectiveError::Malformed {
            kind,
            node,
            site,
            from,
            type_name,
            cause: cause.to_owned(),
        }
    }
}

impl State {
    /// Keeps a value that has come until the worker takes it.
    pub(crate) fn collect(&mut self, from: NodeId, at: (u64, Way), step: &Step<'_, '_>) {
        self.values.collect(from, at, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_values_come_apart_as_they_were_put_together_and_nothing_else_does() {
        let all = [3, 0, 0, 0, 7, 8, 9, 0, 0, 0, 0, 1, 0, 0, 0, 5];
        let (first, rest) = split_value(&all).unwrap();
        let (second, rest) = split_value(rest).unwrap();
        let (third, rest) = split_value(rest).unwrap();
        assert_eq!((first, second, third), (&[7, 8, 9][..], &[][..], &[5][..]));
        assert_eq!(rest, []);
        for bytes in [&[][..], &[0, 0, 0], &[1, 0, 0, 0], &[255; 12]] {
            assert_eq!(split_value(bytes), None);
        }
    }
}
