//! The facade on threads and simulated: families, freeing, races, failures, time.

mod arrays;
mod failures;
mod family;
mod freeing;
mod in_place;
mod one_sided;
mod optimisations;
mod races;
mod reachable;
mod timing;
