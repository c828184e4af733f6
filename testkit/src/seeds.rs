use std::env::VarError;
use std::ops::Range;

/// The variable that names the one seed to replay.
const ONE: &str = "DHOLE_SEED";
/// The variable that names the tier.
const TIER: &str = "DHOLE_SEEDS";

/// The seeds that a test runs, which runs `all` of them on an ordinary day.
///
/// `DHOLE_SEED=<seed>` replays that seed alone. `DHOLE_SEEDS` names a tier: `fast` runs the first
/// tenth of them, `night` ten times as many.
///
/// # Panics
/// When `DHOLE_SEED` is no number, or `DHOLE_SEEDS` no tier.
pub fn seeds(all: Range<u64>) -> Range<u64> {
    let [one, tier] = [ONE, TIER].map(|name| match std::env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(value)) => panic!("{name}={}", value.display()),
    });
    chosen(all, one.as_deref(), tier.as_deref())
}

fn chosen(all: Range<u64>, one: Option<&str>, tier: Option<&str>) -> Range<u64> {
    if let Some(one) = one {
        let seed: u64 = match one.parse() {
            Ok(seed) => seed,
            Err(error) => panic!("{ONE}={one}: {error}"),
        };
        return seed..seed + 1;
    }
    let usual = all.end - all.start;
    let many = match tier {
        None => usual,
        Some("fast") => usual.div_ceil(10),
        Some("night") => usual * 10,
        Some(other) => panic!("{TIER}={other}: the tiers are `fast` and `night`"),
    };
    all.start..all.start + many
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_runs_a_tenth_or_ten_times_the_seeds() {
        assert_eq!(chosen(5..45, None, None), 5..45);
        assert_eq!(chosen(5..45, None, Some("fast")), 5..9);
        assert_eq!(chosen(5..6, None, Some("fast")), 5..6);
        assert_eq!(chosen(5..45, None, Some("night")), 5..405);
    }

    #[test]
    fn one_seed_is_replayed_in_every_tier() {
        assert_eq!(chosen(0..40, Some("77"), Some("night")), 77..78);
    }

    #[test]
    #[should_panic(expected = "DHOLE_SEEDS=weekly: the tiers are `fast` and `night`")]
    fn an_unknown_tier_is_refused() {
        chosen(0..40, None, Some("weekly"));
    }

    #[test]
    #[should_panic(expected = "DHOLE_SEED=x: invalid digit found in string")]
    fn a_seed_that_is_no_number_is_refused() {
        chosen(0..40, Some("x"), None);
    }
}
