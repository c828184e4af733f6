//! What carrying a frame costs between two processes, on every port, beside its floor: 8 bytes
//! there and back against a bare word in shared memory or a bare socket, a remote procedure called
//! with 8 bytes against both, small frames one way, and frames of 1 MiB against a copy in memory.
//!
//! Both sides poll without pause and each is pinned to a core of its own. Floors and ports take
//! turns, and of each the best and the middle round are printed: other work on the machine makes
//! single rounds slow.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Port, Rpc, SendError, Shm, ShmLink, Stream, Tcp};
use rustix::thread::{CpuSet, sched_setaffinity};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 9;
const BULK: usize = 1 << 20;
/// Longer than any measurement.
const LONG: Duration = Duration::from_secs(60);
/// The first byte of frames that are orders, of one byte and of nine.
const REST: u8 = 1;
const COUNT: u8 = 2;

/// What the other process is asked to do, by a frame; a goodbye ends it.
#[derive(Clone, Copy)]
enum Order {
    /// Send back what comes.
    Echo,
    /// Count so many frames and answer the last.
    Count(u64),
    /// Sleep until the next frame, so that a floor has the core.
    Rest,
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // On a machine with one core the numbers mean little, but they come.
    let _ = sched_setaffinity(None, &cores);
}

/// Takes frames until `done`, without a pause.
fn take(port: &dyn Port, mut taken: impl FnMut(&[u8]) -> bool) {
    let mut done = false;
    while !done {
        if port.poll(&mut |_, frame| done |= taken(frame)) == 0 {
            spin_loop();
        }
    }
}

fn send(port: &dyn Port, parts: &[&[u8]]) -> Outcome<()> {
    let to = NodeId(1 - port.me().0);
    loop {
        match port.send(to, parts) {
            Err(SendError::Busy { .. }) => {
                if port.poll(&mut |_, _| ()) == 0 {
                    spin_loop();
                }
            }
            sent => return Ok(sent?),
        }
    }
}

/// The other process: echoes, or what else it is told.
fn serve(port: &dyn Port) -> Outcome<()> {
    let to = NodeId(0);
    let mut order = Order::Echo;
    let mut lost = false;
    while !lost {
        let mut failed = None;
        port.poll(&mut |_, frame| match (order, frame) {
            (Order::Count(1), _) => {
                order = Order::Echo;
                failed = port.send(to, &[&[0; 8]]).err();
            }
            (Order::Count(left), _) => order = Order::Count(left - 1),
            (_, [REST]) => {
                order = Order::Rest;
                failed = port.send(to, &[&[REST]]).err();
            }
            (_, [COUNT, count @ ..]) if count.len() == 8 => {
                let count = count.try_into().map(u64::from_le_bytes);
                order = Order::Count(count.unwrap_or(1));
            }
            (_, frame) => {
                order = Order::Echo;
                failed = port.send(to, &[frame]).err();
            }
        });
        if let Some(failed) = failed {
            return Err(failed.into());
        }
        if let Order::Rest = order {
            port.park(Duration::from_secs(1));
        }
        port.lost(&mut |_, _| lost = true);
    }
    Ok(())
}

/// Runs a floor while the other process sleeps.
fn alone<T>(port: &dyn Port, floor: impl FnOnce() -> T) -> Outcome<T> {
    send(port, &[&[REST]])?;
    take(port, |frame| frame == [REST]);
    let measured = floor();
    // Up and running again before the next measurement.
    round_trips(port, 100)?;
    Ok(measured)
}

fn round_trips(port: &dyn Port, trips: u32) -> Outcome<Duration> {
    let begun = Instant::now();
    for trip in 0..u64::from(trips) {
        send(port, &[&trip.to_le_bytes()])?;
        take(port, |frame| {
            black_box(frame.len());
            true
        });
    }
    Ok(begun.elapsed() / trips)
}

fn calls(rpc: &Rpc, calls: u32) -> Outcome<Duration> {
    let begun = Instant::now();
    for call in 0..u64::from(calls) {
        black_box(rpc.call(NodeId(1), 0, &call.to_le_bytes(), LONG)?);
    }
    Ok(begun.elapsed() / calls)
}

