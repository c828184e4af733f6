//! What a program shares, and how: `--share`.

use clap::ValueEnum;
use dhole::{Coherence, Lockable, Ref, Result, Section, Worker, section};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::options::BadInput;

/// What a program shares.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Share {
    /// Objects.
    #[default]
    Objects,
    /// Raw memory (Linux on x86-64).
    Memory,
    /// References under `home`, with critical sections that run at the homes (Jackal).
    Sections,
    /// Nothing: nodes call operations of each other, as Jackal's paper does for comparison with
    /// RMI.
    Calls,
}

impl Share {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Share::Objects => "objects",
            Share::Memory => "memory",
            Share::Sections => "sections",
            Share::Calls => "calls",
        }
    }

    /// Refuses this where a program has only others.
    ///
    /// # Errors
    /// [`BadInput::NoShare`] lists those that it has.
    pub fn among(self, has: &[Share]) -> std::result::Result<(), BadInput> {
        if has.contains(&self) {
            return Ok(());
        }
        let names: Vec<&str> = has.iter().map(|share| share.name()).collect();
        Err(BadInput::NoShare {
            share: self.name(),
            has: names.join(", "),
        })
    }

    /// Refuses what only raw memory has, each option with whether it was given.
    ///
    /// # Errors
    /// [`BadInput::NeedsMemory`] names the first that was.
    pub fn check(self, given: &[(&'static str, bool)]) -> std::result::Result<(), BadInput> {
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) if self != Share::Memory => Err(BadInput::NeedsMemory { option }),
            _ => Ok(()),
        }
    }

    /// Refuses what this lacks, each option with whether it was given.
    ///
    /// # Errors
    /// [`BadInput::NotShared`] names the first that was.
    pub fn lacks(self, given: &[(&'static str, bool)]) -> std::result::Result<(), BadInput> {
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(BadInput::NotShared {
                option,
                share: self.name(),
            }),
            None => Ok(()),
        }
    }
}

/// Where the objects of a node are allocated that programs with sections share.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Construct {
    /// On node 0, which is the home of all of them then.
    Here,
    /// On the node that uses them (Jackal, section 6: where the thread will run).
    #[default]
    There,
}

impl Construct {
    /// What `make` allocates for each node. `make` is called with the number of the node.
    ///
    /// # Errors
    /// Those of `make`, and of a collective call.
    pub fn each<T>(
        self,
        w: &mut Worker<'_>,
        mut make: impl FnMut(&mut Worker<'_>, usize) -> Result<T>,
    ) -> Result<Vec<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut made = Vec::new();
        match self {
            Construct::Here if me > 0 => {}
            Construct::Here => {
                for node in 0..nodes {
                    made.push(make(w, node)?);
                }
            }
            Construct::There => made.push(make(w, me)?),
        }
        let all: Vec<Vec<T>> = w.all_gather(made)?;
        Ok(all.into_iter().flatten().collect())
    }
}

/// A barrier of sections: an arrival takes one round trip to the barrier's home, for the section
/// that counts it goes on with one that waits.
#[derive(dhole::Share, Clone, Copy)]
pub struct Meeting(Ref<Arrivals>);

#[derive(dhole::Share, Clone, Copy)]
struct Arrivals {
    arrived: u64,
    met: u64,
    all: u64,
}

fn arrive(s: &mut Section<'_>, at: Ref<Arrivals>) -> Result<()> {
    let arrivals = s.get_mut(at)?;
    let met = arrivals.met;
    arrivals.arrived += 1;
    if arrivals.arrived == arrivals.all {
        (arrivals.arrived, arrivals.met) = (0, met + 1);
        return Ok(());
    }
    s.then(section!(leave), (at, met))
}

fn leave(s: &mut Section<'_>, (at, before): (Ref<Arrivals>, u64)) -> Result<()> {
    let met = s.get(at)?.met;
    s.wait_until(met > before)
}

impl Meeting {
    /// A barrier of all nodes, whose home is node 0. All nodes call it.
    ///
    /// # Errors
    /// Those of a collective call.
    pub fn new(w: &mut Worker<'_>) -> Result<Meeting> {
        let arrivals = Arrivals {
            arrived: 0,
            met: 0,
            all: w.nodes() as u64,
        };
        w.once(|w| Ok(Meeting(w.under(Coherence::Home).alloc(arrivals))))
    }

    /// Waits until all nodes have called it.
    ///
    /// # Errors
    /// Those of a section.
    #[track_caller]
    pub fn meet(self, w: &mut Worker<'_>) -> Result<()> {
        self.0.lock().run(w, self.0, section!(arrive))
    }
}
