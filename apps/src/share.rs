//! What a program shares, and how: `--share`.

use clap::ValueEnum;

use crate::options::BadInput;

/// What a program shares.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Share {
    /// Objects.
    #[default]
    Objects,
    /// Raw memory (Linux on x86-64).
    Memory,
    /// References under `home`, with critical sections that run at the homes (Jackal).
    Sections,
    /// Nothing: nodes call operations of each other, as Jackal's paper does for comparison with RMI.
    Calls,
}

impl Share {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Share::Objects => "objects",
            Share::Memory => "memory",
            Share::Sections => "sections",
            Share::Calls => "calls",
        }
    }

    /// Refuses this where a program has only others.
    ///
    /// # Errors
    /// [`BadInput::NoShare`] lists those that it has.
    pub fn among(self, has: &[Share]) -> Result<(), BadInput> {
        if has.contains(&self) {
            return Ok(());
        }
        let names: Vec<&str> = has.iter().map(|share| share.name()).collect();
        Err(BadInput::NoShare {
            share: self.name(),
            has: names.join(", "),
        })
    }

    /// Refuses what only raw memory has, each option with whether it was given.
    ///
    /// # Errors
    /// [`BadInput::NeedsMemory`] names the first that was.
    pub fn check(self, given: &[(&'static str, bool)]) -> Result<(), BadInput> {
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) if self != Share::Memory => Err(BadInput::NeedsMemory { option }),
            _ => Ok(()),
        }
    }

    /// Refuses what this lacks, each option with whether it was given.
    ///
    /// # Errors
    /// [`BadInput::NotShared`] names the first that was.
    pub fn lacks(self, given: &[(&'static str, bool)]) -> Result<(), BadInput> {
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(BadInput::NotShared {
                option,
                share: self.name(),
            }),
            None => Ok(()),
        }
    }
}
