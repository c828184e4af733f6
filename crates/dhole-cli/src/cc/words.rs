//! The words of a compiler's command line: what is to be done, with which sources.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::error::CcError;
use super::{names, object};

/// How far the compiler goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Not so far as to object files: everything is the compiler's.
    PassOn,
    /// To object files.
    Compile,
    /// To a program.
    Link,
}

/// A word, for the linker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A source, which is compiled first.
    Source(PathBuf),
    /// An object file, an archive, an option.
    Other(OsString),
}

/// A command line.
#[derive(Debug)]
pub struct Words {
    /// Print the commands and do not run them (`--show`).
    pub shows: bool,
    /// Globals share pages (`--pack-globals`).
    pub packs_globals: bool,
    /// Stacks of the program's threads are shared (`--shared-stacks`).
    pub shares_stacks: bool,
    /// All words but dhole's.
    pub all: Vec<OsString>,
    /// How far.
    pub stage: Stage,
    /// What `-o` says.
    pub output: Option<PathBuf>,
    /// In their order.
    pub inputs: Vec<Input>,
}

/// Options whose value is the next word.
const WITH_VALUE: [&str; 28] = [
    "-I",
    "-L",
    "-D",
    "-U",
    "-l",
    "-x",
    "-T",
    "-u",
    "-z",
    "-e",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-isysroot",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-MF",
    "-MT",
    "-MQ",
    "--param",
    "-aux-info",
    "-B",
    "-wrapper",
];

/// Options with which the compiler goes not so far, or prints something.
const STOPS: [&str; 11] = [
    "-E",
    "-S",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--version",
    "-dumpversion",
    "-dumpmachine",
    "-dumpspecs",
    "--help",
    "-###",
];

/// Options with which globals could not be shared.
const REFUSED: [(&str, &str); 11] = [
    (
        "-shared",
        "a shared library has no fixed addresses, which a program of dhole's needs",
    ),
    (
        "-flto",
        "link-time optimisation leaves no object files in which names can be changed",
    ),
    (
        "-fsanitize",
        "sanitisers cannot be linked statically, as a program of dhole's is",
    ),
    (
        "-mcmodel=medium",
        "variables of the medium model lie in sections that cannot be shared",
    ),
    (
        "-mcmodel=large",
        "variables of the large model lie in sections that cannot be shared",
    ),
    ("--coverage", PROFILES),
    ("-fprofile-arcs", PROFILES),
    ("-fprofile-generate", PROFILES),
    ("-ftest-coverage", PROFILES),
    ("-pg", PROFILES),
    (
        "-r",
        "a partly linked object has no variables that can be placed: link the program at once",
    ),
];
const PROFILES: &str =
    "counters that the compiler adds would be shared globals, which each process writes at its end";

/// Ends of names of sources in other languages, which a compiler of C compiles too.
const OTHER_LANGUAGES: [&str; 20] = [
    "cc", "cpp", "cxx", "c++", "C", "ii", "m", "mm", "M", "f", "for", "ftn", "F", "f90", "F90",
    "f95", "go", "d", "adb", "ads",
];

/// Whether a file is for the linker by its name, or by none.
fn is_for_linker(word: &OsStr) -> bool {
    let extension = Path::new(word).extension();
    extension.is_none_or(|it| it == "o" || it == "a" || it == "so" || it == "lo")
}

fn is_source(word: &OsStr) -> bool {
    let extension = Path::new(word).extension();
    let known = ["c", "i", "s", "S"];
    extension.is_some_and(|it| known.iter().any(|known| it == *known))
}

