//! Steps that a thread takes with its node's memory.

use std::sync::Arc;

use dhole_live::Threads;
use dhole_model::WaitCause;
use dhole_node::{PartsStep, Settings, run_on};
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::MemoryOperation;

use super::{Memory, waits_at};
use crate::context::{self, MemoryWaitError};
use crate::settings::MemorySettings;
use crate::waiters::WaitsFor;
use crate::{shared, threads};

fn refusal() -> ProtocolError {
    ProtocolError::BadMessage {
        from: dhole_model::NodeId(0),
        what: "it is refused",
    }
}

/// A thread begins to wait in a step that is refused: how many steps it takes, what comes of the
/// wait, and how many waits the node lists then.
fn waits_in_vain(memory: &Memory) -> (u32, Result<(), MemoryWaitError>, usize) {
    let (mut steps, thread) = (0, context::own_number());
    let waits = (WaitsFor::AnyPage, waits_at(WaitCause::Object, None));
    let waited = memory.steps(waits, &mut |inside, effects| {
        steps += 1;
        // A wait that went on would take another step when its patience is over.
        if steps > 1 {
            return PartsStep::Over;
        }
        inside.waits.insert(thread, (64, MemoryOperation::Flush));
        effects.host.failed = Some(refusal());
        PartsStep::Waits
    });
    let listed = memory.lock().waits.len();
    (steps, waited, listed)
}

#[test]
fn a_wait_whose_step_is_refused_ends_at_once_and_is_not_listed() {
    let machine = Threads::new(1, 0);
    let mut settings = Settings::nodes(1);
    settings.parts = Some(Arc::new(MemorySettings::default()));
    let run = run_on(&machine, &settings, |w| {
        let memory = shared::memory(w)?;
        let worker = waits_in_vain(memory);
        let beside = threads::scope(w, |_, scope| {
            let beside = scope.spawn(|| waits_in_vain(memory))?;
            Ok::<_, threads::ThreadError>(beside.join())
        })??;
        Ok([Some(worker), beside.ok()])
    });
    let refused = (1, Err(MemoryWaitError::Refused(refusal())), 0);
    assert_eq!(
        run.expect("a run").value,
        [Some(refused.clone()), Some(refused)]
    );
}
