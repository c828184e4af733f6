//! The facade on threads and simulated: families, freeing, races, failures, time.

mod failures;
mod family;
mod freeing;
mod races;
mod timing;
