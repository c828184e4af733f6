//! The simulated runs of the evaluation.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::PaperError;
use super::super::cache::ResultCache;
use super::super::cell::{Cell, Counted, Outcome};
use super::published::{Program, Published};
use crate::arguments::Multiview;

/// The paper's own network.
pub const NETWORK: &str = "millipage-myrinet";
/// Most hosts of the paper.
pub const MOST: u16 = 8;
/// Numbers of hosts (figure 6).
pub const HOSTS: [u16; 4] = [1, 2, 4, MOST];
/// Molecules in a minipage (figure 7).
pub const CHUNKS: [u32; 6] = [1, 2, 3, 4, 5, 6];
/// Networks of today.
pub const TODAY: [&str; 2] = ["ethernet-10g", "infiniband"];
/// Protocols of objects that the paper compares itself with, and a later one.
pub const PROTOCOLS: [&str; 2] = ["treadmarks", "home"];

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Variant {
    /// As the paper runs it.
    Millipage,
    /// The same, and a node that computes takes messages at once.
    Polling,
    /// Without prefetch.
    NoPrefetch,
    /// With so many molecules in a minipage.
    Chunk(u32),
    /// The same, and a node that computes takes messages at once.
    ChunkPolling(u32),
    /// With a minipage for each page.
    Page,
    /// The same, and a node that computes takes messages at once.
    PagePolling,
    /// With a minipage for each molecule, of which the manager brings several at once.
    Adaptive,
    /// The same, and a node that computes takes messages at once.
    AdaptivePolling,
    /// With minipages of so many bytes.
    Unit(u32),
    /// Without the push of the shortest tour's length.
    NoPush,
    /// Over objects, under this protocol.
    Objects(&'static str),
    /// On this network, with a processor of today.
    On(&'static str),
}

impl Variant {
    /// Its name in tables and in files.
    pub fn name(self) -> String {
        match self {
            Variant::Millipage => "millipage".to_owned(),
            Variant::Polling => "polling".to_owned(),
            Variant::NoPrefetch => "no-prefetch".to_owned(),
            Variant::Chunk(chunk) => format!("chunk-{chunk}"),
            Variant::ChunkPolling(chunk) => format!("chunk-{chunk}-polling"),
            Variant::Page => "page".to_owned(),
            Variant::PagePolling => "page-polling".to_owned(),
            Variant::Adaptive => "adaptive".to_owned(),
            Variant::AdaptivePolling => "adaptive-polling".to_owned(),
            Variant::Unit(bytes) => format!("unit-{bytes}"),
            Variant::NoPush => "no-push".to_owned(),
            Variant::Objects(protocol) => protocol.to_owned(),
            Variant::On(network) => network.to_owned(),
        }
    }

    /// The network's name in the command, of which `polling` is a file.
    fn network(self, polling: &str) -> &str {
        match self {
            Variant::Polling
            | Variant::ChunkPolling(_)
            | Variant::PagePolling
            | Variant::AdaptivePolling => polling,
            Variant::On(network) => network,
            _ => NETWORK,
        }
    }

    /// The program's arguments.
    fn arguments(self, base: &[String]) -> Vec<String> {
        let mut arguments = base.to_vec();
        let mut sets = |option: &str, value: Option<String>| {
            if let Some(at) = arguments.iter().position(|word| word == option) {
                arguments.drain(at..at + 2);
            }
            let words = value.map(|value| [option.to_owned(), value]);
            arguments.extend(words.into_iter().flatten());
        };
        match self {
            Variant::Millipage | Variant::Polling | Variant::On(_) => {}
            Variant::NoPrefetch => sets("--prefetch", Some("off".to_owned())),
            Variant::Chunk(chunk) | Variant::ChunkPolling(chunk) => {
                sets("--chunk", Some(chunk.to_string()));
            }
            Variant::Page | Variant::PagePolling => {
                sets("--granularity", Some("page".to_owned()));
            }
            Variant::Adaptive | Variant::AdaptivePolling => {
                sets("--granularity", Some("adaptive".to_owned()));
            }
            Variant::Unit(bytes) => sets("--unit", Some(bytes.to_string())),
            Variant::NoPush => sets("--push", Some("off".to_owned())),
            Variant::Objects(protocol) => {
                sets("--share", None);
                sets("--element", None);
                sets("--protocol", Some(protocol.to_owned()));
            }
        }
        arguments.push("--json".to_owned());
        arguments
    }
}

/// A run: the place of its program, its hosts, and how.
pub type Key = (usize, u16, Variant);

/// All outcomes.
pub struct Runs<'a> {
    pub paper: &'a Published,
    pub wanted: &'a Multiview,
    /// The file of the network on which nodes take messages at once.
    polling: String,
    outcomes: BTreeMap<Key, Outcome>,
}

impl<'a> Runs<'a> {
    /// Runs what has not run yet. Returns the outcomes, the number of runs that failed, and of all.
    ///
    /// # Errors
    /// [`PaperError`] if nothing more can run.
    pub fn fetch(
        paper: &'a Published,
        wanted: &'a Multiview,
        polling: String,
        cache: &ResultCache,
    ) -> Result<(Runs<'a>, usize, usize), PaperError> {
        let mut runs = Runs {
            paper,
            wanted,
            polling,
            outcomes: BTreeMap::new(),
        };
        let keys = runs.keys();
        let cells: Vec<Cell> = keys.iter().map(|key| runs.cell(*key)).collect();
        let mut failed = 0;
        for (key, outcome) in keys.into_iter().zip(cache.fetch(&cells, wanted.jobs())?) {
            match outcome {
                Ok(outcome) => drop(runs.outcomes.insert(key, outcome)),
                Err(_) => failed += 1,
            }
        }
        Ok((runs, failed, cells.len()))
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        for place in 0..self.paper.program.len() {
            for nodes in HOSTS {
                keys.push((place, nodes, Variant::Millipage));
                keys.push((place, nodes, Variant::Polling));
            }
            keys.extend(TODAY.map(|network| (place, MOST, Variant::On(network))));
        }
        let [sor, water, lu, tsp] =
            ["SOR", "WATER", "LU", "TSP"].map(|name| self.paper.place(name));
        keys.push((lu, MOST, Variant::NoPrefetch));
        for chunking in CHUNKINGS {
            let nodes = chunking.nodes;
            let variants = chunking.variants().into_iter();
            keys.extend(variants.map(|(_, variant)| (water, nodes, variant)));
        }
        for protocol in PROTOCOLS {
            keys.push((sor, MOST, Variant::Objects(protocol)));
            keys.push((water, MOST, Variant::Objects(protocol)));
        }
        keys.extend([128, 256].map(|bytes| (tsp, MOST, Variant::Unit(bytes))));
        keys.push((tsp, MOST, Variant::Page));
        keys.push((tsp, MOST, Variant::NoPush));
        keys
    }

    fn arguments(&self, program: &'a Program) -> &'a [String] {
        match self.wanted.small {
            true => &program.small,
            false => &program.size,
        }
    }

    fn cell(&self, (place, nodes, variant): Key) -> Cell {
        let program = &self.paper.program[place];
        let unit_ns = match variant {
            Variant::On(_) => program.today_ns,
            _ => program.unit_ns,
        };
        let network = variant.network(&self.polling);
        let words = [
            "sim".to_owned(),
            format!("--nodes={nodes}"),
            format!("--network={network}"),
            format!("--fixed-cost={unit_ns}"),
            "--barrier=central".to_owned(),
            "--managers=one".to_owned(),
            "--".to_owned(),
        ];
        let name = program.name.to_lowercase();
        Cell {
            name: format!("{name}.{nodes}.{}", variant.name()),
            program: program.program.clone(),
            cluster: Some(words.into()),
            arguments: variant.arguments(self.arguments(program)),
            memory: Counted {
                everywhere: false,
                allotted: false,
            },
        }
    }

    /// The run of a program on so many hosts, if it succeeded.
    pub fn of(&self, name: &str, nodes: u16, variant: Variant) -> Option<Run<'_>> {
        let key = (self.paper.place(name), nodes, variant);
        let outcome = self.outcomes.get(&key)?;
        Some(Run { outcome, nodes })
    }

    /// All outcomes as JSON.
    pub fn json(&self) -> Value {
        let runs = self.outcomes.iter().map(|(key, outcome)| {
            let (place, nodes, variant) = *key;
            json!({
                "program": self.paper.program[place].name,
                "nodes": nodes,
                "variant": variant.name(),
                "command": self.cell(*key).shown(),
                "speedup": outcome.speedup(),
                "printed": outcome.printed,
            })
        });
        json!({
            "paper": "multiview",
            "small": self.wanted.small,
            "runs": runs.collect::<Vec<_>>(),
        })
    }
}

/// A run that succeeded.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    outcome: &'a Outcome,
    nodes: u16,
}

