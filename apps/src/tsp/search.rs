//! Branch and bound, which both versions share.

use serde::{Deserialize, Serialize};

use super::one_tree::{OneTree, Rest};
use super::{Instance, LowerBound};

/// A way through all cities and back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tour {
    /// How long it is.
    pub length: u64,
    /// The cities, from 0 on.
    pub cities: Vec<u32>,
}

/// Hops of the beginnings of tours that are jobs, at most.
pub const HOPS: usize = 3;
/// The most jobs: they all lie in a queue.
const MOST_JOBS: usize = 1 << 20;

/// The parts of a search that the two versions do differently.
pub trait Known {
    /// Why knowledge cannot be had.
    type Error;
    /// The length of the shortest tour that anyone has found, as far as it is known here.
    fn shortest(&self) -> u64;
    /// Whether a tour of this length is shorter than all that anyone has found.
    fn is_shorter(&mut self, length: u64) -> Result<bool, Self::Error>;
    /// A shorter one is found.
    fn found(&mut self, tour: Tour) -> Result<(), Self::Error>;
    /// So much work was done.
    fn worked(&mut self, units: u64);
}

/// A search, at a beginning of tours.
pub struct Search<'a> {
    instance: &'a Instance,
    /// The nearest other cities first.
    nearest: Vec<Vec<usize>>,
    path: Vec<usize>,
    length: u64,
    visited: Vec<bool>,
    /// Beginnings looked at.
    pub expanded: u64,
    spanning: Vec<u32>,
    /// Where the bound is by 1-trees.
    one_tree: Option<OneTree>,
    /// Whether a beginning is left out only if it is itself too long.
    by_length: bool,
}

