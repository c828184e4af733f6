//! How the program on a node went wrong, and what a run's failures come to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use dhole_model::NodeId;
use dhole_protocol::AbortReason;

use crate::error::{Error, RunError};

/// A failure of the program on a node, and which of the run's failures it was.
pub(crate) struct Failure {
    pub failed: Failed,
    /// The place in the order in which nodes failed; none for what follows from another's.
    pub order: Option<usize>,
}

/// How the program on a node went wrong.
pub(crate) enum Failed {
    Panicked(Arc<str>),
    Error(Box<Error>),
}

/// What unwound: an access error on its way here, or a panic.
pub(crate) fn why(payload: Box<dyn Any + Send>) -> Failed {
    match payload.downcast::<Error>() {
        Ok(error) => Failed::Error(error),
        Err(payload) => Failed::Panicked(into_words(payload)),
    }
}

/// The words of a panic, which goes no further.
pub(crate) fn into_words(payload: Box<dyn Any + Send>) -> Arc<str> {
    let words = panic_words(&*payload);
    if !payload.is::<String>() && !payload.is::<&str>() {
        // Its destructor is the program's, and may panic too.
        std::mem::forget(payload);
    }
    words.into()
}

/// The words of a panic, or of an access error that unwinds.
pub fn panic_words(payload: &(dyn Any + Send)) -> String {
    if let Some(words) = payload.downcast_ref::<String>() {
        words.clone()
    } else if let Some(words) = payload.downcast_ref::<&str>() {
        (*words).to_owned()
    } else if let Some(error) = payload.downcast_ref::<Error>() {
        error.to_string()
    } else {
        "a panic whose payload is no text".to_owned()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Panicked(words) => write!(f, "it panicked: {words}"),
            Failed::Error(error) => error.fmt(f),
        }
    }
}

impl Failed {
    /// Whether the error only says that another node failed.
    pub fn follows(&self) -> bool {
        matches!(self, Failed::Error(error) if error.is_consequence())
    }

    /// As one of several failures.
    pub fn into_error(self) -> Error {
        match self {
            Failed::Error(error) => *error,
            Failed::Panicked(words) => Error::program(format!("panicked: {words}")),
        }
    }

    /// As the first failure of a run.
    pub fn into_run_error(self, node: NodeId, others: Vec<(NodeId, Error)>) -> RunError {
        match self {
            Failed::Panicked(message) => RunError::Panicked {
                node,
                message,
                others,
            },
            Failed::Error(error) => RunError::Failed {
                node,
                error,
                others,
            },
        }
    }

    /// What to tell the other nodes.
    pub fn reason(&self) -> AbortReason {
        match self {
            Failed::Panicked(words) => AbortReason::Panicked(Arc::clone(words)),
            Failed::Error(error) => match error.cycle() {
                Some(cycle) => AbortReason::Deadlocked(Arc::clone(cycle)),
                None => AbortReason::Failed(error.to_string().into()),
            },
        }
    }
}

/// The value of the first of these nodes, if none failed; otherwise the first failure, with those
/// that do not follow from another.
pub(crate) fn first_value(
    results: impl IntoIterator<Item = (NodeId, Result<NodeId, Failure>)>,
) -> Result<NodeId, RunError> {
    let mut value = None;
    let mut failures = Vec::new();
    for (node, result) in results {
        match result {
            Ok(own) => value = value.or(Some(own)),
            Err(failure) => failures.push((node, failure)),
        }
    }
    failures.sort_by_key(|(_, failure)| failure.order.unwrap_or(usize::MAX));
    let mut failures = failures.into_iter();
    let Some((node, first)) = failures.next() else {
        return Ok(value.expect("some node has either a value or an error"));
    };
    let others = failures
        .filter(|(_, failure)| failure.order.is_some())
        .map(|(node, failure)| (node, failure.failed.into_error()))
        .collect();
    Err(first.failed.into_run_error(node, others))
}