/// The other process: answers calls, and parks where none come, so that the others have the core.
fn serve_calls(rpc: &Rpc) {
    while rpc.lost(NodeId(0)).is_none() {
        rpc.serve_until(Duration::from_millis(100), &|| false);
    }
}

fn one_way(port: &dyn Port, frames: u64, bytes: usize) -> Outcome<Duration> {
    let frame = vec![0; bytes];
    let begun = Instant::now();
    send(port, &[&[COUNT], &frames.to_le_bytes()])?;
    for _ in 0..frames {
        send(port, &[&frame])?;
    }
    take(port, |_| true);
    Ok(begun.elapsed())
}

/// The floor of shared memory: a word to and fro between two cores, each on its own line.
fn bare_memory(trips: u64) -> Duration {
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
            pin(1);
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

/// The floor of TCP: eight bytes to and fro, by reads that do not block.
fn bare_tcp(trips: u32) -> Outcome<Duration> {
    fn read(stream: &mut TcpStream, bytes: &mut [u8; 8]) -> Outcome<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err("the end".into()),
                Ok(more) => filled += more,
                // With a pause, or the reads keep the socket from taking what comes.
                Err(e) if e.kind() == ErrorKind::WouldBlock => spin_loop(),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut here = TcpStream::connect(listener.local_addr()?)?;
    let mut there = listener.accept()?.0;
    for end in [&here, &there] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            let mut bytes = [0; 8];
            while read(&mut there, &mut bytes).is_ok() && there.write_all(&bytes).is_ok() {}
        });
        let mut bytes = [0; 8];
        let begun = Instant::now();
        for _ in 0..trips {
            here.write_all(&bytes)?;
            read(&mut here, &mut bytes)?;
        }
        let took = begun.elapsed() / trips;
        drop(here);
        Ok(took)
    })
}

/// The floor of large frames: one copy.
fn bare_copy(copies: u32) -> Duration {
    let from = vec![1u8; BULK];
    let mut to = vec![0u8; BULK];
    let begun = Instant::now();
    for _ in 0..copies {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    }
    begun.elapsed() / copies
}

fn other_process(kind: &str, stdin: OwnedFd) -> Outcome<Child> {
    let itself = std::env::current_exe()?;
    let mut command = Command::new(itself);
    Ok(command.arg(kind).stdin(Stdio::from(stdin)).spawn()?)
}

fn shm(serve: &str) -> Outcome<(Shm, Child)> {
    let (here, there) = UnixStream::pair()?;
    let child = other_process(serve, there.into())?;
    let link = ShmLink::offer(here, ShmLink::RING_BYTES)?;
    Ok((Shm::new(NodeId(0), vec![None, Some(link)])?, child))
}

fn tcp() -> Outcome<(Tcp, Child)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let there = TcpStream::connect(listener.local_addr()?)?;
    let child = other_process("serve-tcp", there.into())?;
    let stream = Stream::Plain(listener.accept()?.0);
    Ok((Tcp::new(NodeId(0), vec![None, Some(stream)])?, child))
}

/// The best and the middle of some rounds.
fn summary(mut rounds: Vec<f64>) -> (f64, f64) {
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[rounds.len() / 2])
}

fn row(name: &str, unit: &str, rounds: Vec<f64>) -> (f64, f64) {
    let (best, middle) = summary(rounds);
    println!("{name:<44} {best:>10.3} {middle:>10.3} {unit}");
    (best, middle)
}

fn ratio(name: &str, of: (f64, f64), to: (f64, f64), goal: &str) {
    let (best, middle) = (of.0 / to.0, of.1 / to.1);
    println!("  {name:<42} {best:>10.3} {middle:>10.3} goal {goal}");
}

