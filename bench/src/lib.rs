//! What the measurements have in common: floors that several of them stand beside, and how what was
//! measured is told.
#![forbid(unsafe_code)]

pub mod floors;
pub mod table;
pub mod took;

use std::error::Error;

/// What a measurement comes to.
pub type Outcome<T> = Result<T, Box<dyn Error>>;
