//! What a hit costs beside a bare handle indirection, `*table[id]`, over the same objects, and
//! beside one that tests the handle: the least that finding absent objects by a test can cost.
//!
//! All run in turn, many times, in one process; the fastest run of each counts.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use dhole_heap::{Access, ArrayMiss, Cluster, Miss, Monitor, Ref, Refs, Share, Token};
use dhole_model::NodeId;

/// What the objects of a chase know.
#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
struct Link {
    next: Option<Ref<Link>>,
    weight: u64,
}

/// A worker whose every object is here.
struct Worker<'id> {
    token: Token<'id>,
}

impl<'id> Access<'id> for Worker<'id> {
    type Error = Infallible;

    fn token(&self) -> &Token<'id> {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token<'id> {
        &mut self.token
    }

    fn read_miss(&self, miss: &Miss) -> Result<(), Infallible> {
        panic!("{} should be here", miss.oid)
    }

    fn write_miss(&mut self, miss: &Miss) -> Result<(), Infallible> {
        panic!("{} should be here", miss.oid)
    }

    fn read_elements(&self, miss: &ArrayMiss) -> Result<(), Infallible> {
        panic!("{} should be here", miss.elements)
    }

    fn write_elements(&mut self, miss: &ArrayMiss) -> Result<(), Infallible> {
        panic!("{} should be here", miss.elements)
    }

    fn overwrite_elements<T: Share + Copy>(
        &mut self,
        miss: &ArrayMiss,
        _: &[T],
    ) -> Result<(), Infallible> {
        panic!("{} should be here", miss.elements)
    }

    fn fail(&self, error: Infallible) -> ! {
        match error {}
    }
}

/// A handle table as one would write it by hand.
struct Bare {
    table: Vec<*const Link>,
}

impl Bare {
    fn of(w: &Worker<'_>, links: Refs<Link>) -> Bare {
        let ids = links.oids().expect("there are objects");
        let mut table = vec![std::ptr::null(); ids.first.plus(u64::from(ids.count)).0 as usize];
        for link in links.iter() {
            table[link.oid().0 as usize] = std::ptr::from_ref(link.get(w));
        }
        Bare { table }
    }

    #[inline(always)]
    fn get<'a>(&'a self, link: Ref<Link>, _: &'a Worker<'_>) -> &'a Link {
        // SAFETY: the table has an entry for every link, taken from a reference to it; nobody
        // writes the links while the worker is borrowed.
        unsafe { &**self.table.get_unchecked(link.oid().0 as usize) }
    }

    #[inline(always)]
    fn tested<'a>(&'a self, link: Ref<Link>, w: &'a Worker<'_>) -> &'a Link {
        // SAFETY: as in `get`.
        match unsafe { self.table.get_unchecked(link.oid().0 as usize).as_ref() } {
            Some(here) => here,
            None => self.fetched(link, w),
        }
    }

    /// Where an absent object would be fetched.
    #[cold]
    #[inline(never)]
    fn fetched<'a>(&'a self, link: Ref<Link>, w: &'a Worker<'_>) -> &'a Link {
        black_box(self).get(black_box(link), w)
    }
}

fn main() {
    for (what, count, rounds) in [("in L1", 512, 20_000), ("out of cache", 4 << 20, 1)] {
        measure(what, count, rounds);
    }
    for (what, count, rounds) in [("in L1", 2048, 20_000), ("out of cache", 8 << 20, 4)] {
        slices(what, count, rounds);
    }
    clusters();
}

fn measure(what: &str, count: u64, rounds: u32) {
    let cluster = Cluster::new(1).expect("address space");
    let node = Monitor::new(&cluster, NodeId(0), ());
    let links = node
        .lock()
        .split()
        .0
        .alloc_range(count, |i| Link {
            next: None,
            weight: i,
        })
        .expect("memory");
    let order = shuffled(links);
    node.lend(|mut token| {
        node.exclusive_call(&mut token, |call| {
            let (mut heap, _) = call.split();
            order
                .iter()
                .for_each(|r| heap.make_writable(r.oid(), false).expect("it is here"));
        });
        let mut w = Worker { token };
        for (i, &link) in order.iter().enumerate() {
            link.get_mut(&mut w).next = Some(order[(i + 1) % order.len()]);
        }
        let bare = Bare::of(&w, links);
        let in_order: Vec<Ref<Link>> = links.iter().collect();
        let steps = count * u64::from(rounds);
        let sum = |name: &str, order: &[Ref<Link>]| {
            compare(
                &format!("{name}, {what}"),
                steps,
                [
                    &|| repeat(rounds, || sum_bare(&bare, &w, black_box(order))),
                    &|| repeat(rounds, || sum_tested(&bare, &w, black_box(order))),
                    &|| repeat(rounds, || sum_get(&w, black_box(order))),
                ],
            );
        };
        sum("sum in order of ids", &in_order);
        sum("sum in random order", &order);
        let first = order[0];
        compare(
            &format!("chase, {what}"),
            steps,
            [
                &|| chase_bare(&bare, &w, black_box(first), steps),
                &|| chase_tested(&bare, &w, black_box(first), steps),
                &|| chase_get(&w, black_box(first), steps),
            ],
        );
    })
    .expect("the one worker");
}

