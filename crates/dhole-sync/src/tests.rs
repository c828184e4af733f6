use super::*;

/// A wait for what has this letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Wire)]
struct For {
    node: NodeId,
    thread: u64,
    of: u64,
    number: u64,
    kept: Option<(ThreadOf, CallSite)>,
}

impl Wait for For {
    fn thread(&self) -> ThreadOf {
        thread(self.node.0, self.thread)
    }

    fn kept_by(self, keeper: ThreadOf, since: CallSite) -> For {
        let kept = Some((keeper, since));
        For { kept, ..self }
    }
}

fn thread(node: u16, thread: u64) -> ThreadOf {
    let node = NodeId(node);
    ThreadOf { node, thread }
}

fn waits(of: ThreadOf, what: char) -> For {
    For {
        node: of.node,
        thread: of.thread,
        of: what.into(),
        number: 1,
        kept: None,
    }
}

const SITE: CallSite = CallSite::runtime("where it was acquired");

#[derive(Clone, Default)]
struct Node {
    waits: Vec<For>,
    keeps: Vec<(char, ThreadOf)>,
    ended: Vec<ThreadOf>,
    granted: Vec<char>,
    computes: bool,
    traffic: (u64, u64),
    lost: Vec<NodeId>,
}

impl Edges<For> for Node {
    fn add_waits(&self, waits: &mut Vec<For>) {
        waits.extend(&self.waits);
    }

    fn add_keepers(&self, wait: &For, keeps: &mut dyn FnMut(ThreadOf, Option<CallSite>, bool)) {
        let own = self.keeps.iter();
        for (_, by) in own.filter(|(what, _)| u64::from(*what) == wait.of) {
            keeps(*by, Some(SITE), self.ended.contains(by));
        }
    }

    fn is_ending(&self, wait: &For) -> bool {
        self.granted.iter().any(|what| u64::from(*what) == wait.of)
    }
}

/// What a probe finds that visits these nodes, and then those.
fn found_between(first: &[Node], second: &[Node], asker: For) -> Option<Vec<For>> {
    let mut probe = Probe::begin(asker);
    let nodes = first.len();
    for round in [first, second] {
        for place in 0..nodes {
            if !goes_on(&mut probe, round, (asker.node.index() + place) % nodes) {
                return None;
            }
        }
    }
    assert!(probe.is_over);
    probe.found()
}

/// A probe visits one of these nodes. Whether it goes on.
fn goes_on(probe: &mut Probe<For>, nodes: &[Node], at: usize) -> bool {
    let (node, next) = (&nodes[at], NodeId::at((at + 1) % nodes.len()));
    probe.visit(node);
    probe.adds_traffic(node.traffic.0, node.traffic.1);
    if node.computes {
        probe.finds_computing();
    }
    probe.pass(NodeId::at(at), next, &node.lost)
}

fn found(nodes: &[Node], asker: For) -> Option<Vec<For>> {
    found_between(nodes, nodes, asker)
}

/// The worker of node 0 has a, and a thread beside it has b. The worker of node 1 has c.
fn circle() -> (Vec<Node>, [For; 3]) {
    let [worker, beside, other] = [thread(0, 0), thread(0, 7), thread(1, 0)];
    let all = [waits(worker, 'b'), waits(beside, 'c'), waits(other, 'a')];
    let zero = Node {
        waits: all[..2].to_vec(),
        keeps: vec![('a', worker), ('b', beside)],
        ..Node::default()
    };
    let one = Node {
        waits: vec![all[2]],
        keeps: vec![('c', other)],
        computes: true,
        ..Node::default()
    };
    (vec![zero, one], all)
}

