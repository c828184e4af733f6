//! What a node does, holds and waits for, in words.

use std::fmt::Write as _;
use std::time::Duration;

use dhole_heap::Presence;
use dhole_protocol::QuiescenceProbe;

use crate::ended::Ended;
use crate::node::State;

impl State {
    /// What this node knows of why nobody may go on, beside its own waits.
    pub(crate) fn answers_probe(&self, mut probe: QuiescenceProbe) -> QuiescenceProbe {
        probe.say_made(|object| self.here.made_at(object));
        probe.round.beside.extend(self.scheduler.unbegun(self.id()));
        probe
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
        Ended::Deadlock(_) => "this node is in a deadlock".to_owned(),
        Ended::Race(race) => race.to_string(),
        Ended::Broken(cause) => cause.to_string(),
        Ended::Out(why) => format!("this node is out of it: {why}"),
    }
}
