//! NAS's kernel IS: its classes, generator and verification (NAS Parallel Benchmarks, `is.c`).

/// The multiplier of the generator, 5^13.
const MULTIPLIER: u64 = 1_220_703_125;
/// Where it begins.
const SEED: u64 = 314_159_265;
/// Its numbers are below 2^46.
const BITS: u32 = 46;
/// Rankings.
const RANKINGS: usize = 10;

/// A class of problems.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
#[value(rename_all = "verbatim")]
pub enum Class {
    /// Sample: 2^16 keys of 2^11 values.
    S,
    /// Workstation: 2^20 keys of 2^16 values.
    W,
    /// 2^23 keys of 2^19 values.
    A,
    /// 2^25 keys of 2^21 values.
    B,
}

/// What is verified: the ranks of five keys.
struct Tests {
    indices: [usize; 5],
    ranks: [i64; 5],
    /// By how much each rank changes with an iteration, and in which iteration it is as above.
    changes: [(i64, i64); 5],
}

impl Class {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::S => "S",
            Class::W => "W",
            Class::A => "A",
            Class::B => "B",
        }
    }

    /// The log2 of the numbers of keys and of values.
    pub fn sizes(self) -> [u32; 2] {
        match self {
            Class::S => [16, 11],
            Class::W => [20, 16],
            Class::A => [23, 19],
            Class::B => [25, 21],
        }
    }

    /// Rankings.
    pub const fn rankings(self) -> usize {
        RANKINGS
    }

    /// A key before the first ranking: four random numbers, added up.
    pub fn key(self, index: usize) -> u32 {
        let mut state = times(power(4 * index as u64), SEED);
        let mut sum = 0.0;
        for _ in 0..4 {
            state = times(MULTIPLIER, state);
            sum += state as f64 / (1_u64 << BITS) as f64;
        }
        let quarter = 1_u32 << (self.sizes()[1] - 2);
        (f64::from(quarter) * sum) as u32
    }

    /// The two keys that are changed before a ranking, from 0 on.
    pub fn changes(self, ranking: usize) -> [(usize, u32); 2] {
        let iteration = ranking as u32 + 1;
        let values = 1 << self.sizes()[1];
        [
            (ranking + 1, iteration),
            (ranking + 1 + RANKINGS, values - iteration),
        ]
    }

    /// How many of the five keys that are tested have the ranks that they should in a ranking.
    pub fn partial(self, ranking: usize, starts: &[u64]) -> u32 {
        let tests = self.tests();
        let is_right = |test: usize| {
            let key = self.key_at(tests.indices[test], ranking);
            let rank = starts.get(key as usize).map(|rank| *rank as i64);
            let (by, when) = tests.changes[test];
            rank == Some(tests.ranks[test] + by * (ranking as i64 + 1 - when))
        };
        (0..5).map(|test| u32::from(is_right(test))).sum()
    }

    /// How many verifications there are in all: five in each ranking, and one of all keys.
    pub fn verifications(self) -> u32 {
        5 * self.rankings() as u32 + 1
    }

    /// A key as it is in a ranking.
    fn key_at(self, index: usize, ranking: usize) -> u32 {
        let changed = (0..=ranking).flat_map(|ranking| self.changes(ranking));
        let mut changed = changed.filter(|(at, _)| *at == index);
        changed
            .next_back()
            .map_or_else(|| self.key(index), |(_, value)| value)
    }

    fn tests(self) -> Tests {
        const RISES: (i64, i64) = (1, 0);
        const FALLS: (i64, i64) = (-1, 0);
        match self {
            Class::S => Tests {
                indices: [48_427, 17_148, 23_627, 62_548, 4_431],
                ranks: [0, 18, 346, 64_917, 65_463],
                changes: [RISES, RISES, RISES, FALLS, FALLS],
            },
            Class::W => Tests {
                indices: [357_773, 934_767, 875_723, 898_999, 404_505],
                ranks: [1_249, 11_698, 1_039_987, 1_043_896, 1_048_018],
                changes: [(1, 2), (1, 2), FALLS, FALLS, FALLS],
            },
            Class::A => Tests {
                indices: [2_112_377, 662_041, 5_336_171, 3_642_833, 4_250_760],
                ranks: [104, 17_523, 123_928, 8_288_932, 8_388_264],
                changes: [(1, 1), (1, 1), (1, 1), (-1, 1), (-1, 1)],
            },
            Class::B => Tests {
                indices: [41_869, 812_306, 5_102_857, 18_232_239, 26_860_214],
                ranks: [33_422_937, 10_244, 59_149, 33_135_281, 99],
                changes: [FALLS, RISES, RISES, FALLS, RISES],
            },
        }
    }
}

/// A product below 2^46.
fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) & ((1 << BITS) - 1)) as u64
}

/// The power of the multiplier.
fn power(mut exponent: u64) -> u64 {
    let (mut base, mut result) = (MULTIPLIER, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}