/// A loop over a slice of an array, taking the slice included, beside the same loop over a `Vec`.
fn slices(what: &str, count: u64, rounds: u32) {
    let cluster = Cluster::new(1).expect("address space");
    let node = Monitor::new(&cluster, NodeId(0), ());
    let array = node
        .lock()
        .split()
        .0
        .alloc_array_with(count, |i| i)
        .expect("memory");
    let plain: Vec<u64> = (0..count).collect();
    node.lend(|token| {
        let w = Worker { token };
        let (mut best_plain, mut best_array) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..9 {
            let (a, took) = timed(|| repeat(rounds, || sum_slice(black_box(&plain))));
            best_plain = best_plain.min(took);
            let (b, took) = timed(|| repeat(rounds, || sum_slice(black_box(array).slice(&w, ..))));
            best_array = best_array.min(took);
            assert_eq!(a, b, "both see the same elements");
        }
        println!(
            "sum of a slice of {count}, {what:<16} a Vec's {:.3} ns   an array's {:.3} ns   {:.3}",
            best_plain / (count * u64::from(rounds)) as f64,
            best_array / (count * u64::from(rounds)) as f64,
            best_array / best_plain
        );
    })
    .expect("the one worker");
}

#[inline(never)]
fn sum_slice(elements: &[u64]) -> u64 {
    elements
        .iter()
        .fold(0, |sum, element| sum.wrapping_mul(3) ^ element)
}

#[inline(never)]
fn sum_bare(bare: &Bare, w: &Worker<'_>, order: &[Ref<Link>]) -> u64 {
    order.iter().map(|&r| bare.get(r, w).weight).sum()
}

#[inline(never)]
fn sum_tested(bare: &Bare, w: &Worker<'_>, order: &[Ref<Link>]) -> u64 {
    order.iter().map(|&r| bare.tested(r, w).weight).sum()
}

#[inline(never)]
fn sum_get(w: &Worker<'_>, order: &[Ref<Link>]) -> u64 {
    order.iter().map(|&r| r.get(w).weight).sum()
}

#[inline(never)]
fn chase_bare(bare: &Bare, w: &Worker<'_>, first: Ref<Link>, steps: u64) -> u64 {
    let (mut at, mut sum) = (first, 0_u64);
    for _ in 0..steps {
        let link = bare.get(at, w);
        sum = sum.wrapping_add(link.weight);
        at = link.next.expect("a ring");
    }
    sum
}

#[inline(never)]
fn chase_tested(bare: &Bare, w: &Worker<'_>, first: Ref<Link>, steps: u64) -> u64 {
    let (mut at, mut sum) = (first, 0_u64);
    for _ in 0..steps {
        let link = bare.tested(at, w);
        sum = sum.wrapping_add(link.weight);
        at = link.next.expect("a ring");
    }
    sum
}

#[inline(never)]
fn chase_get(w: &Worker<'_>, first: Ref<Link>, steps: u64) -> u64 {
    let (mut at, mut sum) = (first, 0_u64);
    for _ in 0..steps {
        let link = at.get(w);
        sum = sum.wrapping_add(link.weight);
        at = link.next.expect("a ring");
    }
    sum
}

fn repeat(rounds: u32, once: impl Fn() -> u64) -> u64 {
    (0..rounds).map(|_| once()).sum()
}

/// Runs the ways in turn and prints the best of each, in nanoseconds a step.
fn compare(what: &str, steps: u64, ways: [&dyn Fn() -> u64; 3]) {
    let mut best = [f64::INFINITY; 3];
    for _ in 0..9 {
        let mut sums = [0; 3];
        for ((way, best), sum) in ways.iter().zip(&mut best).zip(&mut sums) {
            let took;
            (*sum, took) = timed(way);
            *best = best.min(took);
        }
        assert!(
            sums.iter().all(|sum| *sum == sums[0]),
            "all see the same objects"
        );
    }
    let [bare, tested, get] = best.map(|best| best / steps as f64);
    println!(
        "{what:<36} bare {bare:7.2} ns   tested {tested:7.2} ns   get {get:7.2} ns   \
         {:.2} of bare, {:.2} of tested",
        get / bare,
        get / tested
    );
}

fn timed(f: impl Fn() -> u64) -> (u64, f64) {
    let start = Instant::now();
    let sum = f();
    (sum, start.elapsed().as_nanos() as f64)
}

fn shuffled(links: Refs<Link>) -> Vec<Ref<Link>> {
    let mut order: Vec<_> = links.iter().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in (1..order.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    order
}

/// What a small cluster costs: thousands are made by tests over seeds.
fn clusters() {
    const ROUNDS: u32 = 2000;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let cluster = Cluster::new(3).expect("address space");
        let nodes: Vec<_> = (0..3)
            .map(|i| Monitor::new(&cluster, NodeId(i), ()))
            .collect();
        for node in &nodes {
            let made = node
                .lock()
                .split()
                .0
                .alloc_range(10, |i| i)
                .expect("memory");
            black_box(made);
        }
    }
    let us = start.elapsed().as_micros() as f64 / f64::from(ROUNDS);
    println!("a cluster of 3 nodes, 10 objects each, made and dropped: {us:.1} us");
}