fn measure(rounds: usize, mut round: impl FnMut() -> Outcome<Vec<f64>>) -> Outcome<Vec<Vec<f64>>> {
    let mut columns = Vec::new();
    for _ in 0..rounds {
        for (at, value) in round()?.into_iter().enumerate() {
            if columns.len() <= at {
                columns.push(Vec::new());
            }
            columns[at].push(value);
        }
    }
    Ok(columns)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn measure_shm() -> Outcome<()> {
    let (port, mut child) = shm("serve-shm")?;
    let (called, mut serving) = shm("serve-calls")?;
    let rpc = Rpc::new(Box::new(called))?.neighbours(1);
    let mut columns = measure(ROUNDS, || {
        Ok(vec![
            micros(alone(&port, || bare_memory(200_000))?),
            micros(round_trips(&port, 200_000)?),
            micros(alone(&port, || calls(&rpc, 200_000))??),
            micros(one_way(&port, 2_000_000, 8)?) / 2.0,
            micros(alone(&port, || bare_copy(500))?),
            micros(one_way(&port, 1_000, BULK)?) / 1_000.0,
        ])
    })?
    .into_iter();
    let mut next = || columns.next().unwrap_or_default();
    let floor = row("a word to and fro in shared memory", "us", next());
    let trip = row("shm: 8 bytes there and back", "us", next());
    ratio("to the floor", trip, floor, "<= 1.5");
    let call = row("shm: a remote procedure, 8 bytes", "us", next());
    ratio("to the floor", call, floor, "<= 1.5");
    ratio("to the port's 8 bytes", call, trip, "none");
    let million = row("shm: a million times 8 bytes, one way", "us", next());
    ratio("millions a second", (1e6, 1e6), million, ">= 15");
    let copy = row("a copy of 1 MiB", "us", next());
    let bulk = row("shm: 1 MiB, one way", "us", next());
    ratio("bandwidth to that of the copy", copy, bulk, ">= 0.8");
    port.close(Duration::from_secs(5));
    rpc.close(Duration::from_secs(5));
    child.wait()?;
    serving.wait()?;
    Ok(())
}

fn measure_tcp() -> Outcome<()> {
    let (port, mut child) = tcp()?;
    let mut columns = measure(ROUNDS, || {
        Ok(vec![
            micros(alone(&port, || bare_tcp(10_000))??),
            micros(round_trips(&port, 10_000)?),
            micros(one_way(&port, 100_000, 8)?) / 100_000.0,
            micros(one_way(&port, 300, BULK)?) / 300.0,
        ])
    })?
    .into_iter();
    let mut next = || columns.next().unwrap_or_default();
    let floor = row("8 bytes to and fro on a socket", "us", next());
    let trip = row("tcp: 8 bytes there and back", "us", next());
    ratio("to the floor", trip, floor, "<= 1.25");
    row("tcp: 8 bytes, one way", "us", next());
    row("tcp: 1 MiB, one way", "us", next());
    port.close(Duration::from_secs(5));
    child.wait()?;
    Ok(())
}

fn main() -> Outcome<()> {
    let stdin = || std::io::stdin().as_fd().try_clone_to_owned();
    match std::env::args().nth(1).as_deref() {
        Some("serve-shm") => {
            pin(1);
            let link = ShmLink::accept(UnixStream::from(stdin()?))?;
            serve(&Shm::new(NodeId(1), vec![Some(link), None])?)
        }
        Some("serve-calls") => {
            pin(1);
            let link = ShmLink::accept(UnixStream::from(stdin()?))?;
            let rpc = Rpc::new(Box::new(Shm::new(NodeId(1), vec![Some(link), None])?))?;
            serve_calls(
                &rpc.neighbours(1)
                    .procedure(|_, arguments| arguments.to_vec()),
            );
            Ok(())
        }
        Some("serve-tcp") => {
            pin(1);
            let stream = Stream::Plain(TcpStream::from(stdin()?));
            serve(&Tcp::new(NodeId(1), vec![Some(stream), None])?)
        }
        only => {
            pin(0);
            println!("pinned to cores 0 and 1; both poll without pause; {ROUNDS} rounds");
            println!("{:<44} {:>10} {:>10}", "", "best", "middle");
            if only.is_none_or(|only| only == "shm") {
                measure_shm()?;
            }
            if only.is_none_or(|only| only == "tcp") {
                measure_tcp()?;
            }
            Ok(())
        }
    }
}
