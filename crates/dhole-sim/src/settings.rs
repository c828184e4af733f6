use std::fmt;
use std::str::FromStr;

use dhole_model::{MAX_NODES, MessageKind};
use thiserror::Error;

use crate::crash::Crash;
use crate::network::{
    BY_KIND, Description, Expected, KEYS, Key, LEAST_SCALE, MOST_SCALE, MOST_UNIT_NS, Network,
    Wrong, parsed, set_by_kind,
};

/// The environment variable that [`Settings::from_env`] reads.
pub const ENVIRONMENT_VARIABLE: &str = "DHOLE_SIM";

/// The time of the program's own computation in virtual time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Computation {
    /// The time that it takes on this host. Time during which other programs had the core does not
    /// count, except in a stretch of at most 20 us: reading the processor's clock is a system call.
    Measured,
    /// The time that the program says with `work`; everything else takes no time. Two runs with the
    /// same settings are then the same, event for event.
    FixedCost {
        /// Nanoseconds of one unit of work.
        unit_ns: f64,
    },
}

/// A simulated cluster.
///
/// The textual form is a list of `key=value` with commas between, in any order. A key that is left
/// out is as in [`Settings::new`], but `nodes` is required:
///
/// ```
/// # use dhole_sim::{Computation, Settings};
/// let settings: Settings = "nodes=32,seed=7,fixed_cost=1.5".parse().unwrap();
/// assert_eq!((settings.nodes, settings.seed), (32, 7));
/// assert_eq!(settings.computation, Computation::FixedCost { unit_ns: 1.5 });
/// assert_eq!(settings.to_string().parse(), Ok(settings));
/// let error = "nodes=5000".parse::<Settings>().unwrap_err();
/// assert_eq!(error.to_string(), "a simulated cluster has 1 to 1024 nodes, not 5000");
/// ```
///
/// The keys are `nodes`, `seed`, `fixed_cost` (nanoseconds of a unit of work; without it
/// computation is measured), `compute_scale`, `alone_ns`, `call_ns`, `stack_bytes`, `network`,
/// which is only its name, the fields of [`Network`], `handling_ns.` or `making_ns.` before the
/// name of a kind of message, `crash` (as `1@2500+0@7000`, see [`Crash`]), and `notice_ns`.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Nodes of the cluster, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// The seed of every random choice of the run.
    pub seed: u64,
    /// The name of the network.
    pub network_name: String,
    /// The costs of messages.
    pub network: Network,
    /// The costs of computation.
    pub computation: Computation,
    /// The computation time of a node, divided by the time measured on this host.
    pub compute_scale: f64,
    /// Nanoseconds of the same program's computation on one node, if that is known. The report sets
    /// the computation of this run beside it.
    pub alone_ns: Option<u64>,
    /// Nanoseconds of a call of the runtime besides its messages, at least 1. If a call cost
    /// nothing, a program that polls would stop the virtual clock.
    pub call_ns: u64,
    /// Bytes of each node's stack. Memory is taken only as a stack grows; one that grows past
    /// its end kills the process by SIGSEGV.
    pub stack_bytes: usize,
    /// Nodes that crash.
    pub crashes: Vec<Crash>,
    /// The least nanoseconds until the other nodes are told of a crash; at most it takes twice as
    /// many.
    pub notice_ns: u64,
}

impl Settings {
    /// The smallest stack.
    pub const LEAST_STACK_BYTES: usize = 16 << 10;
    /// The largest stack, with which those of [`MAX_NODES`] nodes still fit an address space.
    pub const MOST_STACK_BYTES: usize = 4 << 30;

    /// A cluster of `nodes` nodes with seed 0, the default [`Network`], measured computation,
    /// 20 ns a call and stacks of 1 MiB.
    pub fn new(nodes: usize) -> Settings {
        Settings {
            nodes,
            seed: 0,
            network_name: "default".into(),
            network: Network::default(),
            computation: Computation::Measured,
            compute_scale: 1.0,
            alone_ns: None,
            call_ns: 20,
            stack_bytes: 1 << 20,
            crashes: Vec::new(),
            notice_ns: 1_000_000,
        }
    }

