use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};
use dhole::sim::{Computation, Settings};

/// One object space for a pack of machines.
#[derive(Parser)]
#[command(name = "dhole", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `dhole` can do.
#[derive(Subcommand)]
pub enum Command {
    /// Runs a dhole program inside a simulated cluster
    Sim(Sim),
}

/// `dhole sim`. What is left out is as in [`Settings::new`].
#[derive(Args)]
pub struct Sim {
    /// Nodes of the cluster, 1 to 1024
    #[arg(long, value_name = "N")]
    nodes: usize,

    /// What decides every random choice of the run
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Charge what the program says with `work`, this many nanoseconds a unit (1 if left out),
    /// instead of measuring what it computes: the run is then the same every time
    #[arg(
        long,
        value_name = "NS_PER_UNIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1"
    )]
    fixed_cost: Option<f64>,

    /// Microseconds that a message is on its way [default: 10]
    #[arg(long, value_name = "X", value_parser = micros)]
    latency_us: Option<u64>,

    /// Megabits a second of each node's link [default: 10000]
    #[arg(long, value_name = "Y", value_parser = mbits)]
    bandwidth_mbit: Option<u64>,

    /// The largest part of the latency that is added to it at random, 0 to 1 [default: 0]
    #[arg(long, value_name = "F")]
    jitter: Option<f64>,

    /// KiB of each node's stack [default: 1024]
    #[arg(long, value_name = "K")]
    stack_kib: Option<usize>,

    /// The program and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

impl Sim {
    /// The settings asked for, not yet checked.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.nodes);
        settings.seed = self.seed;
        if let Some(unit_ns) = self.fixed_cost {
            settings.computation = Computation::FixedCost { unit_ns };
        }
        let network = &mut settings.network;
        network.latency_ns = self.latency_us.unwrap_or(network.latency_ns);
        network.bytes_per_second = self.bandwidth_mbit.unwrap_or(network.bytes_per_second);
        network.jitter = self.jitter.unwrap_or(network.jitter);
        if let Some(kib) = self.stack_kib {
            settings.stack_bytes = kib.saturating_mul(1024);
        }
        settings
    }
}

/// Microseconds, as nanoseconds.
fn micros(text: &str) -> Result<u64, String> {
    scaled(text, 1_000.0, 0.0, "0 or more microseconds")
}

/// Megabits a second, as bytes a second.
fn mbits(text: &str) -> Result<u64, String> {
    scaled(text, 125_000.0, 1.0, "more than 0 megabits a second")
}

fn scaled(text: &str, factor: f64, least: f64, wanted: &str) -> Result<u64, String> {
    const MOST: f64 = 1e18;
    match text.parse::<f64>() {
        Ok(number) if (least..=MOST).contains(&(number * factor)) => {
            Ok((number * factor).round() as u64)
        }
        _ => Err(format!("{wanted} are expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &str) -> Settings {
        let words = format!("dhole sim {options} -- program --seed 3");
        let Command::Sim(sim) = Arguments::parse_from(words.split_whitespace()).command;
        assert_eq!(sim.program, ["program", "--seed", "3"]);
        sim.settings()
    }

    #[test]
    fn options_that_are_left_out_are_the_simulators_own() {
        assert_eq!(settings("--nodes 3"), Settings::new(3));
    }

    #[test]
    fn options_become_settings_with_their_units() {
        let all = settings(
            "--nodes 3 --seed 7 --fixed-cost=2.5 --latency-us 1.5 --bandwidth-mbit 100 \
             --jitter 0.25 --stack-kib 64",
        );
        assert_eq!((all.nodes, all.seed, all.stack_bytes), (3, 7, 65_536));
        assert_eq!(all.computation, Computation::FixedCost { unit_ns: 2.5 });
        let network = all.network;
        assert_eq!(
            (network.latency_ns, network.bytes_per_second),
            (1_500, 12_500_000)
        );
        assert_eq!(network.jitter, 0.25);
    }

    #[test]
    fn a_fixed_cost_is_1_ns_if_it_is_not_said() {
        let fixed = settings("--fixed-cost --nodes 3").computation;
        assert_eq!(fixed, Computation::FixedCost { unit_ns: 1.0 });
    }
}
