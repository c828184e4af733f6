//! The numbers that MultiView's paper published, and the programs that measure the same: data, in a
//! file.

use serde::Deserialize;

/// The evaluation.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The programs (Table 2).
    pub program: Vec<Program>,
    /// The costs of operations (Table 1 and section 4.2).
    pub cost: Vec<Cost>,
}

impl Published {
    /// The evaluation of MultiView and Millipage.
    pub fn multiview() -> Published {
        let text = include_str!("../../../papers/multiview.toml");
        toml::from_str(text).expect("a file of this crate")
    }

    /// The place of a program.
    pub fn place(&self, name: &str) -> usize {
        let place = self.program.iter().position(|one| one.name == name);
        place.expect("a program of the file")
    }
}

/// A program and its input.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name in the paper.
    pub name: String,
    /// The program of dhole.
    pub program: String,
    /// Its arguments for the paper's input.
    pub size: Vec<String>,
    /// Its arguments for an input that takes a moment.
    pub small: Vec<String>,
    /// Nanoseconds of a unit of work on the paper's processor.
    pub unit_ns: f64,
    /// Nanoseconds of one on a processor of today.
    pub today_ns: f64,
    /// Views.
    pub views: u64,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// What is shared as one.
    pub unit: String,
    /// Barriers on 8 hosts.
    pub barriers: u64,
    /// Locks on 8 hosts.
    #[serde(default)]
    pub locks: Option<u64>,
    /// The paper's words about its speedup.
    #[serde(default)]
    pub words: Option<String>,
    /// What differs from the paper, and why.
    pub remark: String,
}

/// The cost of an operation, in microseconds.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The operation.
    pub name: String,
    /// As the paper has it.
    pub paper: String,
    /// The key of the network's description that has it, of nanoseconds.
    #[serde(default)]
    pub key: Option<String>,
    /// The primitive that measures it in the simulator.
    #[serde(default)]
    pub primitive: Option<String>,
    /// How many of them the primitive is.
    #[serde(default = "one")]
    pub of: f64,
}

fn one() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_numbers_agree_with_each_other() {
        let paper = Published::multiview();
        let views: Vec<u64> = paper.program.iter().map(|one| one.views).collect();
        assert_eq!(views, [16, 8, 11, 1, 27]);
        // 512 molecules of 672 bytes, and 785 KB of tours.
        let of = |name| paper.program[paper.place(name)].shared_bytes;
        assert_eq!((of("WATER"), of("TSP")), (512 * 672, 785 * 1024));
        for cost in &paper.cost {
            assert!(cost.key.is_some() != cost.primitive.is_some(), "{cost:?}");
            assert!(cost.paper.parse::<f64>().is_ok(), "{cost:?}");
        }
    }
}
