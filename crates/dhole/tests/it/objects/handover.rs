//! References that are handed over through objects: what they point to is visible.

use std::collections::VecDeque;

use dhole::sim::Settings;
use dhole::{Coherence, Config, NodeId, Object, Races, Ref, Strategy, Worker, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Mailbox {
    letters: VecDeque<(NodeNumber, Ref<[u64; 4]>)>,
    answers: Vec<Option<Object<Mailbox>>>,
}

type NodeNumber = u16;

#[dhole::object]
impl Mailbox {
    pub fn send(&mut self, from: NodeNumber, letter: Ref<[u64; 4]>) {
        self.letters.push_back((from, letter));
    }

    #[when(self.letters.iter().any(|(from, _)| from == from_whom))]
    pub fn receive(&mut self, from_whom: NodeNumber) -> Option<Ref<[u64; 4]>> {
        let place = self
            .letters
            .iter()
            .position(|(from, _)| *from == from_whom)?;
        self.letters.remove(place).map(|(_, letter)| letter)
    }

    #[when(self.letters.len() > *after)]
    pub fn look(&self, after: usize) -> Option<Ref<[u64; 4]>> {
        self.letters.get(after).map(|(_, letter)| *letter)
    }

    pub fn len(&self) -> usize {
        self.letters.len()
    }
}

/// Every node passes a letter on around a ring, and each adds to it.
fn ring(w: &mut Worker<'_>, strategy: Strategy) -> dhole::Result<[u64; 4]> {
    let mailbox: Object<Mailbox> = w.once(|w| Ok(w.new_object(strategy, Mailbox::default())?))?;
    let (me, nodes) = (w.node().0, w.nodes() as u16);
    let before = (me + nodes - 1) % nodes;
    for round in 0..5_u64 {
        let letter = match (me, round) {
            (0, 0) => w.alloc([0; 4]),
            _ => mailbox.receive(w, before)?.expect("the guard saw it"),
        };
        let letter_now = letter.read(w);
        let expected = round * u64::from(nodes) + u64::from(me);
        assert_eq!(letter_now, [expected, expected, 2 * expected, 0]);
        let content = letter.get_mut(w);
        content[0] += 1;
        content[1] += 1;
        content[2] += 2;
        mailbox.send(w, me, letter)?;
    }
    w.barrier()?;
    assert_eq!(mailbox.len(w)?, 1);
    let last = mailbox.look(w, 0)?.expect("the last letter");
    Ok(last.read(w))
}

fn around(config: &Config, strategy: Strategy) {
    let run = config.run(|w| ring(w, strategy)).unwrap();
    assert_eq!(run.value, [20, 20, 40, 0], "{strategy:?}");
}

#[test]
fn what_a_reference_points_to_arrives_with_it() {
    for strategy in [on(NodeId(0)), on(NodeId(2)), replicated()] {
        for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
            around(&Config::nodes(4).coherence(coherence), strategy);
        }
        around(&Config::nodes(4).coherence(Coherence::TreadMarks), strategy);
    }
}

#[test]
fn it_does_so_in_simulations_of_many_seeds() {
    for seed in 0..40 {
        for strategy in [on(NodeId(1)), replicated()] {
            let mut settings = Settings::fixed_cost(4);
            settings.seed = seed;
            let run = Config::nodes(4).simulate(settings, |w| ring(w, strategy));
            assert_eq!(
                run.unwrap().value,
                [20, 20, 40, 0],
                "seed {seed} {strategy:?}"
            );
        }
    }
}

#[test]
fn a_reader_of_a_replica_sees_what_the_writer_had_written() {
    let run = Config::nodes(3).run(|w| {
        let mailbox: Object<Mailbox> =
            w.once(|w| Ok(w.new_object(replicated(), Mailbox::default())?))?;
        for round in 0..50_usize {
            if w.node() == NodeId(0) {
                let letter = w.alloc([round as u64; 4]);
                mailbox.send(w, 0, letter)?;
            }
            let letter = mailbox.look(w, round)?.expect("the guard saw it");
            assert_eq!(letter.read(w), [round as u64; 4]);
        }
        Ok(())
    });
    run.unwrap();
}

#[derive(Serialize, Deserialize, Default)]
struct Flags {
    up: [bool; 2],
}

#[dhole::object]
impl Flags {
    pub fn raise(&mut self, flag: usize) {
        self.up[flag] = true;
    }

    pub fn is_up(&self, flag: usize) -> bool {
        self.up[flag]
    }

    #[when(self.up[*flag])]
    pub fn await_up(&self, flag: usize) {}
}

/// Node 0 writes when node 2 has a copy, and says so; node 2 asks until it hears of it. What has a
/// home is written without notices, so that nothing is told but that; and node 2 meets nobody after
/// it has got its copy but the flags.
fn flagged(w: &mut Worker<'_>) -> dhole::Result<u64> {
    let (flags, number) = w.once(|w| {
        let flags = w.new_object(on(NodeId(1)), Flags::default())?;
        Ok((flags, w.alloc(0_u64)))
    })?;
    w.barrier()?;
    match w.node() {
        NodeId(0) => {
            flags.await_up(w, 0)?;
            *number.get_mut(w) = 1;
            flags.raise(w, 1)?;
        }
        NodeId(2) => {
            assert_eq!(number.read(w), 0);
            flags.raise(w, 0)?;
            while !flags.is_up(w, 1)? {}
        }
        _ => flags.await_up(w, 1)?,
    }
    Ok(number.read(w))
}

#[test]
fn what_was_written_before_is_seen_where_operations_have_nothing_to_tell() {
    for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
        let config = Config::nodes(3).coherence(coherence).races(Races::Ignore);
        let seen = |w: &mut Worker<'_>| {
            let number = flagged(w)?;
            assert_eq!(number, 1, "{coherence:?}, {}", w.node());
            Ok(())
        };
        for _ in 0..20 {
            config.run(seen).unwrap();
        }
        for seed in 0..40 {
            let mut settings = Settings::fixed_cost(3);
            settings.seed = seed;
            config.simulate(settings, seen).unwrap();
        }
    }
}

#[test]
fn a_handle_lives_in_shared_objects_of_both_kinds() {
    let run = Config::nodes(2).run(|w| {
        let place: Ref<Option<Object<Mailbox>>> = w.once(|w| Ok(w.alloc(None)))?;
        if w.node() == NodeId(1) {
            let mailbox = w.new_object(on(NodeId(1)), Mailbox::default())?;
            *place.get_mut(w) = Some(mailbox);
        }
        w.barrier()?;
        let mailbox = place.read(w).expect("node 1 wrote it");
        Ok(mailbox.len(w)?)
    });
    assert_eq!(run.unwrap().value, 0);
}
