//! Messages and barriers: Open MPI's own, and dhole's over MPI and over shared memory, between the
//! same two processes.

use std::hint::{black_box, spin_loop};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use dhole_live::Processes;
use dhole_model::NodeId;
use dhole_mpi::Mpi;
use dhole_net::{FailureDetector, Port, SendError, Shm, ShmLink};
use dhole_node::{Settings, Worker, run_on};
use dhole_rpc::{Memory, Rights, Rpc};
use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use bench::table::{ratio, row};
use bench::{Outcome, floors};

const ROUNDS: usize = 15;
const BULK: usize = 1 << 20;
const TRIPS: u32 = 50_000;
const BULKS: u32 = 400;
const BARRIERS: u32 = 20_000;
const LONG: Duration = Duration::from_secs(60);

/// Takes one frame, without a pause.
fn take(port: &dyn Port) -> usize {
    let mut taken = None;
    while taken.is_none() {
        port.poll(&mut |_, frame| taken = Some(frame.len()));
        spin_loop();
    }
    taken.unwrap_or_default()
}

fn send(port: &dyn Port, frame: &[u8]) -> Outcome<()> {
    let to = NodeId(1 - port.me().0);
    loop {
        match port.send(to, &[frame]) {
            Err(SendError::Busy { .. }) => {
                if port.poll(&mut |_, _| ()) == 0 {
                    spin_loop();
                }
            }
            sent => return Ok(sent?),
        }
    }
}

fn port_trips(port: &dyn Port) -> Outcome<f64> {
    let begun = Instant::now();
    for trip in 0..u64::from(TRIPS) {
        if port.me() == NodeId(0) {
            send(port, &trip.to_le_bytes())?;
            take(port);
        } else {
            take(port);
            send(port, &trip.to_le_bytes())?;
        }
    }
    Ok(micros(begun.elapsed() / TRIPS))
}

fn port_bulk(port: &dyn Port, frame: &[u8]) -> Outcome<f64> {
    let begun = Instant::now();
    if port.me() == NodeId(0) {
        for _ in 0..BULKS {
            send(port, frame)?;
        }
        take(port);
    } else {
        let mut left = BULKS;
        while left > 0 {
            let taken = port.poll(&mut |_, frame| {
                black_box(frame.len());
            });
            left -= taken as u32;
        }
        send(port, &[0])?;
    }
    Ok(micros(begun.elapsed() / BULKS))
}

fn mpi_trips(world: &SimpleCommunicator) -> f64 {
    let (me, mut word) = (world.rank(), [0_u8; 8]);
    let other = world.process_at_rank(1 - me);
    let begun = Instant::now();
    for _ in 0..TRIPS {
        if me == 0 {
            other.send(&word[..]);
            other.receive_into(&mut word[..]);
        } else {
            other.receive_into(&mut word[..]);
            other.send(&word[..]);
        }
    }
    micros(begun.elapsed() / TRIPS)
}

fn mpi_bulk(world: &SimpleCommunicator, frame: &mut [u8]) -> f64 {
    let me = world.rank();
    let other = world.process_at_rank(1 - me);
    let mut word = [0_u8; 1];
    let begun = Instant::now();
    for _ in 0..BULKS {
        match me {
            0 => other.send(&frame[..]),
            _ => drop(other.receive_into(&mut frame[..])),
        }
    }
    match me {
        0 => drop(other.receive_into(&mut word[..])),
        _ => other.send(&word[..]),
    }
    micros(begun.elapsed() / BULKS)
}

fn mpi_barriers(world: &SimpleCommunicator) -> f64 {
    let begun = Instant::now();
    for _ in 0..BARRIERS {
        world.barrier();
    }
    micros(begun.elapsed() / BARRIERS)
}

fn dhole_barriers(machine: &Processes) -> Outcome<f64> {
    let ran = run_on(machine, &Settings::nodes(2), |w: &mut Worker<'_>| {
        w.barrier()?;
        let begun = Instant::now();
        for _ in 0..BARRIERS {
            w.barrier()?;
        }
        Ok(micros(begun.elapsed() / BARRIERS))
    });
    Ok(ran?.value)
}

/// Memory that both processes share.
fn shm(world: &SimpleCommunicator) -> Outcome<Shm> {
    let me = world.rank();
    let other = world.process_at_rank(1 - me);
    if me == 0 {
        let path = std::env::temp_dir().join(format!("dhole-bench-{}", std::process::id()));
        let listener = UnixListener::bind(&path)?;
        other.send(path.to_string_lossy().as_bytes());
        let stream = listener.accept()?.0;
        std::fs::remove_file(&path)?;
        let link = ShmLink::offer(stream, ShmLink::RING_BYTES)?;
        return Ok(Shm::new(NodeId(0), vec![None, Some(link)])?);
    }
    let (path, _) = other.receive_vec::<u8>();
    let stream = UnixStream::connect(String::from_utf8(path)?)?;
    let link = ShmLink::accept(stream)?;
    Ok(Shm::new(NodeId(1), vec![Some(link), None])?)
}

