//! What no node of a sound cluster says about objects.

use dhole_model::{NodeId, VectorTime};

use super::MOST_CALLS;
use std::sync::Arc;

use super::call::{Call, CallId, Waiting};
use super::codec::{OperationReply, OperationRequest};
use super::message::{ObjectsMessage, Ordered, Strategy};
use crate::group::GroupMessage;

pub(super) fn check_time(time: &Option<VectorTime>, nodes: usize) -> Result<(), &'static str> {
    match time.as_ref().is_none_or(|time| time.nodes() == nodes) {
        true => Ok(()),
        false => Err("a vector time of a cluster of another size"),
    }
}

fn check_call(call: &Call, nodes: usize) -> Result<(), &'static str> {
    match call.id.node.index() < nodes {
        true => Ok(()),
        false => Err("a call of a node that is not in the cluster"),
    }
}

pub(super) fn check_blocked(blocked: &[Waiting], nodes: usize) -> Result<(), &'static str> {
    blocked.iter().try_for_each(|waiting| {
        check_call(&waiting.call, nodes)?;
        check_time(&waiting.time, nodes)
    })
}

impl OperationRequest<'_> {
    /// What makes no sense in a cluster of `nodes`, whatever has happened there.
    #[inline]
    pub(super) fn check(&self, from: NodeId, nodes: usize) -> Result<(), &'static str> {
        if let Some(news) = &self.news {
            news.check(nodes)?;
        }
        check_request(from, self.call.id, &self.time, nodes)
    }
}

impl OperationReply<'_> {
    /// As of an [`OperationRequest`].
    #[inline]
    pub(super) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        self.news.as_ref().map_or(Ok(()), |news| news.check(nodes))
    }
}

#[inline]
fn check_request(
    from: NodeId,
    call: CallId,
    time: &Option<VectorTime>,
    nodes: usize,
) -> Result<(), &'static str> {
    match call.node == from {
        true => check_time(time, nodes),
        false => Err("a request in another node's name"),
    }
}

impl ObjectsMessage {
    /// What makes no sense in a cluster of `nodes`, whatever has happened there.
    pub(crate) fn check(&self, from: NodeId, nodes: usize) -> Result<(), &'static str> {
        if let Some(news) = self.news() {
            news.check(nodes)?;
        }
        match self {
            ObjectsMessage::Request { call, time, .. } => check_request(from, call.id, time, nodes),
            ObjectsMessage::Batch { calls, .. } if calls.is_empty() || calls.len() > MOST_CALLS => {
                Err("calls that are no batch")
            }
            ObjectsMessage::Batch { time, .. } => check_time(time, nodes),
            ObjectsMessage::Spawn { start, .. } | ObjectsMessage::SpawnInChain { start, .. } => {
                if start.by.node != from {
                    return Err("a process started in another node's name");
                }
                check_time(&start.time, nodes)
            }
            ObjectsMessage::Elsewhere {
                at: Strategy::In(_),
                ..
            } => Err("an object that has gone to a clerk"),
            ObjectsMessage::Elsewhere {
                at: Strategy::On(node),
                ..
            } if node.index() >= nodes => Err("a place that is not in the cluster"),
            ObjectsMessage::CreateIn { clerk, .. } if clerk.most == 0 => {
                Err("a clerk that admits no call")
            }
            ObjectsMessage::Create { by, object, .. }
            | ObjectsMessage::CreateIn { by, object, .. } => {
                let is_of_sender = by.node == from && object.creator(nodes) == from;
                match is_of_sender && object.lock().is_none() {
                    true => Ok(()),
                    false => Err("an object made in another node's name"),
                }
            }
            ObjectsMessage::Migrate { blocked, .. } => check_blocked(blocked, nodes),
            ObjectsMessage::Withdraw { by, .. } => check_request(from, *by, &None, nodes),
            ObjectsMessage::Reply { .. }
            | ObjectsMessage::BatchReply { .. }
            | ObjectsMessage::Blocked { .. }
            | ObjectsMessage::NotWithdrawn { .. }
            | ObjectsMessage::Elsewhere { .. }
            | ObjectsMessage::Group(_)
            | ObjectsMessage::Digests { .. } => Ok(()),
        }
    }
}

impl Ordered {
    /// What makes no sense in a cluster of `nodes`.
    fn check(&self, nodes: usize) -> Result<(), &'static str> {
        if self.by().is_some_and(|by| by.node.index() >= nodes) {
            return Err("a call of a node that is not in the cluster");
        }
        match self {
            Ordered::Change {
                to: Strategy::In(_),
                ..
            } => return Err("an object that is to go to a clerk"),
            Ordered::Change {
                to: Strategy::On(node),
                ..
            } if node.index() >= nodes => return Err("a place that is not in the cluster"),
            Ordered::Placed { at, .. } | Ordered::Constructed { at, .. } if at.index() >= nodes => {
                return Err("a place that is not in the cluster");
            }
            Ordered::Install { blocked, .. } => check_blocked(blocked, nodes)?,
            Ordered::Withdraw { by, .. } if by.node.index() >= nodes => {
                return Err("a call of a node that is not in the cluster");
            }
            Ordered::Operate { time, .. } => check_time(time, nodes)?,
            _ => {}
        }
        self.news().map_or(Ok(()), |news| news.check(nodes))
    }
}

/// What makes no sense of a message of the group in a cluster of `nodes`, but for the order, which
/// is the group's to judge.
pub fn check_group(message: &GroupMessage<Arc<Ordered>>, nodes: usize) -> Result<(), &'static str> {
    message.body().map_or(Ok(()), |body| body.check(nodes))
}
