//! `dhole cc`: compiles and links programs in C, as `mpicc` does. Everything is passed on to the
//! compiler. Then the program's own object files are changed: names of the C library become those
//! of dhole's library, and the sections of globals get names by which the linker's script finds
//! them. The program is linked statically, at the same addresses in every process.

mod error;
mod names;
mod object;
mod place;
mod stacks;
mod words;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

pub use error::CcError;

use crate::arguments::Cc;
use words::{Input, Stage, Words};

/// What the program's own sources are compiled with, behind what the user says: globals at fixed
/// addresses, each in a section of its own; tables by which `exit` leaves `main`, and what is
/// cleaned up on the way (`pthread_cleanup_push`); no calls of functions that check sizes, for
/// they have other names; and calls that the linker can redirect.
const COMPILED_WITH: [&str; 8] = [
    "-fno-pie",
    "-fno-common",
    "-fdata-sections",
    "-fasynchronous-unwind-tables",
    "-fexceptions",
    "-U_FORTIFY_SOURCE",
    "-fno-lto",
    "-fplt",
];

/// A run of `dhole cc`.
struct Build<'a> {
    words: &'a Words,
    compiler: OsString,
    /// Whether commands are printed, and not run.
    shows: bool,
    /// Where files go that nobody asked for.
    scratch: PathBuf,
}

/// Compiles and links as the words say.
///
/// # Errors
/// [`CcError`]; what the compiler says itself is only passed on, with its exit code.
pub fn run(wanted: &Cc) -> Result<ExitCode, CcError> {
    let words = Words::read(&wanted.words)?;
    let shows = words.shows;
    let scratch = std::env::temp_dir().join(format!("dhole-cc-{}", std::process::id()));
    let compiler = place::variable("DHOLE_CC").unwrap_or_else(|| "cc".into());
    let build = Build {
        words: &words,
        compiler,
        shows,
        scratch,
    };
    if !shows {
        fs::create_dir(&build.scratch)
            .map_err(|cause| CcError::file("making the folder", &build.scratch, cause))?;
    }
    let done = build.run();
    // What is left there is nobody's.
    let _ = fs::remove_dir_all(&build.scratch);
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(CcError::Compiler { code }) => Ok(ExitCode::from(code)),
        Err(error) => Err(error),
    }
}

