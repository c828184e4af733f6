//! Hands a body on to the node into whose part of space it has moved.

use std::collections::BTreeMap;

use dhole::{Lock, Worker};

use super::objects::Universe;
use super::parts::Parts;
use crate::barnes::body::NO_BODY;
use crate::barnes::place::{Place, Root};

/// Sorts out `places`, those of the bodies that this node owns: those in its own part are
/// returned, the bodies of the others are put into their nodes' inboxes. It belongs into the
/// interval in which the bodies were moved: then the chains are made of bodies that are being
/// written anyway.
///
/// # Errors
/// Those of the locks.
pub fn hand_on(
    w: &mut Worker<'_>,
    universe: &Universe,
    parts: &Parts,
    mut places: Vec<Place>,
) -> dhole::Result<Vec<Place>> {
    let me = w.node().index();
    let mut leaving: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    places.retain(|place| {
        let node = parts.node_of(place.key);
        if node != me {
            leaving.entry(node).or_default().push(place.body);
        }
        node == me
    });
    // All chains are made before the first lock is taken: one interval, and no lock is held long.
    for chain in leaving.values() {
        for pair in chain.windows(2) {
            universe.bodies.at(pair[0] as usize).get_mut(w).next = pair[1];
        }
    }
    // Each node begins with the one after it, so that not all want the same lock.
    let (before, after): (Vec<_>, Vec<_>) = leaving.iter().partition(|(node, _)| **node < me);
    for (&node, chain) in after.into_iter().chain(before) {
        if let (Some(&first), Some(&last)) = (chain.first(), chain.last()) {
            let inbox = universe.inboxes.at(node);
            Lock::numbered(node as u32).with(w, |w| {
                let head = inbox.get(w).head;
                universe.bodies.at(last as usize).get_mut(w).next = head;
                inbox.get_mut(w).head = first;
                Ok(())
            })?;
        }
    }
    Ok(places)
}

/// The places of all bodies in this node's part, sorted, once all nodes have handed on theirs:
/// those that stayed and those in its inbox, which is empty afterwards.
pub fn take_in(
    w: &mut Worker<'_>,
    universe: &Universe,
    root: Root,
    mut places: Vec<Place>,
) -> Vec<Place> {
    let inbox = universe.inboxes.at(w.node().index());
    let mut body = inbox.get(w).head;
    if body != NO_BODY {
        inbox.get_mut(w).head = NO_BODY;
    }
    while body != NO_BODY {
        places.push(place_of(w, universe, root, body));
        body = universe.bodies.at(body as usize).get(w).next;
    }
    places.sort();
    places
}

/// Hands on all bodies once more, by new parts of a new root cube, in which all keys are others.
/// What stays is returned, as by [`hand_on`]; a barrier has been passed.
///
/// # Errors
/// Those of locks and barriers.
pub fn again(
    w: &mut Worker<'_>,
    universe: &Universe,
    root: Root,
    parts: &Parts,
    staying: Vec<Place>,
) -> dhole::Result<Vec<Place>> {
    let mut places = take_in(w, universe, root, staying);
    for place in &mut places {
        *place = place_of(w, universe, root, place.body);
    }
    // Nobody puts bodies into an inbox that has not been emptied yet.
    w.barrier()?;
    let staying = hand_on(w, universe, parts, places)?;
    w.barrier()?;
    Ok(staying)
}

fn place_of(w: &Worker<'_>, universe: &Universe, root: Root, body: u32) -> Place {
    Place {
        key: root.key(universe.bodies.at(body as usize).get(w).pos),
        body,
    }
}
