//! Why indices do not name elements of an array.

use dhole_model::CallSite;
use thiserror::Error;

use crate::grouped::Grouped;

/// Indices that an array does not have, or for which there are not as many values.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum BadIndices {
    /// The array has no such element.
    #[error(
        "indices of an array at {site}: index {position} of {} is {}; the array has {} elements",
        Grouped(*indices),
        Grouped(*index),
        Grouped(*len)
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
        "indices of an array at {site}: {} indices and {} values",
        Grouped(*indices),
        Grouped(*values)
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
