use std::fmt;
use std::str::FromStr;

use dhole_model::MAX_NODES;
use thiserror::Error;

use crate::Network;

/// The environment variable that [`Settings::from_env`] reads.
pub const ENVIRONMENT_VARIABLE: &str = "DHOLE_SIM";

/// How long the program's own computation takes in virtual time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Computation {
    /// As long as it takes on this host, by its monotonic clock. Whatever else the host does
    /// meanwhile is measured too: the clock of a thread's own processor time would leave it out,
    /// but costs a system call at every entry to the runtime.
    Measured,
    /// As long as the program says with `work`; everything else takes no time. Two runs with the
    /// same settings are then the same, event for event.
    FixedCost {
        /// Nanoseconds of one unit of work.
        unit_ns: f64,
    },
}

/// A simulated cluster.
///
/// The textual form is a list of `key=value` with commas between, in any order; what is left out
/// is as in [`Settings::new`], but `nodes` must be there:
///
/// ```
/// use dhole_sim::{Computation, Settings};
/// let settings: Settings = "nodes=32,seed=7,fixed_cost=1.5".parse().unwrap();
/// assert_eq!((settings.nodes, settings.seed), (32, 7));
/// assert_eq!(settings.computation, Computation::FixedCost { unit_ns: 1.5 });
/// assert_eq!(settings.to_string().parse(), Ok(settings));
/// let error = "nodes=5000".parse::<Settings>().unwrap_err();
/// assert_eq!(error.to_string(), "a simulated cluster has 1 to 1024 nodes, not 5000");
/// ```
///
/// The keys are `nodes`, `seed`, `fixed_cost` (nanoseconds of a unit of work; without it
/// computation is measured), `latency_ns`, `bytes_per_second`, `send_ns`, `receive_ns`, `jitter`,
/// `call_ns` and `stack_bytes`.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Nodes of the cluster, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// What decides every random choice of the run.
    pub seed: u64,
    /// What messages cost.
    pub network: Network,
    /// What computation costs.
    pub computation: Computation,
    /// Nanoseconds of a call into the runtime besides its messages, at least 1: a program that
    /// polls would stop the virtual clock if it cost nothing.
    pub call_ns: u64,
    /// Bytes of each node's stack. Memory is taken only as a stack grows; one that grows past
    /// its end kills the process by SIGSEGV.
    pub stack_bytes: usize,
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
            network: Network::default(),
            computation: Computation::Measured,
            call_ns: 20,
            stack_bytes: 1 << 20,
        }
    }

    /// The settings in the environment variable `DHOLE_SIM`; `None` when it is not set.
    ///
    /// # Errors
    /// [`SettingsError`] when the variable holds anything but settings.
    pub fn from_env() -> Result<Option<Settings>, SettingsError> {
        match std::env::var(ENVIRONMENT_VARIABLE) {
            Ok(text) => text.parse().map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(SettingsError::NotUnicode),
        }
    }

    /// Whether a cluster can be run with these settings.
    ///
    /// # Errors
    /// [`SettingsError`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return Err(SettingsError::Nodes { nodes: self.nodes });
        }
        let network = &self.network;
        let within = |fine: bool, key, value: &dyn fmt::Display, range| match fine {
            true => Ok(()),
            false => Err(SettingsError::OutOfRange {
                key,
                value: value.to_string(),
                range,
            }),
        };
        within(
            network.bytes_per_second > 0,
            "bytes_per_second",
            &network.bytes_per_second,
            "at least 1",
        )?;
        within(
            (0.0..=1.0).contains(&network.jitter),
            "jitter",
            &network.jitter,
            "0 to 1",
        )?;
        if let Computation::FixedCost { unit_ns } = self.computation {
            let fine = unit_ns.is_finite() && unit_ns >= 0.0;
            within(fine, "fixed_cost", &unit_ns, "a finite number, at least 0")?;
        }
        const HOUR_NS: u64 = 3_600_000_000_000;
        let call = 1..=HOUR_NS;
        within(
            call.contains(&self.call_ns),
            "call_ns",
            &self.call_ns,
            "1 ns to an hour",
        )?;
        for (key, value) in [
            ("latency_ns", network.latency_ns),
            ("send_ns", network.send_ns),
            ("receive_ns", network.receive_ns),
        ] {
            within(value <= HOUR_NS, key, &value, "at most an hour")?;
        }
        let stacks = Settings::LEAST_STACK_BYTES..=Settings::MOST_STACK_BYTES;
        within(
            stacks.contains(&self.stack_bytes),
            "stack_bytes",
            &self.stack_bytes,
            "16384 (16 KiB) to 4294967296 (4 GiB)",
        )
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            nodes,
            seed,
            network,
            computation,
            call_ns,
            stack_bytes,
        } = self;
        let Network {
            latency_ns,
            bytes_per_second,
            send_ns,
            receive_ns,
            jitter,
        } = network;
        write!(f, "nodes={nodes},seed={seed},")?;
        if let Computation::FixedCost { unit_ns } = computation {
            write!(f, "fixed_cost={unit_ns},")?;
        }
        write!(
            f,
            "latency_ns={latency_ns},bytes_per_second={bytes_per_second},"
        )?;
        write!(
            f,
            "send_ns={send_ns},receive_ns={receive_ns},jitter={jitter},"
        )?;
        write!(f, "call_ns={call_ns},stack_bytes={stack_bytes}")
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
                "latency_ns" => settings.network.latency_ns = whole(key, value)?,
                "bytes_per_second" => settings.network.bytes_per_second = whole(key, value)?,
                "send_ns" => settings.network.send_ns = whole(key, value)?,
                "receive_ns" => settings.network.receive_ns = whole(key, value)?,
                "jitter" => settings.network.jitter = number(key, value)?,
                "call_ns" => settings.call_ns = whole(key, value)?,
                "stack_bytes" => settings.stack_bytes = whole(key, value)?,
                _ => return Err(SettingsError::UnknownKey { key: key.into() }),
            }
        }
        if !seen.contains(&"nodes") {
            return Err(SettingsError::NoNodes);
        }
        settings.check()?;
        Ok(settings)
    }
}

fn whole<T: FromStr>(key: &str, value: &str) -> Result<T, SettingsError> {
    parsed(key, value, "a whole number")
}

fn number(key: &str, value: &str) -> Result<f64, SettingsError> {
    parsed(key, value, "a number")
}

fn parsed<T: FromStr>(key: &str, value: &str, wanted: &'static str) -> Result<T, SettingsError> {
    let bad = |_| SettingsError::BadValue {
        key: key.into(),
        value: value.into(),
        wanted,
    };
    value.parse().map_err(bad)
}

/// What is wrong with the settings of a simulated cluster.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
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
        key: &'static str,
        /// What it is set to.
        value: String,
        /// What it may be.
        range: &'static str,
    },
    /// The environment variable is not text.
    #[error("the environment variable DHOLE_SIM is not UTF-8")]
    NotUnicode,
}

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
        assert_eq!(settings.to_string().parse(), Ok(settings));
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
                    assert_eq!((named, shown.as_str()), (key, value));
                }
                other => panic!("{text}: {other}"),
            }
        }
    }
}
