//! Water-nsquared by message passing, as Jackal's paper does with RMI (section 7): in each step a
//! node passes the positions of its molecules to each other node, in one call.

use dhole::{NodeId, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::section::section;
use super::whole::{self, Exchange};
use crate::water::{Alone, Atoms, Outcome, Problem};

/// The positions that have come to a node, by the node that sent them.
#[derive(Serialize, Deserialize)]
struct Mailbox {
    from: Vec<Option<Vec<Atoms>>>,
}

#[dhole::object]
impl Mailbox {
    #[when(self.from[*node].is_none())]
    pub fn put(&mut self, node: usize, molecules: Vec<Atoms>) {
        self.from[node] = Some(molecules);
    }

    #[when(self.from[*node].is_some())]
    pub fn take(&mut self, node: usize) -> Vec<Atoms> {
        self.from[node].take().unwrap_or_default()
    }
}

struct Mail {
    own: Object<Mailbox>,
    all: Vec<Object<Mailbox>>,
    molecules: usize,
}

impl Exchange for Mail {
    fn exchange(
        &mut self,
        w: &mut Worker<'_>,
        own: &[Atoms],
        mut sees: impl FnMut(usize, &Atoms),
    ) -> Result<()> {
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut puts = Vec::new();
        for turn in 1..nodes {
            let to = (me + turn) % nodes;
            puts.push(self.all[to].start_put(w, me, own.to_vec())?);
        }
        for turn in 1..nodes {
            let from = (me + nodes - turn) % nodes;
            let theirs = self.own.take(w, from)?;
            let numbers = section(self.molecules, from, nodes);
            for (number, atoms) in numbers.zip(&theirs) {
                sees(number, atoms);
            }
        }
        for put in puts {
            put.wait(w)?;
        }
        Ok(())
    }
}

/// Solves `problem`, as [`shared::run`](super::shared::run) does.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    let from = vec![None; w.nodes()];
    let own = w.new_object(on(NodeId::at(w.node().index())), Mailbox { from })?;
    let all = w.all_gather(own)?;
    let molecules = problem.molecules;
    let mail = Mail {
        own,
        all,
        molecules,
    };
    whole::run(w, problem, mail, solution, after_step)
}
