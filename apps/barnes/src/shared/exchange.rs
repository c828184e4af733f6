//! Hands a body on to the node into whose part of space it has moved.

use std::collections::BTreeMap;

use dhole::{Access, Lock, Ref, Worker};

use super::objects::{PARCEL, Parcel, Universe};
use super::parts::Parts;
use crate::Body;
use crate::place::{Place, Root};
use apps_common::pool::Pool;

/// Sorts out `places`, those of the bodies that this node owns: those in its own part are
/// returned, the bodies of the others are put into their nodes' inboxes, in parcels of this node.
/// All nodes have taken in what was handed on before.
///
/// # Errors
/// Those of the locks.
pub fn hand_on(
    w: &mut Worker<'_>,
    universe: &Universe,
    parts: &Parts,
    parcels: &mut Pool<Parcel>,
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
    // All are packed before the first lock is taken: one interval, and no lock is held long.
    parcels.reuse();
    let mut packed = BTreeMap::new();
    for (node, bodies) in leaving {
        packed.insert(node, pack(w, universe, parcels, &bodies));
    }
    // Each node begins with the one after it, so that not all want the same lock.
    let (before, after): (Vec<_>, Vec<_>) = packed.iter().partition(|(node, _)| **node < me);
    for (&node, chain) in after.into_iter().chain(before) {
        if let Some((first, last)) = *chain {
            let inbox = universe.inboxes.at(node);
            Lock::numbered(node as u32).with(w, |w| {
                let head = inbox.get(w).head;
                last.get_mut(w).next = head;
                inbox.get_mut(w).head = Some(first);
                Ok(())
            })?;
        }
    }
    Ok(places)
}

/// Packs the bodies of these numbers into parcels, each of which names the next: the first one and
/// the last one.
pub fn pack(
    w: &mut Worker<'_>,
    universe: &Universe,
    parcels: &mut Pool<Parcel>,
    bodies: &[u32],
) -> Option<(Ref<Parcel>, Ref<Parcel>)> {
    let mut packed: Option<(Ref<Parcel>, Ref<Parcel>)> = None;
    for some in bodies.rchunks(PARCEL) {
        let mut parcel = Parcel {
            next: packed.map(|(first, _)| first),
            ..Parcel::default()
        };
        for (place, &body) in parcel.bodies.iter_mut().zip(some) {
            *place = Some(universe.bodies.at(body as usize));
        }
        let first = parcels.take(w, parcel);
        packed = Some((first, packed.map_or(first, |(_, last)| last)));
    }
    packed
}

/// The places of all bodies in this node's part, sorted, once all nodes have handed on theirs:
/// those that stayed and those in its inbox, which is empty afterwards.
pub fn take_in(
    w: &mut Worker<'_>,
    universe: &Universe,
    root: Root,
    mut places: Vec<Place>,
    passes: bool,
) -> dhole::Result<Vec<Place>> {
    let inbox = universe.inboxes.at(w.node().index());
    let mut next = inbox.get(w).head;
    if next.is_some() {
        inbox.get_mut(w).head = None;
    }
    let mut in_passes = Vec::new();
    while let Some(parcel) = next {
        let parcel = parcel.get(w);
        let bodies = parcel.bodies.iter().flatten();
        match passes {
            true => in_passes.extend(bodies),
            // At once, for they come along with their parcel.
            false => places.extend(bodies.map(|body| place_of(&*w, universe, root, *body))),
        }
        next = parcel.next;
    }
    places.extend(w.in_passes(&in_passes, |pass, body| {
        Ok(place_of(pass, universe, root, *body))
    })?);
    places.sort();
    Ok(places)
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
    parcels: &mut Pool<Parcel>,
    staying: Vec<Place>,
    passes: bool,
) -> dhole::Result<Vec<Place>> {
    let mut places = take_in(w, universe, root, staying, passes)?;
    for place in &mut places {
        let body = universe.bodies.at(place.body as usize);
        *place = place_of(w, universe, root, body);
    }
    // Nobody puts bodies into an inbox that has not been emptied yet.
    w.barrier()?;
    let staying = hand_on(w, universe, parts, parcels, places)?;
    w.barrier()?;
    Ok(staying)
}

fn place_of<'id>(w: &impl Access<'id>, universe: &Universe, root: Root, body: Ref<Body>) -> Place {
    Place {
        key: root.key(body.get(w).pos),
        body: universe.number(body),
    }
}