impl<'a> Search<'a> {
    /// A search that begins in city 0, with the bound of the papers.
    pub fn new(instance: &'a Instance) -> Search<'a> {
        Search::with_bound(instance, LowerBound::Tree)
    }

    /// A search that begins in city 0 and leaves out what is itself too long, as TreadMarks'
    /// program does once few cities are left.
    pub fn by_length(instance: &'a Instance) -> Search<'a> {
        Search {
            by_length: true,
            ..Search::new(instance)
        }
    }

    /// A search that begins in city 0.
    pub fn with_bound(instance: &'a Instance, bound: LowerBound) -> Search<'a> {
        let cities = instance.cities();
        let nearest = |from: usize| {
            let mut others: Vec<usize> = (0..cities).filter(|to| *to != from).collect();
            others.sort_by_key(|to| (instance.distance(from, *to), *to));
            others
        };
        let mut visited = vec![false; cities];
        visited[0] = true;
        let mut search = Search {
            instance,
            nearest: (0..cities).map(nearest).collect(),
            path: vec![0],
            length: 0,
            visited,
            expanded: 0,
            spanning: vec![0; cities],
            one_tree: None,
            by_length: false,
        };
        if bound == LowerBound::OneTree {
            let greedy = search.greedy().length;
            search.one_tree = Some(OneTree::new(instance, greedy));
        }
        search
    }

    /// The tour that always goes to the nearest city next, but where a fixed edge leads.
    pub fn greedy(&self) -> Tour {
        let fixed = self.instance.fixed();
        let mut visited = vec![false; self.instance.cities()];
        visited[0] = true;
        let follow = |from: usize, visited: &mut [bool], cities: &mut Vec<usize>| {
            let mut here = from;
            while let Some(next) = fixed.of(here).iter().find(|city| !visited[**city]) {
                visited[*next] = true;
                cities.push(*next);
                here = *next;
            }
            here
        };
        // Of two fixed edges of the first city one leads home, at the end of others.
        let mut home = Vec::new();
        if let [_, last] = *fixed.of(0) {
            visited[last] = true;
            home.push(last);
            follow(last, &mut visited, &mut home);
        }
        let mut cities = vec![0];
        let mut here = follow(0, &mut visited, &mut cities);
        let free = |city: usize, visited: &[bool]| !visited[city] && fixed.of(city).len() < 2;
        while let Some(next) = self.nearest[here]
            .iter()
            .find(|city| free(**city, &visited))
        {
            visited[*next] = true;
            cities.push(*next);
            here = follow(*next, &mut visited, &mut cities);
        }
        cities.extend(home.into_iter().rev());
        let ways = cities.iter().zip(cities.iter().cycle().skip(1));
        let length = ways.map(|(from, to)| u64::from(self.instance.distance(*from, *to)));
        Tour {
            length: length.sum(),
            cities: cities.iter().map(|city| *city as u32).collect(),
        }
    }

    /// The jobs: all beginnings of so many hops, those with short hops first. Of fewer hops where
    /// there would be too many.
    pub fn jobs(&self) -> Vec<Vec<u32>> {
        let mut jobs = vec![vec![0]];
        for _ in 0..HOPS.min(self.instance.cities() - 1) {
            if jobs.len() * self.instance.cities() > MOST_JOBS {
                break;
            }
            let longer = |job: &Vec<u32>| {
                let next = self.next_cities(job).into_iter();
                next.map(|city| [&job[..], &[city]].concat())
                    .collect::<Vec<_>>()
            };
            jobs = jobs.iter().flat_map(longer).collect();
        }
        jobs
    }

    /// A lower bound for all tours that begin so.
    pub fn lower_bound(&mut self, beginning: &[u32]) -> u64 {
        let first = self.path.len();
        let rest = beginning.iter().skip(1);
        rest.for_each(|city| self.go(*city as usize));
        let here = self.path[self.path.len() - 1];
        let length = self.length + self.at_least(here);
        while self.path.len() > first {
            self.back();
        }
        length
    }

    /// How many cities there are.
    pub fn cities(&self) -> usize {
        self.instance.cities()
    }

    /// The cities to which tours go on that begin so, the nearest first.
    pub fn next_cities(&self, beginning: &[u32]) -> Vec<u32> {
        let here = beginning.last().map_or(0, |city| *city as usize);
        let before = beginning.iter().nth_back(1).map(|city| *city as usize);
        let fixed = self.instance.fixed();
        let next = self.nearest[here].iter();
        let next = next.filter(|city| fixed.allow(before, here, **city));
        let next = next.map(|city| *city as u32);
        next.filter(|city| !beginning.contains(city)).collect()
    }

    /// Searches all tours that begin with a job. It skips a job that begins no tour.
    pub fn run<K: Known>(&mut self, job: &[u32], known: &mut K) -> Result<(), K::Error> {
        let cities = self.instance.cities();
        let [0, rest @ ..] = job else { return Ok(()) };
        let first = self.path.len();
        for city in rest.iter().map(|city| *city as usize) {
            if city >= cities || self.visited[city] {
                break;
            }
            self.go(city);
        }
        let looked = match self.path.len() == first + rest.len() {
            true => self.look(known),
            false => Ok(()),
        };
        while self.path.len() > first {
            self.back();
        }
        looked
    }

    fn go(&mut self, city: usize) {
        let here = self.path[self.path.len() - 1];
        self.length += u64::from(self.instance.distance(here, city));
        self.visited[city] = true;
        self.path.push(city);
        if let Some(one_tree) = &mut self.one_tree {
            one_tree.enter(self.path.len());
        }
    }

    fn back(&mut self) {
        if let Some(city) = self.path.pop()
            && let Some(before) = self.path.last()
        {
            self.length -= u64::from(self.instance.distance(*before, city));
            self.visited[city] = false;
        }
    }

    fn look<K: Known>(&mut self, known: &mut K) -> Result<(), K::Error> {
        let cities = self.instance.cities();
        self.expanded += 1;
        let here = self.path[self.path.len() - 1];
        if self.path.len() == cities {
            let length = self.length + u64::from(self.instance.distance(here, 0));
            if self.instance.fixed().allow_end(&self.path) && known.is_shorter(length)? {
                let cities = self.path.iter().map(|city| *city as u32).collect();
                known.found(Tour { length, cities })?;
            }
            return Ok(());
        }
        let length = self.length + self.rest_at_least(here, known);
        if !known.is_shorter(length)? {
            return Ok(());
        }
        let before = self.path.iter().nth_back(1).copied();
        let order = self.one_tree.as_ref().map(|trees| {
            let mut order = self.nearest[here].clone();
            order.sort_by_key(|to| trees.step(self.instance, self.path.len(), here, *to));
            order
        });
        for next in 0..cities - 1 {
            let city = order.as_ref().unwrap_or(&self.nearest[here])[next];
            if !self.visited[city] && self.instance.fixed().allow(before, here, city) {
                self.go(city);
                let looked = self.look(known);
                self.back();
                looked?;
            }
        }
        Ok(())
    }

    /// A lower bound for the rest of a tour.
    fn rest_at_least<K: Known>(&mut self, here: usize, known: &mut K) -> u64 {
        let path = self.path.len();
        let left = (self.instance.cities() - path) as u64;
        if self.by_length {
            known.worked(self.instance.cities() as u64);
            return 0;
        }
        let tree = 3 * left * left;
        let Some(one_tree) = &mut self.one_tree else {
            known.worked(tree);
            return self.at_least(here);
        };
        let rest = Rest {
            here,
            visited: &self.visited,
            useless: known.shortest().saturating_sub(self.length),
        };
        let found = one_tree.at_least(self.instance, rest, path);
        known.worked(found.trees * tree);
        found.at_least
    }

    /// A lower bound for the rest of a tour: a way to one of the remaining cities, through all of
    /// them, and home. The part through them is no shorter than the shortest tree that joins them
    /// (Prim).
    fn at_least(&mut self, here: usize) -> u64 {
        const JOINED: u32 = u32::MAX;
        let instance = self.instance;
        let cities = instance.cities();
        let edge = |a: usize, b: usize| instance.distance(a, b).min(instance.distance(b, a));
        let (mut there, mut home) = (JOINED, JOINED);
        let mut first = None;
        for city in 0..cities {
            self.spanning[city] = JOINED;
            if !self.visited[city] {
                there = there.min(instance.distance(here, city));
                home = home.min(instance.distance(city, 0));
                match first {
                    None => first = Some(city),
                    Some(first) => self.spanning[city] = edge(first, city),
                }
            }
        }
        if first.is_none() {
            return 0;
        }
        let mut length = u64::from(there) + u64::from(home);
        loop {
            let next = (0..cities).min_by_key(|city| self.spanning[*city]);
            let Some(next) = next.filter(|next| self.spanning[*next] != JOINED) else {
                return length;
            };
            length += u64::from(self.spanning[next]);
            self.spanning[next] = JOINED;
            for city in 0..cities {
                if self.spanning[city] != JOINED {
                    self.spanning[city] = self.spanning[city].min(edge(next, city));
                }
            }
        }
    }
}
