//! Seeds of everything that can go wrong, then a time in which nothing does and all must heal.

use dhole_group::{Method, Quorum};
use dhole_model::NodeId;
use rand::RngExt;

use crate::bug::Bug;
use crate::invariants::Fault;
use crate::world::{Happening, Links, World};

/// More steps than any sound run takes.
const MOST_STEPS: usize = 400_000;

/// What goes wrong beside the links.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trouble {
    /// Nothing.
    None,
    /// A short partition that nobody takes for a loss.
    Interruption,
    /// Fewer than half crash.
    Crash,
    /// All but one crash, and the rest goes on.
    Survivor,
    /// A partition that lasts.
    Partition,
    /// Members take others for lost that are not.
    Suspicion,
    /// Members leave and join, and some crash.
    Comings,
}

const TROUBLES: [Trouble; 7] = [
    Trouble::None,
    Trouble::Interruption,
    Trouble::Crash,
    Trouble::Survivor,
    Trouble::Partition,
    Trouble::Suspicion,
    Trouble::Comings,
];

/// Time in which members broadcast, in nanoseconds.
const SPAN_NS: u64 = 100_000;

fn world(seed: u64, trouble: Trouble, reliable: bool, bug: Option<Bug>) -> World {
    let mut links = if reliable {
        Links::reliable()
    } else {
        Links::lossy()
    };
    let mut world = World::new(seed, 1, links.clone());
    let nodes = world.random.random_range(2..=5_usize);
    links.settings.method = match world.random.random_range(0..4) {
        0 => Some(Method::Ask),
        1 => Some(Method::Forward),
        2 => Some(Method::Announce),
        _ => None,
    };
    if trouble == Trouble::Survivor || bug == Some(Bug::IgnoreMinority) {
        links.settings.quorum = Quorum::Survivors;
    }
    links.settings.fanout = match world.random.random_range(0..4) {
        0 => Some(1),
        1 => Some(2),
        _ => None,
    };
    links.settings.confirm = seed.is_multiple_of(2);
    links.settings.credits = world.random.random_range(1..=6);
    let mut world = World::new(seed, nodes, links);
    world.bug = bug;
    for _ in 0..world.random.random_range(1..=60) {
        let node = NodeId::at(world.random.random_range(0..nodes));
        let at_ns = world.random.random_range(0..SPAN_NS);
        let bytes = match world.random.random_range(0..10) {
            0 => 600,
            1..4 => 60,
            _ => 16,
        };
        world.at(at_ns, Happening::Broadcast(node, bytes));
    }
    plan(&mut world, trouble, nodes);
    world.at(3 * SPAN_NS, Happening::Calm);
    world
}

fn plan(world: &mut World, trouble: Trouble, nodes: usize) {
    let mut some: Vec<NodeId> = (0..nodes).map(NodeId::at).collect();
    for place in (1..nodes).rev() {
        some.swap(place, world.random.random_range(0..=place));
    }
    let when = |world: &mut World| world.random.random_range(0..SPAN_NS);
    match trouble {
        Trouble::None => {}
        Trouble::Interruption => {
            let at_ns = when(world);
            some.truncate(world.random.random_range(0..nodes));
            world.at(at_ns, Happening::Cut(some));
            if !world.links.settings.reliable {
                world.at(at_ns + 15_000, Happening::Mend);
            } else {
                world.at(at_ns, Happening::Mend);
            }
        }
        Trouble::Crash | Trouble::Survivor => {
            let most = match trouble {
                Trouble::Crash => (nodes - 1) / 2,
                _ => nodes - 1,
            };
            for node in some.into_iter().take(most) {
                let at_ns = when(world);
                world.at(at_ns, Happening::Crash(node));
            }
        }
        Trouble::Partition => {
            let at_ns = when(world);
            let few = world.random.random_range(0..=nodes / 2);
            let (few, many) = some.split_at(few);
            world.at(at_ns, Happening::Cut(few.to_vec()));
            let detection_ns = world.links.detection_ns;
            for one in few {
                for other in many {
                    for (at, lost) in [(*one, *other), (*other, *one)] {
                        let wait = world.random.random_range(detection_ns..2 * detection_ns);
                        world.at(at_ns + wait, Happening::Lost(at, lost));
                    }
                }
            }
        }
        Trouble::Suspicion => {
            for _ in 0..world.random.random_range(1..=3) {
                let at = NodeId::at(world.random.random_range(0..nodes));
                let lost = NodeId::at(world.random.random_range(0..nodes));
                let at_ns = when(world);
                if at != lost && world.random.random_bool(0.5) {
                    world.at(at_ns, Happening::Suspect(at, lost));
                } else if at != lost {
                    // A link that one end gives up is soon given up by the other.
                    let later = at_ns + world.random.random_range(1..=20_000);
                    world.at(at_ns, Happening::Lost(at, lost));
                    world.at(later, Happening::Lost(lost, at));
                }
            }
        }
        Trouble::Comings => {
            let (first, rest) = (some[0], &some[1..]);
            let at_ns = when(world);
            let leaves = world.random.random_bool(0.5);
            let goes = if leaves {
                Happening::Leave
            } else {
                Happening::Crash
            };
            let may_crash = leaves || nodes > 2;
            if may_crash {
                world.at(at_ns, goes(first));
                let later = at_ns + world.random.random_range(1_000..2 * SPAN_NS);
                world.at(later, Happening::Join(first));
                world.at(later + 1_000, Happening::Broadcast(first, 20));
            }
            if let Some(second) = rest.first().filter(|_| nodes > 3) {
                let at_ns = when(world);
                world.at(at_ns, Happening::Leave(*second));
            }
        }
    }
}

