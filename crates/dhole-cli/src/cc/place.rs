//! Where the library and the headers are: in the folder that `DHOLE_C` names, beside the command,
//! where `./install` and packages put them, or in the sources. If a folder is named, the library
//! must be there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::CcError;

/// The library's file.
const LIBRARY: &str = "libdhole_c.a";
const HEADER: &str = "dhole.h";

fn found(what: &'static str, places: Vec<PathBuf>) -> Result<PathBuf, CcError> {
    let found = places.iter().find(|place| place.join(what).exists());
    found.cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|it| it.display().to_string()).collect();
        CcError::Missing {
            what,
            places: places.join(", "),
        }
    })
}

/// What a variable of the environment names; one that is empty names nothing.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|said| !said.is_empty())
}

fn named() -> Option<PathBuf> {
    variable("DHOLE_C").map(PathBuf::from)
}

/// The folder of this command.
fn beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().map(Path::to_owned).unwrap_or_default()
}

/// The library that programs are linked with.
pub fn library() -> Result<PathBuf, CcError> {
    let places = match named() {
        Some(named) => vec![named],
        None => vec![beside(), beside().join("../lib")],
    };
    Ok(found(LIBRARY, places)?.join(LIBRARY))
}

/// The folder of the headers and macros.
pub fn headers() -> Result<PathBuf, CcError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dhole-c/include");
    let named = named().into_iter().flat_map(|it| [it.join("include"), it]);
    let places = named.chain([
        beside().join("include"),
        beside().join("../include"),
        sources,
    ]);
    found(HEADER, places.collect())
}
