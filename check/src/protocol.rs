//! All checks of one protocol.

use std::fmt;

use dhole_model::Coherence;
use dhole_protocol::CoherenceProtocol;

use crate::litmus::{
    CAUSALITY, COHERENCE, Guard, IRIW, LOAD_BUFFERING, Litmus, MESSAGE_PASSING, STORE_BUFFERING,
};
use crate::model::{Cluster, Explored, Fault, Program, programs};
use crate::{Simulated, Under};

/// What came of the explorations of a protocol.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Each program's, in order, up to the first that showed a fault.
    pub explored: Vec<Explored>,
}

impl Checked {
    /// The states that were seen, in all programs together.
    pub fn states(&self) -> usize {
        self.explored.iter().map(|explored| explored.states).sum()
    }

    /// Whether a fault was found.
    pub fn shows(&self, fault: Fault) -> bool {
        self.explored.iter().any(|explored| explored.shows(fault))
    }

    /// Asserts that nothing went wrong.
    ///
    /// # Panics
    /// When something did, with the steps that lead there.
    #[track_caller]
    pub fn assert_sound(&self) {
        let is_sound = |explored: &Explored| explored.faults.is_empty();
        assert!(self.explored.iter().all(is_sound), "{self}");
        println!("{self}");
    }

    /// Asserts that a fault was found, and says by which steps.
    ///
    /// # Panics
    /// When it was not.
    #[track_caller]
    pub fn assert_shows(&self, fault: Fault) {
        assert!(self.shows(fault), "{fault:?} was not found: {self}");
        println!("{self}");
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for explored in &self.explored {
            writeln!(f, "{explored}")?;
        }
        write!(f, "{} states", self.states())
    }
}

/// The programs whose outcome does not depend on the protocol, on so many nodes.
fn suite<P: CoherenceProtocol>(nodes: usize) -> Vec<Program> {
    use programs::*;
    let under = P::coherence();
    let mut suite = match nodes {
        2 => vec![
            message_passing_by_lock(),
            message_passing_by_barrier(),
            once(2),
            two_objects(),
            counter(2, 2),
            read_while_written(),
            read_while_written_again(),
            barrier_after_lock(2),
            hand_over_hand(),
            row_of_zeros(2),
            wandering(2),
            allocated_meanwhile(),
            written_alone(2, 0),
            written_alone(2, 1),
            written_alone_in_phases(false),
            acquired_again(),
            freed_before_a_barrier(2),
            freed_under_a_lock(),
        ],
        3 => vec![
            once(3),
            chain_of_locks(),
            wandering(3),
            freed_before_a_barrier(3),
        ],
        nodes => panic!("there are programs for 2 and 3 nodes, and none for {nodes}"),
    };
    if P::SEVERAL_WRITERS {
        suite.extend(match nodes {
            2 => vec![
                writers_of_one_object(2, 2),
                locked_leaves(),
                parts_by_rounds(1),
                parts_under_a_lock(),
                parts_of_two_blocks(2),
                parts_beside_an_object(),
                freed_array_before_a_barrier(),
                freed_array(),
            ],
            _ => vec![writers_of_one_object(3, 1), parts_of_two_blocks(3)],
        });
    }
    suite = suite
        .into_iter()
        .map(|program| program.under(under))
        .collect();
    if nodes == 2 {
        for other in Coherence::BY_OBJECT {
            suite.push(switched(2, other).under(under));
            suite.push(switched(2, under).under(other));
            if P::SEVERAL_WRITERS {
                suite.push(parts_change_protocol(other).under(under));
                suite.push(parts_change_protocol(under).under(other));
            }
        }
        suite.push(switched(2, under).under(under));
    }
    suite
}

fn explore_until<P: CoherenceProtocol>(
    nodes: usize,
    mut explore: impl FnMut(Cluster) -> (Explored, bool),
) -> Checked {
    let mut explored = Vec::new();
    for program in suite::<P>(nodes) {
        let (one, ends) = explore(Cluster::new(program));
        explored.push(one);
        if ends {
            break;
        }
    }
    Checked { explored }
}

/// Explores every run of small programs under the protocol, on 2 or 3 nodes, up to the first
/// fault: message passing, locks, barriers, objects that are allocated, freed and handed over
/// between protocols.
///
/// # Panics
/// For another number of nodes.
pub fn explore<P: CoherenceProtocol>(nodes: usize) -> Checked {
    explore_until::<P>(nodes, |cluster| {
        let explored = crate::model::explore(cluster);
        let ends = !explored.faults.is_empty();
        (explored, ends)
    })
}

/// As [`explore`], up to the first program that shows this fault, also after others.
///
/// # Panics
/// As [`explore`].
pub fn hunt<P: CoherenceProtocol>(nodes: usize, fault: Fault) -> Checked {
    explore_until::<P>(nodes, |cluster| {
        let explored = crate::model::hunt(cluster, fault);
        let ends = explored.shows(fault);
        (explored, ends)
    })
}

/// Runs the classic litmus tests under the protocol in the simulator, where messages overtake each
/// other, once with each seed.
///
/// # Panics
/// When an outcome comes that must not, with its seed.
pub fn litmus<P: CoherenceProtocol>(seeds: impl Iterator<Item = u64> + Clone) {
    let platform = Under(Simulated::default(), P::coherence());
    let tally = |litmus: Litmus, guard| litmus.tally(&platform, guard, seeds.clone());
    for guard in [
        Guard::Locks,
        Guard::OneLock,
        Guard::OneRwLock,
        Guard::OnePermit,
    ] {
        tally(MESSAGE_PASSING, guard).never("the flag without the data", |r| r == [1, 0]);
        tally(STORE_BUFFERING, guard).never("neither store is seen", |r| r == [0, 0]);
        tally(IRIW, guard).never("readers disagree", |r| r == [1, 0, 1, 0]);
        tally(CAUSALITY, guard).never("the effect without the cause", |r| r == [1, 1, 0]);
    }
    for guard in [Guard::Barrier, Guard::AllReduce] {
        tally(STORE_BUFFERING, guard).never("a store is not seen", |r| r != [1, 1]);
    }
    for guard in [Guard::Nothing, Guard::Locks] {
        tally(LOAD_BUFFERING, guard).never("out of thin air", |r| r == [1, 1]);
    }
    tally(COHERENCE, Guard::Locks).never("a reader goes back", |r| r[0] > r[1] || r[1] > r[2]);
}