#[test]
fn a_circle_begins_with_the_thread_that_asks_and_names_who_keeps_what() {
    let (nodes, all) = circle();
    for asker in 0..3 {
        let found = found(&nodes, all[asker]).expect("a circle");
        let expected = [asker, asker + 1, asker + 2].map(|place| {
            let keeper = all[(place + 1) % 3].thread();
            all[place % 3].kept_by(keeper, SITE)
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn a_wait_that_was_over_in_between_is_on_no_circle() {
    let (nodes, all) = circle();
    for place in 0..3 {
        let mut later = nodes.clone();
        let mut own = later.iter_mut().flat_map(|node| &mut node.waits);
        own.nth(place).expect("a wait").number = 2;
        assert_eq!(found_between(&nodes, &later, all[0]), None, "{place}");
    }
}

#[test]
fn what_is_given_up_or_granted_closes_no_circle() {
    let (nodes, all) = circle();
    let mut given = nodes.clone();
    given[1].keeps.clear();
    assert_eq!(found(&given, all[0]), None);
    let mut granted = nodes.clone();
    granted[0].granted.push('c');
    assert_eq!(found(&granted, all[0]), None);
    // A worker that seems to wait twice is about to go on.
    let mut twice = nodes;
    twice[1].waits.push(waits(thread(1, 0), 'z'));
    assert_eq!(found(&twice, all[0]), None);
}

#[test]
fn a_thread_that_is_on_no_circle_is_not_told_of_one() {
    let (mut nodes, _) = circle();
    let outside = waits(thread(1, 9), 'a');
    nodes[1].waits.push(outside);
    assert_eq!(found(&nodes, outside), None);
}

#[test]
fn what_a_thread_keeps_that_has_ended_is_never_given_up() {
    let (mut nodes, all) = circle();
    nodes[0].waits.remove(1);
    nodes[0].ended.push(thread(0, 7));
    let kept = all[0].kept_by(thread(0, 7), SITE);
    assert_eq!(found(&nodes, all[0]), Some(vec![kept]));
    // The one that waits for this worker is not told: the worker may still give up what it has.
    assert_eq!(found(&nodes, all[2]), None);
}

#[test]
fn waits_that_anybody_may_end_are_found_when_all_wait_and_nothing_is_under_way() {
    let all = [0, 1].map(|node| waits(thread(node, 0), 'x'));
    let nodes = all.map(|wait| Node {
        waits: vec![wait],
        traffic: (3, 3),
        ..Node::default()
    });
    assert_eq!(found(&nodes, all[1]), Some(all.to_vec()));
    let spoilt = |spoils: fn(&mut Node)| {
        let mut spoilt = nodes.clone();
        spoils(&mut spoilt[0]);
        spoilt
    };
    let spoils: [fn(&mut Node); 4] = [
        |node| node.computes = true,
        |node| node.waits.clear(),
        |node| node.traffic.0 = 4,
        |node| node.lost.push(NodeId(9)),
    ];
    for spoils in spoils {
        assert_eq!(found(&spoilt(spoils), all[1]), None);
        assert_eq!(found_between(&nodes, &spoilt(spoils), all[1]), None);
        assert_eq!(found_between(&spoilt(spoils), &nodes, all[1]), None);
    }
    // As much was sent as received, but not at one moment.
    let later = spoilt(|node| node.traffic = (4, 4));
    assert_eq!(found_between(&nodes, &later, all[1]), None);
}

#[test]
fn a_probe_ends_where_it_can_find_nothing_any_more() {
    let asker = waits(thread(0, 0), 'x');
    let waiting = Node {
        waits: vec![asker],
        ..Node::default()
    };
    let computing = Node::default();
    let other = |keeps| Node {
        waits: vec![waits(thread(1, 0), 'y')],
        keeps,
        computes: true,
        ..Node::default()
    };
    let keeper = thread(1, 0);
    // Another thread computes, and none that waits keeps what the asker waits for: one round.
    let free = [waiting.clone(), other(vec![])];
    let computed = [waiting.clone(), other(vec![('x', thread(1, 3))])];
    // One keeps it, but waits for what nobody keeps: the last node of the second round sees that.
    let kept = [waiting, other(vec![('x', keeper)])];
    for (nodes, visits) in [(free, 2), (computed, 2), (kept.clone(), 4)] {
        let mut probe = Probe::begin(asker);
        let mut all = [0, 1, 0, 1].iter();
        let gone = all.position(|at| !goes_on(&mut probe, &nodes, *at));
        assert_eq!(gone.map(|last| last + 1), Some(visits));
    }
    // The asker goes on: in whichever round.
    let gone = [computing, kept[1].clone()];
    assert!(!goes_on(&mut Probe::begin(asker), &gone, 0));
    let mut probe = Probe::begin(asker);
    assert_eq!([0, 1].map(|at| goes_on(&mut probe, &kept, at)), [true; 2]);
    assert!(!goes_on(&mut probe, &gone, 0));
}

#[test]
fn a_thread_that_waits_beside_a_circle_leaves_it_to_those_in_it() {
    let all = [('x', 'y'), ('y', 'x'), ('z', 'w')];
    let mut of = 0..;
    let nodes = all.map(|(wants, keeps)| {
        let worker = thread(of.next().expect("a number"), 0);
        Node {
            waits: vec![waits(worker, wants)],
            keeps: vec![(keeps, worker)],
            ..Node::default()
        }
    });
    let asked = |at: usize| found(&nodes, nodes[at].waits[0]).map(|waits| waits.len());
    assert_eq!([0, 1, 2].map(asked), [Some(2), Some(2), None]);
}
