//! Decides which of the paper's claims hold for dhole's numbers.

use super::published::{Grain, Measures, Problem};
use super::results::Results;
use super::variant::Variant;

/// The ratio of a number to the paper's at which they agree: within a fifth of the larger one.
pub const CLOSE: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// The part of the paper's gain that dhole must reach.
const GATE: f64 = 0.8;
/// The difference from the paper's at which an optimisation's effect on time agrees. Times lie near
/// 1, and a fifth of them would hide the gain.
const TIME: f64 = 0.05;
/// Or the difference as a part of the paper's gain.
const PART: f64 = 0.2;
/// The most that the paper's coarse programs take longer with objects.
const SLOWER: f64 = 1.06;
/// The most that handles cost on one node, by Table 1.
const HANDLES: f64 = 1.052;

/// A claim, with the cases in which it holds and those in which it does not.
pub struct Claim {
    pub asked: String,
    pub holds: Vec<String>,
    pub fails: Vec<String>,
}

impl Claim {
    fn new(asked: String) -> Claim {
        Claim {
            asked,
            holds: Vec::new(),
            fails: Vec::new(),
        }
    }

    fn judge(&mut self, what: &str, value: f64, holds: bool) {
        let list = if holds {
            &mut self.holds
        } else {
            &mut self.fails
        };
        list.push(format!("{what} {value:.2}"));
    }

    /// Compares the factor of an optimisation: its measure without, divided by that with it.
    fn judge_factor(&mut self, what: &str, ours: f64, papers: f64) {
        let holds = if what == "time" {
            (ours - papers).abs() <= TIME.max(PART * (papers - 1.0).abs())
        } else {
            CLOSE.contains(&(ours / papers))
        };
        let list = if holds {
            &mut self.holds
        } else {
            &mut self.fails
        };
        list.push(format!("{what} {ours:.2} of {papers:.2}"));
    }

    fn judge_close(&mut self, what: &str, ours: f64, papers: f64) {
        self.judge(what, ours / papers, CLOSE.contains(&(ours / papers)));
    }
}

/// All claims about which something was run.
pub fn claims(results: &Results<'_>) -> Vec<Claim> {
    let problems = || results.paper.problem.iter().enumerate();
    let mut claims = Vec::new();
    for (place, problem) in problems() {
        claims.extend(against_pages(results, place, problem));
    }
    for (place, problem) in problems() {
        claims.extend(own_numbers(results, place, problem, Variant::Dosa));
        claims.extend(own_numbers(results, place, problem, Variant::Treadmarks));
    }
    for (place, problem) in problems() {
        let without = Variant::ABLATED.into_iter();
        claims.extend(without.filter_map(|variant| factors(results, place, problem, variant)));
    }
    claims.push(handles(results));
    claims.push(hoisting(results));
    claims.retain(|claim| !(claim.holds.is_empty() && claim.fails.is_empty()));
    claims
}

/// The ratios of TreadMarks to DOSA.
fn against_pages(results: &Results<'_>, place: usize, problem: &Problem) -> Option<Claim> {
    let run = |nodes, variant| Some(&results.run(place, nodes, variant)?.measures);
    let pair = |nodes| run(nodes, Variant::Treadmarks).zip(run(nodes, Variant::Dosa));
    let most = results.most_nodes();
    let (tmk, dosa) = pair(most)?;
    let coarse = problem.grain == Grain::Coarse;
    let of = if coarse {
        "at most 6% slower with objects"
    } else {
        "TreadMarks over DOSA, at least 0.8 of the paper's"
    };
    let mut claim = Claim::new(format!("{}: {of}", problem.name));
    if coarse {
        let slower = dosa.seconds / tmk.seconds;
        claim.judge("time, DOSA over TreadMarks", slower, slower <= SLOWER);
        return Some(claim);
    }
    let papers = over(&problem.treadmarks, &problem.dosa);
    for ((what, ours), papers) in named(tmk).zip(over(tmk, dosa)).zip(papers) {
        claim.judge(what.0, ours / papers, ours / papers >= GATE);
    }
    if let Some((papers, (tmk, dosa))) = problem.faster_on_16.zip(pair(16)) {
        let part = tmk.seconds / dosa.seconds / papers;
        claim.judge("time on 16 nodes", part, part >= GATE);
    }
    Some(claim)
}

