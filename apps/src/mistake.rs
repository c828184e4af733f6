//! Mistakes that a program over shared objects may make, so that tests know they would be noticed.

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Nothing.
    Nothing,
    /// `tsp`: the length of the shortest tour is read by one operation, as a job begins, and written
    /// by another.
    BoundInTwoSteps,
    /// `ida`: who steals jobs leaves them where they are.
    StolenJobsStay,
    /// `asp`: a row is sent before the paths through the vertex before it are known.
    RowTooEarly,
}
