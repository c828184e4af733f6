use dhole_model::SplitMix64;

/// A stream of random numbers, decided by a seed and a number: xoshiro256++ (Blackman and Vigna,
/// 2019). It is written out in this crate because a seed must replay the same run with every
/// version of every library.
#[derive(Clone, Debug)]
pub(crate) struct Stream([u64; 4]);

impl Stream {
    /// Stream number `number` of `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Stream {
        let mut begins = SplitMix64(seed ^ SplitMix64::after(number));
        Stream(std::array::from_fn(|_| begins.draw()))
    }

    /// The next number.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        let s = &mut self.0;
        let drawn = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        drawn
    }

    /// The next number as a fraction in `0.0..1.0`.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next number of those that have an exponential distribution of this mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        (mean as f64 * -(1.0 - self.fraction()).ln()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_decided_by_its_seed_and_its_number() {
        let take = |seed, number| {
            let mut stream = Stream::new(seed, number);
            [stream.draw(), stream.draw(), stream.draw()]
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
        assert_ne!(take(0, 0), [0; 3]);
    }

    #[test]
    fn an_exponential_number_deviates_from_its_mean_by_as_much() {
        let mut stream = Stream::new(7, 0);
        let drawn: Vec<f64> = (0..10_000)
            .map(|_| stream.exponential(1_000) as f64)
            .collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let squares: f64 = drawn.iter().map(|it| (it - mean).powi(2)).sum();
        let deviation = (squares / 1e4).sqrt();
        assert!((950.0..1_050.0).contains(&mean), "{mean}");
        assert!((950.0..1_050.0).contains(&deviation), "{deviation}");
    }

    #[test]
    fn a_fraction_is_below_one() {
        let mut stream = Stream::new(7, 0);
        let drawn: Vec<f64> = (0..1000).map(|_| stream.fraction()).collect();
        assert!(drawn.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = drawn.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "the mean is {mean}");
    }
}
