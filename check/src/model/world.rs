//! Models of machines that talk by messages: every run of a small program on several nodes, with
//! messages that arrive in any order. What these models have in common is here: nodes, messages on
//! their way, hashes, and how all steps are taken. A model brings its ghosts, properties and
//! planted bugs.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

use dhole_model::{Named, NodeId};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::Sealed;

/// What a model can find: a property that fails, or what some run must show.
pub trait Finding: Named + Eq + Hash + Debug + Send + Sync {}

impl<F: Named + Eq + Hash + Debug + Send + Sync> Finding for F {}

/// Where no run has to show anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NoSight {}

impl Named for NoSight {
    const VARIANTS: &'static [NoSight] = &[];

    fn named(self) -> &'static str {
        match self {}
    }
}

/// A model of machines.
pub(super) trait Scene: Clone + Send + Sync + 'static {
    /// What nodes say to each other.
    type Message: Clone + PartialEq + Hash + Debug + Send + Sync;
    /// A node: its machine, and what the model knows beside that.
    type Node: Clone + PartialEq + Hash + Debug + Send + Sync;
    /// What comes with a message, as far as the model knows it.
    type Holds: Clone + PartialEq + Hash + Debug + Send + Sync;
    /// What no node knows.
    type Ghosts: Clone + PartialEq + Hash + Debug + Send + Sync;
    /// What can happen beside a message that arrives.
    type Happens: Clone + PartialEq + Debug + Send + Sync;
    /// What can be wrong.
    type Fault: Finding;
    /// What some run must show.
    type Sight: Finding;

    /// The nodes and ghosts at first.
    fn first(&self) -> (Vec<Self::Node>, Self::Ghosts);

    /// What can happen next, beside a message that arrives.
    fn happenings(&self, world: &World<Self>, into: &mut Vec<Self::Happens>);

    /// Whether a node takes messages now.
    fn takes(&self, world: &World<Self>, node: usize) -> bool {
        let (_, _) = (world, node);
        true
    }

    /// Something happens.
    fn happen(step: &mut Step<'_, Self>, what: Self::Happens);

    /// A message arrives.
    fn deliver(step: &mut Step<'_, Self>, parcel: ParcelOf<Self>);

    /// What is wrong with a moment in which no message is on its way, if nothing can happen.
    fn at_rest(&self, world: &World<Self>) -> Option<Self::Fault>;

    /// Whether a moment shows this.
    fn shows(&self, world: &World<Self>, sight: Self::Sight) -> bool;
}

/// A message on its way, and what comes with it.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Parcel<M, H> {
    pub from: NodeId,
    pub to: NodeId,
    pub message: M,
    pub holds: H,
}

pub(super) type ParcelOf<S> = Parcel<<S as Scene>::Message, <S as Scene>::Holds>;

/// Everything about one moment of a run.
#[derive(Clone, PartialEq, Hash)]
pub(super) struct Moment<N, P, G, F> {
    pub nodes: Vec<Sealed<N>>,
    /// In the order of their hashes.
    parcels: Vec<Sealed<P>>,
    pub ghosts: G,
    pub fault: Option<F>,
}

pub(super) type World<S> =
    Moment<<S as Scene>::Node, ParcelOf<S>, <S as Scene>::Ghosts, <S as Scene>::Fault>;

impl<N, P, G, F> Deref for Moment<N, P, G, F> {
    type Target = G;
    fn deref(&self) -> &G {
        &self.ghosts
    }
}

impl<N, P, G, F> DerefMut for Moment<N, P, G, F> {
    fn deref_mut(&mut self) -> &mut G {
        &mut self.ghosts
    }
}

impl<N: Debug, P, G: Debug, F: Debug> Debug for Moment<N, P, G, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, node) in self.nodes.iter().enumerate() {
            writeln!(f, "  n{number} {:?}", **node)?;
        }
        writeln!(f, "  {:?} {:?}", self.ghosts, self.fault)
    }
}

impl<N, P, G, F> Moment<N, P, G, F> {
    /// The messages on their way.
    pub fn parcels(&self) -> impl Iterator<Item = &P> {
        self.parcels.iter().map(|parcel| &**parcel)
    }
}

/// One happening: the moment that it makes.
pub(super) struct Step<'a, S: Scene> {
    pub model: &'a S,
    pub moment: World<S>,
}

impl<S: Scene> Step<'_, S> {
    pub fn fault(&mut self, fault: S::Fault) {
        self.moment.fault = self.moment.fault.or(Some(fault));
    }

    pub fn put(&mut self, parcel: ParcelOf<S>) {
        let parcel = Sealed::new(parcel);
        let before = |other: &Sealed<ParcelOf<S>>| other.fingerprint() < parcel.fingerprint();
        let place = self.moment.parcels.partition_point(before);
        self.moment.parcels.insert(place, parcel);
    }

    /// Messages are lost, on their way.
    pub fn lose(&mut self, lost: impl Fn(&ParcelOf<S>) -> bool) {
        self.moment.parcels.retain(|parcel| !lost(parcel));
    }

    /// Changes a node.
    pub fn node<R>(&mut self, at: usize, f: impl FnOnce(&mut S::Node) -> R) -> R {
        let mut node = S::Node::clone(&self.moment.nodes[at]);
        let result = f(&mut node);
        self.moment.nodes[at] = Sealed::new(node);
        result
    }
}

