//! Water-nsquared over molecules at home at their nodes, with barriers of sections (Jackal, section
//! 7). A molecule has references to three vectors, and a chain of objects of 32 references leads to
//! the molecules of a node. Or the vectors lie in the molecule, as the paper's authors tried by
//! hand.

use dhole::{Coherence, Ref, Result, Share, Worker};

use super::section::section;
use super::whole::{self, Exchange};
use crate::share::{Construct, Meeting};
use crate::vector::Vector;
use crate::water::{Alone, Atoms, Outcome, Problem};

/// The references in an object of a chain.
const LINK: usize = 32;

/// A molecule with references to where its atoms are.
#[derive(Share, Clone, Copy)]
struct Molecule {
    atoms: [Ref<Vector>; 3],
}

/// A molecule that has where its atoms are.
#[derive(Share, Clone, Copy)]
struct Inlined {
    atoms: Atoms,
}

#[derive(Share, Clone, Copy)]
struct Chain<M> {
    molecules: [Option<Ref<M>>; LINK],
    next: Option<Ref<Chain<M>>>,
}

trait Kept: Share + Copy {
    fn alloc(w: &mut Worker<'_>) -> Ref<Self>;
    fn write(of: Ref<Self>, w: &mut Worker<'_>, atoms: &Atoms);
    fn read(of: Ref<Self>, w: &Worker<'_>) -> Atoms;
}

impl Kept for Molecule {
    fn alloc(w: &mut Worker<'_>) -> Ref<Molecule> {
        let atoms = [0; 3].map(|_| w.under(Coherence::Home).alloc([0.0; 3]));
        w.under(Coherence::Home).alloc(Molecule { atoms })
    }

    fn write(of: Ref<Molecule>, w: &mut Worker<'_>, atoms: &Atoms) {
        let vectors = of.get(w).atoms;
        for (vector, atom) in vectors.into_iter().zip(atoms) {
            *vector.get_mut(w) = *atom;
        }
    }

    fn read(of: Ref<Molecule>, w: &Worker<'_>) -> Atoms {
        of.get(w).atoms.map(|vector| vector.read(w))
    }
}

impl Kept for Inlined {
    fn alloc(w: &mut Worker<'_>) -> Ref<Inlined> {
        let atoms = Atoms::default();
        w.under(Coherence::Home).alloc(Inlined { atoms })
    }

    fn write(of: Ref<Inlined>, w: &mut Worker<'_>, atoms: &Atoms) {
        of.get_mut(w).atoms = *atoms;
    }

    fn read(of: Ref<Inlined>, w: &Worker<'_>) -> Atoms {
        of.get(w).atoms
    }
}

/// Allocates a chain of so many molecules.
fn chain<M: Kept>(w: &mut Worker<'_>, count: usize) -> Option<Ref<Chain<M>>> {
    let mut next = None;
    let mut left = count;
    while left > 0 {
        let here = match left % LINK {
            0 => LINK,
            rest => rest,
        };
        let mut molecules = [None; LINK];
        for place in &mut molecules[..here] {
            *place = Some(M::alloc(w));
        }
        next = Some(w.under(Coherence::Home).alloc(Chain { molecules, next }));
        left -= here;
    }
    next
}

struct Chains<M: Kept> {
    first: Vec<Option<Ref<Chain<M>>>>,
    meeting: Meeting,
    molecules: usize,
}

/// Calls `f` with each molecule of a chain.
fn each<M: Kept>(
    w: &mut Worker<'_>,
    first: Option<Ref<Chain<M>>>,
    mut f: impl FnMut(&mut Worker<'_>, usize, Ref<M>),
) {
    let (mut link, mut place) = (first, 0);
    while let Some(at) = link {
        let Chain { molecules, next } = at.read(w);
        for molecule in molecules.into_iter().flatten() {
            f(w, place, molecule);
            place += 1;
        }
        link = next;
    }
}

impl<M: Kept> Exchange for Chains<M> {
    fn exchange(
        &mut self,
        w: &mut Worker<'_>,
        own: &[Atoms],
        mut sees: impl FnMut(usize, &Atoms),
    ) -> Result<()> {
        let (me, nodes) = (w.node().index(), w.nodes());
        each(w, self.first[me], |w, place, molecule| {
            M::write(molecule, w, &own[place]);
        });
        self.meeting.meet(w)?;
        for turn in 1..nodes {
            let node = (me + turn) % nodes;
            let numbers = section(self.molecules, node, nodes);
            each(w, self.first[node], |w, place, molecule| {
                sees(numbers.start + place, &M::read(molecule, w));
            });
        }
        // Nobody shows the next positions before all have seen these.
        self.meeting.meet(w)
    }
}

fn run_of<M: Kept>(
    w: &mut Worker<'_>,
    problem: &Problem,
    construct: Construct,
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    let (nodes, molecules) = (w.nodes(), problem.molecules);
    let first = construct.each(w, |w, node| {
        Ok(chain::<M>(w, section(molecules, node, nodes).len()))
    })?;
    let meeting = Meeting::new(w)?;
    let chains = Chains {
        first,
        meeting,
        molecules,
    };
    whole::run(w, problem, chains, solution, after_step)
}

/// Solves `problem`, as [`shared::run`](super::shared::run) does.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    (construct, inlined): (Construct, bool),
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    match inlined {
        false => run_of::<Molecule>(w, problem, construct, solution, after_step),
        true => run_of::<Inlined>(w, problem, construct, solution, after_step),
    }
}
