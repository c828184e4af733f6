//! The command as a user meets it: simulated clusters, processes, hosts and batch systems.
//!
//! Several programs that it starts are a test of this very file, `member` of its module.
#![forbid(unsafe_code)]

mod batch;
mod calibrate;
mod hello;
mod launch;
mod machines;
mod meeting;
mod network;
mod run;
mod sim;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempPath;

/// Writes a script that can be run at once. A child writes it, for a file that is open for writing
/// cannot be run: a process that another test starts meanwhile would hold open what is open here.
fn write_script(path: &Path, text: &str) {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "cat >\"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// A script of its own file, gone with the value.
fn script_file(text: &str) -> TempPath {
    let written = tempfile::Builder::new().make(|path| {
        write_script(path, text);
        Ok(())
    });
    written.unwrap().into_temp_path()
}
