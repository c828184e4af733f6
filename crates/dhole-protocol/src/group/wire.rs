//! How many bytes a group's message takes on a wire.

use std::collections::BTreeMap;

use dhole_model::NodeId;

use super::message::{Cast, GroupMessage, Wants};

const NODE: u64 = 2;
const COUNT: u64 = 4;
/// A number, a serial, an incarnation.
const NUMBER: u64 = 8;
const VIEW: u64 = NUMBER + NODE;
const PARTS: u64 = 4;
const PART: u64 = NODE + NUMBER + 2 * PARTS;
const FLAG: u64 = 1;
/// As [`GroupMessage::Submit`], without what is submitted.
pub(crate) const SUBMIT: u64 = VIEW + PART + NUMBER;
/// As [`GroupMessage::Data`], without what is numbered.
pub(crate) const DATA: u64 = VIEW + NUMBER + PART + NUMBER;

fn nodes_bytes(nodes: &[NodeId]) -> u64 {
    COUNT + NODE * nodes.len() as u64
}

fn wants_bytes(wants: &Wants) -> u64 {
    let bytes = |lives: &BTreeMap<NodeId, u64>| COUNT + (NODE + NUMBER) * lives.len() as u64;
    bytes(&wants.lost) + bytes(&wants.leaving) + bytes(&wants.joining)
}

impl<B> GroupMessage<B> {
    /// What is broadcast, or a part of it, if the message carries it.
    pub fn body(&self) -> Option<&B> {
        match self {
            GroupMessage::Submit { body, .. }
            | GroupMessage::Announce { body, .. }
            | GroupMessage::Data { body, .. }
            | GroupMessage::Gathered { body, .. }
            | GroupMessage::Relay {
                cast: Cast::Data { body, .. } | Cast::Announce { body, .. },
                ..
            } => Some(body),
            _ => None,
        }
    }

    /// Bytes that the message takes on a wire, without what is broadcast and without a frame.
    pub fn wire_bytes(&self) -> u64 {
        match self {
            GroupMessage::Submit { .. } | GroupMessage::Announce { .. } => SUBMIT,
            GroupMessage::Ask { .. } => VIEW + NUMBER + PARTS + NUMBER,
            GroupMessage::Grant { .. } => VIEW + 3 * NUMBER,
            GroupMessage::Accept { .. } => VIEW + NODE + NUMBER + PARTS + 2 * NUMBER,
            GroupMessage::Data { .. } => DATA,
            GroupMessage::Fetch { .. } | GroupMessage::Token { .. } => VIEW + 3 * NUMBER,
            GroupMessage::Relay { cast, .. } => {
                let cast = match cast {
                    Cast::Data { .. } => NUMBER + PART + NUMBER,
                    Cast::Announce { .. } => PART + NUMBER,
                    Cast::Accept { .. } => NODE + NUMBER + PARTS + 2 * NUMBER,
                };
                VIEW + NODE + NUMBER + FLAG + cast
            }
            GroupMessage::Credit { .. } => VIEW + NUMBER,
            GroupMessage::Have { .. } => VIEW + NUMBER + FLAG,
            GroupMessage::Join { .. } => NUMBER,
            GroupMessage::Suspect { wants, .. } => VIEW + wants_bytes(wants),
            GroupMessage::Collect { wants, .. } => VIEW + 2 * NUMBER + wants_bytes(wants),
            GroupMessage::State { state, .. } => {
                let lists = nodes_bytes(&state.members) + nodes_bytes(&state.electors);
                let held = COUNT + NUMBER * state.held.len() as u64;
                NUMBER + VIEW + lists + 2 * NUMBER + held + wants_bytes(&state.wants)
            }
            GroupMessage::Gather { numbers, .. } => NUMBER + COUNT + NUMBER * numbers.len() as u64,
            GroupMessage::Gathered { .. } => NUMBER + NUMBER + PART,
            GroupMessage::Install {
                members, electors, ..
            } => {
                let members = COUNT + (NODE + 2 * NUMBER) * members.len() as u64;
                NUMBER + VIEW + members + nodes_bytes(electors) + NUMBER
            }
            GroupMessage::Installed { .. } | GroupMessage::Active { .. } => VIEW,
            GroupMessage::Out { .. } => VIEW + FLAG + 2 * NUMBER,
        }
    }
}