/// An option of this command, and what it changes.
type OwnOption = (&'static str, fn(&mut Words));

/// The options that are this command's and not the compiler's.
const OWN: [OwnOption; 3] = [
    ("--show", |read| read.shows = true),
    ("--pack-globals", |read| read.packs_globals = true),
    ("--shared-stacks", |read| read.shares_stacks = true),
];

impl Words {
    /// Reads a command line.
    ///
    /// # Errors
    /// [`CcError::Option`]
    pub fn read(words: &[OsString]) -> Result<Words, CcError> {
        let mut read = Words {
            shows: false,
            packs_globals: false,
            shares_stacks: false,
            all: Vec::new(),
            stage: Stage::Link,
            output: None,
            inputs: Vec::new(),
        };
        let mut words = words.iter();
        // Words that are no options, values of options or sources.
        let mut files = Vec::new();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let refused = REFUSED.iter().find(|(option, _)| {
                text.strip_prefix(option)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            });
            let refused = refused.map(|(_, why)| *why).or_else(|| {
                let why = "a file of options is not read: write them on the command line";
                text.starts_with('@').then_some(why)
            });
            if let Some(why) = refused {
                let option = text.into_owned();
                return Err(CcError::Option { option, why });
            }
            if let Some((_, takes)) = OWN.iter().find(|(option, _)| *option == text) {
                takes(&mut read);
                continue;
            }
            match &*text {
                "-c" => {
                    read.stage = Stage::Compile;
                    read.all.push(word.clone());
                }
                "-o" => {
                    let named = words.next().ok_or_else(|| CcError::Option {
                        option: "-o".into(),
                        why: "a file is expected behind it",
                    })?;
                    read.output = Some(named.into());
                    read.all.extend([word.clone(), named.clone()]);
                }
                option if option.starts_with("-o") && option.len() > 2 => {
                    read.output = Some(option[2..].into());
                    read.all.push(word.clone());
                }
                option if WITH_VALUE.contains(&option) => {
                    let with = [Some(word), words.next()];
                    for word in with.into_iter().flatten() {
                        read.inputs.push(Input::Other(word.clone()));
                        read.all.push(word.clone());
                    }
                }
                _ => {
                    if !text.starts_with('-') && !is_source(word) {
                        files.push(word.clone());
                    }
                    read.inputs
                        .push(match is_source(word) && !text.starts_with('-') {
                            true => Input::Source(word.into()),
                            false => Input::Other(word.clone()),
                        });
                    read.all.push(word.clone());
                }
            }
        }
        let stops = |word: &OsString| STOPS.iter().any(|stop| word == stop);
        let has_file = |input: &Input| match input {
            Input::Source(_) => true,
            Input::Other(word) => !word.as_encoded_bytes().starts_with(b"-"),
        };
        if read.all.iter().any(stops) || !read.inputs.iter().any(has_file) {
            read.stage = Stage::PassOn;
        }
        read.check_sources()?;
        let is_other = |word: &&OsString| {
            let extension = Path::new(word).extension();
            let other = OTHER_LANGUAGES
                .iter()
                .any(|it| extension == Some(OsStr::new(it)));
            other || read.stage == Stage::Compile && !is_for_linker(word)
        };
        let mut files = files.iter();
        match files.find(is_other) {
            Some(file) if read.stage != Stage::PassOn => {
                Err(CcError::Language { file: file.into() })
            }
            _ => Ok(read),
        }
    }

    /// Refuses what would leave a source's globals private.
    fn check_sources(&self) -> Result<(), CcError> {
        let is_output = |input: &Input| match input {
            Input::Source(source) => self.output.as_ref() == Some(source),
            Input::Other(word) => self
                .output
                .as_ref()
                .is_some_and(|it| it.as_os_str() == word),
        };
        if let (true, Some(output)) = (self.inputs.iter().any(is_output), &self.output) {
            let option = format!("-o {}", output.display());
            let why = "the output is an input, which it would replace";
            return Err(CcError::Option { option, why });
        }
        let names_language = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-x");
        let refused = |option: &OsString, why| {
            let option = option.to_string_lossy().into_owned();
            Err(CcError::Option { option, why })
        };
        match self.stage {
            Stage::Compile if self.sources().next().is_none() => refused(
                &"-c".into(),
                "no source is named whose name ends as one of C does (.c .i .s .S)",
            ),
            Stage::Link => match self.all.iter().find(names_language) {
                Some(option) => refused(option, "compile with -c first, and link then"),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The sources, in their order.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().filter_map(|input| match input {
            Input::Source(source) => Some(&**source),
            Input::Other(_) => None,
        })
    }

    /// What is said to the compiler where it compiles one source.
    pub fn compiler_options(&self) -> impl Iterator<Item = &OsString> {
        // Whether the word before takes this one as its value, and is said itself.
        let mut before = None;
        self.inputs.iter().filter_map(move |input| {
            let Input::Other(word) = input else {
                return None;
            };
            let text = word.to_string_lossy();
            if let Some(is_said) = before.take() {
                return bool::then_some(is_said, word);
            }
            let is_linker = text.starts_with("-l") || text.starts_with("-Wl,");
            let is_option = text.starts_with('-') && !is_linker && text != "-static";
            before = WITH_VALUE.contains(&&*text).then_some(is_option);
            is_option.then_some(word)
        })
    }

    /// Whether the program's own object files define names that are dhole's, as a program does that
    /// has a function `send` of its own: then these count.
    pub fn defines_own_names(&self, scratch: &Path) -> bool {
        let compiled = std::fs::read_dir(scratch).into_iter().flatten().flatten();
        let compiled = compiled.map(|entry| entry.path());
        let named = self.inputs.iter().filter_map(|input| match input {
            Input::Other(word) => Some(PathBuf::from(word)),
            Input::Source(_) => None,
        });
        let mut objects = compiled
            .chain(named)
            .filter(|it| it.extension().is_some_and(|it| it == "o"));
        objects.any(|object| {
            let bytes = std::fs::read(object).unwrap_or_default();
            let defined = object::defined(&bytes).unwrap_or_default();
            defined
                .iter()
                .any(|name| name != "dh_main" && names::is_renamed(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Words {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Words::read(&words).unwrap()
    }

    #[test]
    fn the_help_names_all_options_that_are_no_compiler_s() {
        for (option, _) in OWN {
            let said = format!("{option} ");
            assert!(crate::arguments::CC_OPTIONS.contains(&said), "{option}");
            assert_eq!(read(option).compiler_options().count(), 0, "{option}");
        }
    }

    #[test]
    fn a_line_says_how_far_the_compiler_goes_and_with_what() {
        let line = read("-O2 -I inc -c a.c -o a.o");
        assert_eq!(
            (line.stage, line.output),
            (Stage::Compile, Some("a.o".into()))
        );
        let line = read("-O2 -I x.c a.c lib.a b.o -lm -l m -D N=1 -oprog c.c --pack-globals");
        assert_eq!(
            (line.stage, &line.output),
            (Stage::Link, &Some("prog".into()))
        );
        assert!(line.packs_globals && !line.shows);
        assert_eq!(
            line.sources().collect::<Vec<_>>(),
            [Path::new("a.c"), Path::new("c.c")]
        );
        let options: Vec<_> = line.compiler_options().collect();
        assert_eq!(options, ["-O2", "-I", "x.c", "-D", "N=1"]);
        for passed_on in ["--version", "-E a.c", "-S a.c -o a.s", "-O2", "-MM a.c"] {
            assert_eq!(read(passed_on).stage, Stage::PassOn, "{passed_on}");
        }
        assert_eq!(read("-v").stage, Stage::PassOn);
        assert_eq!(read("-v a.c").stage, Stage::Link);
        assert_eq!(read("-x c -c a.c").stage, Stage::Compile);
        assert!(read("--show a.c").shows);
    }

    #[test]
    fn what_globals_cannot_be_shared_with_is_refused() {
        for refused in [
            "-shared",
            "-flto",
            "-flto=auto",
            "-fsanitize=address",
            "-mcmodel=large",
            "--coverage",
            "-fprofile-generate=folder",
            "-pg",
            "-r",
        ] {
            let words = [OsString::from("a.c"), refused.into()];
            let error = Words::read(&words).unwrap_err();
            assert!(error.to_string().starts_with(refused), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(Words::read(&["-o".into()]).is_err());
        for line in ["-c a.c b.txt", "a.c b.f90", "a.c b.cpp", "-c a.c b"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let read = Words::read(&words);
            match line.ends_with(" b") {
                true => assert!(
                    read.is_ok(),
                    "a file for the linker is passed over, as ever"
                ),
                false => {
                    let error = read.unwrap_err();
                    assert!(error.to_string().starts_with("compiling b."), "{error}");
                    assert_eq!(error.exit_code(), 2);
                }
            }
        }
        for (line, option) in [
            ("-c a.f", "-c: no source"),
            ("@options a.c", "@options: "),
            ("-xc a.c", "-xc: compile"),
            ("-x c a.o", "-x: compile"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = Words::read(&words).unwrap_err();
            assert!(error.to_string().starts_with(option), "{error}");
        }
    }
}
