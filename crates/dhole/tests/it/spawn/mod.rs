//! Processes that are started on nodes during a run.

mod ending;
mod limits;
mod races;
mod running;
mod surviving;
mod turns;

use dhole::{Config, Result, Run, RunError, Worker};

/// The program on threads, and simulated with messages that overtake each other.
fn on_both<R: Send>(
    config: &Config,
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Vec<Result<Run<R>, RunError>> {
    let mut all = vec![config.run(&program)];
    for seed in 0..20 {
        let mut settings = dhole::sim::Settings::fixed_cost(nodes);
        (settings.seed, settings.network.jitter) = (seed, 0.9);
        all.push(config.simulate(settings, &program));
    }
    all
}

/// As `on_both`, where no run fails: what they brought.
fn values<R: Send>(
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Vec<R> {
    let all = on_both(&Config::nodes(nodes), nodes, program).into_iter();
    let value = |(number, run): (usize, Result<Run<R>, RunError>)| match run {
        Ok(run) => run.value,
        Err(error) => panic!("run {number} (0: threads, else simulated): {error}"),
    };
    all.enumerate().map(value).collect()
}
