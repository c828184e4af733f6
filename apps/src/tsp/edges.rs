//! Edges that must be on the tour.

/// The fixed edges of a problem. Those of each city are at most two, and together they are paths,
/// or the whole tour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixedEdges {
    /// The other ends of each city's edges.
    of: Vec<Vec<usize>>,
    /// One city for each path, the same for all on it.
    path: Vec<usize>,
    edges: usize,
}

impl FixedEdges {
    /// None, among so many cities.
    pub fn none(cities: usize) -> FixedEdges {
        FixedEdges {
            of: vec![Vec::new(); cities],
            path: (0..cities).collect(),
            edges: 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.edges == 0
    }

    /// Adds an edge; the same again changes nothing.
    ///
    /// # Errors
    /// Why no tour has it beside those before.
    pub fn add(&mut self, from: usize, to: usize) -> Result<(), String> {
        let (a, b) = (from + 1, to + 1);
        if from == to {
            return Err(format!("a fixed edge from city {a} to itself"));
        }
        if self.of[from].contains(&to) {
            return Ok(());
        }
        if let Some(full) = [from, to]
            .into_iter()
            .find(|city| self.of[*city].len() == 2)
        {
            let city = full + 1;
            return Err(format!(
                "a third fixed edge of city {city}: a tour has two of each"
            ));
        }
        let closes = self.path[from] == self.path[to];
        // Of two cities the way back is the way there.
        if closes && self.edges + 1 < self.of.len() {
            return Err(format!(
                "the fixed edge from city {a} to {b} closes a round trip that misses cities"
            ));
        }
        self.of[from].push(to);
        self.of[to].push(from);
        self.edges += 1;
        let (old, new) = (self.path[to], self.path[from]);
        for path in self.path.iter_mut().filter(|path| **path == old) {
            *path = new;
        }
        Ok(())
    }

    /// The fixed edges of a city.
    pub fn of(&self, city: usize) -> &[usize] {
        &self.of[city]
    }

    /// Whether a tour that has come to `here` from `before`, or begins there, may go on to `next`.
    /// A fixed edge of `here` that it has not taken must be taken now; by any other way it must not
    /// come into the middle of fixed edges. In its first city one of two may wait for the end.
    pub fn allow(&self, before: Option<usize>, here: usize, next: usize) -> bool {
        if self.is_empty() {
            return true;
        }
        let fixed = self.of(here).contains(&next);
        let due = self.of(here).iter().filter(|to| Some(**to) != before);
        let leaves_none = match before {
            Some(_) => due.count() == usize::from(fixed),
            None => due.count() < 2 || fixed,
        };
        leaves_none && (fixed || self.of(next).len() < 2)
    }

    /// Whether a tour of these cities, each of which it was [allowed](FixedEdges::allow) to go to,
    /// may end here, for the way home is all that its last and its first city lack.
    pub fn allow_end(&self, tour: &[usize]) -> bool {
        let [first, second, ..] = *tour else {
            return true;
        };
        let [.., before, last] = *tour else {
            return true;
        };
        let has = |city, ends: [usize; 2]| self.of(city).iter().all(|it| ends.contains(it));
        self.is_empty() || (has(first, [second, last]) && has(last, [before, first]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(cities: usize, edges: &[(usize, usize)]) -> FixedEdges {
        let mut fixed = FixedEdges::none(cities);
        for (from, to) in edges {
            fixed.add(*from, *to).unwrap();
        }
        fixed
    }

    /// All orders of the cities from 1 on.
    fn tours(cities: usize) -> Vec<Vec<usize>> {
        (1..cities).fold(vec![vec![0]], |tours, _| {
            let longer = |tour: &Vec<usize>| {
                let left = (1..cities).filter(|city| !tour.contains(city));
                let longer = left.map(|city| [&tour[..], &[city]].concat());
                longer.collect::<Vec<_>>()
            };
            tours.iter().flat_map(longer).collect()
        })
    }

    #[test]
    fn what_is_allowed_step_by_step_are_the_tours_that_have_all_fixed_edges() {
        for edges in [
            &[][..],
            &[(0, 3)],
            &[(3, 0), (0, 4)],
            &[(1, 2), (2, 3)],
            &[(1, 2), (3, 4), (4, 0)],
            &[(5, 0), (5, 2), (1, 3)],
            &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)],
        ] {
            let fixed = fixed(6, edges);
            for tour in tours(6) {
                let has = |(from, to): &(usize, usize)| {
                    let ways = (0..6).map(|at| (tour[at], tour[(at + 1) % 6]));
                    ways.into_iter()
                        .any(|way| way == (*from, *to) || way == (*to, *from))
                };
                let allowed = (1..6_usize).all(|at| {
                    let before = at.checked_sub(2).map(|at| tour[at]);
                    fixed.allow(before, tour[at - 1], tour[at])
                });
                let allowed = allowed && fixed.allow_end(&tour);
                assert_eq!(allowed, edges.iter().all(has), "{edges:?}: {tour:?}");
            }
        }
    }

    #[test]
    fn edges_that_no_tour_has_are_refused_with_the_reason() {
        let refused = |edges: &[(usize, usize)]| {
            let mut fixed = FixedEdges::none(5);
            let mut added = edges.iter().map(|(from, to)| fixed.add(*from, *to));
            added.find_map(Result::err).unwrap()
        };
        assert!(refused(&[(2, 2)]).contains("from city 3 to itself"));
        assert!(refused(&[(0, 1), (0, 2), (3, 0)]).contains("third fixed edge of city 1"));
        assert!(refused(&[(0, 1), (1, 2), (2, 0)]).contains("misses cities"));
    }
}
