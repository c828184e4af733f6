//! Values for which not every bit pattern is valid, and the tests that bytes from elsewhere must
//! pass before they become one.

/// What the bytes of a leaf must satisfy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeafTest {
    /// A `bool`: 0 or 1.
    Bool,
    /// A `char`: a Unicode scalar value.
    Char,
    /// A `NonZero` of this many bytes: some byte is not 0.
    NonZero(usize),
    /// An enum without fields, of `bytes` bytes: one of these values, in ascending order.
    OneOf {
        /// Bytes of the value, at most 16.
        bytes: usize,
        /// The discriminants, as unsigned numbers of that size.
        values: Box<[u128]>,
    },
}

impl LeafTest {
    /// Bytes of the leaf.
    pub fn bytes(&self) -> usize {
        match self {
            LeafTest::Bool => 1,
            LeafTest::Char => 4,
            LeafTest::NonZero(bytes) | LeafTest::OneOf { bytes, .. } => *bytes,
        }
    }

    /// Whether `value`, as many bytes as the leaf has, is a valid leaf.
    pub fn accepts(&self, value: &[u8]) -> bool {
        match self {
            LeafTest::Bool => value[0] <= 1,
            LeafTest::Char => char::from_u32(number(value) as u32).is_some(),
            LeafTest::NonZero(_) => value.iter().any(|&b| b != 0),
            LeafTest::OneOf { values, .. } => values.binary_search(&number(value)).is_ok(),
        }
    }

    /// What the leaf is, for an error's text.
    pub fn name(&self) -> &'static str {
        match self {
            LeafTest::Bool => "bool",
            LeafTest::Char => "char",
            LeafTest::NonZero(_) => "non-zero number",
            LeafTest::OneOf { .. } => "enum",
        }
    }
}

/// The native-endian number of up to 16 bytes.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    if cfg!(target_endian = "little") {
        wide[..bytes.len()].copy_from_slice(bytes);
    } else {
        wide[16 - bytes.len()..].copy_from_slice(bytes);
    }
    u128::from_ne_bytes(wide)
}

/// Leaves of one test at regular distances. Offsets are into the packed bytes of the type, which
/// leave its padding out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Where the first one starts.
    pub packed_offset: usize,
    /// From one to the next; 0 when there is one only.
    pub packed_stride: usize,
    /// How many there are.
    pub count: usize,
    /// What each must satisfy.
    pub test: LeafTest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surrogate_is_no_char() {
        assert!(LeafTest::Char.accepts(&('x' as u32).to_ne_bytes()));
        assert!(!LeafTest::Char.accepts(&0xd800_u32.to_ne_bytes()));
        assert!(!LeafTest::Char.accepts(&0x11_0000_u32.to_ne_bytes()));
    }

    #[test]
    fn an_enum_takes_its_discriminants_alone() {
        let test = LeafTest::OneOf {
            bytes: 2,
            values: [1, 0xffff].into(),
        };
        assert!(test.accepts(&1_u16.to_ne_bytes()) && test.accepts(&(-1_i16).to_ne_bytes()));
        assert!(!test.accepts(&2_u16.to_ne_bytes()));
    }
}
