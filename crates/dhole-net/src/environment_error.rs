use std::io;
use std::path::PathBuf;

use dhole_model::{MissingFeature, UnknownVariable};
use thiserror::Error;

/// What is wrong with what the environment says.
#[derive(Error)]
pub enum EnvironmentError {
    /// One variable is set, and another that it takes is not.
    #[error("{set} is set, but {missing} is not")]
    Incomplete {
        /// What is set.
        set: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// A variable does not say what it should.
    #[error("{variable} is `{value}`: {expected} is expected")]
    Wrong {
        /// Which.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it should say.
        expected: String,
    },
    /// The environment has a variable that is none of dhole's.
    #[error(transparent)]
    Unknown(#[from] UnknownVariable),
    /// The environment asks for what the program is built without.
    #[error(transparent)]
    Feature(#[from] MissingFeature),
    /// An MPI launcher started this process, and the program cannot speak MPI.
    #[error(
        "{launcher} started this process as one of {nodes} ({variable} is set), but the program is \
         built without MPI: build it with dhole's feature `mpi` (`cargo build --features mpi`), \
         or start it with `dhole run -n {nodes}`"
    )]
    WithoutMpi {
        /// What started it.
        launcher: &'static str,
        /// What says so.
        variable: &'static str,
        /// Processes that it started.
        nodes: usize,
    },
    /// The secret cannot be had.
    #[error("the secret of the cluster, from {from}: {cause}")]
    Secret {
        /// The file or descriptor.
        from: PathBuf,
        /// Why not.
        cause: SecretError,
    },
}

dhole_model::debug_in_words!(EnvironmentError);

/// What is wrong with a secret.
#[derive(Error)]
pub enum SecretError {
    /// It could be guessed.
    #[error("it has {bytes} bytes; at least {fewest} are needed")]
    Short {
        /// What it has.
        bytes: usize,
        /// What it needs.
        fewest: usize,
    },
    /// It is endless.
    #[error("it has more than {most} bytes")]
    Long {
        /// The most it may have.
        most: usize,
    },
    /// Others can read it.
    #[error("others may read the file (its mode is {mode:03o}); `chmod 600` it")]
    Readable {
        /// What they may do.
        mode: u32,
    },
    /// It belongs to somebody else.
    #[error("the file belongs to user {owner}")]
    Foreign {
        /// To whom.
        owner: u32,
    },
    /// There is nothing in it.
    #[error(
        "it is empty; a pipe is read once, so where programs follow each other in one script, \
         DHOLE_SECRET_FILE must name a file that each of them reads"
    )]
    Empty,
    /// Its descriptor was not passed on.
    #[error(
        "{0}; what starts this program must leave the descriptor open for it, as shells do \
         (and Python's `subprocess` with `close_fds=False`)"
    )]
    Inherited(io::Error),
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
}

dhole_model::debug_in_words!(SecretError);
