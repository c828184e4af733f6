//! Joining where an MPI launcher has started the processes: it answers for who they are, and they
//! compare what must be alike as all others do.

use std::time::Duration;

use dhole_model::NodeId;

use super::error::JoinError;
use super::terms::Terms;
use dhole_mpi::Mpi;
use dhole_net::{FailureDetector, Port};
use dhole_space::WindowMaker;

/// How long the goodbyes of processes that do not fit together may take.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn join(
    me: NodeId,
    terms: &Terms,
    within: Duration,
    bound: Duration,
) -> Result<(Box<dyn Port>, WindowMaker), JoinError> {
    let mut says = Vec::new();
    terms.write(&mut says);
    let (port, said) = Mpi::of_all(&says, within).map_err(|error| JoinError::Mpi {
        me,
        doing: "joining the others over MPI",
        cause: error.to_string(),
    })?;
    let agreed = agree(me, terms, &port, &said);
    if agreed.is_err() {
        // All find that they differ, and end on good terms.
        port.close(GOODBYE_WITHIN);
    }
    agreed?;
    let windows = port.window_maker(within);
    Ok((Box::new(FailureDetector::new(port, bound)), windows))
}

/// Compares what the launcher says with what the library knows, and the terms of all.
fn agree(me: NodeId, terms: &Terms, port: &Mpi, said: &[Vec<u8>]) -> Result<(), JoinError> {
    if (port.me(), port.nodes()) != (me, terms.nodes) {
        let (nodes, there, known) = (terms.nodes, port.me(), port.nodes());
        let cause = format!(
            "the launcher says {me} of {nodes}, the MPI library {there} of {known}: is the \
             program built for the MPI of this launcher (under srun: `--mpi=pmix` or `pmi2`)?"
        );
        return Err(JoinError::Mpi {
            me,
            doing: "comparing the launcher with the MPI library",
            cause,
        });
    }
    for (peer, said) in said.iter().enumerate() {
        let theirs = Terms::read(said, terms);
        let fits = theirs.and_then(|theirs| terms.compare(&theirs));
        fits.map_err(|cause| JoinError::Handshake {
            me,
            peer: NodeId::at(peer),
            address: "its place among MPI's processes".into(),
            cause: Box::new(cause),
        })?;
    }
    Ok(())
}
