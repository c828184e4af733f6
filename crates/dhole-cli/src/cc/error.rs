use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why `dhole cc` cannot build a program.
#[derive(Debug, Error)]
pub enum CcError {
    /// The compiler or another tool failed, and said why itself.
    #[error("the compiler ended with exit code {code}")]
    Compiler {
        /// Its exit code.
        code: u8,
    },
    /// A tool cannot be run.
    #[error("{doing}: running `{tool}`: {cause}")]
    Tool {
        /// What was being done, to which file.
        doing: String,
        /// As it was called.
        tool: String,
        /// The system's own words.
        cause: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{doing} {file}: {cause}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// Its path.
        file: PathBuf,
        /// The system's own words.
        cause: io::Error,
    },
    /// What the compiler wrote is no object file.
    #[error("sharing the globals of {file}: it is no object file of x86-64 (ELF)")]
    NotAnObject {
        /// Its path.
        file: PathBuf,
    },
    /// Several sources, and one output.
    #[error("compiling several sources with -c and -o: name one source, or leave -o out")]
    OutputOfSeveral,
    /// Nothing that is linked has `main`.
    #[error("linking: no source, object file or archive defines `main`")]
    NoMain,
    /// A file that is no source of C, and would be compiled with private globals, or not at all.
    #[error(
        "compiling {file}: its name ends as no source of C's does (.c .i .s .S), so that its \
         globals, or what it allocates (`new` of C++), could not be shared"
    )]
    Language {
        /// Its path.
        file: PathBuf,
    },
    /// An option with which globals cannot be shared.
    #[error("{option}: {why}")]
    Option {
        /// As it was given.
        option: String,
        /// The reason.
        why: &'static str,
    },
    /// Variables that no node could share.
    #[error(
        "sharing the globals of {file}: variables in section {section} cannot be shared: leave \
         them in .data or .bss (no attribute `section`), or make them thread-local or constant"
    )]
    Section {
        /// The object file.
        file: PathBuf,
        /// The section.
        section: String,
    },
    /// A part of dhole is not there.
    #[error(
        "looking for {what}: it is not in any of {places}: `./install` in the sources of dhole \
         installs it with the command, `cargo build --release` makes it, DHOLE_C names it"
    )]
    Missing {
        /// The file.
        what: &'static str,
        /// Where it was looked for.
        places: String,
    },
}

impl CcError {
    pub fn file(doing: &'static str, file: &Path, cause: io::Error) -> CcError {
        CcError::File {
            doing,
            file: file.into(),
            cause,
        }
    }

    /// The command's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            CcError::Compiler { code } => *code,
            CcError::Option { .. } | CcError::OutputOfSeveral | CcError::Language { .. } => 2,
            _ => 1,
        }
    }
}
