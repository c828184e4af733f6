//! A lower bound for the rest of a tour, by Held and Karp's 1-trees (*The traveling-salesman
//! problem and minimum spanning trees*, 1970 and 1971).
//!
//! The rest of a tour goes from here through the remaining cities, and home. So it is a tree that
//! joins those cities, and two edges to different cities of it. The shortest such tree is no longer
//! than the way. A *potential* of each city, added to all its edges, changes every way by the same
//! amount, but not every tree. Subgradient ascent raises the potentials of cities at which the tree
//! has too many edges, and lowers those of its leaves. That makes the shortest tree longer.

use super::Instance;

/// Potentials are fractions of a unit of distance, so that bounds are exact.
const UNIT: i64 = 256;
/// No potential is further from 0: then no sum overflows.
const MOST: i64 = 1 << 42;
/// Evaluations at the root, at most, and in edges of all of them together.
const MOST_AT_ROOT: usize = 1000;
const MOST_EDGES_AT_ROOT: usize = 200_000_000;
/// Evaluations at each beginning of a tour after the root.
const AT_EACH: usize = 8;

/// The part of a tour that is left.
#[derive(Clone, Copy)]
pub struct Rest<'a> {
    /// Where the tour has come to.
    pub here: usize,
    /// The cities that it has been to.
    pub visited: &'a [bool],
    /// A rest of at least this length is of no use.
    pub useless: u64,
}

/// A bound, and the work to find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The rest takes at least this.
    pub at_least: u64,
    /// So many trees were looked at.
    pub trees: u64,
}

/// Potentials, and what is needed to find trees.
pub struct OneTree {
    cities: usize,
    /// The shorter of both ways between two cities, in units.
    edges: Vec<i64>,
    /// The best potentials at the root, and at each city of the path after it.
    potentials: Vec<Vec<i64>>,
    /// The cities that are left.
    left: Vec<usize>,
    /// The shortest edge from the tree to each city outside it, and where it begins.
    joins: Vec<(i64, usize)>,
    /// The cities outside it.
    outside: Vec<usize>,
    /// How many edges each city has.
    degrees: Vec<i64>,
}

impl OneTree {
    /// Potentials for an instance whose shortest tour is at most `most` long.
    pub fn new(instance: &Instance, most: u64) -> OneTree {
        let cities = instance.cities();
        let edge = |from, to| instance.distance(from, to).min(instance.distance(to, from));
        let all = (0..cities).flat_map(|from| (0..cities).map(move |to| (from, to)));
        let mut trees = OneTree {
            cities,
            edges: all
                .map(|(from, to)| i64::from(edge(from, to)) * UNIT)
                .collect(),
            potentials: vec![vec![0; cities]],
            left: Vec::with_capacity(cities),
            joins: vec![(0, 0); cities],
            outside: Vec::with_capacity(cities),
            degrees: vec![0; cities],
        };
        let mut visited = vec![false; cities];
        visited[0] = true;
        let root = Rest {
            here: 0,
            visited: &visited,
            useless: most,
        };
        let evaluations = MOST_AT_ROOT
            .min(MOST_EDGES_AT_ROOT / (cities * cities))
            .max(50);
        trees.ascend(instance, root, 0, evaluations);
        trees
    }

    /// The tour has got a city more, and so many now: it begins with the potentials of the last.
    pub fn enter(&mut self, path: usize) {
        let depth = path - 1;
        let depths = self.potentials.len().max(depth + 1);
        self.potentials.resize(depths, Vec::new());
        let (before, here) = self.potentials.split_at_mut(depth);
        here[0].clone_from(&before[depth - 1]);
    }

    /// What the rest takes at least of the tour that was entered last, which has so many cities.
    pub fn at_least(&mut self, instance: &Instance, rest: Rest<'_>, path: usize) -> Found {
        self.ascend(instance, rest, path - 1, AT_EACH)
    }

    /// How much the potentials say that it takes to go to a city next, to compare cities by.
    pub fn step(&self, instance: &Instance, path: usize, from: usize, to: usize) -> i64 {
        let potential = self.potentials[path - 1][to];
        i64::from(instance.distance(from, to)) * UNIT + potential
    }

