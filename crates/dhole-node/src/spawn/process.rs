//! What a process runs.

use dhole_model::CallSite;
use dhole_protocol::objects::{Call, ObjectsEvent, Outcome, Start};

use crate::object::EXECUTION;

/// What a process runs.
#[derive(Debug)]
pub(crate) enum Process {
    /// A function that a worker started.
    Started(Start),
    /// An operation that takes a worker, which a worker called.
    Operation(Call),
}

impl Process {
    /// Where in the program it was started, where that is known.
    pub fn site(&self) -> CallSite {
        match self {
            Process::Started(start) => start.site,
            Process::Operation(_) => EXECUTION,
        }
    }

    /// That it has come to its end.
    pub fn ended(&self, outcome: Outcome) -> ObjectsEvent {
        match self {
            Process::Started(start) => ObjectsEvent::Ended {
                by: start.by,
                time: start.time.clone(),
                outcome,
            },
            Process::Operation(call) => ObjectsEvent::Executed {
                by: call.id,
                object: call.object,
                outcome,
            },
        }
    }
}
