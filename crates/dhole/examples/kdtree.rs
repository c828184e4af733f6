//! The nearest of many points, found by a k-d tree that all nodes build and search. Every point is
//! a shared object:
//! `cargo run --release --example kdtree -- [--own] [--prefetch] [--unlearned] [POINTS [QUERIES]]`.
//! With `--unlearned` nodes do not learn what a program follows, so each point costs a message.

use std::ops::Range;
use std::time::Duration;

use dhole::{Config, Optimisations, Own, Ref, Refs, Result, RunError, Share, Worker};

/// A place.
pub type At = [f64; 3];

/// A point of the tree. The points of one half lie below it along an axis, the others above it.
pub trait Point: Share {
    /// A point with its lower and its upper half.
    fn new(at: At, halves: [Option<Ref<Self>>; 2]) -> Self;
    /// Where it is.
    fn at(&self) -> &At;
    /// The tree of one of its halves.
    fn half(&self, upper: bool) -> Option<Ref<Self>>;
}

/// A point that names its halves: each point is fetched by itself.
#[derive(Share, Clone, Copy)]
pub struct Referring {
    at: At,
    lower: Option<Ref<Referring>>,
    upper: Option<Ref<Referring>>,
}

impl Point for Referring {
    fn new(at: At, [lower, upper]: [Option<Ref<Self>>; 2]) -> Self {
        Referring { at, lower, upper }
    }

    fn at(&self) -> &At {
        &self.at
    }

    fn half(&self, upper: bool) -> Option<Ref<Self>> {
        if upper { self.upper } else { self.lower }
    }
}

/// A point that owns its halves: a fetch brings some of the points below it along.
#[derive(Share)]
pub struct Owning {
    at: At,
    lower: Option<Own<Owning>>,
    upper: Option<Own<Owning>>,
}

impl Point for Owning {
    fn new(at: At, halves: [Option<Ref<Self>>; 2]) -> Self {
        let [lower, upper] = halves.map(|half| half.map(Own::from));
        Owning { at, lower, upper }
    }

    fn at(&self) -> &At {
        &self.at
    }

    fn half(&self, upper: bool) -> Option<Ref<Self>> {
        let half = if upper { &self.upper } else { &self.lower };
        half.as_ref().map(|half| **half)
    }
}

/// Random places in a cube, the same for the same seed (SplitMix64).
pub fn cloud(mut seed: u64, count: usize) -> Vec<At> {
    let mut coordinate = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(|_| [(); 3].map(|()| coordinate())).collect()
}

/// The square of the distance.
pub fn distance(one: &At, other: &At) -> f64 {
    let along = |axis: usize| (one[axis] - other[axis]).powi(2);
    along(0) + along(1) + along(2)
}

/// The axis along which the next level of the tree is split.
pub fn next(axis: usize) -> usize {
    (axis + 1) % 3
}

/// Sorts the points to both sides of the middle one; nothing where there are none.
pub fn split(points: &mut [At], axis: usize) -> Option<(&mut [At], At, &mut [At])> {
    let order = |one: &At, other: &At| one[axis].total_cmp(&other[axis]);
    let middle = points.len() / 2;
    let (lower, at, upper) =
        (!points.is_empty()).then(|| points.select_nth_unstable_by(middle, order))?;
    Some((lower, *at, upper))
}

/// The tree of all these points, allocated on this node.
fn build<P: Point>(w: &mut Worker<'_>, points: &mut [At], axis: usize) -> Option<Ref<P>> {
    let (lower, at, upper) = split(points, axis)?;
    let halves = [lower, upper].map(|half| build(w, half, next(axis)));
    Some(w.alloc(P::new(at, halves)))
}

/// Splits the points into so many parts, and builds and shows the trees of this node's parts.
fn build_parts<P: Point>(
    w: &mut Worker<'_>,
    points: &mut [At],
    axis: usize,
    parts: Range<usize>,
    shown: Refs<Option<Ref<P>>>,
) {
    if parts.len() == 1 {
        if parts.start % w.nodes() == w.node().index() {
            *shown.at(parts.start).get_mut(w) = build(w, points, axis);
        }
    } else if let Some((lower, _, upper)) = split(points, axis) {
        let middle = parts.start + parts.len() / 2;
        build_parts(w, lower, next(axis), parts.start..middle, shown);
        build_parts(w, upper, next(axis), middle..parts.end, shown);
    }
}

/// The whole tree, of points that are split into parts.
fn join_parts<P: Point>(
    w: &mut Worker<'_>,
    points: &[At],
    shown: Refs<Option<Ref<P>>>,
) -> Option<Ref<P>> {
    if shown.len() == 1 {
        return shown.at(0).read(w);
    }
    let (lower, rest) = points.split_at(points.len() / 2);
    let (at, upper) = rest.split_first()?;
    let middle = shown.len() / 2;
    let halves = [
        (lower, shown.slice(..middle)),
        (upper, shown.slice(middle..)),
    ];
    let halves = halves.map(|(points, shown)| join_parts(w, points, shown));
    Some(w.alloc(P::new(*at, halves)))
}

/// The square of the distance to the nearest point of the tree, or `best` where that is less.
fn nearest<P: Point>(w: &Worker<'_>, tree: Ref<P>, axis: usize, to: &At, best: f64) -> f64 {
    let point = tree.get(w);
    let mut best = best.min(distance(point.at(), to));
    let beyond = to[axis] - point.at()[axis];
    let is_above = beyond >= 0.0;
    if let Some(near) = point.half(is_above) {
        best = nearest(w, near, next(axis), to, best);
    }
    match point.half(!is_above) {
        Some(far) if beyond * beyond < best => nearest(w, far, next(axis), to, best),
        _ => best,
    }
}

