//! What no member of a sound group says, whatever has happened there.

use dhole_model::{NodeId, NodeMap};

use super::Settings;
use super::message::{GroupMessage, Part, State, ViewId, Wants};

/// Numbers, serials, views and attempts are below this, which no run comes near to.
const END: u64 = 1 << 56;

fn check_nodes<'a>(
    mut them: impl Iterator<Item = &'a NodeId>,
    nodes: usize,
) -> Result<(), &'static str> {
    match them.all(|node| node.index() < nodes) {
        true => Ok(()),
        false => Err("a node that is not in the cluster"),
    }
}

fn check_counts(counts: &[u64]) -> Result<(), &'static str> {
    match counts.iter().all(|count| *count < END) {
        true => Ok(()),
        false => Err("a number that no run reaches"),
    }
}

fn check_view(view: &ViewId, nodes: usize) -> Result<(), &'static str> {
    check_counts(&[view.number])?;
    check_nodes([&view.sequencer].into_iter(), nodes)
}

fn check_parts(parts: u32, settings: &Settings) -> Result<(), &'static str> {
    match (1..=settings.window).contains(&parts) {
        true => Ok(()),
        false => Err("a broadcast of no parts, or of more than may be"),
    }
}

pub(super) fn check_part(
    part: &Part,
    nodes: usize,
    settings: &Settings,
) -> Result<(), &'static str> {
    check_nodes([&part.origin].into_iter(), nodes)?;
    check_counts(&[part.serial])?;
    check_parts(part.parts, settings)?;
    match part.part < part.parts {
        true => Ok(()),
        false => Err("a part beyond the last"),
    }
}

fn check_own(part: &Part, from: NodeId) -> Result<(), &'static str> {
    match part.origin == from {
        true => Ok(()),
        false => Err("the broadcast of another"),
    }
}

fn check_wants(wants: &Wants, nodes: usize) -> Result<(), &'static str> {
    let check = |them: &NodeMap<u64>| {
        check_nodes(them.keys(), nodes)?;
        them.values().try_for_each(|life| check_counts(&[*life]))
    };
    check(&wants.lost)?;
    check(&wants.leaving)?;
    check(&wants.joining)
}

fn check_list(list: &[NodeId], nodes: usize) -> Result<(), &'static str> {
    check_nodes(list.iter(), nodes)?;
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted.len() == list.len() {
        true => Ok(()),
        false => Err("a node that is listed twice"),
    }
}

fn check_state(state: &State, nodes: usize, settings: &Settings) -> Result<(), &'static str> {
    check_view(&state.view, nodes)?;
    check_list(&state.members, nodes)?;
    check_list(&state.electors, nodes)?;
    check_counts(&[state.start, state.done])?;
    let last = state.done + u64::from(settings.window);
    let in_order = state.held.windows(2).all(|pair| pair[0] < pair[1]);
    let within = |number: &u64| (state.done + 1..=last).contains(number);
    if !in_order || !state.held.iter().all(within) {
        return Err("a history that is out of order, or longer than it may be");
    }
    check_wants(&state.wants, nodes)
}

