//! Which node manages a minipage, and what messages that takes.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, MemoryError, SharedRow};
use dhole::sim::Settings;
use dhole::{
    Config, ConfigError, ManagerNodes, MemoryLayout, MemoryManagers, MessageKind, NodeId, Ref, Run,
    RunError, Worker,
};

use crate::{cluster, config, domains, messages};

/// What the program finds, and whether an error names the lines of both nodes.
type Found = (u64, u64, bool);

/// Node 1 allocates a row, which all others read; node 2 frees it.
fn uses(w: &mut Worker<'_>) -> dhole::Result<Found> {
    let me = w.node().index();
    let place = w.once(|w| Ok(w.alloc(None::<Ref<SharedRow<u64>>>)))?;
    if me == 1 {
        let row = memory::alloc_rows::<u64>(w, 1, 4)?.row(0);
        row.cells(w)[3].store(7, Relaxed);
        let row = w.alloc(row);
        *place.get_mut(w) = Some(row);
    }
    w.barrier()?;
    let row = place.get(w).expect("node 1 has allocated it");
    let row = *row.get(w);
    let mut found = 0;
    for node in [2, 0] {
        if me == node {
            found = row.cells(w)[3].load(Relaxed);
        }
        w.barrier()?;
    }
    if me == 2 {
        row.free(w)?;
        let again = row.free(w).expect_err("it was freed");
        assert!(matches!(again, MemoryError::Gone { .. }), "{again}");
        let words = again.to_string();
        let names = words.matches("managers.rs").count() == 2 && words.contains("by node 2 at");
        assert!(names, "{words}");
    }
    w.barrier()?;
    let minipages = memory::usage(w)?.views;
    w.barrier()?;
    Ok((found, minipages, me == 0))
}

/// Messages of a run in which each node has its own memory.
fn sent(managers: MemoryManagers) -> Vec<(MessageKind, u64)> {
    use MessageKind::{
        MemoryAck, MemoryData, MemoryForward, MemoryGone, MemoryGrant, MemoryInvalidate,
        MemoryInvalidated, MemoryRequest,
    };
    match managers {
        // Node 1 writes without a message, and is asked by node 2 and by node 0.
        MemoryManagers::Allocator => vec![
            (MemoryRequest, 2 + 2),
            (MemoryInvalidate, 2),
            (MemoryInvalidated, 2),
            (MemoryData, 2),
            (MemoryGrant, 1),
            (MemoryAck, 2),
            (MemoryGone, 1),
        ],
        // Node 1 asks node 0 for the row, and for the first copy. Node 2 is given the copy of node
        // 1, and so is node 0, which asks itself.
        MemoryManagers::One => vec![
            (MemoryRequest, 3 + 2),
            (MemoryForward, 2),
            (MemoryInvalidate, 2),
            (MemoryInvalidated, 2),
            (MemoryData, 3),
            (MemoryGrant, 1 + 1),
            (MemoryAck, 2),
            (MemoryGone, 1),
        ],
        // Node 1 asks node 2, which reads without a request, and frees without one.
        MemoryManagers::Nodes(_) => vec![
            (MemoryRequest, 3),
            (MemoryForward, 2),
            (MemoryInvalidate, 2),
            (MemoryInvalidated, 2),
            (MemoryData, 3),
            (MemoryGrant, 1),
            (MemoryAck, 2),
        ],
    }
}

fn chosen(nodes: &[u16]) -> MemoryManagers {
    let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
    MemoryManagers::Nodes(ManagerNodes::new(&nodes).expect("different nodes"))
}

#[test]
fn a_manager_that_is_no_node_of_the_run_is_refused() {
    let refused = config(4).memory_managers(chosen(&[0, 9])).run(uses);
    let Err(RunError::Config(ConfigError::Manager { node, nodes })) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!((node, nodes), (NodeId(9), 4));
}

/// Says what a run came to.
pub fn counts() -> Result<(), RunError> {
    let run = config(1).run(uses)?;
    println!("=> {}", words(&run));
    Ok(())
}

fn words(run: &Run<Found>) -> String {
    let managers = run.report.managers.expect("it has raw memory");
    format!("{:?} {managers} {:?}", run.value, messages(run))
}

#[test]
fn one_manager_takes_more_messages_where_another_node_allocates() {
    let all = [
        MemoryManagers::Allocator,
        MemoryManagers::One,
        chosen(&[0, 2]),
    ];
    for managers in all {
        // Node 0 has a minipage in its table only if it manages those of node 1.
        let views = u64::from(managers == MemoryManagers::One);
        let expected = format!("(7, {views}, true) {managers} {:?}", sent(managers));
        let config = config(3).memory_managers(managers);
        let simulated = config.simulate(Settings::fixed_cost(3), uses);
        for run in [config.run(uses), simulated] {
            let run = run.expect("a run");
            assert_eq!(words(&run), expected, "{}", run.report.transport);
            let json = format!("\"memory_domains\":3,\"memory_managers\":\"{managers}\"");
            assert!(run.report.json().contains(&json), "{}", run.report.json());
            let line = format!("raw memory: 3 domains, managers {managers}; ");
            let lines = run.report.lines().to_string();
            assert!(lines.contains(&line), "{lines}");
        }
        for transport in ["tcp", "shm"] {
            let all = run_in(3, transport, "node", &managers.to_string());
            assert_eq!(all, expected, "{transport}");
        }
    }
}

/// What node 0 says of a run of processes.
fn run_in(nodes: usize, transport: &str, domains: &str, managers: &str) -> String {
    let all = cluster::run_with(nodes, "managers", |_| {
        let said = [
            ("DHOLE_TRANSPORT", transport),
            (domains::DOMAINS, domains),
            ("DHOLE_MANAGERS", managers),
        ];
        said.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    });
    for ended in &all {
        assert_eq!(ended.code, Some(0), "{}", ended.all);
    }
    all[0].said.concat()
}

#[test]
fn one_manager_serves_members_of_its_domain_and_of_others() {
    // The row is allocated by a message, and freed by one; the second time in vain.
    let whole = run_in(3, "shm", "host", "one");
    let said = "(7, 1, true) one [(MemoryRequest, 3), (MemoryGrant, 2), (MemoryGone, 1)]";
    assert_eq!(whole, said);
    // Two nodes of the domain of node 0, and one or two others.
    for nodes in [3, 4] {
        let said = run_in(nodes, "shm", "2", "one");
        assert!(said.starts_with("(7, 1, true) one "), "{said}");
    }
}

#[test]
fn nodes_agree_on_managers_and_isolated_allocations_have_more_than_one() {
    let all = cluster::run_with(2, "managers", |node| {
        let managers = ["allocator", "one"][node];
        vec![("DHOLE_MANAGERS".to_owned(), managers.to_owned())]
    });
    for ended in all {
        let says = ended.all.contains("managers: One") && ended.all.contains("managers: Allocator");
        assert!(ended.code != Some(0) && says, "{}", ended.all);
    }
    let one: Config = config(2).memory_managers(MemoryManagers::One);
    let run = one.memory_layout(MemoryLayout::Isolate).run(|_| Ok(()));
    let refused = run.map(|_| ()).expect_err("red zones are the allocator's");
    let is_refused = matches!(refused, RunError::Config(ConfigError::Conflict { .. }));
    let words = "memory_layout `isolate` (Config::memory_layout) contradicts memory_managers `one` \
                 (Config::memory_managers): ";
    assert!(
        is_refused && refused.to_string().starts_with(words),
        "{refused}"
    );
}
