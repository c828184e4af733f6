//! What carrying a frame costs between two processes, on every port, beside its floor: 8 bytes
//! there and back against a bare word in shared memory or a bare socket, a remote procedure called
//! with 8 bytes against both, small frames one way, and frames of 1 MiB against a copy in memory.
//!
//! Both sides poll without pause and each is pinned to a core of its own. Floors and ports take
//! turns, and of each the best and the middle round are printed: other work on the machine makes
//! single rounds slow.
#![forbid(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bench::Outcome;
use bench::floors::{self, Called, pin};
use bench::table::{head, ratio, row};
use dhole_model::NodeId;
use dhole_net::{Port, SendError};

const ROUNDS: usize = 9;
const BULK: usize = 1 << 20;
/// By these arguments this program is the other process.
const SERVE_SHM: &str = "serve-shm";
const SERVE_TCP: &str = "serve-tcp";
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
    let (port, mut child) = floors::shm(SERVE_SHM)?;
    let called = Called::over_shm()?;
    let mut columns = measure(ROUNDS, || {
        Ok(vec![
            micros(alone(&port, || floors::word(200_000, Some(1)))?),
            micros(round_trips(&port, 200_000)?),
            micros(alone(&port, || called.call(200_000))??),
            micros(one_way(&port, 2_000_000, 8)?) / 2.0,
            micros(alone(&port, || floors::copy(BULK, 500))?),
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
    let million = row("shm: a million times 8 bytes, one way", "us", next());
    ratio("millions a second", (1e6, 1e6), million, ">= 15");
    let copy = row("a copy of 1 MiB", "us", next());
    let bulk = row("shm: 1 MiB, one way", "us", next());
    let asked = ">= 0.8, or of Open MPI's (`mpi floors`)";
    ratio("bandwidth to that of the copy", copy, bulk, asked);
    port.close(Duration::from_secs(5));
    child.wait()?;
    called.end()
}

fn measure_tcp() -> Outcome<()> {
    let (port, mut child) = floors::tcp(SERVE_TCP)?;
    let called = Called::over_tcp()?;
    let mut columns = measure(ROUNDS, || {
        Ok(vec![
            micros(alone(&port, || bare_tcp(10_000))??),
            micros(round_trips(&port, 10_000)?),
            micros(alone(&port, || called.call(10_000))??),
            micros(one_way(&port, 100_000, 8)?) / 100_000.0,
            micros(one_way(&port, 300, BULK)?) / 300.0,
        ])
    })?
    .into_iter();
    let mut next = || columns.next().unwrap_or_default();
    let floor = row("8 bytes to and fro on a socket", "us", next());
    let trip = row("tcp: 8 bytes there and back", "us", next());
    ratio("to the floor", trip, floor, "<= 1.25");
    let call = row("tcp: a remote procedure, 8 bytes", "us", next());
    ratio("to the floor", call, floor, "<= 1.25");
    row("tcp: 8 bytes, one way", "us", next());
    row("tcp: 1 MiB, one way", "us", next());
    port.close(Duration::from_secs(5));
    child.wait()?;
    called.end()
}

fn main() -> Outcome<()> {
    if Called::serves(Some(1))? {
        return Ok(());
    }
    match std::env::args().nth(1).as_deref() {
        Some(SERVE_SHM) => {
            pin(1);
            serve(&floors::shm_end()?)
        }
        Some(SERVE_TCP) => {
            pin(1);
            serve(&floors::tcp_end()?)
        }
        only => {
            pin(0);
            println!("pinned to cores 0 and 1; both poll without pause; {ROUNDS} rounds");
            head();
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
