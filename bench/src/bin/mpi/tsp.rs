//! The salesman as one writes it with MPI: process 0 has the jobs and works as well; it looks for
//! messages every so often, as all do for shorter tours. The search is that of dhole's program.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;

use apps::input::Lines;
use apps::tsp::{Instance, Known, Search, Tour};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use bench::Outcome;

const WANTED: i32 = 1;
const JOB: i32 = 2;
const SHORTER: i32 = 3;
/// Beginnings of tours between two looks for messages.
const BETWEEN_LOOKS: u32 = 64;
/// The longest job, in cities.
const LONGEST_JOB: usize = 8;

struct Cluster<'a> {
    world: &'a SimpleCommunicator,
    /// On process 0.
    jobs: VecDeque<Vec<u32>>,
    shortest: u64,
    until_look: u32,
    /// Processes that were told that there are no more jobs.
    done: i32,
}

impl Cluster<'_> {
    /// Answers whoever wants a job, and hears of shorter tours.
    fn look(&mut self) {
        self.until_look = BETWEEN_LOOKS;
        let any = self.world.any_process();
        while let Some(status) = any.immediate_probe_with_tag(SHORTER) {
            let from = self.world.process_at_rank(status.source_rank());
            let (length, _) = from.receive_with_tag::<u64>(SHORTER);
            self.shortest = self.shortest.min(length);
        }
        while let Some(status) = any.immediate_probe_with_tag(WANTED) {
            let from = self.world.process_at_rank(status.source_rank());
            from.receive_with_tag::<u64>(WANTED);
            let job = self.jobs.pop_front().unwrap_or_default();
            self.done += i32::from(job.is_empty());
            from.send_with_tag(&job[..], JOB);
        }
    }

    fn next_job(&mut self) -> Vec<u32> {
        if self.world.rank() == 0 {
            self.look();
            return self.jobs.pop_front().unwrap_or_default();
        }
        let master = self.world.process_at_rank(0);
        master.send_with_tag(&0_u64, WANTED);
        let mut job = [0_u32; LONGEST_JOB];
        let status = master.receive_into_with_tag(&mut job[..], JOB);
        let cities = status.count(u32::equivalent_datatype()) as usize;
        job[..cities].to_vec()
    }
}

impl Known for Cluster<'_> {
    type Error = Infallible;

    fn shortest(&self) -> u64 {
        self.shortest
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool, Infallible> {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.look();
        }
        Ok(length < self.shortest)
    }

    fn found(&mut self, tour: Tour) -> Result<(), Infallible> {
        self.shortest = self.shortest.min(tour.length);
        let me = self.world.rank();
        for other in (0..self.world.size()).filter(|other| *other != me) {
            let other = self.world.process_at_rank(other);
            other.send_with_tag(&tour.length, SHORTER);
        }
        Ok(())
    }

    fn worked(&mut self, _: u64) {}
}

/// Runs it and says how long it took, and how long the tour is.
pub fn run(file: &str) -> Outcome<()> {
    let universe = mpi::initialize().ok_or("MPI is there already")?;
    let world = universe.world();
    let lines = Lines::read(file.as_ref(), 16 << 20)?;
    let instance = Instance::parse(&lines)?;
    let mut search = Search::new(&instance);
    let jobs = match world.rank() {
        0 => search.jobs().into(),
        _ => VecDeque::new(),
    };
    let mut cluster = Cluster {
        world: &world,
        jobs,
        shortest: search.greedy().length,
        until_look: BETWEEN_LOOKS,
        done: 0,
    };
    world.barrier();
    let begun = Instant::now();
    loop {
        let job = cluster.next_job();
        if job.is_empty() {
            break;
        }
        match search.run(&job, &mut cluster) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
    while world.rank() == 0 && cluster.done < world.size() - 1 {
        cluster.look();
    }
    world.barrier();
    cluster.look();
    let took = begun.elapsed().as_secs_f64();
    let mut shortest = 0_u64;
    let smallest = mpi::collective::SystemOperation::min();
    world.all_reduce_into(&cluster.shortest, &mut shortest, smallest);
    if world.rank() == 0 {
        println!("seconds {took} digest {shortest}");
    }
    Ok(())
}
