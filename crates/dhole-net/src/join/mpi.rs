//! Joining where an MPI launcher has started the processes: it answers for who they are, and they
//! compare what must be alike as all others do.

use std::time::Duration;

use dhole_model::NodeId;

use super::error::JoinError;
use super::terms::Terms;
use crate::{Mpi, Port, Watch};

pub(super) fn join(
    me: NodeId,
    terms: &Terms,
    within: Duration,
    bound: Duration,
) -> Result<Box<dyn Port>, JoinError> {
    let failed = |doing, cause| JoinError::Mpi { me, doing, cause };
    let mut says = Vec::new();
    terms.write(&mut says);
    let (port, said) = Mpi::of_all(&says, within)
        .map_err(|error| failed("joining the others over MPI", error.to_string()))?;
    if (port.me(), port.nodes()) != (me, terms.nodes) {
        let (nodes, there, known) = (terms.nodes, port.me(), port.nodes());
        let cause = format!(
            "the launcher says {me} of {nodes}, the MPI library {there} of {known}: is the \
             program built for the MPI of this launcher (under srun: `--mpi=pmix` or `pmi2`)?"
        );
        return Err(failed("comparing the launcher with the MPI library", cause));
    }
    for (peer, said) in said.iter().enumerate() {
        let peer = NodeId::at(peer);
        let theirs = Terms::read(said, terms);
        let fits = theirs.and_then(|theirs| terms.compare(&theirs));
        fits.map_err(|cause| JoinError::Handshake {
            me,
            peer,
            address: "its place among MPI's processes".into(),
            cause: Box::new(cause),
        })?;
    }
    Ok(Box::new(Watch::new(port, bound)))
}
