//! Young objects, which the worker allocates and writes without a call.

use dhole_model::{Coherence, OidRange};

use super::Protocol;

impl Protocol {
    /// Whether objects that are allocated under a protocol may be young: the worker may write them
    /// until its interval ends, and nobody is told.
    pub fn keeps_young(&self, coherence: Coherence) -> bool {
        self.coherence.keeps_young(coherence)
    }

    /// The worker has allocated objects under a protocol that [keeps them
    /// young](Protocol::keeps_young), and stored their first values. They are present and writable.
    pub fn born(&mut self, range: OidRange, coherence: Coherence) {
        self.coherence.born(range, coherence);
    }
}
