//! Where the parts of a value lie.

/// Bytes `offset..offset + bytes` of a value, all of them data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DataRange {
    /// Where the range starts in the value.
    pub offset: usize,
    /// How long it is.
    pub bytes: usize,
}

/// How a reference is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceForm {
    /// A [`Ref`](crate::Ref): the id, 8 bytes.
    One,
    /// An `Option<Ref>`: the id or 0.
    Maybe,
    /// A [`Refs`](crate::Refs): first id and number of objects.
    Range,
    /// A [`Row`](crate::Row): id and number of scalars.
    Row,
    /// A [`Rows`](crate::Rows): first id, number of rows, number of scalars in each.
    Rows,
    /// An [`Array`](crate::Array): id of the first block and number of elements.
    Array,
}

impl ReferenceForm {
    /// Bytes of a reference of this form.
    pub const fn bytes(self) -> usize {
        match self {
            ReferenceForm::One | ReferenceForm::Maybe => 8,
            ReferenceForm::Range | ReferenceForm::Row | ReferenceForm::Array => 16,
            ReferenceForm::Rows => 24,
        }
    }
}

/// Leaves of one size at regular distances. Offsets are into packed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grain {
    /// Where the first one starts.
    pub packed_offset: usize,
    /// From one to the next; 0 when there is one only.
    pub packed_stride: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}