/// A table of figure 7: how WATER's molecules are put into minipages.
pub struct Chunking {
    /// The hosts, in words.
    pub title: &'static str,
    pub nodes: u16,
    pub chunk: fn(u32) -> Variant,
    pub page: Variant,
    pub adaptive: Variant,
}

/// The tables of figure 7.
pub const CHUNKINGS: [Chunking; 3] = [
    Chunking {
        title: "4 hosts",
        nodes: 4,
        chunk: Variant::Chunk,
        page: Variant::Page,
        adaptive: Variant::Adaptive,
    },
    Chunking {
        title: "8 hosts",
        nodes: MOST,
        chunk: Variant::Chunk,
        page: Variant::Page,
        adaptive: Variant::Adaptive,
    },
    Chunking {
        title: "8 hosts, polling",
        nodes: MOST,
        chunk: Variant::ChunkPolling,
        page: Variant::PagePolling,
        adaptive: Variant::AdaptivePolling,
    },
];

impl Chunking {
    /// The rows, by name.
    pub fn variants(&self) -> Vec<(String, Variant)> {
        let chunks = CHUNKS.map(|molecules| (molecules.to_string(), (self.chunk)(molecules)));
        let rest = [("page", self.page), ("adaptive", self.adaptive)];
        let rest = rest.map(|(name, variant)| (name.to_owned(), variant));
        chunks.into_iter().chain(rest).collect()
    }

