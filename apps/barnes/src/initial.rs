//! The bodies at time 0, as the problem's [`Galaxy`] lays them out.

use super::{Body, Galaxy, Problem, encounter, plummer};

/// The bodies of `problem` at time 0. Their centre of mass rests at the origin.
pub fn bodies(problem: &Problem) -> Vec<Body> {
    match problem.galaxy {
        Galaxy::Plummer => plummer::model(problem, false),
        Galaxy::Pair => plummer::model(problem, true),
        Galaxy::Collision => encounter::model(problem),
    }
}