    /// As [`new`](Settings::new), but for computation: a unit of work costs a nanosecond, and
    /// everything is repeatable.
    pub fn fixed_cost(nodes: usize) -> Settings {
        Settings {
            computation: Computation::FixedCost { unit_ns: 1.0 },
            ..Settings::new(nodes)
        }
    }

    /// The settings in the environment variable `DHOLE_SIM`; `None` if it is not set.
    ///
    /// # Errors
    /// [`SettingsError`] if the variable holds anything but settings.
    pub fn from_env() -> Result<Option<Settings>, SettingsError> {
        match std::env::var(ENVIRONMENT_VARIABLE) {
            Ok(text) if !text.is_empty() => text.parse().map(Some),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(SettingsError::NotUnicode),
        }
    }

    /// Checks that a cluster can run with these settings.
    ///
    /// # Errors
    /// [`SettingsError`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return Err(SettingsError::Nodes { nodes: self.nodes });
        }
        self.network.check().map_err(SettingsError::from)?;
        let within = |fine: bool, key: &str, value: &dyn fmt::Display, range: String| match fine {
            true => Ok(()),
            false => Err(SettingsError::from(Wrong::range(key, value, range))),
        };
        if let Computation::FixedCost { unit_ns } = self.computation {
            let fine = (0.0..=MOST_UNIT_NS).contains(&unit_ns);
            within(fine, "fixed_cost", &unit_ns, format!("0 to {MOST_UNIT_NS}"))?;
        }
        let scale = self.compute_scale;
        let fine = (LEAST_SCALE..=MOST_SCALE).contains(&scale);
        within(
            fine,
            "compute_scale",
            &scale,
            format!("{LEAST_SCALE} to {MOST_SCALE}"),
        )?;
        const HOUR_NS: u64 = 3_600_000_000_000;
        let call = 1..=HOUR_NS;
        let fine = call.contains(&self.call_ns);
        within(fine, "call_ns", &self.call_ns, "1 ns to an hour".into())?;
        let notice = 1..=HOUR_NS;
        let fine = notice.contains(&self.notice_ns);
        within(fine, "notice_ns", &self.notice_ns, "1 ns to an hour".into())?;
        for crash in &self.crashes {
            let fine = crash.node.index() < self.nodes;
            within(fine, "crash", crash, "one of the nodes".into())?;
        }
        let name = &self.network_name;
        let fine = !name.is_empty() && !name.contains([',', '=']);
        within(
            fine,
            "network",
            name,
            "a name without \",\" and \"=\"".into(),
        )?;
        let stacks = Settings::LEAST_STACK_BYTES..=Settings::MOST_STACK_BYTES;
        within(
            stacks.contains(&self.stack_bytes),
            "stack_bytes",
            &self.stack_bytes,
            "16384 (16 KiB) to 4294967296 (4 GiB)".into(),
        )
    }

    /// Takes the network, and the numbers about computation, from `described`.
    pub fn set_network(&mut self, described: Description) {
        let Description {
            name,
            network,
            unit_ns,
            compute_scale,
            ..
        } = described;
        self.network_name = name;
        self.network = network;
        self.compute_scale = compute_scale;
        if let (Computation::FixedCost { unit_ns: cost }, Some(ns)) =
            (&mut self.computation, unit_ns)
        {
            *cost = ns;
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            nodes,
            seed,
            network_name,
            network,
            computation,
            compute_scale,
            alone_ns,
            call_ns,
            stack_bytes,
            crashes,
            notice_ns,
        } = self;
        write!(f, "nodes={nodes},seed={seed},network={network_name},")?;
        if let Computation::FixedCost { unit_ns } = computation {
            write!(f, "fixed_cost={unit_ns},")?;
        }
        if let Some(alone_ns) = alone_ns {
            write!(f, "alone_ns={alone_ns},")?;
        }
        if !crashes.is_empty() {
            let crashes: Vec<String> = crashes.iter().map(Crash::to_string).collect();
            write!(f, "crash={},notice_ns={notice_ns},", crashes.join("+"))?;
        }
        let plain = Network::default();
        for key in KEYS {
            let text = key.text(network);
            if text != key.text(&plain) {
                write!(f, "{}={text},", key.name)?;
            }
        }
        let mut network = *network;
        for table in &BY_KIND {
            for kind in MessageKind::ALL {
                let ns = (table.of)(&mut network)[kind as usize];
                if ns > 0 {
                    write!(f, "{}.{}={ns},", table.name, kind.name())?;
                }
            }
        }
        write!(
            f,
            "compute_scale={compute_scale},call_ns={call_ns},stack_bytes={stack_bytes}"
        )
    }
}

