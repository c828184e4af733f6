//! The facade on threads and simulated: families, freeing, races, failures, time.

mod advice;
mod answers;
mod arrays;
mod cost_report;
mod failures;
mod family;
mod freeing;
mod gates;
mod graphs;
mod hasty;
mod in_place;
mod leaves;
mod memory;
mod one_sided;
mod optimisations;
mod passes;
mod propagate;
mod races;
mod reachable;
mod read_ahead;
mod refused;
mod seen_arrays;
mod timeline;
mod timing;
mod young;
