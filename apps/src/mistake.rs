//! Mistakes that a program over shared objects may make, so that tests know they would be noticed.

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Nothing.
    Nothing,
    /// `tsp`: the length of the shortest tour is read once, and written by an operation that does
    /// not look at it.
    BoundUnseen,
    /// `ida`: who steals jobs leaves them where they are.
    StolenJobsStay,
    /// `asp`: a row is sent before the paths through the vertex before it are known.
    RowTooEarly,
}
