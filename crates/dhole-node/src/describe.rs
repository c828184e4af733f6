//! What a node does, holds and waits for, in words.

use std::fmt::Write as _;

use dhole_heap::Presence;

use crate::node::State;

impl State {
    /// What the node does, holds and waits for; a line each.
    pub(crate) fn describe(&self, presence: Presence) -> String {
        let mut text = match (presence, self.protocol.wait()) {
            (Presence::Computing, _) => "its worker computes".to_owned(),
            (_, Some(waiter)) => self.here.in_words(waiter).to_string(),
            (Presence::Shared | Presence::Exclusive, None) => {
                "its worker is in a call of the runtime".to_owned()
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
        if let Some(unbegun) = self.turns.unbegun(self.id()) {
            let _infallible = write!(text, "\n{unbegun}");
        }
        for (holding, site) in self.held() {
            let _infallible = write!(text, "\nholds {holding}, acquired at {site}");
        }
        if let Some(ended) = self.ended() {
            let _infallible = write!(text, "\nhas heard of the end of the run: {ended:?}");
        }
        text
    }
}
