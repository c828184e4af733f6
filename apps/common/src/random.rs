//! Random numbers that are the same on every machine and for every number of nodes.

/// The splitmix64 generator: one addition and one mix for each number, so that the k-th number
/// can also be had directly ([`SplitMix::at`]), which lets every node fill in only its own part.
#[derive(Clone, Debug)]
pub struct SplitMix {
    state: u64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix {
    /// The generator whose numbers follow from `seed`.
    pub const fn new(seed: u64) -> SplitMix {
        SplitMix { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// The 64 bits that [`SplitMix::bits`] would give as the number `index`, counted from 0.
    #[inline]
    pub const fn at(&self, index: u64) -> u64 {
        mix(self
            .state
            .wrapping_add(STEP.wrapping_mul(index.wrapping_add(1))))
    }

    /// A number in `low..high`, evenly distributed.
    #[inline]
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * unit(self.bits())
    }
}

/// The number in `0.0..1.0` that the upper 53 of these bits stand for.
#[inline]
pub const fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_published_generator() {
        let mut random = SplitMix::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn any_number_can_be_had_directly() {
        let start = SplitMix::new(9);
        let mut random = start.clone();
        for index in 0..5 {
            assert_eq!(random.bits(), start.at(index));
        }
    }

    #[test]
    fn numbers_between_two_bounds_stay_there() {
        let mut random = SplitMix::new(3);
        assert!((0..1000).all(|_| (-2.0..5.0).contains(&random.between(-2.0, 5.0))));
    }
}
