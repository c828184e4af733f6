//! The cluster on which a program runs: that of its options, unless the command `dhole` decides.

use dhole::sim::{Settings, SettingsError};
use dhole::{Config, Optimisations};
use thiserror::Error;

use crate::options::Common;

/// The cluster that a program will run on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// Its nodes.
    pub nodes: u16,
    /// Whether it is simulated.
    pub simulated: bool,
}

/// The error in a cluster that the command `dhole` asks for.
#[derive(Error, Clone, PartialEq, Debug)]
pub enum BadCluster {
    /// A simulated one.
    #[error(transparent)]
    Simulated(#[from] SettingsError),
    /// One of processes.
    #[error("{0}")]
    Process(String),
    /// One of another size than the options ask for.
    #[error(
        "--nodes {asked}: the program is started on {nodes} nodes by {by}: leave --nodes out, or \
         start it on {asked}"
    )]
    Nodes {
        /// The nodes of the options.
        asked: u16,
        /// The nodes that there are.
        nodes: u16,
        /// What has decided on them.
        by: &'static str,
    },
}

/// The nodes of a program that no option and no command names.
const USUAL_NODES: u16 = 4;

impl Cluster {
    /// The cluster of the options, or of the environment.
    ///
    /// # Errors
    /// When the environment asks for a cluster that cannot be.
    pub fn of(common: &Common) -> Result<Cluster, BadCluster> {
        let Some(settings) = Settings::from_env()? else {
            let process =
                dhole::process().map_err(|error| BadCluster::Process(error.to_string()))?;
            let nodes = process.and_then(|process| u16::try_from(process.nodes).ok());
            return Ok(Cluster {
                nodes: match nodes {
                    Some(nodes) => decided(nodes, "what made its processes", common)?,
                    None => common.nodes.unwrap_or(USUAL_NODES),
                },
                simulated: false,
            });
        };
        settings.check()?;
        let nodes = u16::try_from(settings.nodes).unwrap_or(u16::MAX);
        Ok(Cluster {
            nodes: decided(nodes, "`dhole sim`", common)?,
            simulated: true,
        })
    }

    /// How to run a program on it, as the options say.
    pub fn config(self, common: &Common) -> Config {
        let mut config = Config::nodes(self.nodes.into()).seed(common.seed);
        if let Some(protocol) = common.protocol {
            config = config.coherence(protocol);
        }
        let Common {
            read_aggregation,
            notice_reduction,
            write_detection,
            learn,
            ..
        } = *common;
        let is_set = [
            read_aggregation.is_some(),
            notice_reduction.is_some(),
            write_detection.is_some(),
            learn.is_some(),
        ];
        if is_set.contains(&true) {
            let usual = Optimisations::default();
            config = config.optimisations(Optimisations {
                read_aggregation: read_aggregation.unwrap_or(usual.read_aggregation),
                notice_reduction: notice_reduction.unwrap_or(usual.notice_reduction),
                write_detection: write_detection.unwrap_or(usual.write_detection),
                learn: learn.unwrap_or(usual.learn),
            });
        }
        if let Some(one_sided) = common.one_sided {
            config = config.one_sided(one_sided);
        }
        if let Some(sections) = common.sections {
            config = config.sections(sections);
        }
        if let Some(file) = &common.trace {
            config = config.trace(file);
        }
        if let Some(placement) = common.allocation {
            config = config.placement(placement);
        }
        if let Some(races) = common.races {
            config = config.races(races);
        }
        if let Some(barriers) = common.barrier {
            config = config.barriers(barriers);
        }
        if let Some(detector) = common.detector {
            config = config.detector(detector);
        }
        config
    }
}

/// The nodes on which the command has decided, unless the options ask for others.
fn decided(nodes: u16, by: &'static str, common: &Common) -> Result<u16, BadCluster> {
    match common.nodes {
        Some(asked) if asked != nodes => Err(BadCluster::Nodes { asked, nodes, by }),
        _ => Ok(nodes),
    }
}