/// How many points there are, for how many places the nearest is looked for, and how.
#[derive(Clone, Copy)]
pub struct Problem {
    /// Points of the tree.
    pub points: usize,
    /// Places.
    pub queries: usize,
    /// Whether each node fetches the whole tree, level by level, before it searches.
    pub prefetch: bool,
}

impl Problem {
    /// The points, and the places.
    pub fn clouds(self) -> (Vec<At>, Vec<At>) {
        (cloud(1, self.points), cloud(2, self.queries))
    }
}

/// What a run took and found.
pub struct Found {
    /// Building the tree.
    pub build: Duration,
    /// The same searches twice: what the first pass fetched, the second one has.
    pub passes: [Duration; 2],
    /// The mean of the distances to the nearest points.
    pub mean_distance: f64,
    /// How many searches agreed with a look at all points.
    pub checked: usize,
}

/// Of so many searches one is checked.
const CHECKED: usize = 100;

/// Builds the tree and searches it on all nodes.
pub fn solve<P: Point>(w: &mut Worker<'_>, problem: Problem) -> Result<Found> {
    let (mut points, places) = problem.clouds();
    let (me, nodes) = (w.node().index(), w.nodes());
    let mine = &places[places.len() * me / nodes..places.len() * (me + 1) / nodes];
    let parts = nodes.next_power_of_two();
    let shown = w.once(|w| Ok(w.alloc_range(parts, |_| None::<Ref<P>>)))?;

    let began = w.now();
    build_parts(w, &mut points, 0, 0..parts, shown);
    w.barrier()?;
    let tree = w.once(|w| Ok(join_parts(w, &points, shown)))?;
    let tree = tree.ok_or("a tree of no points")?;
    let build = w.now() - began;

    let mut passes = [Duration::ZERO; 2];
    let mut found = Vec::new();
    for (pass, took) in passes.iter_mut().enumerate() {
        let began = w.now();
        if problem.prefetch && pass == 0 {
            w.prefetch_reachable(tree, problem.points)?;
        }
        let search = |to| nearest(w, tree, 0, to, f64::INFINITY);
        found = mine.iter().map(search).collect::<Vec<f64>>();
        w.barrier()?;
        *took = w.now() - began;
    }

    for (to, found) in mine.iter().zip(&found).step_by(CHECKED) {
        let all = points.iter().map(|point| distance(point, to));
        let least = all.fold(f64::INFINITY, f64::min);
        if least != *found {
            return Err(format!("the point nearest to {to:?} is another one").into());
        }
    }
    let checked = mine.len().div_ceil(CHECKED);
    let sum = found.iter().map(|square| square.sqrt()).sum::<f64>();
    let (sum, checked) = w.all_reduce((sum, checked), |one, other| {
        (one.0 + other.0, one.1 + other.1)
    })?;
    let mean_distance = sum / places.len() as f64;
    Ok(Found {
        build,
        passes,
        mean_distance,
        checked,
    })
}

/// What the command line asks for.
struct Asked {
    /// Points own their halves.
    own: bool,
    /// Nodes learn which references the program follows.
    learn: bool,
    problem: Problem,
}

fn asked() -> Result<Asked, String> {
    const USAGE: &str = "usage: kdtree [--own] [--prefetch] [--unlearned] [POINTS [QUERIES]], \
                         each at least 1";
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut takes = |option: &str| {
        let all = words.len();
        words.retain(|word| word != option);
        words.len() < all
    };
    let (own, prefetch, unlearned) = (takes("--own"), takes("--prefetch"), takes("--unlearned"));
    let counts: Result<Vec<usize>, _> = words.iter().map(|word| word.parse()).collect();
    let counts = counts.map_err(|_| USAGE)?;
    let (points, queries) = match counts[..] {
        [] => (20_000, 5_000),
        [points] => (points, 5_000),
        [points, queries] => (points, queries),
        _ => return Err(USAGE.to_owned()),
    };
    if points == 0 || queries == 0 {
        return Err(USAGE.to_owned());
    }
    let problem = Problem {
        points,
        queries,
        prefetch,
    };
    Ok(Asked {
        own,
        learn: !unlearned,
        problem,
    })
}

fn main() -> Result<(), RunError> {
    let Asked {
        own,
        learn,
        problem,
    } = asked().unwrap_or_else(|usage| {
        eprintln!("{usage}");
        std::process::exit(2)
    });
    let optimisations = Optimisations {
        learn,
        ..Optimisations::default()
    };
    let config = Config::nodes(4).optimisations(optimisations);
    let run = config.run(|w| match own {
        true => solve::<Owning>(w, problem),
        false => solve::<Referring>(w, problem),
    })?;
    if run.report.is_first() {
        let Found { build, passes, .. } = run.value;
        let Problem {
            points, queries, ..
        } = problem;
        println!(
            "{points} points, {queries} searches, {} nodes",
            run.report.nodes
        );
        println!(
            "built in {build:.1?}; searched in {:.1?}, again in {:.1?}",
            passes[0], passes[1]
        );
        println!(
            "mean distance {:.9}, {} checked",
            run.value.mean_distance, run.value.checked
        );
    }
    Ok(())
}
