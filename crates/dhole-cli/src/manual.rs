//! `dhole man` and `dhole completions`, both generated from the definition of the command line.
//! What it does not say, examples, variables of the environment and exit codes, stands here.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::say;

/// What a page shows: the subcommand, if it is of one, a command, and what that does.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "run",
        "dhole run -n 4 target/release/program",
        "runs a program on four processes of this machine",
    ),
    (
        "run",
        "dhole run --hosts machines -- program --steps 10",
        "runs it on the machines of a file, whose lines are as `red slots=2 address=10.0.0.1`",
    ),
    (
        "sim",
        "dhole sim -n 32 --network infiniband -- program",
        "runs it on 32 simulated machines, and times its computation",
    ),
    (
        "sim",
        "dhole sim -n 32 --seed 7 --fixed-cost -- program",
        "runs it so that every repetition prints the same",
    ),
    (
        "cc",
        "dhole cc -O2 -pthread program.c -o program",
        "builds a program in C with POSIX threads, for `dhole run`",
    ),
    (
        "paper",
        "dhole paper multiview --small",
        "repeats a paper's evaluation with small inputs",
    ),
    (
        "dump",
        "dhole dump",
        "makes every node of the one `dhole run` write what it waits for",
    ),
    (
        "man",
        "dhole man run | man -l -",
        "shows the manual page of a subcommand",
    ),
    (
        "completions",
        "dhole completions bash > ~/.local/share/bash-completion/completions/dhole",
        "makes a shell complete the words of this command",
    ),
];

/// The subcommands that something concerns, its name, and what it means.
type Entry = (&'static [&'static str], &'static str, &'static str);

/// Variables of the environment.
const ENVIRONMENT: &[Entry] = &[
    (
        &["run", "sim"],
        "DHOLE_PROTOCOL, DHOLE_RACES, DHOLE_BARRIER, DHOLE_ONE_SIDED, DHOLE_SECTIONS, \
         DHOLE_DOMAINS, DHOLE_MEMORY, DHOLE_MANAGERS, DHOLE_CONSISTENCY, DHOLE_REPORT",
        "what the option of the same name says, where it is left out",
    ),
    (
        &["run"],
        "DHOLE_SURVIVE, DHOLE_SPIN_US, DHOLE_BACKOFF_US, DHOLE_SLEEP_MS",
        "the same, for the program that is run",
    ),
    (
        &["run"],
        "DHOLE_BOUND_MS, DHOLE_JOIN_MS",
        "milliseconds after which a silent node is lost, and for which nodes wait for each other \
         at the beginning",
    ),
    (
        &["run"],
        "DHOLE_MESSAGE_MIB",
        "the largest message between processes, in MiB",
    ),
    (&["cc"], "DHOLE_CC", "the compiler, `cc` if it is not set"),
    (
        &["cc"],
        "DHOLE_C",
        "the folder with libdhole_c.a and dhole.h, if they are not beside the command",
    ),
];

/// Exit codes.
const EXIT_CODES: &[Entry] = &[
    (
        &["run", "sim", "cc", "paper", "dump", "man", "completions"],
        "0",
        "success",
    ),
    (
        &["run", "sim", "cc", "paper", "dump", "man", "completions"],
        "1",
        "it failed, and standard error says why",
    ),
    (
        &["run", "sim", "cc", "paper", "dump", "man", "completions"],
        "2",
        "the words of the command line, or a variable, make no sense",
    ),
    (
        &["run", "sim"],
        "125",
        "the command itself could not do its part",
    ),
    (
        &["run", "sim", "paper"],
        "126, 127",
        "the program cannot be run; there is no such program",
    ),
    (
        &["run", "sim"],
        "another",
        "that of the program: of the node that failed first, or 128 and the number of the signal \
         that ended it",
    ),
    (&["cc"], "another", "that of the compiler"),
];

/// Prints the manual page of the command, or of one of its subcommands.
///
/// # Errors
/// When it cannot be written.
pub fn page(of: Option<&str>) -> io::Result<()> {
    let mut command = Arguments::command();
    // The names and options of subcommands are whole only then.
    command.build();
    let found = of.and_then(|name| command.find_subcommand(name).cloned());
    let mut page = Vec::new();
    Man::new(found.unwrap_or(command)).render(&mut page)?;
    sections(of, &mut page)?;
    say::print(&page)
}

/// Writes examples, variables and exit codes: those of a subcommand, or all.
fn sections(of: Option<&str>, page: &mut Vec<u8>) -> io::Result<()> {
    let concerns = |names: &[&str]| of.is_none_or(|name| names.contains(&name));
    let examples = EXAMPLES.iter().filter(|(name, ..)| concerns(&[name]));
    let examples: Vec<_> = examples
        .map(|(_, command, does)| (*command, *does))
        .collect();
    let those = |all: &'static [Entry]| -> Vec<(&str, &str)> {
        let those = all.iter().filter(|(names, ..)| concerns(names));
        those.map(|(_, name, means)| (*name, *means)).collect()
    };
    for (title, entries) in [
        ("EXAMPLES", examples),
        ("ENVIRONMENT", those(ENVIRONMENT)),
        ("EXIT STATUS", those(EXIT_CODES)),
    ] {
        if !entries.is_empty() {
            writeln!(page, ".SH \"{title}\"")?;
        }
        for (name, means) in entries {
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", roff(name), roff(means))?;
        }
    }
    Ok(())
}

/// A line of text in the page's language. None of them begins with a dot.
fn roff(text: &str) -> String {
    text.replace('\\', "\\\\").replace('-', "\\-")
}

/// Prints the completions of the command for a shell.
///
/// # Errors
/// When it cannot be written.
pub fn completions(shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "dhole", &mut script);
    say::print(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(of: Option<&str>) -> String {
        let mut page = Vec::new();
        sections(of, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn a_page_has_examples_and_exit_codes_and_variables_where_there_are_some() {
        let whole = written(None);
        let titles = ["EXAMPLES", "ENVIRONMENT", "EXIT STATUS"];
        for title in titles {
            assert_eq!(whole.matches(title).count(), 1, "{title}");
        }
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            if command.is_hide_set() {
                continue;
            }
            let page = written(Some(name));
            assert!(
                page.contains("EXAMPLES") && page.contains("EXIT STATUS"),
                "{name}"
            );
            let own = page.contains("ENVIRONMENT");
            assert_eq!(own, ["run", "sim", "cc"].contains(&name), "{name}");
        }
        assert!(written(Some("cc")).contains("DHOLE_CC"));
        assert!(!written(Some("cc")).contains("DHOLE_PROTOCOL"));
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (_, example, _) in EXAMPLES {
            let words = example.split(['|', '>']).next().unwrap_or_default();
            let read = Arguments::read(words.split_whitespace());
            assert!(read.is_ok(), "{example}");
        }
    }
}