/// Remote procedures: a call, a fetch and a store, by node 0; node 1 serves.
fn remote(rpc: &Rpc, memory: &Memory) -> Outcome<[f64; 3]> {
    let grant = memory.grant(0..BULK, Rights::ReadWrite)?;
    if rpc.me() == NodeId(1) {
        // What the other may use; then it serves until it is told that this is enough.
        rpc.tell(NodeId(0), 1, &grant.to_bytes(), LONG)?;
        let over = || ENOUGH.swap(false, std::sync::atomic::Ordering::SeqCst);
        rpc.serve_until(LONG, &over);
        return Ok([0.0; 3]);
    }
    let there = || GRANTED.lock().is_ok_and(|granted| granted.is_some());
    rpc.serve_until(LONG, &there);
    let granted = GRANTED.lock().map_err(|_| "a panic")?.take();
    let theirs = granted.ok_or("nothing was granted")?;
    let begun = Instant::now();
    for trip in 0..TRIPS {
        black_box(rpc.call(NodeId(1), 0, &trip.to_le_bytes(), LONG)?);
    }
    let call = micros(begun.elapsed() / TRIPS);
    let mut into = vec![0; BULK];
    let begun = Instant::now();
    for _ in 0..BULKS {
        rpc.fetch(&theirs, 0, &mut into, LONG)?;
    }
    let fetch = micros(begun.elapsed() / BULKS);
    let begun = Instant::now();
    for _ in 0..BULKS {
        rpc.store(&theirs, 0, &into, LONG)?;
    }
    let store = micros(begun.elapsed() / BULKS);
    rpc.tell(NodeId(1), 2, &[], LONG)?;
    Ok([call, fetch, store])
}

static ENOUGH: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
static GRANTED: std::sync::Mutex<Option<dhole_rpc::Capability>> = std::sync::Mutex::new(None);

fn with_procedures(port: impl Port + 'static) -> Rpc {
    Rpc::new(Box::new(port))
        .expect("a port that is reliable and ordered")
        .neighbours(1)
        .procedure(|_, arguments| arguments.to_vec())
        .procedure(|_, arguments| {
            if let Ok(mut granted) = GRANTED.lock() {
                *granted = dhole_rpc::Capability::from_bytes(arguments);
            }
            Vec::new()
        })
        .procedure(|_, _| {
            ENOUGH.store(true, std::sync::atomic::Ordering::SeqCst);
            Vec::new()
        })
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Under `mpirun -n 2`: what all of it costs, of which node 0 writes.
pub fn measure(what: &str) -> Outcome<()> {
    let (universe, level) =
        mpi::initialize_with_threading(Threading::Multiple).ok_or("MPI is there already")?;
    if level != Threading::Multiple {
        return Err("MPI_THREAD_MULTIPLE is not offered".into());
    }
    let world = universe.world().duplicate();
    let all = what == "floors";
    let mut columns: Vec<Vec<f64>> = Vec::new();
    if all {
        let shm_port = shm(&world)?;
        let (mpi_port, _) = Mpi::of_all(b"bench", LONG)?;
        let shm_rpc = with_procedures(shm(&world)?);
        let memory = shm_rpc.memory(vec![3; BULK]);
        let mut frame = vec![1; BULK];
        for _ in 0..ROUNDS {
            let mut round = vec![mpi_trips(&world)];
            world.barrier();
            round.push(port_trips(&mpi_port)?);
            world.barrier();
            round.push(port_trips(&shm_port)?);
            world.barrier();
            let [call, fetch, store] = remote(&shm_rpc, &memory)?;
            round.push(call);
            world.barrier();
            round.push(micros(floors::copy(BULK, BULKS)));
            world.barrier();
            round.push(mpi_bulk(&world, &mut frame));
            world.barrier();
            round.push(port_bulk(&shm_port, &frame)?);
            world.barrier();
            round.push(port_bulk(&mpi_port, &frame)?);
            world.barrier();
            round.extend([fetch, store]);
            columns.resize(round.len(), Vec::new());
            columns
                .iter_mut()
                .zip(round)
                .for_each(|(c, value)| c.push(value));
        }
    }
    let machine =
        Processes::new(Box::new(FailureDetector::new(shm(&world)?, LONG)), 0)?.neighbours(1);
    let (mut of_mpi, mut of_dhole) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        world.barrier();
        of_mpi.push(mpi_barriers(&world));
        of_dhole.push(dhole_barriers(&machine)?);
    }
    drop(machine);
    if world.rank() == 0 {
        if all {
            say(columns);
        }
        let floor = row("Open MPI: a barrier of two", "us", of_mpi);
        let ours = row(
            "dhole over shared memory: `w.barrier()` of two",
            "us",
            of_dhole,
        );
        ratio("to Open MPI's", ours, floor, "<= 2");
    }
    world.barrier();
    Ok(())
}

fn say(columns: Vec<Vec<f64>>) {
    let mut columns = columns.into_iter();
    let mut next = |name: &str| row(name, "us", columns.next().unwrap_or_default());
    let raw = next("Open MPI: 8 bytes there and back");
    let over_mpi = next("the MPI port: 8 bytes there and back");
    let over_shm = next("the shared-memory port: 8 bytes there and back");
    next("shared memory: a call of 4 bytes");
    let copy = next("a copy of 1 MiB");
    let bulk = next("Open MPI: 1 MiB one way");
    let shm_bulk = next("the shared-memory port: 1 MiB one way");
    next("the MPI port: 1 MiB one way");
    let fetch = next("shared memory: 1 MiB fetched");
    let store = next("shared memory: 1 MiB stored");
    ratio("the MPI port to raw MPI", over_mpi, raw, "<= 2");
    ratio("the shared-memory port to raw MPI", over_shm, raw, "< 1");
    let slower = (copy.0.max(bulk.0), copy.1.max(bulk.1));
    let bandwidth = "bandwidth, to the lower of copy and Open MPI:";
    ratio(&format!("{bandwidth} port"), slower, shm_bulk, ">= 0.8");
    ratio(&format!("{bandwidth} fetch"), slower, fetch, ">= 0.8");
    ratio(&format!("{bandwidth} store"), slower, store, ">= 0.8");
}
