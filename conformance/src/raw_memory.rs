//! Nodes that have raw memory.

use std::sync::Arc;

use dhole::memory::MemorySettings;
use dhole::{Domains, MemoryManagers};
use dhole_check::{Changed, Platform};
use dhole_node::Settings;

/// Another platform whose nodes have raw memory, in these domains.
#[derive(Clone, Copy, Debug)]
pub struct InDomains<P> {
    /// Where the nodes run.
    pub on: P,
    /// Which of them have the same memory.
    pub domains: Domains,
    /// Which of them manage it.
    pub managers: MemoryManagers,
}

impl<P: Platform> Changed for InDomains<P> {
    fn name(&self) -> String {
        let InDomains {
            on,
            domains,
            managers,
        } = self;
        format!("{}, domains {domains:?}, managers {managers:?}", on.name())
    }

    fn on(&self) -> &dyn Platform {
        &self.on
    }

    fn change(&self, settings: &mut Settings) {
        settings.parts = Some(Arc::new(MemorySettings::default()));
        settings.domains = self.domains;
        settings.managers = self.managers;
    }
}
