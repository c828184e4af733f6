//! Which races of processes are told: those between nodes, and not those on one.

use dhole::{Config, NodeId, Races, Ref, Result, Worker, op};

use super::on_both;

fn adds(w: &mut Worker<'_>, number: Ref<u64>) -> Result<()> {
    *number.get_mut(w) += 1;
    Ok(())
}

/// Two processes that nothing orders write one object, on these nodes; what it is then, and how
/// many races were told.
fn raced(on: [u16; 2]) -> Vec<(u64, usize)> {
    let all = on_both(&Config::nodes(3).races(Races::Warn), 3, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        if w.node().0 == 0 {
            let started = on.map(|node| w.spawn(NodeId(node), number, op!(adds)));
            for process in started {
                process?.join(w)?;
            }
        }
        w.barrier()?;
        Ok(number.read(w))
    });
    let told = all.into_iter().map(|run| run.unwrap());
    told.map(|run| (run.value, run.report.races.len()))
        .collect()
}

#[test]
fn processes_of_two_nodes_that_race_are_told() {
    for (value, races) in raced([1, 2]) {
        assert!([1, 2].contains(&value) && races == 1, "{value}: {races}");
    }
}

/// The writes of one node are one writer's, in the order of its processes' turns: none is lost.
#[test]
fn processes_of_one_node_take_turns_and_no_race_is_told() {
    for (value, races) in raced([1, 1]) {
        assert_eq!((value, races), (2, 0));
    }
}
