//! The properties of a model of a whole cluster, by its faults and sights.

use dhole_model::Named;
use stateright::{Model, Property};

/// A fault that no state of a model may have, or a sight that some state must show.
pub(super) trait Shown<M: Model>: Named {
    /// Whether this state has it.
    fn is_shown(self, model: &M, state: &M::State) -> bool;
}

type Condition<M> = fn(&M, &<M as Model>::State) -> bool;

/// A property's condition is a function pointer, which captures nothing: one for each place in a
/// list of findings.
macro_rules! at_each_place {
    ($condition:ident, $($place:literal)*) => { [$($condition::<M, F, $place>),*] };
    ($condition:ident) => {
        at_each_place!($condition, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
            24 25 26 27 28 29 30 31)
    };
}

fn conditions<M: Model, F: Shown<M>>(never: bool) -> [Condition<M>; 32] {
    fn is_shown<M: Model, F: Shown<M>, const AT: usize>(model: &M, state: &M::State) -> bool {
        F::VARIANTS[AT].is_shown(model, state)
    }
    fn is_not<M: Model, F: Shown<M>, const AT: usize>(model: &M, state: &M::State) -> bool {
        !F::VARIANTS[AT].is_shown(model, state)
    }
    assert!(F::VARIANTS.len() <= 32, "each finding has a place");
    match never {
        true => at_each_place!(is_not),
        false => at_each_place!(is_shown),
    }
}

/// That no state has one of these faults, all that there are.
pub(super) fn faults<M: Model, F: Shown<M>>() -> impl Iterator<Item = Property<M>> {
    let conditions = conditions::<M, F>(true);
    let all = F::VARIANTS.iter().zip(conditions);
    all.map(|(fault, condition)| Property::always(fault.named(), condition))
}

/// That some state shows each of these sights.
pub(super) fn sights<M: Model, F: Shown<M>>(sights: &[F]) -> impl Iterator<Item = Property<M>> {
    let conditions = conditions::<M, F>(false);
    let all = F::VARIANTS.iter().zip(conditions);
    let wanted = all.filter(|(sight, _)| sights.contains(sight));
    wanted.map(|(sight, condition)| Property::sometimes(sight.named(), condition))
}
