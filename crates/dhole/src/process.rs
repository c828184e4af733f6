//! This process as a node of a cluster, if a launcher started it as one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use dhole_heap::READS_NEIGHBOURS;
use dhole_join::Membership;
use dhole_live::{ProcessLimits, Processes};
use dhole_model::NodeId;
use dhole_model::unpoisoned;
use dhole_node::RunError;
use dhole_space::VisibleMemory;
use dhole_space::runtime_thread;
#[cfg(feature = "processes")]
use dhole_space::runtime_thread::SignalMask;

/// The number of this process, and of the processes of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    /// The node.
    pub node: NodeId,
    /// The nodes of the cluster, each of them a process.
    pub nodes: usize,
}

/// What this process knows of its cluster. A process joins at its first run, stays for later ones,
/// and says goodbye when it exits.
enum State {
    Unread,
    /// No launcher started this process as a node.
    Alone,
    Read(Box<Membership>),
    Joined(Arc<Processes>),
    /// Joining failed. It is not tried again.
    Failed(Arc<dhole_join::JoinError>),
}

static STATE: Mutex<State> = Mutex::new(State::Unread);

impl State {
    fn read(&mut self) -> Result<&mut State, RunError> {
        if let State::Unread = self {
            *self = match Membership::from_env() {
                Ok(None) => State::Alone,
                Ok(Some(membership)) => {
                    dump_when_told(membership.node());
                    State::Read(Box::new(membership))
                }
                Err(error) => State::Failed(Arc::new(error)),
            };
        }
        match self {
            State::Failed(cause) => Err(RunError::Join(Arc::clone(cause))),
            state => Ok(state),
        }
    }
}

/// Which node this process is, if the command started nodes as processes. The command then
/// overrides the number of nodes that the program asks for. `None` if all nodes are in this
/// process.
///
/// # Errors
/// [`RunError::Join`] if the environment describes no valid cluster.
pub fn process() -> Result<Option<Process>, RunError> {
    let mut state = unpoisoned::lock(&STATE);
    Ok(match state.read()? {
        State::Read(membership) => Some(Process {
            node: membership.node(),
            nodes: membership.nodes(),
        }),
        State::Joined(machine) => Some(of(machine)),
        _ => None,
    })
}

pub(crate) fn of(machine: &Processes) -> Process {
    Process {
        node: machine.node(),
        nodes: machine.nodes(),
    }
}

/// The machine of this process, which joins the others at the first call.
pub(crate) fn joined(seed: u64) -> Result<Option<Arc<Processes>>, RunError> {
    let mut state = unpoisoned::lock(&STATE);
    if let State::Joined(machine) = state.read()? {
        return Ok(Some(Arc::clone(machine)));
    }
    let State::Read(membership) = std::mem::replace(&mut *state, State::Alone) else {
        return Ok(None);
    };
    let usual = ProcessLimits::default();
    let limits = ProcessLimits {
        message: membership.longest_message().unwrap_or(usual.message),
        learnt: membership.learnt_runs().unwrap_or(usual.learnt),
        ..usual
    };
    let made = (READS_NEIGHBOURS && membership.can_show()).then(visible);
    let (memory, shows) = match made {
        Some(Ok((memory, files))) => (Some(Ok(memory)), Vec::from(files)),
        Some(Err(refused)) => (Some(Err(refused)), Vec::new()),
        None => (None, Vec::new()),
    };
    match membership.join_neighbours(&shows) {
        Ok(joined) => {
            let machine = Processes::new(joined.port, seed)?.neighbours(joined.neighbours);
            let machine = match joined.windows {
                Some(windows) => machine.reaching(windows),
                None => machine,
            };
            let machine = match memory {
                Some(memory) => machine.showing(memory),
                None => machine,
            };
            let machine = Arc::new(machine.limits(limits));
            *state = State::Joined(Arc::clone(&machine));
            *unpoisoned::lock(&DUMPED) = Some(Arc::clone(&machine));
            keep_between_runs(&machine);
            let leaving = Arc::clone(&machine);
            dhole_net::at_exit(move || leaving.leave());
            Ok(Some(machine))
        }
        Err(error) => {
            let cause = Arc::new(error);
            *state = State::Failed(Arc::clone(&cause));
            Err(RunError::Join(cause))
        }
    }
}

/// Memory that others can map, and the files that they are shown of it.
fn visible() -> io::Result<(VisibleMemory, [OwnedFd; 3])> {
    let memory = VisibleMemory::make()?;
    let files = memory.all_files()?;
    Ok((memory, files))
}

/// Keeps the process alive to the others while it computes between two runs.
fn keep_between_runs(machine: &Arc<Processes>) {
    let machine = Arc::clone(machine);
    // Without it the others take a process that computes for long between two runs for lost.
    let _ = runtime_thread::spawn("dhole-keeper", move || machine.keep(&|| false));
}

/// The machine that SIGQUIT reports on, once the process has joined.
static DUMPED: Mutex<Option<Arc<Processes>>> = Mutex::new(None);

/// From here on the process reports on SIGQUIT what its node does, holds and waits for, and goes
/// on. If the handler cannot be installed, the signal ends the process, as it ends every other.
#[cfg(feature = "processes")]
fn dump_when_told(node: NodeId) {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGQUIT])
    else {
        return;
    };
    let dump = move || {
        let machine = unpoisoned::lock(&DUMPED).clone();
        match machine {
            Some(machine) => machine.dump(),
            None => eprintln!("dhole: {node} has not joined the others yet"),
        }
    };
    let _ = runtime_thread::spawn("dhole-signals", move || {
        // It takes the signal where all threads of the program block it.
        let taken = [signal_hook::consts::SIGQUIT];
        SignalMask::of_runtime().without(&taken).apply();
        signals.forever().for_each(|_| dump());
    });
}

#[cfg(not(feature = "processes"))]
fn dump_when_told(_: NodeId) {}
