//! A row of distances in the form that a message carries.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Distances, which travel as they lie in memory: one after the other each would take longer than
/// their way.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Row(pub Vec<u32>);

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<[u8; 4]> = self.0.iter().map(|it| it.to_le_bytes()).collect();
        to.serialize_bytes(bytes.as_flattened())
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Row, D::Error> {
        from.deserialize_bytes(Bytes)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("distances of four bytes each")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Row, E> {
        match bytes.as_chunks() {
            (distances, []) => {
                let distances = distances.iter().map(|it| u32::from_le_bytes(*it));
                Ok(Row(distances.collect()))
            }
            _ => Err(E::invalid_length(bytes.len(), &self)),
        }
    }
}
