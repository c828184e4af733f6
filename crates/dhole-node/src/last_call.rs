//! The last call of a node's worker.

use dhole_model::CallSite;

/// The worker's last call of the runtime: where in the program, and which it was. Reads of what is
/// here are no calls.
#[derive(Default)]
pub(crate) struct LastCall {
    number: u64,
    site: Option<CallSite>,
}

impl LastCall {
    /// The worker begins another one.
    #[inline]
    pub fn begins(&mut self, site: impl Into<CallSite>) {
        self.number += 1;
        self.site = Some(site.into());
    }

    /// How many there were.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where it is.
    pub fn site(&self) -> CallSite {
        self.site
            .unwrap_or(CallSite::runtime("the beginning of the run"))
    }

    /// Since which call.
    pub(crate) fn since(&self) -> String {
        self.site.map_or_else(
            || "since the run began".to_owned(),
            |site| format!("since its last call of the runtime, at {site}"),
        )
    }
}
