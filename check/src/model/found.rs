//! What comes of an exploration.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// The result of an exploration, by its faults and sights.
pub struct Found<F, S> {
    /// Different states.
    pub states: usize,
    /// The property that fails, with the way to it.
    pub fault: Option<(F, String)>,
    /// What was seen in some run.
    pub seen: Vec<S>,
}

/// Takes every step from every state, until the first fault. Faults and sights come with their
/// properties.
pub(super) fn found<M, F, S>(
    model: M,
    faults: impl IntoIterator<Item = (F, &'static str)>,
    sights: impl IntoIterator<Item = (S, &'static str)>,
) -> Found<F, S>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let end = HasDiscoveries::AnyFailures;
    let checker = model.checker().threads(2).finish_when(end);
    let checker = checker.spawn_dfs().join();
    let discoveries = checker.discoveries();
    let fault = faults.into_iter().find_map(|(fault, property)| {
        let path = discoveries.get(property)?;
        let mut way = String::new();
        for (number, action) in path.clone().into_actions().iter().enumerate() {
            way += &format!("{number:4} {action:?}\n");
        }
        Some((fault, format!("{way}{:?}", path.last_state())))
    });
    let seen = sights.into_iter();
    let seen = seen.filter(|(_, property)| discoveries.contains_key(property));
    Found {
        states: checker.unique_state_count(),
        fault,
        seen: seen.map(|(sight, _)| sight).collect(),
    }
}
