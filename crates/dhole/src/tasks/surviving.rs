//! How a node runs tasks where nodes may be lost: on lease.

use std::time::Duration;

use dhole_model::CallSite;
use dhole_node::object::{Calling, Object, call_as, decode, encode};
use dhole_node::{Result, Worker};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ledger::{Leased, Ledger};
use super::{Looks, More, Tasked, Tasks, TasksError};
use crate::job_queue::ByValue;

/// A node ends its lease after so long, so that no more is done again if it is lost.
const LEASE: Duration = Duration::from_millis(100);

impl<T: ByValue> Tasks<T> {
    /// What keeps the tasks of a run that survives the loss of nodes.
    pub(super) fn ledger(&self) -> Object<Ledger<T>> {
        Object::named(Object::id(&self.first))
    }

    /// Runs tasks until all tasks of all nodes are done. `result` is what those of this node have
    /// come to.
    #[track_caller]
    pub(super) fn run_on_lease<R: Serialize>(
        &self,
        w: &mut Worker<'_>,
        result: &mut R,
        mut run: impl FnMut(&mut Worker<'_>, T, &mut More<'_, T>, &mut R) -> Result<()>,
    ) -> Result<()> {
        let (node, site, ledger) = (w.node(), CallSite::caller(), self.ledger());
        let most = ledger.join(w, node)?;
        loop {
            let calling = Calling::of("Ledger::lease", "Tasks::join");
            let leased = call_as(
                w,
                ledger,
                calling,
                (node,),
                |ledger, _| ledger.can_lease(),
                |ledger, (node,)| ledger.lease(node),
            );
            let mut pile = match leased.map_err(TasksError::from)? {
                Leased::Tasks(tasks) => tasks,
                Leased::Over => return Ok(()),
            };
            loop {
                let began = w.now();
                let mut looks = Looks::new(began);
                while let Some(task) = pile.pop() {
                    let mut more = More {
                        tasks: *self,
                        node,
                        most,
                        pile: &mut pile,
                        untold: &mut Default::default(),
                        on_lease: true,
                    };
                    let ran = run(w, task, &mut more, result);
                    // The others wait for what this task makes, whatever becomes of the error.
                    ran.inspect_err(|error| w.end_run(error))?;
                    if looks.is_due() && !pile.is_empty() {
                        let now = w.now();
                        looks.looked(now);
                        let is_old = now.saturating_sub(began) >= LEASE;
                        if is_old || pile.len() > 1 && ledger.is_awaited(w)? {
                            break;
                        }
                    }
                }
                while !pile.fits() {
                    ledger.hand_in(w, node, pile.gift())?;
                }
                let done = written(w, result, site)?;
                match ledger.end_lease(w, node, std::mem::take(&mut pile), done)? {
                    Some(tasks) => pile = tasks,
                    None => break,
                }
            }
        }
    }

    /// The results of all nodes, the lost ones too, in the order of nodes.
    #[track_caller]
    pub(super) fn results_on_lease<R: DeserializeOwned>(
        &self,
        w: &mut Worker<'_>,
    ) -> Tasked<Vec<R>> {
        let (node, site) = (w.node(), CallSite::caller());
        let results = self.ledger().results(w)?.into_iter();
        let read = |bytes: Vec<u8>| decode("a result of tasks", &bytes);
        let results: std::result::Result<_, _> = results.map(read).collect();
        results.map_err(|cause| TasksError::Result {
            node,
            site,
            cause: cause.cause.into(),
        })
    }

    /// An error if a node was lost before it could make its first tasks.
    #[track_caller]
    pub(super) fn unless_lost_early(&self, w: &mut Worker<'_>) -> Tasked<()> {
        let (node, site) = (w.node(), CallSite::caller());
        match self.ledger().lost_early(w)? {
            Some(lost) => Err(TasksError::RootsLost { lost, node, site }),
            None => Ok(()),
        }
    }
}

/// A result as bytes.
fn written(w: &Worker<'_>, result: &impl Serialize, site: CallSite) -> Tasked<Vec<u8>> {
    match encode("a result of tasks", result) {
        Ok(bytes) => Ok(bytes.to_vec()),
        Err(cause) => Err(TasksError::Result {
            node: w.node(),
            site,
            cause: cause.cause.into(),
        }),
    }
}
