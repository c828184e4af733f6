//! The processes that this command has started, and how each is watched and ended.

use std::io::Write;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::child::End;

/// What happens while nodes run.
pub enum Event {
    /// A node has ended, and so has everything it started.
    Ended {
        /// Which.
        node: u16,
        /// How.
        end: End,
    },
    /// The agent that starts a node has answered: where the node listens, if it does.
    Agent {
        /// Which node.
        node: u16,
        /// The port, or 0.
        port: u16,
    },
    /// All that a node has printed on one of its two streams is passed on.
    Silent,
    /// Nobody reads what this command prints any more.
    Unread,
    /// This command has got a signal.
    Signal(i32),
}

/// One process, which leads a group of its own: a node, or the remote shell that has one started.
pub struct Process {
    group: Pid,
    /// The process, until its end has been taken: then its number may be another's.
    child: Arc<Mutex<Option<Child>>>,
    /// What brings signals to a node on another machine.
    agent: Option<Mutex<ChildStdin>>,
}

impl Process {
    /// Watches a process that is a node or, with `agent`, has started one elsewhere.
    pub fn watch(
        node: u16,
        child: Child,
        agent: Option<ChildStdin>,
        tell: Sender<Event>,
    ) -> Process {
        let group = Pid::from_child(&child);
        let child = Arc::new(Mutex::new(Some(child)));
        let watched = Arc::clone(&child);
        thread::spawn(move || {
            let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while waitid(WaitId::Pid(group), exited).is_err_and(|e| e == rustix::io::Errno::INTR) {}
            let mut child = locked(&watched);
            // It has ended, but its number is still its own: what it has left behind is found by
            // it.
            let _ = kill_process_group(group, Signal::KILL);
            let status = child.take().and_then(|mut child| child.wait().ok());
            drop(child);
            let end = status.map_or(
                End {
                    code: 255,
                    signal: None,
                },
                End::from,
            );
            // Nobody may be listening any more.
            let _ = tell.send(Event::Ended { node, end });
        });
        Process {
            group,
            child,
            agent: agent.map(Mutex::new),
        }
    }

    /// Sends a signal to the node and what it has started, if it still runs.
    pub fn signal(&self, signal: Signal) {
        if let Some(agent) = &self.agent {
            let mut agent = agent.lock().unwrap_or_else(|p| p.into_inner());
            // An agent that is gone has taken its node with it.
            let _ = writeln!(agent, "signal {}", signal.as_raw());
            return;
        }
        self.signal_here(signal);
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

fn locked(child: &Mutex<Option<Child>>) -> MutexGuard<'_, Option<Child>> {
    child
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
