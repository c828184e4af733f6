//! What a node does, holds and waits for, in words.

use std::fmt::Write as _;
use std::time::Duration;

use dhole_heap::Presence;
use dhole_protocol::DeadlockProbe;

use crate::ended::Ended;
use crate::node::State;
use crate::sync_error::cycle_text;

impl State {
    /// What this node knows of why nobody may go on, beside its protocol's waits.
    pub(crate) fn answers_probe(&self, probe: &mut DeadlockProbe) {
        // A call whose time is limited does not wait for ever.
        if self.others_go_on() || self.here.deadlines.any() {
            probe.edges.finds_computing();
        }
        probe.say_made(|object| self.here.made_at(object));
        probe.finds_unbegun(self.scheduler.unbegun(self.id()));
    }

    /// What the node does, holds and waits for, when no call has begun for so long; a line each.
    pub(crate) fn describe(&self, presence: Presence, quiet_for: Duration) -> String {
        let (time, since) = (quiet_for.as_secs_f64(), self.last_call.since());
        let mut text = match (presence, self.protocol.wait()) {
            (Presence::Computing, _) => {
                format!("its worker computes for {time:.1} s, {since}")
            }
            (_, Some(waiter)) => format!("{}, for {time:.1} s", self.here.in_words(waiter)),
            (Presence::Shared | Presence::Exclusive, None) => {
                format!("its worker is in a call of the runtime for {time:.1} s, {since}")
            }
        };
        let asked: Vec<String> = self.protocol.asked().map(|node| node.to_string()).collect();
        if !asked.is_empty() {
            let _infallible = write!(text, "\nwaits for objects from {}", asked.join(", "));
        }
        for &waiter in self.protocol.parked() {
            let waiter = self.here.in_words(waiter);
            let _infallible = write!(text, "\nanother of its processes: {waiter}");
        }
        if let Some(unbegun) = self.scheduler.unbegun(self.id()) {
            let _infallible = write!(text, "\n{unbegun}");
        }
        for (holding, site) in self.held() {
            let _infallible = write!(text, "\nholds {holding}, acquired at {site}");
        }
        if let Some(ended) = self.ended() {
            let _infallible = write!(text, "\nhas heard of the end of the run: {}", how(ended));
        }
        text
    }
}

/// How a run has ended, as a node sees it.
pub(crate) fn how(ended: &Ended) -> String {
    match ended {
        Ended::Elsewhere(ended) => ended.to_string(),
        Ended::Deadlock(cycle) => format!("this node is in a deadlock: {}", cycle_text(cycle)),
        Ended::Race(race) => race.to_string(),
        Ended::Broken(cause) => cause.to_string(),
        Ended::Out(why) => format!("this node is out of it: {why}"),
    }
}
