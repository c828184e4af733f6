use std::ops::Range;

/// The seeds to run: the one that `DHOLE_SEED` names, or all of `all`.
///
/// # Panics
/// When `DHOLE_SEED` is set and is no number.
pub fn seeds(all: Range<u64>) -> impl Iterator<Item = u64> {
    let one = std::env::var("DHOLE_SEED")
        .ok()
        .map(|seed| match seed.parse::<u64>() {
            Ok(seed) => seed,
            Err(error) => panic!("DHOLE_SEED={seed}: {error}"),
        });
    match one {
        Some(seed) => seed..seed + 1,
        None => all,
    }
}
