//! The search with a list of jobs at node 0, from which sections take them (Jackal, section 6).
//!
//! Jobs, their paths, the bound and the table of distances are objects of node 0. A job costs one
//! round trip for its section, and one each for what is followed from it.

use dhole::{Coherence, Error, Lockable, Ref, Result, Row, Section, Share, Worker, section};

use super::pool::MOST_CITIES;
use super::search::{HOPS, Known, Search, Tour};
use super::{Found, Instance, Problem};
use crate::solve::Steps;

/// The beginning of a tour.
#[derive(Share, Clone, Copy)]
struct Path {
    cities: [u32; HOPS + 1],
    len: u32,
}

#[derive(Share, Clone, Copy)]
struct Job {
    path: Ref<Path>,
    next: Option<Ref<Job>>,
}

#[derive(Share, Clone, Copy)]
struct Queue {
    head: Option<Ref<Job>>,
}

/// The shortest tour so far.
#[derive(Share, Clone, Copy)]
struct Bound {
    length: u64,
    cities: [u32; MOST_CITIES],
}

/// Takes the first job.
fn take(s: &mut Section<'_>, queue: Ref<Queue>) -> Result<Option<Ref<Job>>> {
    let Some(job) = s.get(queue)?.head else {
        return Ok(None);
    };
    let next = s.get(job)?.next;
    s.get_mut(queue)?.head = next;
    Ok(Some(job))
}

/// Keeps the shorter of the tours, and tells its length.
fn shorten(s: &mut Section<'_>, (bound, tour): (Ref<Bound>, Bound)) -> Result<u64> {
    let shortest = s.get(bound)?.length;
    if tour.length < shortest {
        *s.get_mut(bound)? = tour;
    }
    Ok(tour.length.min(shortest))
}

impl Bound {
    fn of(tour: &Tour) -> Bound {
        let mut cities = [0; MOST_CITIES];
        cities[..tour.cities.len()].copy_from_slice(&tour.cities);
        Bound {
            length: tour.length,
            cities,
        }
    }
}

struct Shared<'a, 'id> {
    w: &'a mut Worker<'id>,
    bound: Ref<Bound>,
    /// The length of the shortest tour, as far as it is known here.
    seen: u64,
}

impl Known for Shared<'_, '_> {
    type Error = Error;

    fn shortest(&self) -> u64 {
        self.seen
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool> {
        Ok(length < self.seen)
    }

    fn found(&mut self, tour: Tour) -> Result<()> {
        let tour = Bound::of(&tour);
        let lock = self.bound.lock();
        self.seen = lock.run(self.w, (self.bound, tour), section!(shorten))?;
        Ok(())
    }

    fn worked(&mut self, units: u64) {
        self.w.work(units);
    }
}

/// What node 0 allocates.
#[derive(Share, Clone, Copy)]
struct AtHome {
    queue: Ref<Queue>,
    bound: Ref<Bound>,
    table: Row<u32>,
}

fn make(w: &mut Worker<'_>, instance: &Instance, first: &Tour, jobs: &[Vec<u32>]) -> AtHome {
    let cities = instance.cities();
    let table = w.under(Coherence::Home).alloc_rows(1, cities * cities);
    let table = table.row(0);
    for (place, distance) in table.get_mut(w).iter_mut().enumerate() {
        *distance = instance.distance(place / cities, place % cities);
    }
    let bound = w.under(Coherence::Home).alloc(Bound::of(first));
    let mut head = None;
    for job in jobs.iter().rev() {
        let mut cities = [0; HOPS + 1];
        cities[..job.len()].copy_from_slice(job);
        let len = job.len() as u32;
        let path = w.under(Coherence::Home).alloc(Path { cities, len });
        head = Some(w.under(Coherence::Home).alloc(Job { path, next: head }));
    }
    AtHome {
        queue: w.under(Coherence::Home).alloc(Queue { head }),
        bound,
        table,
    }
}

/// The shortest tour.
///
/// # Errors
/// Those of the runtime, and that jobs are left.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let at_home = w.once(|w| {
        let search = Search::with_bound(&problem.instance, problem.bound);
        let first = problem.first_tour(&search);
        Ok(make(w, &problem.instance, &first, &search.jobs()))
    })?;
    let AtHome {
        queue,
        bound,
        table,
    } = at_home;
    let mut freed = Vec::new();
    steps.begin(w)?;
    let table = table.get(w).to_vec();
    let instance = Instance::of(&problem.instance.name, problem.instance.cities(), table);
    let instance = instance.with_fixed(problem.instance.fixed().clone());
    let mut search = Search::with_bound(&instance, problem.bound);
    while let Some(job) = queue.lock().run(w, queue, section!(take))? {
        let path = job.get(w).path;
        let Path { cities, len } = path.read(w);
        let seen = bound.get(w).length;
        let mut shared = Shared { w, bound, seen };
        search.run(&cities[..len as usize], &mut shared)?;
        freed.push((job, path));
    }
    steps.end(w)?;
    let expanded = w.all_reduce(search.expanded, |sum, more| sum + more)?;
    if queue.get(w).head.is_some() {
        return Err(Error::program("jobs are left in the queue"));
    }
    let Bound { length, cities } = bound.read(w);
    for (job, path) in freed {
        w.free((job, path))?;
    }
    Ok(Found {
        tour: Tour {
            length,
            cities: cities[..search.cities()].to_vec(),
        },
        nodes_expanded: expanded,
        stopped: false,
        raw: None,
    })
}
