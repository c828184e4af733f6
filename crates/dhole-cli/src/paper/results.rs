//! All outcomes of an evaluation.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::PaperError;
use super::cache::ResultCache;
use super::cell::{Cell, Outcome};
use super::published::{Hoisting, Problem, Published};
use super::variant::Variant;
use crate::arguments::Dosa;

/// The paper's own network.
const NETWORK: &str = "dosa-1999";
/// The repetitions of a run on this machine. The fastest counts.
const TURNS: usize = 3;

/// All outcomes of an evaluation.
pub struct Results<'a> {
    pub paper: &'a Published,
    pub wanted: &'a Dosa,
    /// The simulated runs by problem, nodes and variant.
    pub runs: BTreeMap<(usize, u16, Variant), Outcome>,
    /// The runs on one node of this machine, by problem.
    pub here: Vec<Option<Here>>,
    /// The large SOR on one node of this machine, under each system: with handles hoisted, and
    /// without.
    pub hoisting: BTreeMap<&'static str, [Option<Here>; 2]>,
    /// The large SOR without hoisting on the paper's most nodes, under each system.
    pub unhoisted: BTreeMap<&'static str, Outcome>,
}

/// A problem on one node of this machine.
#[derive(Clone, Copy)]
pub struct Here {
    /// The plain sequential program, in seconds.
    pub plain_seconds: f64,
    /// The same program over shared objects.
    pub handle_seconds: f64,
}

impl Here {
    /// The cost of handles: the second time divided by the first.
    pub fn ratio(self) -> f64 {
        self.handle_seconds / self.plain_seconds
    }
}

impl<'a> Results<'a> {
    /// Runs the evaluation. Returns the outcomes, the number of runs that failed, and of all.
    ///
    /// # Errors
    /// [`PaperError`] if nothing more can run.
    pub fn fetch(
        paper: &'a Published,
        wanted: &'a Dosa,
        cache: &ResultCache,
    ) -> Result<(Results<'a>, usize, usize), PaperError> {
        let mut results = Results {
            paper,
            wanted,
            runs: BTreeMap::new(),
            here: Vec::new(),
            hoisting: BTreeMap::new(),
            unhoisted: BTreeMap::new(),
        };
        // One after the other: these are timed.
        let mut all = results.run_here(cache)?;
        let mut failed = all - results.here.iter().flatten().count() * TURNS;
        let hoisting = results.hoisting.values().flatten().flatten();
        failed -= hoisting.count() * TURNS;
        let keys = results.keys();
        let cells: Vec<Cell> = keys.iter().map(|key| results.cell(*key)).collect();
        for (key, outcome) in keys.into_iter().zip(cache.fetch(&cells, wanted.jobs())?) {
            match outcome {
                Ok(outcome) => drop(results.runs.insert(key, outcome)),
                Err(_) => failed += 1,
            }
        }
        all += cells.len();
        let (systems, cells): (Vec<_>, Vec<_>) = results.unhoisted_cells().into_iter().unzip();
        all += cells.len();
        for (system, outcome) in systems.into_iter().zip(cache.fetch(&cells, wanted.jobs())?) {
            match outcome {
                Ok(outcome) => drop(results.unhoisted.insert(system, outcome)),
                Err(_) => failed += 1,
            }
        }
        Ok((results, failed, all))
    }

    /// The runs of the large SOR without hoisting on the most nodes. A unit of work takes as long
    /// as in the paper's sequential run without hoisting: the paper has no other measure of the
    /// cost of an access.
    fn unhoisted_cells(&self) -> Vec<(&'static str, Cell)> {
        if !self.compare() {
            return Vec::new();
        }
        let problems = &self.paper.problem;
        let Some(place) = problems.iter().rposition(|one| one.program == "sor") else {
            return Vec::new();
        };
        let systems = [Variant::Dosa, Variant::Treadmarks].into_iter();
        let cells = systems.filter_map(|variant| {
            let alone = |row: &&Hoisting| row.system == variant.name() && row.nodes == 1;
            let alone = self.paper.hoisting.iter().find(alone)?;
            let unit_ns = alone.without * 1e9 / problems[place].units as f64;
            let cell = self.cell((place, self.most_nodes(), variant));
            Some((variant.name(), cell.unhoisted(unit_ns)))
        });
        cells.collect()
    }

    /// The run of the large SOR with hoisting, on the most nodes.
    pub fn hoisted(&self, variant: Variant) -> Option<&Outcome> {
        let problems = &self.paper.problem;
        let place = problems.iter().rposition(|one| one.program == "sor")?;
        self.run(place, self.most_nodes(), variant)
    }

