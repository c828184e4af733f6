//! What stands for joining in a program that is built without the feature `processes`: a process
//! that was started as one of several says which feature it lacks.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use dhole_model::{MissingFeature, NodeId};

use crate::Joined;
use dhole_net::variables::{Look, RUN, is_set, lone};
use dhole_net::{EnvironmentError, Port};

#[allow(dead_code, reason = "no peer names its build")]
#[path = "membership/build_id.rs"]
mod build_id;
#[allow(
    dead_code,
    reason = "most errors of joining are only named here, and never made"
)]
#[path = "membership/error.rs"]
mod error;
#[path = "membership/mpirun.rs"]
mod mpirun;
#[allow(dead_code, reason = "no connections are made")]
#[path = "membership/open_files.rs"]
mod open_files;

pub use build_id::BuildId;
pub use error::{HandshakeError, HandshakeRefusal, JoinError, RefusedConnections};

/// What a process knows of its cluster before it has joined; there is none.
#[derive(Debug)]
pub enum Membership {}

impl Membership {
    /// Nothing, where the environment does not say that this process is one of several.
    ///
    /// # Errors
    /// [`JoinError::Environment`] where it does, which takes the feature `processes`.
    pub fn from_env() -> Result<Option<Membership>, JoinError> {
        read(&|name| std::env::var_os(name), std::env::args_os().skip(1))
    }

    /// The node that this process is.
    pub fn node(&self) -> NodeId {
        match *self {}
    }

    /// Nodes of the cluster.
    pub fn nodes(&self) -> usize {
        match *self {}
    }

    /// Bytes of the longest message with its payload, where that was said.
    pub fn longest_message(&self) -> Option<usize> {
        match *self {}
    }

    /// Runs of objects that may be known where others tell of more, where that was said.
    pub fn learnt_runs(&self) -> Option<usize> {
        match *self {}
    }

    /// Whether others see files that this process shows.
    pub fn can_show(&self) -> bool {
        match *self {}
    }

    /// Joins the others.
    ///
    /// # Errors
    /// None, for there is no membership.
    pub fn join(self) -> Result<Box<dyn Port>, JoinError> {
        match self {}
    }

    /// The same, with what else is known of the others.
    ///
    /// # Errors
    /// None, for there is no membership.
    pub fn join_neighbours(self, _: &[OwnedFd]) -> Result<Joined, JoinError> {
        match self {}
    }
}

fn read(
    look: Look<'_>,
    words: impl Iterator<Item = OsString>,
) -> Result<Option<Membership>, JoinError> {
    let of_a_node = is_set(look, "DHOLE_NODE") || lone(look).is_some();
    if !of_a_node && let Some(launched) = mpirun::read(look, words)? {
        return Ok(Some(launched));
    }
    if of_a_node || is_set(look, RUN) {
        return Err(EnvironmentError::Feature(MissingFeature {
            feature: "processes",
            asked: "this process was started as one node of several (DHOLE_NODE or its like)",
        })
        .into());
    }
    Ok(None)
}
