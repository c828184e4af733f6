//! Totally ordered groups: single steps, and simulated clusters with everything that goes wrong.

mod behind;
mod body;
mod bug;
mod counts;
mod hostile;
mod invariants;
mod order;
mod seeds;
mod world;
