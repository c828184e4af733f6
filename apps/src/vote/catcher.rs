//! The catcher: how a program's accesses become faults, and go on (section 4.2, figure 8).

use dhole::{Client, Object, Result, Worker};

use super::actor::{Access, Actor, Saw};
use super::adviser::{Adviser, Fault};

/// Units of work of a fault: trap, memory management and maintenance, a fifth of the 667 us of
/// Table 3, at 20 ns a unit.
pub const UNITS: u64 = 6_670;

/// The memory of one node: for each adviser a client of it, and the actor that it commands here.
/// Pages are divided among the advisers in turn.
#[derive(Clone, Debug)]
pub struct Catcher {
    parts: Vec<(Client<Adviser>, Object<Actor>)>,
    /// Accesses that were faults.
    pub faults: u64,
}

impl Catcher {
    /// The memory of this node.
    pub fn new(parts: Vec<(Client<Adviser>, Object<Actor>)>) -> Catcher {
        Catcher { parts, faults: 0 }
    }

    /// The adviser of a page, for the wishes of this node.
    pub fn adviser(&mut self, page: u32) -> &mut Client<Adviser> {
        let part = page as usize % self.parts.len();
        &mut self.parts[part].0
    }

    /// Reads or writes a word, once the page may be.
    ///
    /// # Errors
    /// Those of calls; and of a word or page that there is not.
    pub fn access(&mut self, w: &mut Worker<'_>, page: u32, access: Access) -> Result<Saw> {
        let advisers = self.parts.len() as u32;
        let (client, actor) = &mut self.parts[(page % advisers) as usize];
        let here = page / advisers;
        if let Some(saw) = actor.access(w, here, access)? {
            return Ok(saw);
        }
        self.faults += 1;
        w.work(UNITS);
        let fault = match access.writes() {
            true => Fault::Write,
            false => Fault::Read,
        };
        let by = w.node();
        let grant = client.handle(w, (here, by, fault))?;
        let saw = actor.take_up(w, here, grant, access)?;
        saw.ok_or_else(|| dhole::Error::program(format!("page {page} has no such word")))
    }
}
