/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a random number takes one addition and some
/// mixing. The seed alone decides the numbers, with every version of every library.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The state grows by this with each number.
    pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The number that follows a state.
    pub const fn after(state: u64) -> u64 {
        let mut z = state.wrapping_add(Self::STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        let drawn = Self::after(self.0);
        self.0 = self.0.wrapping_add(Self::STEP);
        drawn
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        match limit {
            0 => 0,
            limit => self.draw() % limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first numbers of the authors' own program for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut random = SplitMix64(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, expected);
        assert_eq!(random.below(0), 0);
    }
}
