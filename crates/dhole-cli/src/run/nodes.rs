//! Watches and ends the processes that this command has started.

use std::io::{self, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dhole_space::runtime_thread;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use super::line::{Line, Word};
use super::stop::StopWatch;
use crate::child::End;

/// An event while nodes run.
pub enum Event {
    /// A node has ended, with everything that it started.
    Ended {
        /// Which.
        node: u16,
        /// Its end.
        end: End,
    },
    /// The agent of a node has answered, with the port at which the node listens.
    Agent {
        /// Which node.
        node: u16,
        /// The port, or 0.
        port: u16,
    },
    /// A node has sent a report.
    Said {
        /// Which.
        node: u16,
        /// The report.
        word: Word,
    },
    /// For an agent: its node is to know this of another one.
    Elsewhere(String),
    /// A node has written to its standard output, which has been passed on to its end.
    Printed {
        /// Which.
        node: u16,
        /// When its last bytes were there, in nanoseconds of the monotonic clock.
        last_ns: u64,
    },
    /// One of a node's two streams has been passed on to its end.
    Silent,
    /// This command cannot write a node's output.
    Unwritten,
    /// For an agent: its orders have ended.
    Alone,
    /// This command has got a signal.
    Signal(i32),
}

/// The time for the last output of a remote shell that has ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// The connection of this command to a node.
pub enum Link {
    /// The line to a node that it started itself.
    Line(Line),
    /// The agent of a node on another machine.
    Agent {
        /// The agent's standard input, for orders.
        orders: ChildStdin,
        /// Ends when all the agent's reports are passed on.
        said: Receiver<()>,
    },
}

/// The half of a link for sending to the node.
enum Tells {
    Line(Arc<Line>),
    Agent(Mutex<ChildStdin>),
}

/// A process that leads a group of its own: a node, or the remote shell that starts one.
pub struct Process {
    group: Pid,
    /// The process, until its end has been read: then its number may be another's.
    child: Arc<Mutex<Option<Child>>>,
    tells: Tells,
    /// The process that answers SIGQUIT, as the node reported.
    answers: Mutex<Option<Pid>>,
}

impl Process {
    /// Watches a process that is a node, or that starts one on another machine. The reports on its
    /// link come before its end.
    ///
    /// # Errors
    /// The system's own, where it refuses a thread. The process has ended then.
    pub fn watch(node: u16, child: Child, link: Link, tell: Sender<Event>) -> io::Result<Process> {
        let group = Pid::from_child(&child);
        let child = Arc::new(Mutex::new(Some(child)));
        let watched = Process::watch_group(node, (group, &child), link, tell);
        if watched.is_err() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = locked(&child)
                .take()
                .and_then(|mut child| child.wait().ok());
        }
        watched
    }

    fn watch_group(
        node: u16,
        (group, child): (Pid, &Arc<Mutex<Option<Child>>>),
        link: Link,
        tell: Sender<Event>,
    ) -> io::Result<Process> {
        let (tells, last_words): (_, Box<dyn FnOnce() + Send>) = match link {
            Link::Line(line) => {
                let heard = tell.clone();
                let line = Arc::new(line);
                let tells = Arc::clone(&line);
                let heard_line = Arc::clone(&line);
                let mut watch = StopWatch::new(group);
                let said = move |heard_now: Option<Word>| {
                    heard_now.iter().for_each(|word| watch.hears(word));
                    if let Some(word) = heard_now.or_else(|| watch.look()) {
                        let _ = heard.send(Event::Said { node, word });
                    }
                };
                let hear = move || heard_line.hear(said);
                let hearing = runtime_thread::spawn("dhole-reports", hear)?;
                let last_words = move || {
                    line.ended();
                    let _ = hearing.join();
                };
                (Tells::Line(tells), Box::new(last_words))
            }
            Link::Agent { orders, said } => {
                let last_words = move || {
                    let _ = said.recv_timeout(LAST_WORDS_WITHIN);
                };
                (Tells::Agent(Mutex::new(orders)), Box::new(last_words))
            }
        };
        let watched = Arc::clone(child);
        runtime_thread::spawn("dhole-watch", move || {
            await_end(group);
            let mut child = locked(&watched);
            // It has ended, but its number is still its own: what it has left behind is found by
            // it.
            let _ = kill_process_group(group, Signal::KILL);
            let status = child.take().and_then(|mut child| child.wait().ok());
            drop(child);
            last_words();
            let end = status.map_or(
                End {
                    code: 255,
                    signal: None,
                },
                End::from,
            );
            // Nobody may be listening any more.
            let _ = tell.send(Event::Ended { node, end });
        })?;
        Ok(Process {
            group,
            child: Arc::clone(child),
            tells,
            answers: Mutex::new(None),
        })
    }

    /// Makes the node report what it does, if a process has said that it answers SIGQUIT. The
    /// signal would end any other.
    pub fn ask(&self) {
        match &self.tells {
            Tells::Agent(agent) => order(agent, &format!("signal {}", Signal::QUIT.as_raw())),
            Tells::Line(_) => {
                let child = locked(&self.child);
                let answers = *self.answers.lock().unwrap_or_else(|p| p.into_inner());
                if let Some(process) = answers.filter(|_| child.is_some()) {
                    let _ = kill_process(process, Signal::QUIT);
                }
            }
        }
    }

    /// Notes the process that answers SIGQUIT.
    pub fn answers(&self, process: i32) {
        let process = Some(process).filter(|process| *process > 1);
        let process = process.and_then(Pid::from_raw);
        *self.answers.lock().unwrap_or_else(|p| p.into_inner()) = process;
    }

    /// Tells the node something of another one.
    pub fn tell(&self, notice: &str) {
        match &self.tells {
            Tells::Line(line) => line.tell(notice),
            Tells::Agent(agent) => order(agent, notice),
        }
    }

    /// Sends a signal to the node and what it has started, if it still runs.
    pub fn signal(&self, signal: Signal) {
        match &self.tells {
            Tells::Agent(agent) => order(agent, &format!("signal {}", signal.as_raw())),
            Tells::Line(_) => self.signal_here(signal),
        }
    }

    /// Ends the process on this machine at once. An agent that loses it ends its node.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.signal_here(Signal::KILL);
    }

    fn signal_here(&self, signal: Signal) {
        let child = locked(&self.child);
        if child.is_some() {
            // It may have ended in this moment, and not been taken yet.
            let _ = kill_process_group(self.group, signal);
        }
    }
}

/// Waits until a process has ended. Its end is left to be read.
fn await_end(process: Pid) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), ended) {}
}

/// Sends a line to an agent. If the agent is gone, so is its node.
fn order(agent: &Mutex<ChildStdin>, what: &str) {
    let mut agent = agent.lock().unwrap_or_else(|p| p.into_inner());
    let _ = writeln!(agent, "{what}");
}

fn locked(child: &Mutex<Option<Child>>) -> MutexGuard<'_, Option<Child>> {
    child
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
