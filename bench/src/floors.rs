//! Floors: the least that what is measured beside them can cost.

use std::env;
use std::hint::{black_box, spin_loop};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Port, Shm, ShmLink, Stream, Tcp};
use dhole_rpc::Rpc;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Outcome;

/// Longer than any measurement.
const LONG: Duration = Duration::from_secs(60);
/// The arguments by which this program is the process whose procedure is called.
const SERVES_SHM: &str = "serve-calls-shm";
const SERVES_TCP: &str = "serve-calls-tcp";

/// Binds this thread to a core.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // On a machine with one core the numbers mean little, but they come.
    let _ = sched_setaffinity(None, &cores);
}

/// A word to and fro in shared memory between two threads, each on its own line, both looking
/// without pause; the other one bound to `core`.
pub fn word(trips: u64, core: Option<usize>) -> Duration {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = [const { Line(AtomicU64::new(0)) }; 2];
    let wait = |line: &Line, value| {
        while line.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            core.into_iter().for_each(pin);
            for trip in 1..=trips {
                wait(&lines[0], trip);
                lines[1].0.store(trip, Ordering::Release);
            }
        });
        let begun = Instant::now();
        for trip in 1..=trips {
            lines[0].0.store(trip, Ordering::Release);
            wait(&lines[1], trip);
        }
        begun.elapsed() / trips as u32
    })
}

/// A copy of so many bytes in memory.
pub fn copy(bytes: usize, copies: u32) -> Duration {
    let from = vec![1u8; bytes];
    let mut to = vec![0u8; bytes];
    let begun = Instant::now();
    for _ in 0..copies {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    }
    begun.elapsed() / copies
}

/// This program once more, with one argument and one end of a connection as its input.
fn other_process(argument: &str, stdin: OwnedFd) -> Outcome<Child> {
    let itself = env::current_exe()?;
    let mut command = Command::new(itself);
    Ok(command.arg(argument).stdin(Stdio::from(stdin)).spawn()?)
}

/// What that process was given.
fn given() -> Outcome<OwnedFd> {
    Ok(std::io::stdin().as_fd().try_clone_to_owned()?)
}

/// A port over shared memory to this program in another process, which gets `argument`.
///
/// # Errors
/// What the kernel says.
pub fn shm(argument: &str) -> Outcome<(Shm, Child)> {
    let (here, there) = UnixStream::pair()?;
    let child = other_process(argument, there.into())?;
    let link = ShmLink::offer(here, ShmLink::RING_BYTES)?;
    Ok((Shm::new(NodeId(0), vec![None, Some(link)])?, child))
}

/// Its other end, in that process.
///
/// # Errors
/// What the kernel says, or what is wrong with what it was given.
pub fn shm_end() -> Outcome<Shm> {
    let link = ShmLink::accept(UnixStream::from(given()?))?;
    Ok(Shm::new(NodeId(1), vec![Some(link), None])?)
}

/// A port over TCP to this program in another process, which gets `argument`.
///
/// # Errors
/// What the kernel says.
pub fn tcp(argument: &str) -> Outcome<(Tcp, Child)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let there = TcpStream::connect(listener.local_addr()?)?;
    let child = other_process(argument, there.into())?;
    let stream = Stream::Plain(listener.accept()?.0);
    Ok((Tcp::new(NodeId(0), vec![None, Some(stream)])?, child))
}

/// Its other end, in that process.
///
/// # Errors
/// What the kernel says.
pub fn tcp_end() -> Outcome<Tcp> {
    let stream = Stream::Plain(TcpStream::from(given()?));
    Ok(Tcp::new(NodeId(1), vec![Some(stream), None])?)
}

/// A process whose procedure is called: `Rpc::call` with 8 bytes, and their answer of 8. Each side
/// has a core to itself and spins; where no calls come, the other parks.
pub struct Called {
    rpc: Rpc,
    serving: Child,
}

impl Called {
    /// Starts the process, which is reached over shared memory. This program's `main` begins with
    /// [`Called::serves`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn over_shm() -> Outcome<Called> {
        let (port, serving) = shm(SERVES_SHM)?;
        Called::over(port, serving)
    }

    /// The same over TCP.
    ///
    /// # Errors
    /// As [`Called::over_shm`].
    pub fn over_tcp() -> Outcome<Called> {
        let (port, serving) = tcp(SERVES_TCP)?;
        Called::over(port, serving)
    }

    fn over(port: impl Port + 'static, serving: Child) -> Outcome<Called> {
        let rpc = Rpc::new(Box::new(port))?.neighbours(1);
        Ok(Called { rpc, serving })
    }

    /// Whether this process is one that is called; then it was bound to `core`, and has served
    /// until its caller went.
    ///
    /// # Errors
    /// What is wrong with what it was given.
    pub fn serves(core: Option<usize>) -> Outcome<bool> {
        let port: Box<dyn Port> = match env::args().nth(1).as_deref() {
            Some(SERVES_SHM) => Box::new(shm_end()?),
            Some(SERVES_TCP) => Box::new(tcp_end()?),
            _ => return Ok(false),
        };
        core.into_iter().for_each(pin);
        let rpc = Rpc::new(port)?.neighbours(1);
        let rpc = rpc.procedure(|_, arguments| arguments.to_vec());
        while rpc.lost(NodeId(0)).is_none() {
            rpc.serve_until(Duration::from_millis(100), &|| false);
        }
        Ok(true)
    }

    /// What one of so many calls takes.
    ///
    /// # Errors
    /// What becomes of a call.
    pub fn call(&self, calls: u32) -> Outcome<Duration> {
        let begun = Instant::now();
        for call in 0..u64::from(calls) {
            black_box(self.rpc.call(NodeId(1), 0, &call.to_le_bytes(), LONG)?);
        }
        Ok(begun.elapsed() / calls)
    }

    /// Ends the process.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn end(mut self) -> Outcome<()> {
        self.rpc.close(Duration::from_secs(5));
        self.serving.wait()?;
        Ok(())
    }
}