impl<B> GroupMessage<B> {
    /// What makes no sense from this node, whatever has happened.
    pub(super) fn check(
        &self,
        from: NodeId,
        nodes: usize,
        settings: &Settings,
    ) -> Result<(), &'static str> {
        if let Some(view) = self.view() {
            check_view(&view, nodes)?;
        }
        match self {
            GroupMessage::Submit { part, done, .. } | GroupMessage::Announce { part, done, .. } => {
                check_own(part, from)?;
                check_counts(&[*done])?;
                check_part(part, nodes, settings)
            }
            GroupMessage::Ask {
                serial,
                parts,
                done,
                ..
            } => {
                check_counts(&[*serial, *done])?;
                check_parts(*parts, settings)
            }
            GroupMessage::Grant {
                serial,
                first,
                stable,
                ..
            } => check_counts(&[*serial, *first, *stable]),
            GroupMessage::Accept {
                origin,
                serial,
                parts,
                first,
                stable,
                ..
            } => {
                check_nodes([origin].into_iter(), nodes)?;
                check_counts(&[*serial, *first, *stable])?;
                check_parts(*parts, settings)
            }
            GroupMessage::Data {
                number,
                part,
                stable,
                ..
            } => {
                check_counts(&[*number, *stable])?;
                check_part(part, nodes, settings)
            }
            GroupMessage::Fetch {
                first, last, done, ..
            } => check_counts(&[*first, *last, *done]),
            GroupMessage::Token {
                round,
                high,
                stable,
                ..
            } => check_counts(&[*round, *high, *stable]),
            // What it carries is checked as its root's.
            GroupMessage::Relay { root, link, .. } => {
                check_nodes([root].into_iter(), nodes)?;
                check_counts(&[*link])
            }
            GroupMessage::Credit { link, .. } => check_counts(&[*link]),
            GroupMessage::Have { done, .. } => check_counts(&[*done]),
            GroupMessage::Join { incarnation } => check_counts(&[*incarnation]),
            GroupMessage::Suspect { wants, .. } => check_wants(wants, nodes),
            GroupMessage::Collect {
                attempt,
                life,
                wants,
                ..
            } => {
                check_counts(&[*attempt, *life])?;
                check_wants(wants, nodes)
            }
            GroupMessage::State { attempt, state } => {
                check_counts(&[*attempt])?;
                check_state(state, nodes, settings)
            }
            GroupMessage::Gather { attempt, numbers } => {
                check_counts(&[*attempt])?;
                match numbers.len() <= settings.window as usize {
                    true => check_counts(numbers),
                    false => Err("a question for more than there may be"),
                }
            }
            GroupMessage::Gathered {
                attempt,
                number,
                part,
                ..
            } => {
                check_counts(&[*attempt, *number])?;
                check_part(part, nodes, settings)
            }
            GroupMessage::Install {
                attempt,
                view,
                members,
                electors,
                end,
            } => {
                check_counts(&[*attempt, *end])?;
                let lives = members.iter();
                let mut lives = lives.map(|member| [member.incarnation, member.serial]);
                lives.try_for_each(|life| check_counts(&life))?;
                let list: Vec<NodeId> = members.iter().map(|member| member.node).collect();
                check_list(&list, nodes)?;
                check_list(electors, nodes)?;
                match list.first() == Some(&from) && view.sequencer == from {
                    true => Ok(()),
                    false => Err("a view of which the sender is not the sequencer"),
                }
            }
            GroupMessage::Installed { .. }
            | GroupMessage::Active { .. }
            | GroupMessage::Out { .. } => Ok(()),
        }
    }

    /// The view in which the message is said, if it says one.
    pub(super) fn view(&self) -> Option<ViewId> {
        match self {
            GroupMessage::Submit { view, .. }
            | GroupMessage::Ask { view, .. }
            | GroupMessage::Grant { view, .. }
            | GroupMessage::Announce { view, .. }
            | GroupMessage::Accept { view, .. }
            | GroupMessage::Data { view, .. }
            | GroupMessage::Fetch { view, .. }
            | GroupMessage::Token { view, .. }
            | GroupMessage::Relay { view, .. }
            | GroupMessage::Credit { view, .. }
            | GroupMessage::Have { view, .. }
            | GroupMessage::Suspect { view, .. }
            | GroupMessage::Collect { view, .. }
            | GroupMessage::Install { view, .. }
            | GroupMessage::Installed { view }
            | GroupMessage::Active { view }
            | GroupMessage::Out { view, .. } => Some(*view),
            GroupMessage::Join { .. }
            | GroupMessage::State { .. }
            | GroupMessage::Gather { .. }
            | GroupMessage::Gathered { .. } => None,
        }
    }
}