    /// Computes up to so many trees, each with better potentials than the last, as long as that is
    /// worth it. Keeps the best potentials.
    fn ascend(
        &mut self,
        instance: &Instance,
        rest: Rest<'_>,
        depth: usize,
        evaluations: usize,
    ) -> Found {
        self.left.clear();
        let left = (0..self.cities).filter(|city| !rest.visited[*city]);
        self.left.extend(left);
        if self.left.is_empty() {
            let at_least = instance.distance(rest.here, 0).into();
            return Found { at_least, trees: 1 };
        }
        let mut potentials = std::mem::take(&mut self.potentials[depth]);
        let mut best = potentials.clone();
        let mut most = i64::MIN;
        let useless = i64::try_from(rest.useless)
            .unwrap_or(MOST / UNIT)
            .min(MOST / UNIT)
            * UNIT;
        let (mut pace, mut in_vain, mut trees) = (1.0, 0, 0);
        while trees < evaluations {
            trees += 1;
            let length = self.shortest_tree(instance, rest.here, &potentials);
            if length > most {
                most = length;
                best.clone_from(&potentials);
                in_vain = 0;
            } else {
                in_vain += 1;
            }
            if most > useless - UNIT || trees == evaluations {
                break;
            }
            if in_vain == 5 {
                (pace, in_vain) = (pace / 2.0, 0);
            }
            let apart = |city: &usize| self.degrees[*city] - 2;
            let wrong: i64 = self.left.iter().map(|city| apart(city).pow(2)).sum();
            if wrong == 0 {
                // The tree is a way.
                break;
            }
            let step = (pace * (useless - length) as f64 / wrong as f64) as i64;
            if step == 0 {
                break;
            }
            for city in &self.left {
                let potential = potentials[*city].saturating_add(step.saturating_mul(apart(city)));
                potentials[*city] = potential.clamp(-MOST, MOST);
            }
        }
        self.potentials[depth] = best;
        let whole = most.div_euclid(UNIT) + i64::from(most.rem_euclid(UNIT) > 0);
        Found {
            at_least: u64::try_from(whole).unwrap_or(0),
            trees: trees as u64,
        }
    }

    /// The length of the shortest tree and its two edges, in units, under these potentials, which
    /// are taken off again. Leaves behind how many edges each city has.
    fn shortest_tree(&mut self, instance: &Instance, here: usize, potentials: &[i64]) -> i64 {
        let mut length = -2 * self.left.iter().map(|city| potentials[*city]).sum::<i64>();
        let there =
            |city: usize| i64::from(instance.distance(here, city)) * UNIT + potentials[city];
        let home = |city: usize| i64::from(instance.distance(city, 0)) * UNIT + potentials[city];
        for city in &self.left {
            self.degrees[*city] = 0;
        }
        let (first, last) = ends(&self.left, there, home);
        length += there(first) + home(last);
        self.degrees[first] += 1;
        self.degrees[last] += 1;
        // Prim, from the first city that is left.
        let root = self.left[0];
        let edge = |edges: &[i64], from: usize, to: usize| {
            edges[from * self.cities + to] + potentials[from] + potentials[to]
        };
        let mut outside = std::mem::take(&mut self.outside);
        outside.clear();
        outside.extend_from_slice(&self.left[1..]);
        for city in &outside {
            self.joins[*city] = (edge(&self.edges, root, *city), root);
        }
        while !outside.is_empty() {
            let next = (0..outside.len()).min_by_key(|at| self.joins[outside[*at]].0);
            let city = outside.swap_remove(next.unwrap_or(0));
            let (cost, from) = self.joins[city];
            length += cost;
            self.degrees[city] += 1;
            self.degrees[from] += 1;
            for other in &outside {
                let cost = edge(&self.edges, city, *other);
                if cost < self.joins[*other].0 {
                    self.joins[*other] = (cost, city);
                }
            }
        }
        self.outside = outside;
        length
    }
}

/// Where the way goes first, and from where it comes home: different cities, unless one alone is
/// left.
fn ends(
    left: &[usize],
    there: impl Fn(usize) -> i64,
    home: impl Fn(usize) -> i64,
) -> (usize, usize) {
    let nearest = |to: &dyn Fn(usize) -> i64, but: Option<usize>| {
        let others = left.iter().copied().filter(|city| Some(*city) != but);
        others.min_by_key(|city| to(*city))
    };
    let first = nearest(&there, None).unwrap_or(0);
    let last = nearest(&home, None).unwrap_or(0);
    if first != last {
        return (first, last);
    }
    let other_first = nearest(&there, Some(first));
    let other_last = nearest(&home, Some(last));
    match (other_first, other_last) {
        (Some(second), Some(before)) => {
            if there(second) + home(last) < there(first) + home(before) {
                (second, last)
            } else {
                (first, before)
            }
        }
        _ => (first, last),
    }
}
