//! What a barrier and a miss cost between two processes, on every port, beside the port's own
//! round trip: an object of 64 bytes is fetched from a node whose worker waits, and so polls, and
//! from one whose worker computes, so that its service thread has to wake up.
//!
//! Nothing is pinned: the service thread needs a core. Workers spin for 100 us while they wait.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{Port, Shm, ShmLink, Stream, Tcp};
use dhole_node::{Processes, Settings, Worker, run_on};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 7;
const TRIPS: u32 = 20_000;
const BARRIERS: u32 = 20_000;
const MISSES: usize = 20_000;
/// Misses at a node that computes, each of which may take a wake-up.
const SLOW_MISSES: usize = 2_000;
/// Frames of this length end the echoing.
const ENOUGH: usize = 1;

fn take(port: &dyn Port) -> usize {
    let mut taken = None;
    while taken.is_none() {
        port.poll(&mut |_, frame| taken = Some(frame.len()));
        spin_loop();
    }
    taken.unwrap_or_default()
}

/// Sends back what comes until it is enough.
fn echo(port: &dyn Port) -> Outcome<()> {
    loop {
        let bytes = take(port);
        port.send(NodeId(0), &[&[0; 64][..bytes]])?;
        if bytes == ENOUGH {
            return Ok(());
        }
    }
}

fn round_trips(port: &dyn Port, trips: u32) -> Outcome<Duration> {
    let began = Instant::now();
    for _ in 0..trips {
        port.send(NodeId(1), &[&[0; 8]])?;
        take(port);
    }
    Ok(began.elapsed() / trips)
}

/// What one node measured: a barrier, a miss at a node that waits, and at one that computes.
fn run(machine: &Processes) -> Outcome<[Duration; 3]> {
    let mut settings = Settings::nodes(2);
    // Otherwise what lies beside a missed object comes with it.
    settings.optimisations.read_aggregation = false;
    let ran = run_on(machine, &settings, |w: &mut Worker<'_>| {
        let objects = w.once(|w| Ok(w.alloc_range(MISSES + SLOW_MISSES, |_| [0_u64; 8])))?;
        if w.node().index() == 1 {
            for object in objects.iter() {
                object.get_mut(w)[0] = 1;
            }
        }
        w.barrier()?;
        let mut times = [Duration::ZERO; 3];
        let began = Instant::now();
        for _ in 0..BARRIERS {
            w.barrier()?;
        }
        times[0] = began.elapsed() / BARRIERS;
        let mut all = objects.iter();
        if w.node().index() == 0 {
            let began = Instant::now();
            for object in all.by_ref().take(MISSES) {
                black_box(object.get(w)[0]);
            }
            times[1] = began.elapsed() / MISSES as u32;
        }
        w.barrier()?;
        let long = Duration::from_millis(200);
        let began = Instant::now();
        if w.node().index() == 0 {
            for object in all {
                black_box(object.get(w)[0]);
            }
            times[2] = began.elapsed() / SLOW_MISSES as u32;
        } else {
            while began.elapsed() < long {
                spin_loop();
            }
        }
        w.barrier()?;
        Ok(times)
    });
    Ok(ran?.value)
}

fn row(name: &str, mut rounds: Vec<f64>) {
    rounds.sort_by(f64::total_cmp);
    let (best, middle) = (rounds[0], rounds[rounds.len() / 2]);
    println!("{name:<52} {best:>9.2} {middle:>9.2} us");
}

fn measure(port: Box<dyn Port>, mut child: Child) -> Outcome<()> {
    let name = port.name();
    let trips: Outcome<Vec<Duration>> = (0..ROUNDS).map(|_| round_trips(&*port, TRIPS)).collect();
    let micros = |time: &Duration| time.as_secs_f64() * 1e6;
    port.send(NodeId(1), &[&[0; ENOUGH]])?;
    take(&*port);
    row(
        &format!("{name}: 8 bytes there and back"),
        trips?.iter().map(micros).collect(),
    );
    let machine = Processes::new(port, 0)?;
    let measured: Outcome<Vec<[Duration; 3]>> = (0..ROUNDS).map(|_| run(&machine)).collect();
    let measured = measured?;
    let of = |which: usize| measured.iter().map(|times| micros(&times[which])).collect();
    let names = [
        "a barrier of two",
        "a miss of 64 bytes, the owner waits",
        "a miss of 64 bytes, the owner computes",
    ];
    for (which, what) in names.into_iter().enumerate() {
        row(&format!("{name}: {what}"), of(which));
    }
    drop(machine);
    child.wait()?;
    Ok(())
}

fn serve(port: Box<dyn Port>) -> Outcome<()> {
    echo(&*port)?;
    let machine = Processes::new(port, 0)?;
    for _ in 0..ROUNDS {
        run(&machine)?;
    }
    Ok(())
}

fn other_process(order: &str, stdin: OwnedFd) -> Outcome<Child> {
    let me = std::env::current_exe()?;
    let mut command = Command::new(me);
    Ok(command.arg(order).stdin(Stdio::from(stdin)).spawn()?)
}

fn main() -> Outcome<()> {
    let stdin = || std::io::stdin().as_fd().try_clone_to_owned();
    match std::env::args().nth(1).as_deref() {
        Some("serve-shm") => {
            let link = ShmLink::accept(UnixStream::from(stdin()?))?;
            serve(Box::new(Shm::new(NodeId(1), vec![Some(link), None])?))
        }
        Some("serve-tcp") => {
            let stream = Stream::Plain(TcpStream::from(stdin()?));
            serve(Box::new(Tcp::new(NodeId(1), vec![Some(stream), None])?))
        }
        _ => {
            println!("not pinned; waiting workers spin; {ROUNDS} rounds");
            println!("{:<52} {:>9} {:>9}", "", "best", "middle");
            let (here, there) = UnixStream::pair()?;
            let child = other_process("serve-shm", there.into())?;
            let link = ShmLink::offer(here, ShmLink::RING_BYTES)?;
            measure(
                Box::new(Shm::new(NodeId(0), vec![None, Some(link)])?),
                child,
            )?;
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let there = TcpStream::connect(listener.local_addr()?)?;
            let child = other_process("serve-tcp", there.into())?;
            let stream = Stream::Plain(listener.accept()?.0);
            measure(
                Box::new(Tcp::new(NodeId(0), vec![None, Some(stream)])?),
                child,
            )
        }
    }
}