impl Build<'_> {
    fn run(&self) -> Result<(), CcError> {
        match self.words.stage {
            Stage::PassOn => {
                let words = self.pass_on(self.words.all.iter().map(Into::into))?;
                self.call("passing on to the compiler", &words)
            }
            Stage::Compile => self.compile_all(),
            Stage::Link => self.link(),
        }
    }

    /// The compiler with these words, and dhole's header where it is found.
    fn pass_on(&self, words: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, CcError> {
        let mut all: Vec<OsString> = words.collect();
        all.extend(COMPILED_WITH.map(OsString::from));
        all.push("-I".into());
        all.push(place::headers()?.into());
        Ok(all)
    }

    /// Runs the compiler, or shows that.
    fn call(&self, doing: &str, words: &[OsString]) -> Result<(), CcError> {
        self.call_tool(doing, &self.compiler, words)
    }

    fn call_tool(&self, doing: &str, tool: &OsStr, words: &[OsString]) -> Result<(), CcError> {
        if self.shows {
            let shown = words.iter().map(|word| shown(word));
            let line: Vec<String> = std::iter::once(shown_tool(tool)).chain(shown).collect();
            println!("{}", line.join(" "));
            return Ok(());
        }
        let done = Command::new(tool).args(words).status();
        let done = done.map_err(|cause| CcError::Tool {
            doing: doing.to_owned(),
            tool: tool.to_string_lossy().into_owned(),
            cause,
        })?;
        match done.success() {
            true => Ok(()),
            false => Err(CcError::Compiler { code: code(done) }),
        }
    }

    fn compile_all(&self) -> Result<(), CcError> {
        let sources: Vec<&Path> = self.words.sources().collect();
        if self.words.output.is_some() && sources.len() > 1 {
            return Err(CcError::OutputOfSeveral);
        }
        for source in sources {
            let beside = || Path::new(source.file_name().unwrap_or_default()).with_extension("o");
            let output = self.words.output.clone().unwrap_or_else(beside);
            self.compile(source, &output)?;
        }
        Ok(())
    }

    /// Compiles a source, and makes its globals dhole's.
    fn compile(&self, source: &Path, output: &Path) -> Result<(), CcError> {
        let options = self.words.compiler_options().cloned();
        let mut words = self.pass_on(options)?;
        words.extend(["-c".into(), source.into(), "-o".into(), output.into()]);
        self.call(&format!("compiling {}", source.display()), &words)?;
        let changed = self.change(output);
        if changed.is_err() {
            // Nobody may link an object file whose globals are private.
            let _ = fs::remove_file(output);
        }
        changed
    }

    /// Renames what is dhole's in an object file.
    fn change(&self, object: &Path) -> Result<(), CcError> {
        let orders = self.scratch.join("orders");
        if self.shows {
            println!("objcopy @{} {}", orders.display(), object.display());
            return Ok(());
        }
        let bytes = fs::read(object)
            .map_err(|cause| CcError::file("reading the object file", object, cause))?;
        let sections = object::sections(&bytes).ok_or_else(|| CcError::NotAnObject {
            file: object.into(),
        })?;
        let mut text = names::orders();
        for section in &sections {
            if let Some(renamed) = object::shared_name(section, object)? {
                text += &format!("--rename-section {}={renamed}\n", section.name);
            }
        }
        fs::write(&orders, text)
            .map_err(|cause| CcError::file("writing the orders for objcopy", &orders, cause))?;
        let mut from = OsString::from("@");
        from.push(&orders);
        let doing = format!("sharing the globals of {}", object.display());
        self.call_tool(&doing, OsStr::new("objcopy"), &[from, object.into()])
    }

    fn link(&self) -> Result<(), CcError> {
        let library = place::library()?;
        let script = self.scratch.join("globals.ld");
        let mut words = Vec::new();
        let mut objects = 0;
        for input in &self.words.inputs {
            match input {
                Input::Source(source) => {
                    let object = self.scratch.join(format!("{objects}.o"));
                    objects += 1;
                    self.compile(source, &object)?;
                    words.push(object.into());
                }
                Input::Other(word) => words.push(word.clone()),
            }
        }
        if let Some(output) = &self.words.output {
            words.extend(["-o".into(), output.into()]);
        }
        words.extend(["-static", "-no-pie", "-fno-lto", "-T"].map(OsString::from));
        words.push(script.clone().into());
        if self.words.defines_own_names(&self.scratch) {
            words.push("-Wl,-z,muldefs".into());
        }
        if self.words.shares_stacks && !self.shows {
            let (wraps, source) = stacks::switches(&words, &library);
            let (text, object) = (self.scratch.join("stacks.s"), self.scratch.join("stacks.o"));
            fs::write(&text, source).map_err(|cause| CcError::file("writing", &text, cause))?;
            let doing = "compiling the switches of stacks";
            self.call(
                doing,
                &["-c".into(), text.into(), "-o".into(), object.clone().into()],
            )?;
            // They come first: an archive's member is linked that only the switches name.
            words.splice(0..0, wraps.into_iter().chain([object.into()]));
        }
        words.push(library.into());
        words.extend(["-lpthread", "-lm", "-ldl", "-lgcc_eh", "-lc"].map(OsString::from));
        if self.shows {
            return self.call("linking", &words);
        }
        let text = names::script(self.words.packs_globals, self.words.shares_stacks);
        fs::write(&script, text)
            .map_err(|cause| CcError::file("writing the linker's script", &script, cause))?;
        self.link_quietly(&words)
    }

    /// Links, and keeps to itself what the linker says about the Rust library's `getaddrinfo`.
    fn link_quietly(&self, words: &[OsString]) -> Result<(), CcError> {
        let done = Command::new(&self.compiler).args(words).output();
        let done = done.map_err(|cause| CcError::Tool {
            doing: "linking".to_owned(),
            tool: self.compiler.to_string_lossy().into_owned(),
            cause,
        })?;
        print!("{}", String::from_utf8_lossy(&done.stdout));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if said.contains("undefined reference to `dh_main'") {
            return Err(CcError::NoMain);
        }
        let mut lines = said.lines().peekable();
        while let Some(line) = lines.next() {
            let next = lines.peek().copied().unwrap_or_default();
            let is_about_names = |line: &str| line.contains("in statically linked applications");
            let begins_it = line.contains("libdhole_c.a(") || line.contains("libdhole_c-");
            if !(is_about_names(line) || begins_it && is_about_names(next)) {
                eprintln!("{line}");
            }
        }
        match done.status.success() {
            true => Ok(()),
            false => Err(CcError::Compiler {
                code: code(done.status),
            }),
        }
    }
}

/// The exit code of a tool, as a shell reports it.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1) as u8
}

fn shown_tool(tool: &OsStr) -> String {
    shown(tool)
}

/// A word as a shell reads it.
fn shown(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |it: char| it.is_alphanumeric() || "-_=+./,:@%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