    fn run_here(&mut self, cache: &ResultCache) -> Result<usize, PaperError> {
        let problems = &self.paper.problem;
        if self.wanted.simulated {
            self.here = vec![None; problems.len()];
            return Ok(0);
        }
        let turns = |problem, options: &[&str], name: &str| -> Result<Option<Here>, PaperError> {
            let cells = (0..TURNS).map(|turn| Cell::live(problem, options, name, turn));
            let found = cache.fetch(&cells.collect::<Vec<_>>(), 1)?;
            let found: Result<Vec<Outcome>, _> = found.into_iter().collect();
            Ok(found.ok().map(|found| {
                let least = |of: fn(&Outcome) -> f64| found.iter().map(of).fold(f64::MAX, f64::min);
                Here {
                    plain_seconds: least(|one| one.sequential_seconds),
                    handle_seconds: least(|one| one.measures.seconds),
                }
            }))
        };
        for problem in problems {
            let here = turns(problem, &[], "hoisted")?;
            self.here.push(here);
        }
        let large = problems.iter().rfind(|problem| problem.program == "sor");
        if let Some(large) = large {
            for (system, protocol) in [("DOSA", "lazy"), ("TreadMarks", "treadmarks")] {
                let under = |hoist, name: &str| {
                    let options = ["--protocol", protocol, "--hoist", hoist];
                    turns(large, &options, &format!("{protocol}-{name}"))
                };
                let both = [under("yes", "hoisted")?, under("no", "unhoisted")?];
                self.hoisting.insert(system, both);
            }
        }
        let hoisting = self.hoisting.len() * 2;
        Ok((problems.len() + hoisting) * TURNS)
    }

    /// The seconds with and without hoisting: a row of Table 7.
    pub fn hoisting_of(&self, row: &Hoisting) -> [Option<f64>; 2] {
        match row.nodes {
            1 => {
                let here = self.hoisting.get(row.system.as_str());
                let here = here.copied().unwrap_or_default();
                here.map(|one| Some(one?.handle_seconds))
            }
            _ => self.hoisting_simulated(&row.system),
        }
    }

    fn hoisting_simulated(&self, system: &str) -> [Option<f64>; 2] {
        let variant = match system {
            "TreadMarks" => Variant::Treadmarks,
            _ => Variant::Dosa,
        };
        let seconds = |found: Option<&Outcome>| Some(found?.measures.seconds);
        let without = self.unhoisted.get(system);
        let with = self.hoisted(variant).filter(|_| without.is_some());
        [seconds(with), seconds(without)]
    }

    /// The largest number of nodes, at which everything is counted.
    pub fn most_nodes(&self) -> u16 {
        self.wanted.nodes.iter().copied().max().unwrap_or(1)
    }

    /// Whether the runs have the paper's inputs and network.
    pub fn are_the_papers(&self) -> bool {
        !self.wanted.small && self.wanted.network == NETWORK
    }

    /// Whether the paper has numbers for these runs.
    pub fn compare(&self) -> bool {
        self.are_the_papers() && self.most_nodes() == 32
    }

    fn keys(&self) -> Vec<(usize, u16, Variant)> {
        let mut keys = Vec::new();
        for (place, problem) in self.paper.problem.iter().enumerate() {
            for &nodes in &self.wanted.nodes {
                keys.push((place, nodes, Variant::Treadmarks));
                keys.push((place, nodes, Variant::Dosa));
            }
            if !problem.ablation.is_empty() {
                let of = |variant| (place, self.most_nodes(), variant);
                keys.extend(Variant::ABLATED.map(of));
            }
        }
        keys
    }

    fn cell(&self, (place, nodes, variant): (usize, u16, Variant)) -> Cell {
        let problem = &self.paper.problem[place];
        let network = &self.wanted.network;
        let cluster = (nodes, network.as_str());
        Cell::simulated(
            problem,
            self.arguments(problem),
            variant,
            cluster,
            self.unit_ns(place),
        )
    }

    /// The problem's input.
    pub fn arguments(&self, problem: &'a Problem) -> &'a [String] {
        match self.wanted.small {
            true => &problem.small,
            false => &problem.size,
        }
    }

    /// The time of a unit of work: that of the paper's machines, or on any other network that of
    /// this machine. It has three digits, so that equal runs are the same.
    fn unit_ns(&self, place: usize) -> f64 {
        let problem = &self.paper.problem[place];
        match self.here[place].filter(|_| self.wanted.network != NETWORK) {
            None => problem.unit_ns(),
            Some(here) => here.plain_seconds * 1e9 / problem.units as f64,
        }
    }

    /// A run, if it succeeded.
    pub fn run(&self, place: usize, nodes: u16, variant: Variant) -> Option<&Outcome> {
        self.runs.get(&(place, nodes, variant))
    }

    /// All outcomes as JSON.
    pub fn json(&self) -> Value {
        let runs = self.runs.iter().map(|((place, nodes, variant), outcome)| {
            let problem = &self.paper.problem[*place];
            json!({
                "problem": problem.name,
                "nodes": nodes,
                "variant": variant.name(),
                "command": self.cell((*place, *nodes, *variant)).shown(),
                "speedup": outcome.speedup(),
                "compute_inflation": outcome.compute_inflation,
                "measures": outcome.measures,
                "memory": outcome.memory,
            })
        });
        let problems = self.paper.problem.iter().zip(&self.here);
        let here = problems.filter_map(|(problem, here)| {
            let (name, here) = (&problem.name, (*here)?);
            Some(json!({
                "problem": name,
                "plain_seconds": here.plain_seconds,
                "handle_seconds": here.handle_seconds,
            }))
        });
        json!({
            "paper": "dosa",
            "network": self.wanted.network,
            "small": self.wanted.small,
            "runs": runs.collect::<Vec<_>>(),
            "one_node_of_this_machine": here.collect::<Vec<_>>(),
        })
    }
}
