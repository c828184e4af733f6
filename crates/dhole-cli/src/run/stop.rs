//! Whether the process of a node is stopped by a signal, as `/proc` shows it.

use std::fmt;
use std::fs;

use rustix::process::Pid;
use signal_hook::low_level::signal_name;

use super::line::Word;

/// A process that a signal has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// Its number.
    pub process: i32,
    /// The signal; 0 where the system does not name it.
    pub signal: i32,
}

impl Stop {
    /// The signal in parentheses, if it is known.
    pub fn by(&self) -> String {
        match signal_name(self.signal) {
            Some(name) => format!(" (signal {})", name.trim_start_matches("SIG")),
            None => String::new(),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} is stopped{}", self.process, self.by())
    }
}

/// What is known of the process of a node.
pub struct StopWatch {
    /// The process group of the node, and the process that leads it.
    group: Pid,
    /// The process that runs the program, if that is another one.
    program: Option<Pid>,
    last: Option<Stop>,
}

impl StopWatch {
    /// Of the node whose process leads this group.
    pub fn new(group: Pid) -> StopWatch {
        StopWatch {
            group,
            program: None,
            last: None,
        }
    }

    /// Notes which process runs the program.
    pub fn hears(&mut self, word: &Word) {
        if let Word::Meets { process } = word {
            self.program = Some(*process).filter(|it| *it > 1).and_then(Pid::from_raw);
        }
    }

    /// A report, if the process was stopped or goes on since the last look.
    pub fn look(&mut self) -> Option<Word> {
        let of = |process| stop_of(process, self.group);
        let now = self.program.and_then(of).or_else(|| of(self.group))?;
        if now == self.last {
            return None;
        }
        self.last = now;
        Some(match now {
            Some(stop) => Word::Stopped(stop),
            None => Word::Resumed,
        })
    }
}

/// Whether a process of this group is stopped. `None` where there is no such process, or it has
/// ended.
fn stop_of(process: Pid, group: Pid) -> Option<Option<Stop>> {
    let process = process.as_raw_nonzero().get();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    read(process, group.as_raw_nonzero().get(), &stat)
}

/// Reads the line of `/proc/PID/stat`: behind the name in parentheses come the state and the
/// parent, and then the process group. The 52nd value is the signal while a process is stopped.
fn read(process: i32, group: i32, stat: &str) -> Option<Option<Stop>> {
    let (_name, values) = stat.rsplit_once(')')?;
    let values: Vec<&str> = values.split_whitespace().collect();
    let number = |at: usize| values.get(at - 3)?.parse::<i32>().ok();
    if number(5)? != group {
        return None;
    }
    match values[0] {
        "Z" | "X" => None,
        "T" => Some(Some(Stop {
            process,
            signal: number(52).unwrap_or(0),
        })),
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

    use super::*;

    #[test]
    fn a_process_that_is_stopped_is_seen_and_so_is_that_it_goes_on() {
        let mut command = Command::new("sleep");
        let mut child = command.arg("600").process_group(0).spawn().unwrap();
        let process = Pid::from_child(&child);
        let mut watch = StopWatch::new(process);
        assert_eq!(watch.look(), None);
        let until = |what| waitid(WaitId::Pid(process), what | WaitIdOptions::NOWAIT).unwrap();
        kill_process(process, Signal::STOP).unwrap();
        until(WaitIdOptions::STOPPED);
        let Some(Word::Stopped(stop)) = watch.look() else {
            panic!("it is stopped");
        };
        assert_eq!(stop.process, child.id() as i32);
        assert_eq!(watch.look(), None, "it is no news");
        kill_process(process, Signal::CONT).unwrap();
        until(WaitIdOptions::CONTINUED);
        assert_eq!(watch.look(), Some(Word::Resumed));
        child.kill().unwrap();
        until(WaitIdOptions::EXITED);
        assert_eq!(watch.look(), None);
        child.wait().unwrap();
        assert_eq!(watch.look(), None);
    }

    #[test]
    fn the_line_of_proc_is_read_behind_any_name() {
        let line = |state: &str, group: i32, signal: &str| {
            let between = "0 ".repeat(46);
            format!("7 (a) T ( b) {state} 1 {group} {between}{signal}\n")
        };
        let stop = |signal| Some(Some(Stop { process: 7, signal }));
        assert_eq!(read(7, 5, &line("T", 5, "19")), stop(19));
        assert_eq!(read(7, 5, &line("T", 5, "")), stop(0));
        assert_eq!(read(7, 5, &line("S", 5, "0")), Some(None));
        assert_eq!(read(7, 5, &line("Z", 5, "9")), None);
        assert_eq!(read(7, 4, &line("T", 5, "19")), None);
        assert_eq!(read(7, 5, "7 (a"), None);
    }

    #[test]
    fn a_stop_is_named_by_its_signal_where_the_system_says_it() {
        let words = |signal| Stop { process: 7, signal }.to_string();
        assert_eq!(words(19), "process 7 is stopped (signal STOP)");
        assert_eq!(words(0), "process 7 is stopped");
    }
}
