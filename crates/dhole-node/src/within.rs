//! A limit of time on calls: a call that has not begun when the time is over is withdrawn.

use std::time::Duration;

use dhole_heap::MonitorCall;
use dhole_model::ObjectId;
use dhole_protocol::objects::ObjectsEvent;

use crate::node::State;
use crate::object::Deadline;
use crate::worker::{Failure, Link, Worker};

impl<'id> Worker<'id> {
    /// Runs `f`, and limits the time of the calls of operations that it makes. A call that has not
    /// begun when `duration` is over is withdrawn: its guard was false, or other calls held the
    /// object. Then it is refused with [`Refusal::Withdrawn`](crate::Refusal::Withdrawn), and it is
    /// never executed. A call of a section that waits at the home of its lock is withdrawn too.
    ///
    /// A call that has begun comes to its end, and so does the computation of `f`: no other wait is
    /// limited, such as that for a barrier, a lock, a condition, an object or the end of a process.
    /// The time is that of this node's clock ([`now`](Worker::now)). A limit within another ends
    /// with the earlier of both. The node sees that the time is over when its worker waits. It
    /// tells the node of the object by one message; where the object is replicated and the call
    /// writes, it tells all by an ordered one. While a limited call waits, no deadlock is reported
    /// that it is part of.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use dhole_node::object::ObjectError;
    /// # use dhole_node::{Refusal, Result, Worker};
    /// # type Pop = fn(&mut Worker<'_>) -> std::result::Result<u32, ObjectError>;
    /// # fn example(w: &mut Worker<'_>, pop: Pop) -> Result<Option<u32>> {
    /// match w.within(Duration::from_millis(20), |w| pop(w)) {
    ///     Ok(job) => Ok(Some(job)),
    ///     Err(ObjectError::Refused { cause: Refusal::Withdrawn, .. }) => Ok(None),
    ///     Err(error) => Err(error.into()),
    /// }
    /// # }
    /// ```
    pub fn within<R>(&mut self, duration: Duration, f: impl FnOnce(&mut Worker<'id>) -> R) -> R {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        let until = now_ns.saturating_add(duration_ns);
        let outer = self.link.until_ns.get();
        let limit = Limit {
            worker: self,
            outer,
        };
        let earlier = outer.map_or(until, |outer| outer.min(until));
        limit.worker.link.until_ns.set(Some(earlier));
        f(&mut *limit.worker)
    }
}

/// The limit of a worker, which is as it was before when this is gone, also by unwinding.
struct Limit<'w, 'id> {
    worker: &'w mut Worker<'id>,
    outer: Option<u64>,
}

impl Drop for Limit<'_, '_> {
    fn drop(&mut self) {
        self.worker.link.until_ns.set(self.outer);
    }
}

impl Link<'_> {
    /// A call that is made within a limit of time is withdrawn when that is over.
    #[inline]
    pub(crate) fn limits(&self, call: &mut MonitorCall<'_, State>, of: (u64, ObjectId)) {
        if let Some(at_ns) = self.until_ns.get() {
            let (number, object) = of;
            call.split().1.here.deadlines.add(Deadline {
                call: number,
                object,
                at_ns,
            });
        }
    }

    /// A call that may have been limited is over.
    #[inline]
    pub(crate) fn limits_no_more(&self, call: &mut MonitorCall<'_, State>, number: u64) {
        if self.until_ns.get().is_some() {
            let here = &mut call.split().1.here;
            here.deadlines.forget(number);
            here.machine.forget_withdrawal(number);
        }
    }

    /// How long the worker waits at most, and whether it does so for a deadline.
    pub(crate) fn until_deadline(
        &self,
        call: &mut MonitorCall<'_, State>,
        patience: Duration,
    ) -> (Duration, bool) {
        let Some(at_ns) = call.split().1.here.deadlines.first_ns() else {
            return (patience, false);
        };
        let left = at_ns.saturating_sub(self.machine.now(self.node.id));
        let left = Duration::from_nanos(left);
        (left.min(patience), left < patience)
    }

    /// Withdraws the calls of this node whose time is over; whether there were any.
    pub(crate) fn withdraw_overdue(
        &self,
        call: &mut MonitorCall<'_, State>,
    ) -> Result<bool, Box<Failure>> {
        let state = call.split().1;
        if !state.here.deadlines.any() || state.ended().is_some() {
            return Ok(false);
        }
        let now_ns = self.machine.now(self.node.id);
        let mut any = false;
        while let Some(overdue) = call.split().1.here.deadlines.take_overdue(now_ns) {
            any = true;
            let Deadline {
                call: number,
                object,
                ..
            } = overdue;
            let withdraw = ObjectsEvent::Withdraw {
                call: number,
                object,
            };
            self.stepping(call, |state, step| match state.here.is_finished(number) {
                true => Ok(()),
                false => state.step_objects(withdraw, step),
            })?;
        }
        Ok(any)
    }
}
