//! Where a setting was set, for errors.

use std::fmt;

/// Where settings were set, called as their methods of `Config`. What is not here was not set.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SetBy(Vec<(&'static str, By)>);

/// What set a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The program, by this method of its `Config`.
    Program(&'static str),
    /// This variable of the environment, or the option of the command that sets it.
    Variable(&'static str, &'static str),
}

impl SetBy {
    /// Adds a setting, if anything has set it.
    pub fn add(&mut self, setting: &'static str, by: Option<By>) {
        self.0.extend(by.map(|by| (setting, by)));
    }

    /// What has set it.
    pub fn of(&self, setting: &str) -> Option<By> {
        let mut all = self.0.iter();
        all.find(|(name, _)| *name == setting).map(|(_, by)| *by)
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Program(method) => write!(f, "Config::{method}"),
            By::Variable(variable, option) => write!(f, "{variable}, --{option}"),
        }
    }
}

/// A setting, called as its method of `Config`, its value, and what has set it, if anything has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// The setting.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// What has set it.
    pub by: Option<By>,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Said { setting, value, by } = self;
        match by {
            Some(by) => write!(f, "{setting} `{value}` ({by})"),
            None => write!(f, "{setting} `{value}` (unless set)"),
        }
    }
}
