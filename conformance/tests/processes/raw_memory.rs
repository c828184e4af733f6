//! Random programs over raw memory compute what a plain sequential run computes: between nodes as
//! processes are, in domains of one node, of two, and of all.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use conformance::oracle::{execute_memory, generate_memory};
use conformance::{InDomains, Platform, SeeingProcesses, seeds};
use dhole::{Domains, MemoryManagers};

/// No program takes a hundredth of it.
const LONGEST: Duration = Duration::from_secs(60);

/// Which domains the nodes are cut into, and which of them manage memory.
const EVERY_WAY: [(Domains, MemoryManagers); 5] = [
    (Domains::Most(2), MemoryManagers::Allocator),
    (Domains::Most(2), MemoryManagers::One),
    (Domains::Most(3), MemoryManagers::Allocator),
    (Domains::Node, MemoryManagers::Allocator),
    (Domains::Host, MemoryManagers::Allocator),
];

fn all_as_expected(range: Range<u64>) {
    for (domains, managers) in EVERY_WAY {
        let on = SeeingProcesses;
        let platform = InDomains {
            on,
            domains,
            managers,
        };
        for seed in seeds(range.clone()) {
            runs_as_expected(platform, seed);
        }
    }
}

/// A thread of its own runs the program: one that waits for ever fails the test.
fn runs_as_expected(platform: InDomains<SeeingProcesses>, seed: u64) {
    let nodes = 3 + (seed % 3) as usize;
    let program = generate_memory(seed, nodes);
    let (name, text) = (platform.name(), format!("{program:#?}"));
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(execute_memory(&program, &platform, seed)));
    match ended.recv_timeout(LONGEST) {
        Ok(Ok(of_domain)) => {
            let most = match platform.domains {
                Domains::Most(most) => most as usize,
                Domains::Node => 1,
                Domains::Host => nodes,
            };
            assert_eq!(of_domain, most.min(nodes), "{name}");
        }
        Ok(Err(words)) => panic!("{name}, DHOLE_SEED={seed}: {words}\n{text}"),
        Err(cause) => panic!("{name}, DHOLE_SEED={seed}, after {LONGEST:?}: {cause}\n{text}"),
    }
}

#[test]
fn random_programs_over_raw_memory_are_as_if_sequential() {
    all_as_expected(0..30);
}

#[test]
#[ignore = "minutes: 5,000 programs each way; cargo test -p conformance --release --test processes \
            raw_memory -- --ignored"]
fn more_random_programs_over_raw_memory_are_as_if_sequential() {
    all_as_expected(1_000..6_000);
}