    /// The run of a row, if it succeeded.
    pub fn run<'a>(&self, runs: &'a Runs<'_>, variant: Variant) -> Option<Run<'a>> {
        runs.of("WATER", self.nodes, variant)
    }

    /// The time of the fastest row.
    pub fn least_seconds(&self, runs: &Runs<'_>) -> f64 {
        let found = self.variants().into_iter();
        let found = found.filter_map(|(_, variant)| self.run(runs, variant));
        found.map(Run::seconds).fold(f64::INFINITY, f64::min)
    }
}

/// What the hosts' time is spent on (figure 6), by name and counter.
pub const SHARES: [(&str, &str); 6] = [
    ("computation", "computed_ns"),
    ("read faults", "raw_read_ns"),
    ("write faults", "raw_write_ns"),
    ("prefetch", "raw_call_ns"),
    ("locks", "lock_waited_ns"),
    ("barriers", "barrier_waited_ns"),
];

impl Run<'_> {
    /// The time of the sequential program, divided by that of the run.
    pub fn speedup(self) -> f64 {
        self.outcome.speedup()
    }

    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.outcome.measures.seconds
    }

    /// A counter of the steps.
    pub fn counted(self, name: &str) -> u64 {
        self.outcome.printed["measured"][name].as_u64().unwrap_or(0)
    }

    /// A number of the result.
    pub fn result(self, name: &str) -> Option<u64> {
        self.outcome.printed["result"][name].as_u64()
    }

    /// Accesses that faulted, to read and to write.
    pub fn faults(self) -> [u64; 2] {
        [
            self.counted("raw_read_faults"),
            self.counted("raw_write_faults"),
        ]
    }

    /// Microseconds from a fault until its access can be made, on the average.
    pub fn fault_us(self) -> Option<f64> {
        let [read, write] = self.faults();
        let ns = self.counted("raw_read_ns") + self.counted("raw_write_ns");
        (read + write > 0).then(|| ns as f64 / 1e3 / (read + write) as f64)
    }

    /// Locks that the hosts acquired.
    pub fn locks(self) -> u64 {
        self.counted("lock_acquires_remote") + self.counted("lock_acquires_local")
    }

    /// Barriers of each host.
    pub fn barriers(self) -> u64 {
        self.counted("barriers") / u64::from(self.nodes)
    }

    /// The share of each of [`SHARES`] in the hosts' time, and what is left: serving other hosts.
    pub fn shares(self) -> [f64; SHARES.len() + 1] {
        let all_ns = self.seconds() * 1e9 * f64::from(self.nodes);
        let share = |place: usize| match SHARES.get(place) {
            Some((_, counter)) => self.counted(counter) as f64 / all_ns,
            None => 0.0,
        };
        let mut shares: [f64; SHARES.len() + 1] = std::array::from_fn(share);
        shares[SHARES.len()] = 1.0 - shares.iter().sum::<f64>();
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_replaced_and_not_given_twice() {
        let base = ["--share", "memory", "--prefetch", "on", "--size", "4"].map(str::to_owned);
        let of = |variant: Variant| variant.arguments(&base).join(" ");
        assert_eq!(
            of(Variant::Millipage),
            "--share memory --prefetch on --size 4 --json"
        );
        assert_eq!(
            of(Variant::NoPrefetch),
            "--share memory --size 4 --prefetch off --json"
        );
        assert_eq!(
            of(Variant::Objects("home")),
            "--prefetch on --size 4 --protocol home --json"
        );
    }
}