impl FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::new(1);
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| SettingsError::Malformed { part: part.into() })?;
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(SettingsError::Repeated { key: key.into() });
            }
            seen.push(key);
            match key {
                "nodes" => settings.nodes = whole(key, value)?,
                "seed" => settings.seed = whole(key, value)?,
                "fixed_cost" => {
                    settings.computation = Computation::FixedCost {
                        unit_ns: number(key, value)?,
                    }
                }
                "compute_scale" => settings.compute_scale = number(key, value)?,
                "alone_ns" => settings.alone_ns = Some(whole(key, value)?),
                "network" => settings.network_name = value.into(),
                "call_ns" => settings.call_ns = whole(key, value)?,
                "crash" => {
                    let crashes = value.split('+').map(str::parse);
                    let wanted = "node@nanoseconds, with + between several";
                    let bad = |_| SettingsError::BadValue {
                        key: key.into(),
                        value: value.into(),
                        wanted,
                    };
                    settings.crashes = crashes.collect::<Result<_, _>>().map_err(bad)?;
                }
                "notice_ns" => settings.notice_ns = whole(key, value)?,
                "stack_bytes" => settings.stack_bytes = whole(key, value)?,
                _ => settings.set_of_network(key, value)?,
            }
        }
        if !seen.contains(&"nodes") {
            return Err(SettingsError::NoNodes);
        }
        settings.check()?;
        Ok(settings)
    }
}

impl Settings {
    /// Sets a field of the network from its text.
    fn set_of_network(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        let network = &mut self.network;
        let by_kind = key.split_once('.').and_then(|(name, kind)| {
            let table = BY_KIND.iter().find(|table| table.name == name)?;
            Some((table, kind))
        });
        let set = match (Key::named(key), by_kind) {
            (Some(key), _) => Some(key.set(network, value)),
            (None, Some((table, kind))) => set_by_kind(network, table, kind, value),
            (None, None) => None,
        };
        let unknown = || SettingsError::UnknownKey { key: key.into() };
        Ok(set.ok_or_else(unknown)??)
    }
}

fn whole<T: FromStr>(key: &str, value: &str) -> Result<T, SettingsError> {
    Ok(parsed(key, value, "a whole number")?)
}

fn number(key: &str, value: &str) -> Result<f64, SettingsError> {
    Ok(parsed(key, value, "a number")?)
}

impl From<Wrong> for SettingsError {
    fn from(wrong: Wrong) -> SettingsError {
        let Wrong {
            key,
            value,
            expected,
        } = wrong;
        match expected {
            Expected::Kind(wanted) => SettingsError::BadValue { key, value, wanted },
            Expected::Range(range) => SettingsError::OutOfRange { key, value, range },
        }
    }
}

