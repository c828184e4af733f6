//! Planted bugs of programs over shared objects, which tests must find.

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Nothing.
    Nothing,
    /// `tsp`: a node reads the length of the shortest tour once, and writes it by an operation that
    /// does not compare.
    BoundUnseen,
    /// `ida`: a node that steals jobs does not remove them.
    StolenJobsStay,
    /// `asp`: a row is sent before the paths through the vertex before it are known.
    RowTooEarly,
}