fn fault(seed: u64, trouble: Trouble, reliable: bool, bug: Option<Bug>) -> Option<(Fault, String)> {
    let mut world = world(seed, trouble, reliable, bug);
    world.is_traced = chosen("DHOLE_SEED").is_some() && chosen("DHOLE_TEST_TRACE").is_some();
    if !world.run(MOST_STEPS) {
        return Some((
            Fault::Endless,
            format!("{MOST_STEPS} steps were not enough"),
        ));
    }
    if let Err(fault) = world.fault() {
        return Some(fault);
    }
    let stuck = world
        .nodes
        .iter()
        .filter(|node| !node.crashed && node.stuck.is_some());
    let may_be_stuck = match trouble {
        Trouble::Suspicion => usize::MAX,
        Trouble::Partition => world.nodes.len() / 2,
        Trouble::Comings => 2,
        _ => 0,
    };
    let stuck = stuck.count();
    let words = || {
        let endings = world.nodes.iter().map(|node| (node.crashed, node.stuck));
        format!("{:?}", endings.collect::<Vec<_>>())
    };
    (stuck > may_be_stuck).then(|| (Fault::Stuck, words()))
}

/// A number that the environment names.
fn chosen(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    text.parse().ok()
}

/// Runs the seeds of the tier, or the one that `DHOLE_SEED` names. With
/// `DHOLE_TEST_TRACE=<trouble>` it has that trouble alone, and prints what happens.
fn sound(seeds: std::ops::Range<u64>) {
    let traced =
        chosen("DHOLE_TEST_TRACE").map(|trouble| TROUBLES[trouble as usize % TROUBLES.len()]);
    for seed in dhole_testkit::seeds(seeds) {
        for trouble in TROUBLES
            .into_iter()
            .filter(|t| traced.is_none_or(|traced| traced == *t))
        {
            for reliable in [true, false] {
                if let Some((fault, words)) = fault(seed, trouble, reliable, None) {
                    panic!("seed {seed}, {trouble:?}, reliable: {reliable}: {fault:?}: {words}");
                }
            }
        }
    }
}

#[test]
fn whatever_goes_wrong_those_that_go_on_deliver_the_same() {
    sound(0..1_500);
}

/// Credits were lost, and what was sent again meanwhile took a sound member for a liar. A member
/// that ended told those of its view, and not who was left behind by that and had asked it for
/// another.
#[test]
fn what_went_wrong_once_goes_well() {
    sound(1_846..1_847);
    sound(4_483..4_484);
}

#[test]
#[ignore = "too long for every change: two minutes, and 1,500 seeds of the same run above; \
            cargo test -p dhole-group --test group -- --ignored"]
fn so_they_do_for_ten_thousand_seeds() {
    sound(1_500..10_000);
}

/// Asserts that a planted bug shows itself in this way, soon.
#[track_caller]
fn caught(bug: Bug, trouble: Trouble, reliable: bool, expected: Fault) {
    let mut others = Vec::new();
    for seed in 0..300 {
        match fault(seed, trouble, reliable, Some(bug)) {
            Some((fault, words)) if fault == expected => {
                println!("{bug:?} is caught with seed {seed}: {fault:?}: {words}");
                return;
            }
            Some((fault, _)) => others.push(fault),
            None => {}
        }
    }
    panic!("{bug:?} is not caught as {expected:?}, only as {others:?}");
}

#[test]
fn planted_bugs_are_caught() {
    caught(Bug::HideHistory, Trouble::Crash, true, Fault::Refused);
    caught(Bug::SwapNumbers, Trouble::None, true, Fault::Disagreement);
    caught(Bug::NumberTwice, Trouble::None, true, Fault::Twice);
    caught(Bug::ForgetOwn, Trouble::Crash, true, Fault::Lost);
    caught(Bug::AcknowledgeEarly, Trouble::None, false, Fault::Refused);
    caught(Bug::NeverRepair, Trouble::None, false, Fault::Endless);
    caught(Bug::InstallEarly, Trouble::Crash, true, Fault::NotUniform);
    caught(Bug::EndLate, Trouble::Crash, true, Fault::Lost);
    caught(Bug::SafeAtOnce, Trouble::Crash, true, Fault::Unsafe);
    caught(Bug::HaveEarly, Trouble::Crash, true, Fault::Refused);
    caught(Bug::HaveNothing, Trouble::None, true, Fault::NeverSafe);
    caught(
        Bug::IgnoreMinority,
        Trouble::Partition,
        true,
        Fault::Disagreement,
    );
}