/// The absolute numbers of a system.
fn own_numbers(
    results: &Results<'_>,
    place: usize,
    problem: &Problem,
    variant: Variant,
) -> Option<Claim> {
    let ours = &results.run(place, results.most_nodes(), variant)?.measures;
    let papers = match variant {
        Variant::Treadmarks => &problem.treadmarks,
        // Table 6 says more of the same run.
        _ => problem
            .ablation
            .get(&Variant::Dosa)
            .unwrap_or(&problem.dosa),
    };
    let asked = format!("{}, {}: the paper's numbers", problem.name, variant.name());
    let mut claim = Claim::new(asked);
    for (what, papers) in named(papers) {
        let ours = named(ours).find(|(name, _)| *name == what);
        if let Some((_, ours)) = ours {
            claim.judge_close(what, ours, papers);
        }
    }
    Some(claim)
}

/// The factors of an optimisation (Table 6).
fn factors(
    results: &Results<'_>,
    place: usize,
    problem: &Problem,
    variant: Variant,
) -> Option<Claim> {
    let run = |variant| results.run(place, results.most_nodes(), variant);
    let (off, on) = (run(variant)?, run(Variant::Dosa)?);
    let (paper_off, paper_on) = (
        problem.ablation.get(&variant)?,
        problem.ablation.get(&Variant::Dosa)?,
    );
    let asked = format!("{}, {}: factors of Table 6", problem.name, variant.name());
    let mut claim = Claim::new(asked);
    let ours = over(&off.measures, &on.measures);
    for ((what, ours), papers) in named(paper_on).zip(ours).zip(over(paper_off, paper_on)) {
        claim.judge_factor(what.0, ours, papers);
    }
    Some(claim)
}

fn handles(results: &Results<'_>) -> Claim {
    let mut claim = Claim::new("Handles cost at most 5.2% on one node (Table 1)".to_owned());
    for (problem, here) in results.paper.problem.iter().zip(&results.here) {
        if let Some(here) = here {
            claim.judge(&problem.name, here.ratio(), here.ratio() <= HANDLES);
        }
    }
    claim
}

fn hoisting(results: &Results<'_>) -> Claim {
    let mut claim = Claim::new("Without hoisting over with it (Table 7)".to_owned());
    for row in &results.paper.hoisting {
        if let [Some(with), Some(without)] = results.hoisting_of(row) {
            let what = format!("{} on {}", row.system, row.nodes);
            claim.judge_factor(&what, without / with, row.without / row.with);
        }
    }
    claim
}

/// The measures by name, without the unit.
fn named(measures: &Measures) -> impl Iterator<Item = (&'static str, f64)> {
    let named = measures.named().into_iter();
    named.map(|(name, value)| (name.split(" (").next().unwrap_or(name), value))
}

fn over(one: &Measures, other: &Measures) -> Vec<f64> {
    let pairs = one.named().into_iter().zip(other.named());
    pairs.map(|((_, one), (_, other))| one / other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_near_the_papers_holds_and_one_without_its_gain_does_not() {
        let holds = |what: &str, ours, papers| {
            let mut claim = Claim::new(String::new());
            claim.judge_factor(what, ours, papers);
            claim.fails.is_empty()
        };
        assert!(holds("time", 1.07, 1.10) && holds("time", 2.77, 3.10));
        assert!(
            !holds("time", 1.03, 1.13),
            "a fifth of 1.13 is more than its gain"
        );
        assert!(!holds("time", 1.21, 1.02));
        assert!(holds("messages", 1.29, 1.57) && !holds("messages", 1.2, 1.57));
    }
}
