use std::fmt;

use stateright::{Checker, HasDiscoveries, Model};

use crate::model::{Cluster, Fault, Sight};

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The program's name.
    pub program: &'static str,
    /// Different states.
    pub states: usize,
    /// Steps from state to state.
    pub steps: usize,
    /// The longest run.
    pub longest: usize,
    /// The faults, each with the path to it.
    pub faults: Vec<(Fault, String)>,
    /// The events that no run showed.
    pub unseen: Vec<Sight>,
}

impl Explored {
    /// Whether the fault was found.
    pub fn shows(&self, fault: Fault) -> bool {
        self.faults.iter().any(|(other, _)| *other == fault)
    }

    /// Asserts that nothing went wrong and everything was seen.
    ///
    /// # Panics
    /// When that is not so, with the way to the first fault.
    #[track_caller]
    pub fn assert_sound(&self) {
        assert!(self.faults.is_empty() && self.unseen.is_empty(), "{self}");
        println!("{self}");
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explored {
            program,
            states,
            steps,
            longest,
            faults,
            unseen,
        } = self;
        write!(
            f,
            "{program}: {states} states, {steps} steps, longest run {longest}"
        )?;
        for (fault, way) in faults {
            write!(f, "\nnot so: {}\n{way}", fault.property())?;
        }
        match unseen.is_empty() {
            true => Ok(()),
            false => write!(f, "\nnever seen: {unseen:?}"),
        }
    }
}

/// Takes every step from every state; ends at the first fault.
pub fn explore(cluster: Cluster) -> Explored {
    explore_until(cluster, HasDiscoveries::AnyFailures)
}

/// Takes every step from every state until it has found `fault`, also after other faults.
pub fn hunt(cluster: Cluster, fault: Fault) -> Explored {
    explore_until(cluster, HasDiscoveries::AllOf([fault.property()].into()))
}

fn explore_until(cluster: Cluster, end: HasDiscoveries) -> Explored {
    let program = cluster.program.name;
    let checker = cluster
        .checker()
        .threads(2)
        .finish_when(end)
        .spawn_dfs()
        .join();
    let discoveries = checker.discoveries();
    let way = |fault: &Fault| {
        let path = discoveries.get(fault.property())?;
        let mut way = String::new();
        for (number, action) in path.clone().into_actions().iter().enumerate() {
            way += &format!("{number:4} {action:?}\n");
        }
        Some((*fault, format!("{way}{:?}", path.last_state())))
    };
    let unseen = |sight: &Sight| !discoveries.contains_key(sight.property());
    Explored {
        program,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        longest: checker.max_depth(),
        faults: Fault::ALL.iter().filter_map(way).collect(),
        unseen: checker
            .model()
            .sights
            .iter()
            .copied()
            .filter(unseen)
            .collect(),
    }
}
