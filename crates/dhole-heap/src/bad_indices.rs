//! Why indices do not name elements of an array.

use dhole_model::{CallSite, Counted, Grouped};
use thiserror::Error;

/// Indices that an array does not have, or for which there are not as many values.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum BadIndices {
    /// The array has no such element.
    #[error(
        "indices of an array at {site}: index {position} of {} is {}; the array has {}",
        Grouped(*indices),
        Grouped(*index),
        Counted(*len, "element", "elements")
    )]
    NoElement {
        /// Which of the indices, counted from 0.
        position: u64,
        /// How many indices.
        indices: u64,
        /// The index.
        index: u64,
        /// Elements of the array.
        len: u64,
        /// Where in the program.
        site: CallSite,
    },
    /// There are more indices than values, or fewer.
    #[error(
        "indices of an array at {site}: {} and {}: give a value for each index",
        Counted(*indices, "index", "indices"),
        Counted(*values, "value", "values")
    )]
    Lengths {
        /// How many indices.
        indices: u64,
        /// How many values.
        values: u64,
        /// Where in the program.
        site: CallSite,
    },
}

dhole_model::debug_in_words!(BadIndices);
