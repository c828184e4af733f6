//! `dhole paper`: the words of the command, which the program `dhole-papers` carries out.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, Subcommand};
use thiserror::Error;

/// `dhole paper`.
#[derive(Subcommand)]
pub enum Paper {
    /// Hu et al., "Run-Time Support for Distributed Sharing in Typed Languages"
    Dosa(Dosa),
    /// Itzkovitz and Schuster, "MultiView and Millipage - Fine-Grain Sharing in Page-Based DSMs"
    Multiview(Multiview),
    /// Cordsen, Nolte and Schroeder-Preikschat, "Experiences Developing a Virtual Shared Memory
    /// System Using High-Level Object Paradigms"
    Vote(Vote),
    /// Veldema, Hofman, Bhoedjang, Jacobs and Bal, "Source-Level Global Optimizations for
    /// Fine-Grain Distributed Shared Memory Systems"
    Jackal(Jackal),
}

/// `dhole paper dosa`.
#[derive(Args)]
pub struct Dosa {
    /// Small inputs: minutes instead of a quarter of an hour or more
    #[arg(long)]
    pub small: bool,

    /// Only the simulated runs. Leaves out the runs timed on this machine: Table 1, and Table 7's
    /// rows of one node. On any network, work then takes as long as on the paper's machines
    #[arg(long)]
    pub simulated: bool,

    /// The numbers of nodes of the simulated clusters; at the largest, everything is counted
    #[arg(
        long,
        value_name = "N,N..",
        value_delimiter = ',',
        default_values_t = [16, 32],
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub nodes: Vec<u16>,

    /// A network by its name, or the file that describes one. On another network than the paper's,
    /// work takes as long as on this machine
    #[arg(long, value_name = "NAME|FILE", default_value = "dosa-1999")]
    pub network: String,

    /// The folder for tables, figures and runs; a run that it has is not repeated [default: dosa,
    /// or dosa-small]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// The number of simulations at a time [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl Dosa {
    /// What is wanted of the evaluation.
    pub fn wanted(&self) -> PaperOptions {
        PaperOptions {
            nodes: self.nodes.clone(),
            network: Some(self.network.clone()),
            ..wanted(self.small, self.simulated, &self.out, self.jobs)
        }
    }
}

/// `dhole paper multiview`.
#[derive(Args)]
pub struct Multiview {
    /// Small inputs: less than a minute
    #[arg(long)]
    pub small: bool,

    /// Only the simulated runs. Leaves out what is measured on this machine: today's columns of
    /// Table 1, and figure 5
    #[arg(long)]
    pub simulated: bool,

    /// The folder for tables and runs; a run that it has is not repeated [default: multiview, or
    /// multiview-small]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// The number of simulations at a time [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Measures operations between the nodes of a run: for the command itself
    #[arg(long, hide = true)]
    pub today: bool,
}

impl Multiview {
    /// What is wanted of the evaluation.
    pub fn wanted(&self) -> PaperOptions {
        wanted(self.small, self.simulated, &self.out, self.jobs)
    }
}

/// `dhole paper vote`.
#[derive(Args)]
pub struct Vote {
    /// Fewer accesses
    #[arg(long)]
    pub small: bool,

    /// Only the simulated runs, which are all that there are
    #[arg(long)]
    pub simulated: bool,

    /// The folder for tables and runs; a run that it has is not repeated [default: vote, or
    /// vote-small]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// The number of simulations at a time [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl Vote {
    /// What is wanted of the evaluation.
    pub fn wanted(&self) -> PaperOptions {
        wanted(self.small, self.simulated, &self.out, self.jobs)
    }
}

/// `dhole paper jackal`.
#[derive(Args)]
pub struct Jackal {
    /// Small inputs
    #[arg(long)]
    pub small: bool,

    /// Only the simulated runs, which are all that there are
    #[arg(long)]
    pub simulated: bool,

    /// The folder for tables and runs; a run that it has is not repeated [default: jackal, or
    /// jackal-small]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// The number of simulations at a time [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl Jackal {
    /// What is wanted of the evaluation.
    pub fn wanted(&self) -> PaperOptions {
        wanted(self.small, self.simulated, &self.out, self.jobs)
    }
}

/// What is wanted of an evaluation, whichever it is.
pub struct PaperOptions {
    /// Small inputs.
    pub small: bool,
    /// Only the simulated runs.
    pub simulated: bool,
    /// The folder of the results, if it is not the usual one.
    pub out: Option<PathBuf>,
    /// The number of simulations at a time.
    pub jobs: usize,
    /// The numbers of nodes, where the evaluation lets one choose.
    pub nodes: Vec<u16>,
    /// The network, likewise.
    pub network: Option<String>,
}

fn wanted(small: bool, simulated: bool, out: &Option<PathBuf>, jobs: Option<u16>) -> PaperOptions {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    PaperOptions {
        small,
        simulated,
        out: out.clone(),
        jobs: jobs.map_or_else(cores, usize::from),
        nodes: Vec::new(),
        network: None,
    }
}

/// The program that repeats evaluations could not be started.
#[derive(Debug, Error)]
#[error(
    "starting {}: {cause}; `./install` in a checkout of dhole puts it and the papers' programs \
     beside `dhole`, where they are looked for",
    path.display()
)]
pub struct NotStarted {
    /// Its expected path.
    path: PathBuf,
    /// The system's own words.
    cause: io::Error,
}

impl NotStarted {
    /// The command's exit code. It follows the shells'.
    pub fn exit_code(&self) -> u8 {
        match self.cause.kind() {
            io::ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}

/// Becomes the program `dhole-papers`, which lies beside this one, with the words behind `paper`.
/// Returns only if that cannot be.
pub fn start() -> NotStarted {
    const PROGRAM: &str = "dhole-papers";
    match std::env::current_exe() {
        Ok(own) => {
            let path = own.with_file_name(PROGRAM);
            let cause = Command::new(&path).args(std::env::args_os().skip(2)).exec();
            NotStarted { path, cause }
        }
        Err(cause) => NotStarted {
            path: PROGRAM.into(),
            cause,
        },
    }
}
