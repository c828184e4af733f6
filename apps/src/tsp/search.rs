//! Branch and bound, which both versions share.

use serde::{Deserialize, Serialize};

use super::Instance;

/// A way through all cities and back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tour {
    /// How long it is.
    pub length: u64,
    /// The cities, from 0 on.
    pub cities: Vec<u32>,
}

/// Hops of the beginnings of tours that are jobs.
const HOPS: usize = 3;
/// The most jobs: they all lie in a queue.
const MOST_JOBS: usize = 1 << 20;

/// What a search knows of the rest of the world.
pub trait Known {
    /// Why knowledge cannot be had.
    type Error;
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
}

impl<'a> Search<'a> {
    /// A search that begins in city 0.
    pub fn new(instance: &'a Instance) -> Search<'a> {
        let cities = instance.cities();
        let nearest = |from: usize| {
            let mut others: Vec<usize> = (0..cities).filter(|to| *to != from).collect();
            others.sort_by_key(|to| (instance.distance(from, *to), *to));
            others
        };
        let mut visited = vec![false; cities];
        visited[0] = true;
        Search {
            instance,
            nearest: (0..cities).map(nearest).collect(),
            path: vec![0],
            length: 0,
            visited,
            expanded: 0,
            spanning: vec![0; cities],
        }
    }

    /// The tour that always goes to the nearest city next.
    pub fn greedy(&self) -> Tour {
        let mut visited = vec![false; self.instance.cities()];
        let (mut cities, mut length, mut here) = (vec![0], 0, 0);
        visited[0] = true;
        while let Some(next) = self.nearest[here].iter().find(|city| !visited[**city]) {
            length += u64::from(self.instance.distance(here, *next));
            visited[*next] = true;
            cities.push(*next as u32);
            here = *next;
        }
        length += u64::from(self.instance.distance(here, 0));
        Tour { length, cities }
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
                let here = job.last().map_or(0, |city| *city as usize);
                let next = self.nearest[here].iter().map(|city| *city as u32);
                let next: Vec<u32> = next.filter(|city| !job.contains(city)).collect();
                next.into_iter()
                    .map(|city| [&job[..], &[city]].concat())
                    .collect::<Vec<_>>()
            };
            jobs = jobs.iter().flat_map(longer).collect();
        }
        jobs
    }

    /// Looks at all tours that begin with a job. A job that is none is passed over.
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
            if known.is_shorter(length)? {
                let cities = self.path.iter().map(|city| *city as u32).collect();
                known.found(Tour { length, cities })?;
            }
            return Ok(());
        }
        let left = (cities - self.path.len()) as u64;
        known.worked(3 * left * left);
        let length = self.length + self.at_least(here);
        if !known.is_shorter(length)? {
            return Ok(());
        }
        for next in 0..cities - 1 {
            let city = self.nearest[here][next];
            if !self.visited[city] {
                self.go(city);
                let looked = self.look(known);
                self.back();
                looked?;
            }
        }
        Ok(())
    }

    /// What the rest of a tour takes at least: a way to one of the cities that are left, through
    /// all of them, which is no shorter than the shortest tree that joins them (Prim), and home.
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
