//! A process, from its beginning to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dhole_model::CallSite;
use dhole_protocol::Event;
use dhole_protocol::objects::chain::Chain;
use dhole_protocol::objects::{Bytes, Outcome, Refusal, Start};
use dhole_wire::WireError;

use super::op::Runs;
use super::process::Process;
use crate::error::Error;
use crate::failure::{Failed, why};
use crate::machine::Fiber;
use crate::node::Node;
use crate::worker::{Failure, Worker};

/// Runs the processes that have not begun, one after the other, as a fiber that has just begun;
/// who goes on then. `lend` lends each a worker.
pub(crate) fn run_processes(
    node: &Node,
    mut lend: impl FnMut(&mut dyn FnMut(&mut Worker<'_>)),
) -> Fiber {
    let mut next = node.monitor.lock().split().1.scheduler.take_begins();
    while let Some(process) = next {
        lend(&mut |w| w.run_process(&process));
        let mut guard = node.monitor.lock();
        let state = guard.split().1;
        let ended = state.ended().is_some();
        next = match state.scheduler.after_end(ended) {
            Ok(process) => Some(process),
            Err(fiber) => return fiber,
        };
    }
    Fiber::PROGRAM
}

impl Worker<'_> {
    fn run_process(&mut self, process: &Process) {
        let link = &self.link;
        let now_ns = link.machine.waited(link.node.id);
        // The process that let this one begin may wait.
        link.node
            .monitor
            .lock()
            .split()
            .1
            .counting
            .phases
            .ends(now_ns);
        let ended = process.ended(self.outcome_of(process));
        // If the run has ended, nobody waits for it any more.
        let _over = self.exclusive(CallSite::runtime("the end of a process"), |link, call| {
            // Whoever holds a lock keeps the turn, so what this node holds is this process's.
            link.release_forgotten(call)?;
            link.settle_started(call)?;
            link.local(call, Some(Event::EndInterval))?;
            link.stepping(call, |state, step| state.step_objects(ended, step))?;
            link.send(call);
            Ok(())
        });
    }

    fn outcome_of(&mut self, process: &Process) -> Outcome {
        let begun: Result<(), Box<Failure>> = self.exclusive(
            CallSite::runtime("the beginning of a process"),
            |link, call| {
                link.local(call, Some(Event::EndInterval))?;
                link.learn(call)
            },
        );
        if let Err(failure) = begun {
            let error = self.link.sync_error(*failure, process.site());
            return Err(refusal(Failed::Error(Box::new(error.into()))));
        }
        let chain = match process {
            Process::Started(start) => Chain::of(&start.chain),
            Process::Operation(call) => Chain::of(&call.chain),
        };
        let malformed = |cause: WireError| Refusal::Malformed(cause.to_string().into());
        *self.link.chain.borrow_mut() = chain.map_err(malformed)?;
        match process {
            Process::Started(start) => self.run(start).map_err(refusal),
            Process::Operation(call) => self.execute(call),
        }
    }

    fn run(&mut self, start: &Start) -> Result<Bytes, Failed> {
        let run = || Runs::run(start.what, self, &start.arguments);
        let ran = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(ran) => ran.map_err(|error| Failed::Error(Box::new(error))),
            Err(payload) => Err(why(payload)),
        };
        let joined = self.join_all();
        let joined = joined.map_err(|error| Failed::Error(Box::new(Error::Process(error))));
        ran.and_then(|result| joined.map(|()| result))
    }
}

fn refusal(failed: Failed) -> Refusal {
    match failed {
        Failed::Panicked(words) => Refusal::Panicked(words),
        Failed::Error(error) => Refusal::Failed(error.to_string().into()),
    }
}
