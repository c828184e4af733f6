//! The sections of an object file (ELF, 64 bits, little-endian).

use std::path::Path;

use super::error::CcError;

/// A section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    kind: u64,
    flags: u64,
    offset: u64,
    bytes: u64,
    /// Another section, which the kind explains.
    link: u64,
}

const WRITE: u64 = 1;
const ALLOC: u64 = 1 << 1;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes: [u8; N] = bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
    let numbers = bytes.iter().rev();
    Some(numbers.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The sections of an object file, if it is one.
pub fn sections(file: &[u8]) -> Option<Vec<Section>> {
    const HEADER: usize = 64;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number::<8>(file, 0x28)? as usize;
    let size = number::<2>(file, 0x3a)? as usize;
    let (mut count, mut names) = (number::<2>(file, 0x3c)?, number::<2>(file, 0x3e)?);
    if size < HEADER || table == 0 {
        return None;
    }
    let at = |index: u64| table.checked_add(size.checked_mul(index as usize)?);
    // Where there are too many for the header, the first section says how many.
    if count == 0 {
        count = number::<8>(file, at(0)? + 0x20)?;
    }
    if names == 0xffff {
        names = number::<4>(file, at(0)? + 0x28)?;
    }
    let strings = number::<8>(file, at(names)? + 0x18)? as usize;
    let section = |index| {
        let at = at(index)?;
        let start = strings.checked_add(number::<4>(file, at)? as usize)?;
        let name = file.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(Section {
            name: String::from_utf8_lossy(name).into_owned(),
            kind: number::<4>(file, at + 0x4)?,
            flags: number::<8>(file, at + 0x8)?,
            offset: number::<8>(file, at + 0x18)?,
            bytes: number::<8>(file, at + 0x20)?,
            link: number::<4>(file, at + 0x28)?,
        })
    };
    (0..count.min(file.len() as u64)).map(section).collect()
}

/// The global symbols that an object file defines, if it is one.
pub fn defined(file: &[u8]) -> Option<Vec<String>> {
    const SYMBOLS: u64 = 2;
    const SYMBOL: usize = 24;
    let all = sections(file)?;
    let Some(table) = all.iter().find(|section| section.kind == SYMBOLS) else {
        return Some(Vec::new());
    };
    let strings = all.get(table.link as usize)?.offset as usize;
    let start = table.offset as usize;
    let symbols = file.get(start..start.checked_add(table.bytes as usize)?)?;
    let symbols = symbols.chunks_exact(SYMBOL).filter(|symbol| {
        let (is_local, section) = (symbol[4] >> 4 == 0, &symbol[6..8]);
        !is_local && section != [0, 0]
    });
    let name = |symbol: &[u8]| {
        let start = strings.checked_add(number::<4>(symbol, 0)? as usize)?;
        let name = file.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    symbols.map(name).collect()
}

/// Sections that may be written and stay each process's own: threads' variables, and what runs
/// before `main`.
const PRIVATE: [&str; 11] = [
    ".tdata",
    ".tbss",
    ".init_array",
    ".fini_array",
    ".preinit_array",
    ".ctors",
    ".dtors",
    ".tm_clone_table",
    ".data.rel.ro",
    ".jcr",
    ".got",
];

/// Whether a section is called so, or its name goes on with a dot.
fn is_called(section: &str, name: &str) -> bool {
    let rest = section.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a section of globals is called from now on, if it is one.
///
/// # Errors
/// [`CcError::Section`]: its variables cannot be shared.
pub fn shared_name(section: &Section, file: &Path) -> Result<Option<String>, CcError> {
    let name = &section.name;
    let is_written = section.flags & (ALLOC | WRITE) == ALLOC | WRITE;
    let is = |others: &[&str]| others.iter().any(|other| is_called(name, other));
    if !is_written || is(&PRIVATE) || is(&[".dhole"]) {
        return Ok(None);
    }
    if is(&[".data", ".bss"]) {
        return Ok(Some(format!(".dhole{name}")));
    }
    if section.bytes == 0 {
        return Ok(None);
    }
    Err(CcError::Section {
        file: file.into(),
        section: name.clone(),
    })
}

/// The functions that an object file calls and does not define, if it is one.
pub fn called(file: &[u8]) -> Option<Vec<String>> {
    const RELOCATIONS: u64 = 4;
    const RELOCATION: usize = 24;
    const SYMBOL: usize = 24;
    /// A call (`R_X86_64_PLT32`).
    const CALL: u64 = 4;
    let all = sections(file)?;
    let mut called = Vec::new();
    for relocations in all.iter().filter(|it| it.kind == RELOCATIONS) {
        let symbols = all.get(relocations.link as usize)?;
        let names = all.get(symbols.link as usize)?.offset as usize;
        for place in 0..relocations.bytes as usize / RELOCATION {
            let at = relocations.offset as usize + place * RELOCATION;
            let (kind, symbol) = (number::<4>(file, at + 8)?, number::<4>(file, at + 12)?);
            let symbol = symbols.offset as usize + symbol as usize * SYMBOL;
            let is_defined = number::<2>(file, symbol + 6)? != 0;
            if kind != CALL || is_defined {
                continue;
            }
            let name = names.checked_add(number::<4>(file, symbol)? as usize)?;
            let name = file.get(name..)?.split(|byte| *byte == 0).next()?;
            called.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(called)
}

/// Whether an object file is one that `dhole cc` has compiled: its globals are shared.
pub fn is_own(file: &[u8]) -> bool {
    let sections = sections(file).unwrap_or_default();
    sections.iter().any(|it| it.name.starts_with(".dhole."))
}

/// The members of an archive that are object files, if it is one.
pub fn members(file: &[u8]) -> Option<Vec<&[u8]>> {
    const HEADER: usize = 60;
    let mut left = file.strip_prefix(b"!<arch>\n")?;
    let mut members = Vec::new();
    while left.len() > HEADER {
        let bytes = std::str::from_utf8(left.get(48..58)?).ok()?;
        let bytes: usize = bytes.trim().parse().ok()?;
        let member = left.get(HEADER..HEADER.checked_add(bytes)?)?;
        members.push(member);
        left = left.get(HEADER + bytes + bytes % 2..).unwrap_or_default();
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &str, flags: u64, bytes: u64) -> Section {
        Section {
            name: name.to_owned(),
            kind: 1,
            flags,
            offset: 0,
            bytes,
            link: 0,
        }
    }

    #[test]
    fn sections_of_globals_are_renamed_and_no_others() {
        let renamed = |name, flags| {
            let named = shared_name(&section(name, flags, 8), Path::new("a.o"));
            named.map_err(|error| error.to_string())
        };
        assert_eq!(renamed(".data.x", 3), Ok(Some(".dhole.data.x".into())));
        assert_eq!(renamed(".bss", 3), Ok(Some(".dhole.bss".into())));
        for (private, flags) in [
            (".rodata", 2),
            (".text", 6),
            (".tbss.y", 0x403),
            (".data.rel.ro.z", 3),
            (".init_array", 3),
            (".dhole.bss.x", 3),
        ] {
            assert_eq!(renamed(private, flags), Ok(None), "{private}");
        }
        let refused = renamed("mine", 3).unwrap_err();
        assert!(
            refused.contains("a.o") && refused.contains("section mine"),
            "{refused}"
        );
        assert_eq!(
            shared_name(&section("mine", 3, 0), Path::new("a.o")).unwrap(),
            None
        );
    }

    #[test]
    fn what_is_no_object_file_has_no_sections() {
        let mut own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let all = sections(&own).unwrap();
        assert!(all.iter().any(|it| it.name == ".data" && it.flags & 3 == 3));
        let defined = defined(&own).unwrap();
        assert!(defined.is_empty() || defined.iter().any(|name| name == "main"));
        assert_eq!(sections(b"int x;"), None);
        own.truncate(1 << 10);
        assert_eq!(sections(&own), None, "cut off");
        for end in 0..70 {
            assert_eq!(sections(&own[..end]), None);
        }
    }
}
