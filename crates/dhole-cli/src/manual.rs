//! `dhole man` and `dhole completions`, both generated from the definition of the command line.

use std::io;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::say;

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
    say::print(&page)
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
