//! IS for one processor.

use super::{Found, Problem, UNITS_EACH};

/// Ranks the keys; the result, and its units of work.
pub fn solve(problem: &Problem) -> (Found, u64) {
    let part = problem.part(0, 1);
    let mut keys: Vec<u32> = part.clone().map(|index| problem.key(index)).collect();
    let mut found = Found::nothing(problem);
    for ranking in 0..problem.rankings {
        problem.change(&mut keys, part.clone(), ranking);
        let mut counts = vec![0; problem.values];
        keys.iter().for_each(|key| counts[*key as usize] += 1);
        let starts = Problem::starts(&counts);
        found.counts = Problem::counted(found.counts, &starts);
        if ranking + 1 == problem.rankings {
            found.ranks = Problem::ranks(&keys, 0, &starts);
        }
    }
    let each = (problem.keys + problem.values) as u64;
    (found, each * problem.rankings as u64 * UNITS_EACH)
}