/// The error in the settings of a simulated cluster.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A part of the text is not `key=value`.
    #[error("\"{part}\" in the settings of a simulated cluster is not of the form key=value")]
    Malformed {
        /// The part.
        part: String,
    },
    /// There is no such setting.
    #[error("a simulated cluster has no setting \"{key}\"")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A setting is given twice.
    #[error("the setting \"{key}\" of a simulated cluster is given twice")]
    Repeated {
        /// The key.
        key: String,
    },
    /// A value cannot be read.
    #[error("the setting \"{key}\" of a simulated cluster is {wanted}, not \"{value}\"")]
    BadValue {
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// The number of nodes is left out.
    #[error("the settings of a simulated cluster do not say how many \"nodes\" it has")]
    NoNodes,
    /// No cluster has so many nodes.
    #[error("a simulated cluster has 1 to {MAX_NODES} nodes, not {nodes}")]
    Nodes {
        /// Nodes asked for.
        nodes: usize,
    },
    /// A value is too small or too large.
    #[error("the setting \"{key}\" of a simulated cluster is {range}, not {value}")]
    OutOfRange {
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it may be.
        range: String,
    },
    /// The environment variable is not text.
    #[error("the environment variable DHOLE_SIM is not UTF-8")]
    NotUnicode,
}

dhole_model::debug_in_words!(SettingsError);

impl dhole_node::IntoError for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> SettingsError {
        text.parse::<Settings>().unwrap_err()
    }

    #[test]
    fn settings_survive_their_textual_form() {
        let mut settings = Settings::new(MAX_NODES);
        assert_eq!(settings.to_string().parse(), Ok(settings.clone()));
        settings.seed = u64::MAX;
        settings.computation = Computation::FixedCost { unit_ns: 0.1 };
        settings.network.jitter = 0.3;
        settings.network.latency_ns = 0;
        settings.stack_bytes = 1 << 16;
        settings.compute_scale = 1.0 / 3.0;
        settings.alone_ns = Some(5);
        assert_eq!(settings.to_string().parse(), Ok(settings));
    }

    #[test]
    fn every_network_survives_its_textual_form() {
        for name in Description::known() {
            let mut settings = Settings::new(3);
            settings.set_network(Description::find(name).unwrap());
            settings.network.handling_ns[MessageKind::LockGrant as usize] = 7;
            settings.network.interrupt_when_waiting ^= true;
            settings.network.loss = 0.1 + 0.2;
            settings.network.retransmit_ns = 1;
            assert_eq!(settings.to_string().parse(), Ok(settings), "{name}");
        }
    }

    #[test]
    fn the_number_of_nodes_is_named_when_it_is_wrong() {
        for nodes in [0, 1025, 5000] {
            assert_eq!(
                error(&format!("nodes={nodes}")),
                SettingsError::Nodes { nodes }
            );
            assert_eq!(
                Settings::new(nodes).check(),
                Err(SettingsError::Nodes { nodes })
            );
        }
        assert_eq!(error("seed=1"), SettingsError::NoNodes);
    }

    #[test]
    fn a_bad_part_is_named() {
        let bad = |key: &str, value: &str, wanted| SettingsError::BadValue {
            key: key.into(),
            value: value.into(),
            wanted,
        };
        assert_eq!(error("nodes=-1"), bad("nodes", "-1", "a whole number"));
        assert_eq!(
            error("nodes=2,jitter=lots"),
            bad("jitter", "lots", "a number")
        );
        assert_eq!(
            error("nodes=2,sede=1"),
            SettingsError::UnknownKey { key: "sede".into() }
        );
        assert_eq!(
            error("nodes=2,nodes=3"),
            SettingsError::Repeated {
                key: "nodes".into()
            }
        );
        assert_eq!(
            error("nodes=2,fast"),
            SettingsError::Malformed {
                part: "fast".into()
            }
        );
        assert_eq!(
            error(""),
            SettingsError::Malformed {
                part: String::new()
            }
        );
    }

    #[test]
    fn a_value_out_of_its_range_is_named() {
        for text in [
            "jitter=1.5",
            "jitter=NaN",
            "bytes_per_second=0",
            "fixed_cost=-1",
            "fixed_cost=inf",
            "call_ns=0",
            "stack_bytes=100",
        ] {
            let (key, value) = text.split_once('=').unwrap();
            match error(&format!("nodes=2,{text}")) {
                SettingsError::OutOfRange {
                    key: named,
                    value: shown,
                    ..
                } => {
                    assert_eq!((named.as_str(), shown.as_str()), (key, value));
                }
                other => panic!("{text}: {other}"),
            }
        }
    }
}
