//! Lines of what was measured: the best and the middle of some rounds, and how they compare.

/// The best and the middle of some rounds; no numbers where there was none.
pub type Summary = (f64, f64);

/// The best and the middle of some rounds.
pub fn summary(mut rounds: Vec<f64>) -> Summary {
    rounds.sort_by(f64::total_cmp);
    match rounds.first() {
        Some(best) => (*best, rounds[rounds.len() / 2]),
        None => (f64::NAN, f64::NAN),
    }
}

/// The line above all others.
pub fn head() {
    println!("{:<58} {:>10} {:>10}", "", "best", "middle");
}

/// A line of what some rounds took, in `unit`.
pub fn row(name: &str, unit: &str, rounds: Vec<f64>) -> Summary {
    let (best, middle) = summary(rounds);
    println!("{name:<58} {best:>10.4} {middle:>10.4} {unit}");
    (best, middle)
}

/// A line of how one thing compares to another, and what is asked of that.
pub fn ratio(name: &str, of: Summary, to: Summary, asked: &str) {
    let (best, middle) = (of.0 / to.0, of.1 / to.1);
    println!("  {name:<56} {best:>10.3} {middle:>10.3} asked {asked}");
}