/// Something that can happen next.
#[derive(Clone, PartialEq)]
enum Next<H, P> {
    Happens(H),
    /// The message at this place arrives.
    Arrives(usize, Sealed<P>),
}

impl<H: Debug, P: Debug> Debug for Next<H, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Next::Happens(what) => what.fmt(f),
            Next::Arrives(_, parcel) => (**parcel).fmt(f),
        }
    }
}

/// A model, as the checker knows it.
struct Explored<S>(S);

impl<S: Scene> Model for Explored<S> {
    type State = World<S>;
    type Action = Next<S::Happens, ParcelOf<S>>;

    fn init_states(&self) -> Vec<World<S>> {
        let (nodes, ghosts) = self.0.first();
        vec![Moment {
            nodes: nodes.into_iter().map(Sealed::new).collect(),
            parcels: Vec::new(),
            ghosts,
            fault: None,
        }]
    }

    fn actions(&self, world: &World<S>, next: &mut Vec<Self::Action>) {
        if world.fault.is_some() {
            return;
        }
        let mut happens = Vec::new();
        self.0.happenings(world, &mut happens);
        next.extend(happens.into_iter().map(Next::Happens));
        for (place, parcel) in world.parcels.iter().enumerate() {
            let again = place > 0 && world.parcels[place - 1] == *parcel;
            if !again && self.0.takes(world, parcel.to.index()) {
                next.push(Next::Arrives(place, parcel.clone()));
            }
        }
    }

    fn next_state(&self, last: &World<S>, next: Self::Action) -> Option<World<S>> {
        let mut step = Step {
            model: &self.0,
            moment: last.clone(),
        };
        match next {
            Next::Happens(what) => S::happen(&mut step, what),
            Next::Arrives(place, _) => {
                let parcel = ParcelOf::<S>::clone(&step.moment.parcels.remove(place));
                S::deliver(&mut step, parcel);
            }
        }
        if step.moment.fault.is_none() && step.moment.parcels.is_empty() {
            step.moment.fault = self.0.at_rest(&step.moment);
        }
        Some(step.moment)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // A property is a function without anything of its own: one for each place in the lists.
        macro_rules! each {
            ($of:ident: $($place:literal)*) => {[$($of::<S, $place>),*]};
        }
        let never = each!(never: 0 1 2 3 4 5 6 7 8 9);
        let shows = each!(shows: 0 1 2 3 4 5 6 7 8 9);
        assert!(S::Fault::VARIANTS.len() <= never.len() && S::Sight::VARIANTS.len() <= shows.len());
        let faults = S::Fault::VARIANTS.iter().zip(never);
        let faults = faults.map(|(fault, of)| Property::always(fault.named(), of));
        let sights = S::Sight::VARIANTS.iter().zip(shows);
        let sights = sights.map(|(sight, of)| Property::sometimes(sight.named(), of));
        faults.chain(sights).collect()
    }
}

fn never<S: Scene, const PLACE: usize>(_: &Explored<S>, world: &World<S>) -> bool {
    world.fault != S::Fault::VARIANTS.get(PLACE).copied()
}

fn shows<S: Scene, const PLACE: usize>(model: &Explored<S>, world: &World<S>) -> bool {
    let sight = S::Sight::VARIANTS.get(PLACE);
    sight.is_some_and(|sight| model.0.shows(world, *sight))
}

/// The result of an exploration, by its faults and sights.
pub struct Found<F, S> {
    /// Different states.
    pub states: usize,
    /// The property that fails, with the way to it.
    pub fault: Option<(F, String)>,
    /// What was seen in some run.
    pub seen: Vec<S>,
}

/// Takes every step from every state, until the first fault.
pub(super) fn explore<S: Scene>(model: S) -> Found<S::Fault, S::Sight> {
    let end = HasDiscoveries::AnyFailures;
    let checker = Explored(model).checker().threads(2).finish_when(end);
    let checker = checker.spawn_dfs().join();
    let discoveries = checker.discoveries();
    let fault = S::Fault::VARIANTS.iter().find_map(|fault| {
        let path = discoveries.get(fault.named())?;
        let mut way = String::new();
        for (number, action) in path.clone().into_actions().iter().enumerate() {
            way += &format!("{number:4} {action:?}\n");
        }
        Some((*fault, format!("{way}{:?}", path.last_state())))
    });
    let seen = S::Sight::VARIANTS.iter().copied();
    let seen = seen.filter(|sight| discoveries.contains_key(sight.named()));
    Found {
        states: checker.unique_state_count(),
        fault,
        seen: seen.collect(),
    }
}
