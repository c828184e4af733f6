//! The facade on threads and simulated: families, freeing, races, failures.

mod failures;
mod family;
mod freeing;
mod races;
