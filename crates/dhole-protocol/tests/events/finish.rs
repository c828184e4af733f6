//! `Event::Finish`: the end of the run is a barrier too.

use crate::pack::{Pack, acquire, arrive};
use dhole_protocol::{Command, Event};

#[test]
fn a_run_ends_when_all_have_finished() {
    let mut pack = Pack::new(3);
    for node in [1, 0] {
        assert_eq!(pack.run(node, Event::Finish), []);
    }
    assert_eq!(pack.run(2, Event::Finish), [Command::Done]);
    assert_eq!(pack.messages(), 4);
}

#[test]
fn a_barrier_that_a_finished_node_will_not_reach_is_told() {
    let mut pack = Pack::new(3);
    pack.run(1, Event::Finish);
    pack.run(0, arrive());
    pack.run(2, arrive());
    for done in &pack.done {
        let [Command::Deadlock(cycle)] = &done[..] else {
            panic!("told apart")
        };
        assert_eq!(cycle.len(), 3);
        assert_eq!(
            cycle[1].to_string(),
            "node 1 has ended, and waits at the end of the run"
        );
        assert_eq!(
            cycle[2].to_string(),
            "node 2 waits at barrier 0 at program.rs:2:5"
        );
    }
}

#[test]
fn a_node_that_waits_at_the_end_still_grants_its_locks() {
    let mut pack = Pack::new(2);
    pack.begin(1, Event::Finish);
    assert_eq!(pack.run(0, acquire(1)), [Command::Done]);
}
