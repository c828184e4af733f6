//! What the started processes do.

use std::fmt::Debug;

use dhole::{RunError, Worker};

use crate::{
    attempts, config, domain_locks, domains, ending, isolate, killed, litmus, managers,
    nobody_comes, release, starting, sync, threads,
};

/// Runs a program by its name; the exit code of the process.
pub fn run(name: &str) -> i32 {
    match name {
        "increments" => says(|w| threads::increments(w, 2)),
        "starts" => says(sync::starts),
        "locals" => says(starting::locals),
        "under a lock" => says(|w| sync::increments_under_a_lock(w, 3)),
        "swaps" => says(ending::swaps),
        "killed in memory" => says(killed::in_memory),
        "tries until one fails" => says(attempts::until_one_fails),
        "tries what is freed" => says(attempts::of_a_freed_row),
        "killed in a flush" => says(killed::in_a_flush),
        "killed at locks" => says(killed::at_locks),
        "domain locks" => ends(domain_locks::locks()),
        "buffer" => says(domain_locks::buffer),
        "crosses" => ends(domain_locks::crosses()),
        "joins" => ends(domain_locks::joins()),
        "dies with a lock" => says(domain_locks::dies_with_it),
        "keeps locks" => ends(domain_locks::keeps()),
        "counts" => ends(domains::counts()),
        "overflows" => {
            let layout = dhole::MemoryLayout::Isolate;
            let run = config(1).memory_layout(layout).run(isolate::overflows);
            ends(run.map(|_| ()))
        }
        "managers" => ends(managers::counts()),
        "together" => ends(release::counts()),
        "takes turns" => ends(release::takes_turns()),
        "in domains" => ends(release::in_domains()),
        "holds rows" => ends(release::holds_rows()),
        "moves" => says(domains::moves),
        "mixes" => says(domains::mixes),
        "frees" => says(domains::frees),
        "frees by members" => says(domains::frees_by_members),
        "holds through a loss" => says(domains::holds_through_a_loss),
        "shares" => ends(domains::shares()),
        "stale" => ends(domains::stale()),
        "ends with a lock" => says(nobody_comes::ends_with_a_lock),
        "waits for a semaphore" => says(nobody_comes::waits_for_a_semaphore),
        "meets with a lock" => says(nobody_comes::meets_with_a_lock),
        "crosses kinds" => says(nobody_comes::crosses_kinds),
        "waits on a condition" => says(nobody_comes::waits_on_a_condition),
        "returns when told" => says(nobody_comes::returns_when_told),
        "crosses threads" => says(nobody_comes::crosses_threads),
        "waits for both" => says(nobody_comes::waits_for_both),
        "meets in a scope" => says(nobody_comes::meets_in_a_scope),
        "joins with a lock" => says(nobody_comes::joins_with_a_lock),
        "differ in parties" => says(nobody_comes::differ_in_parties),
        "groups" => ends(domains::groups()),
        "slices of groups" => ends(domains::slices_of_groups()),
        "spins" => says(domains::spins),
        "litmus" => {
            let rounds = std::env::var(litmus::ROUNDS).expect("a number of rounds");
            let rounds = rounds.parse().expect("a number of rounds");
            let run = config(1).run(|w| litmus::everything(w, rounds));
            ends(run.map(|run| run.value.iter().for_each(|line| println!("=> {line}"))))
        }
        other => panic!("there is no program {other}"),
    }
}

fn says<R: Send + Debug>(
    program: impl for<'id> Fn(&mut Worker<'id>) -> dhole::Result<R> + Sync,
) -> i32 {
    let run = config(1).run(program);
    ends(run.map(|run| println!("=> value {:?}", run.value)))
}

fn ends(ended: Result<(), RunError>) -> i32 {
    match ended {
        Ok(()) => 0,
        Err(error) => {
            println!("=> {error}");
            1
        }
    }
}
