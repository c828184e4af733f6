//! A step in which each node looks at all other molecules for each of its own, as Jackal's program
//! does (section 7): it writes the forces on its own molecules only, and each pair is looked at
//! twice.

use std::time::Duration;

use dhole::{Result, Worker};

use super::section::{self, Section};
use crate::water::inter::Sites;
use crate::water::outcome::Finding;
use crate::water::{Alone, Atoms, Energy, Outcome, Pairs, Problem};

/// How the positions of molecules go from node to node.
pub(super) trait Exchange {
    /// Shows where the node's molecules are. `sees` is called with the number of each other one and
    /// where its atoms are.
    ///
    /// # Errors
    /// Those of the runtime.
    fn exchange(
        &mut self,
        w: &mut Worker<'_>,
        own: &[Atoms],
        sees: impl FnMut(usize, &Atoms),
    ) -> Result<()>;
}

/// Solves `problem` with such an exchange before the first step, and in each. The result is
/// complete on all nodes.
///
/// # Errors
/// Those of the runtime.
pub(super) fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    mut exchange: impl Exchange,
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    let own = section::section(problem.molecules, w.node().index(), w.nodes());
    let mut section = Section::new(problem, own.clone());
    let mut found = Finding::default();
    let (potential, _) = act(w, &mut exchange, &mut section)?;
    found.start = potential;
    found.start.add(&section.start(&on_own(&section)));
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        section.predict();
        let (potential, pairs) = act(w, &mut exchange, &mut section)?;
        w.work(section.units(pairs));
        found.end = potential;
        found.end.add(&section.correct(&on_own(&section)));
        found.count(pairs);
        after_step(step + 1);
    }
    w.barrier()?;
    let steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if let Some(alone) = solution {
        for (number, motion) in own.zip(&section.motions) {
            found.compare(&section.system, &motion.terms[0], &alone.atoms[number]);
        }
    }
    outcome(w, found, problem, solution, steps)
}

fn act(
    w: &mut Worker<'_>,
    exchange: &mut impl Exchange,
    section: &mut Section,
) -> Result<(Energy, Pairs)> {
    let own: Vec<Atoms> = section.motions.iter().map(|it| it.terms[0]).collect();
    let sites = &mut section.sites;
    exchange.exchange(w, &own, |number, atoms| sites[number] = Sites::new(atoms))?;
    let within = section.act_within();
    let (between, pairs) = section.act_with_all();
    let energy = Energy {
        within,
        between,
        ..Energy::default()
    };
    Ok((energy, pairs))
}

fn on_own(section: &Section) -> Vec<Atoms> {
    section.forces[section.own.clone()].to_vec()
}

fn outcome(
    w: &mut Worker<'_>,
    found: Finding,
    problem: &Problem,
    solution: Option<&Alone>,
    steps: Duration,
) -> Result<Outcome> {
    let findings = w.once(|w| Ok(w.alloc_range(w.nodes(), |_| Finding::default())))?;
    let all = found.gather(w, findings)?;
    Ok(all.outcome(problem, solution, steps))
}
