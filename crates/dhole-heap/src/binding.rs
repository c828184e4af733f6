//! What an id is bound to: a type, and for rows and arrays a length.

use std::fmt;

use dhole_model::{Coherence, Oid};

use crate::foreign::Foreign;
use crate::geometry::per_block;
use crate::miss::Miss;
use crate::share::type_map::{Invalid, TypeInfo};

/// What an object is, and so how many bytes it has.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The type of the object, or of each scalar of a row.
    pub info: &'static TypeInfo,
    /// Scalars in the row; 1 for an object.
    pub len: u64,
    /// Whether the object is a row of scalars.
    pub row: bool,
    /// The protocol under which the object was allocated; no part of what it is.
    pub coherence: Coherence,
}

impl Binding {
    /// Bytes of the object in memory.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.info.size as u64 * self.len
    }

    /// Bytes of the object without padding: what travels.
    #[inline]
    pub fn packed_bytes(&self) -> u64 {
        self.info.packed_size as u64 * self.len
    }

    /// The packed bytes of an object, of those as it lies in memory.
    pub(crate) fn packed<'a>(&self, stored: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        if self.row || self.info.is_dense() {
            return stored;
        }
        for range in &self.info.data {
            buffer.extend_from_slice(&stored[range.offset..][..range.bytes]);
        }
        buffer
    }

    /// Whether `miss` takes its object for this.
    #[inline]
    pub(crate) fn agrees(&self, miss: &Miss) -> bool {
        self.info.type_id == miss.ty.id() && self.len == miss.len as u64 && self.row == miss.row
    }

    /// Tests every leaf of an object's packed bytes. Rows have no leaves.
    pub(crate) fn check(&self, packed: &[u8]) -> Result<(), Invalid> {
        if self.row {
            Ok(())
        } else {
            self.info.check(packed)
        }
    }
}

impl PartialEq for Binding {
    fn eq(&self, other: &Binding) -> bool {
        self.info.type_id == other.info.type_id && self.len == other.len && self.row == other.row
    }
}

impl Eq for Binding {}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.row {
            return write!(f, "row of {} {}", self.len, self.info.name);
        }
        f.write_str(self.info.name)
    }
}

/// What an array is.
#[derive(Clone, Copy, Debug)]
pub struct ArrayBinding {
    /// The type of its elements.
    pub info: &'static TypeInfo,
    /// How many there are.
    pub len: u64,
    /// Whether they are scalars that began as zeros.
    pub zeros: bool,
    /// The protocol under which it was allocated; no part of what it is.
    pub coherence: Coherence,
}

impl ArrayBinding {
    /// Bytes of all elements in memory.
    pub fn bytes(&self) -> u64 {
        self.info.size as u64 * self.len
    }

    /// What is wrong with taking the array for one of `len` elements of another type.
    pub(crate) fn clash(self, array: Oid, info: &'static TypeInfo, len: u64) -> BindError {
        let seen = ArrayBinding { info, len, ..self };
        BindError::TypeClash {
            oid: array,
            bound: self.to_string(),
            seen: seen.to_string(),
        }
    }

    /// Elements of each block but the last.
    pub fn per_block(&self) -> u64 {
        per_block(self.info.size).expect("allocation tests the size of elements")
    }
}

impl fmt::Display for ArrayBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array of {} {}", self.len, self.info.name)
    }
}

/// Why an id is not what a reference takes it for.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The id was allocated as something else. Only bytes that lie can lead here.
    #[error("{oid} is a {bound}, not a {seen}")]
    TypeClash {
        /// The object.
        oid: Oid,
        /// What it was allocated as.
        bound: String,
        /// What the reference takes it for.
        seen: String,
    },
    /// The id is not one of this cluster's.
    #[error(transparent)]
    Foreign(#[from] Foreign),
}

dhole_model::debug_in_words!(BindError);
