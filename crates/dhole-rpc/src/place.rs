//! Part of a memory, as a request names it.

/// Bytes of what makes a capability good: nobody finds 128 random bits by trying.
pub(super) const KEY: usize = 16;
/// Bytes that say which memory: key, offset, length.
pub(super) const PLACE: usize = KEY + 16;

/// Part of a memory, as a request names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub key: [u8; KEY],
    pub offset: u64,
    pub bytes: u64,
}

impl Place {
    pub fn to_bytes(self) -> [u8; PLACE] {
        let mut bytes = [0; PLACE];
        bytes[..KEY].copy_from_slice(&self.key);
        bytes[KEY..KEY + 8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[KEY + 8..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    pub fn read(bytes: &[u8]) -> Option<Place> {
        let (key, rest) = bytes.split_first_chunk::<KEY>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let length = rest.first_chunk::<8>()?;
        Some(Place {
            key: *key,
            offset: u64::from_le_bytes(*offset),
            bytes: u64::from_le_bytes(*length),
        })
    }
}
