//! Which build of the program runs: processes of two builds must not talk, for what one names by a
//! place in its executable lies elsewhere in the other.

use std::fmt;
#[cfg(feature = "processes")]
use std::{
    fs::File,
    io::{self, Read},
};

/// The build of the running executable: its GNU build id, or else the SHA-256 of its file.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildId(Vec<u8>);

impl BuildId {
    /// The most bytes of one.
    pub(crate) const MOST_BYTES: usize = 64;

    /// That of the running executable.
    ///
    /// # Errors
    /// The system's own, where the executable cannot be read.
    #[cfg(feature = "processes")]
    pub fn of_this_process() -> io::Result<BuildId> {
        const MOST_FILE_BYTES: u64 = 4 << 30;
        let mut image = Vec::new();
        File::open("/proc/self/exe")?
            .take(MOST_FILE_BYTES)
            .read_to_end(&mut image)?;
        Ok(Self::of(&image))
    }

    /// That of an executable with these bytes.
    #[cfg(feature = "processes")]
    fn of(image: &[u8]) -> BuildId {
        let found = gnu_build_id(image).filter(|id| (8..=Self::MOST_BYTES).contains(&id.len()));
        match found {
            Some(id) => BuildId(id.to_vec()),
            None => {
                let digest = ring::digest::digest(&ring::digest::SHA256, image);
                BuildId(digest.as_ref().to_vec())
            }
        }
    }

    /// One as a peer says it, if it is not too long.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<BuildId> {
        (bytes.len() <= Self::MOST_BYTES).then(|| BuildId(bytes.to_vec()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A little-endian number of up to 8 bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..length].copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}

/// The note that a linker leaves in a 64-bit little-endian ELF file, if it does.
fn gnu_build_id(image: &[u8]) -> Option<&[u8]> {
    const NOTE_SEGMENT: usize = 4;
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let headers = number(image, 0x20, 8)?;
    let (size, count) = (number(image, 0x36, 2)?, number(image, 0x38, 2)?);
    (0..count).find_map(|i| {
        let header = headers.checked_add(i.checked_mul(size)?)?;
        let header = image.get(header..header.checked_add(56)?)?;
        if number(header, 0, 4)? != NOTE_SEGMENT {
            return None;
        }
        let (from, bytes) = (number(header, 8, 8)?, number(header, 0x20, 8)?);
        build_id_among(image.get(from..from.checked_add(bytes)?)?)
    })
}

/// The build id among a segment's notes: lengths of name and content, a kind, the name, the
/// content, each in steps of 4 bytes.
fn build_id_among(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: usize = 3;
    loop {
        let (name_bytes, bytes) = (number(notes, 0, 4)?, number(notes, 4, 4)?);
        let kind = number(notes, 8, 4)?;
        let content = 12usize.checked_add(name_bytes.checked_next_multiple_of(4)?)?;
        let name = notes.get(12..12usize.checked_add(name_bytes)?)?;
        let found = notes.get(content..content.checked_add(bytes)?)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            return Some(found);
        }
        notes = notes.get(content.checked_add(bytes.checked_next_multiple_of(4)?)?..)?;
    }
}

#[cfg(all(test, feature = "processes"))]
mod tests {
    use super::*;

    fn elf(name: &[u8; 4], id: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 64 + 56];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[0x20] = 64;
        image[0x36] = 56;
        image[0x38] = 1;
        image[64] = 4;
        image[64 + 8] = 120;
        image[64 + 0x20] = 16 + id.len() as u8;
        for number in [4, id.len() as u32, 3] {
            image.extend_from_slice(&number.to_le_bytes());
        }
        image.extend_from_slice(name);
        image.extend_from_slice(id);
        image
    }

    #[test]
    fn the_linkers_note_is_found_and_without_one_the_whole_file_counts() {
        let id = [9; 20];
        assert_eq!(BuildId::of(&elf(b"GNU\0", &id)).as_bytes(), id);
        let without = elf(b"XYZ\0", &id);
        assert_eq!(BuildId::of(&without).as_bytes().len(), 32);
        let mut other = without.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_ne!(BuildId::of(&without), BuildId::of(&other));
    }

    #[test]
    fn a_file_that_lies_about_its_lengths_is_hashed() {
        let sound = elf(b"GNU\0", &[9; 20]);
        for at in 0..sound.len() {
            for wrong in [0x7f, 0xff] {
                let mut image = sound.clone();
                image[at] = wrong;
                BuildId::of(&image);
                BuildId::of(&image[..at]);
            }
        }
    }

    #[test]
    fn this_process_has_one() {
        let id = BuildId::of_this_process().unwrap();
        assert_eq!(id, BuildId::of_this_process().unwrap());
    }
}
