//! What no node of a sound cluster says about objects.

use dhole_model::{NodeId, VectorTime};

use super::MOST_CALLS;
use std::sync::Arc;

use super::call::{Call, Waiting};
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

impl ObjectsMessage {
    /// What makes no sense in a cluster of `nodes`, whatever has happened there.
    pub(crate) fn check(&self, from: NodeId, nodes: usize) -> Result<(), &'static str> {
        if let Some(news) = self.news() {
            news.check(nodes)?;
        }
        match self {
            ObjectsMessage::Request {
                calls,
                together,
                time,
                ..
            } => {
                if calls.iter().any(|call| call.id.node != from) {
                    return Err("a request in another node's name");
                }
                let most = if *together { MOST_CALLS } else { 1 };
                if calls.is_empty() || calls.len() > most {
                    return Err("calls that are no batch");
                }
                check_time(time, nodes)
            }
            ObjectsMessage::Bare { call, .. } if call.id.node != from => {
                Err("a request in another node's name")
            }
            ObjectsMessage::BareBatch { calls, .. }
                if calls.is_empty() || calls.len() > MOST_CALLS =>
            {
                Err("calls that are no batch")
            }
            ObjectsMessage::Spawn { start, .. } => {
                if start.by.node != from {
                    return Err("a process started in another node's name");
                }
                check_time(&start.time, nodes)
            }
            ObjectsMessage::Elsewhere {
                at: Strategy::On(node),
                ..
            } if node.index() >= nodes => Err("a place that is not in the cluster"),
            ObjectsMessage::Create { by, object, .. } => {
                match by.node == from && object.creator(nodes) == from {
                    true => Ok(()),
                    false => Err("an object made in another node's name"),
                }
            }
            ObjectsMessage::Migrate { blocked, .. } => check_blocked(blocked, nodes),
            ObjectsMessage::Reply {
                answers,
                together: false,
                ..
            } if answers.len() != 1 => Err("answers to what is no batch"),
            ObjectsMessage::Bare { .. }
            | ObjectsMessage::BareBatch { .. }
            | ObjectsMessage::Reply { .. }
            | ObjectsMessage::BareReply { .. }
            | ObjectsMessage::BareAnswers { .. }
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
                to: Strategy::On(node),
                ..
            } if node.index() >= nodes => return Err("a place that is not in the cluster"),
            Ordered::Placed { at, .. } if at.index() >= nodes => {
                return Err("a place that is not in the cluster");
            }
            Ordered::Install { blocked, .. } => check_blocked(blocked, nodes)?,
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
