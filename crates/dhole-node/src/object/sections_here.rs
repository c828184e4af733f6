//! What a node knows of the sections that it calls and runs.

use dhole_model::CallSite;
use dhole_protocol::Commands;
use rustc_hash::FxHashMap;

/// After a section has run at its caller because its home could not run it, so many calls at the
/// same line do so too.
const AT_CALLER: u8 = 64;

/// What a node knows of sections.
pub(crate) struct SectionsHere {
    pub nodes: usize,
    /// Whether sections go to the homes of their locks.
    on: bool,
    /// How many of the next calls at a line run at their caller.
    at_caller: FxHashMap<CallSite, u8>,
    /// What the protocol wants done since a section was tried.
    pub commands: Commands,
    /// Units of work that sections did here since.
    pub units: u64,
    /// Sections that ran since, and those that found their objects in use.
    pub ran: u64,
    pub in_use: u64,
}

impl SectionsHere {
    /// Of a node of a cluster of `nodes`. Sections go to the homes of their locks if they are `on`.
    pub fn new(nodes: usize, on: bool) -> SectionsHere {
        SectionsHere {
            nodes,
            on,
            at_caller: FxHashMap::default(),
            commands: Commands::new(),
            units: 0,
            ran: 0,
            in_use: 0,
        }
    }

    /// Whether anything is to be done, or counted, since sections were tried.
    #[inline]
    pub fn has_ran(&self) -> bool {
        self.ran + self.in_use > 0 || !self.commands.is_empty()
    }

    /// Whether the next call at a line goes to the home.
    pub fn goes(&mut self, site: CallSite) -> bool {
        if !self.on {
            return false;
        }
        match self.at_caller.get_mut(&site) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        }
    }

    /// The home could not run a section that was called at this line.
    pub fn bounced(&mut self, site: CallSite) {
        self.at_caller.insert(site, AT_CALLER);
    }
}
