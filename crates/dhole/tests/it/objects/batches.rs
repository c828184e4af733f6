//! Calls that are started while others are under way, and so go together.

use std::sync::atomic::{AtomicBool, Ordering};

use dhole::sim::Settings;
use dhole::{Config, MessageKind, NodeId, Object, ObjectError, Pending, Worker, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Said(Vec<u32>);

#[dhole::object]
impl Said {
    pub fn say(&mut self, word: u32) -> usize {
        self.0.push(word);
        self.0.len()
    }

    #[when(self.0.len() >= *least)]
    pub fn at_least(&self, least: usize) -> Vec<u32> {
        self.0.clone()
    }
}

/// Node 1 says so many words to node 0, all under way at once; the messages that took, there and
/// back.
fn say(words: u32) -> [u64; 2] {
    let run = Config::nodes(2).simulate(Settings::fixed_cost(2), move |w: &mut Worker<'_>| {
        let said: Object<Said> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Said::default())?))?;
        if w.node() == NodeId(1) {
            let started: Result<Vec<Pending<usize>>, ObjectError> =
                (0..words).map(|word| said.start_say(w, word)).collect();
            for (place, pending) in (1..).zip(started?) {
                assert_eq!(pending.wait(w)?, place, "they are executed in their order");
            }
        }
        w.barrier()?;
        Ok(())
    });
    let total = run.unwrap().report.total();
    let of = |kind| total.by_kind.get(&kind).map_or(0, |of| of.messages);
    [
        of(MessageKind::OperationRequest),
        of(MessageKind::OperationReply),
    ]
}

#[test]
fn calls_under_way_share_messages_there_and_back() {
    assert_eq!(say(1), [1, 1]);
    assert_eq!(say(2), [2, 2]);
    // One alone, one that is answered as a batch, and the rest together.
    assert_eq!(say(20), [3, 3]);
    assert_eq!(say(100), [4, 4]);
}

#[test]
fn what_a_guard_holds_up_takes_a_message_of_its_own_and_holds_up_nobody() {
    let program = |w: &mut Worker<'_>| {
        let said: Object<Said> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Said::default())?))?;
        if w.node() == NodeId(1) {
            let all = [said.start_at_least(w, 3)?, said.start_at_least(w, 2)?];
            let words: Result<Vec<_>, ObjectError> =
                (0..3).map(|word| said.start_say(w, word)).collect();
            for (all, least) in all.into_iter().zip([3, 2]) {
                assert!(all.wait(w)?.len() >= least);
            }
            for word in words? {
                word.wait(w)?;
            }
        }
        w.barrier()?;
        Ok(())
    };
    Config::nodes(2).run(program).unwrap();
    for seed in 0..100 {
        let mut settings = Settings::fixed_cost(2);
        (settings.seed, settings.network.jitter) = (seed, 1.0);
        let run = Config::nodes(2).simulate(settings, program);
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn who_waits_for_a_result_that_is_here_already_sees_what_was_written_before_it() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let run = Config::nodes(3).run(|w| {
        let (said, number): (Object<Said>, _) = w.once(|w| {
            let said = w.new_object(on(NodeId(0)), Said::default())?;
            Ok((said, w.alloc(0_u64)))
        })?;
        assert_eq!(number.read(w), 0);
        let started = match w.node() {
            NodeId(1) => Some(said.start_at_least(w, 1)?),
            _ => None,
        };
        w.barrier()?;
        if w.node() == NodeId(2) {
            *number.get_mut(w) = 5;
            said.say(w, 7)?;
            // Who executed it has told node 1 what it came to.
            SAID.store(true, Ordering::SeqCst);
        }
        if let Some(started) = started {
            while !SAID.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            assert_eq!(started.wait(w)?, [7]);
            assert_eq!(number.read(w), 5);
        }
        w.barrier()?;
        Ok(())
    });
    run.unwrap();
}

/// More are started than may be under way at a time, and nobody looks after them.
fn all_are_said(strategy: dhole::Strategy, simulated: bool) {
    const WORDS: u32 = 5000;
    let program = |w: &mut Worker<'_>| {
        let said: Object<Said> = w.once(|w| Ok(w.new_object(strategy, Said::default())?))?;
        if w.node() == NodeId(1) {
            for word in 0..WORDS {
                drop(said.start_say(w, word)?);
            }
        }
        Ok(said.at_least(w, WORDS as usize)?.len())
    };
    let config = Config::nodes(2);
    let run = match simulated {
        true => config.simulate(Settings::fixed_cost(2), program),
        false => config.run(program),
    };
    assert_eq!(run.unwrap().value, WORDS as usize);
}

#[test]
fn calls_whose_handles_are_dropped_make_room_for_others() {
    for strategy in [on(NodeId(0)), on(NodeId(1)), replicated()] {
        all_are_said(strategy, true);
        all_are_said(strategy, false);
    }
}

/// Node 1 starts more calls than may be under way, whose guards are false. It goes on when node 0
/// has made them true.
#[test]
fn who_starts_one_too_many_waits_for_a_call_whose_handle_was_dropped() {
    let run = Config::nodes(2).simulate(Settings::fixed_cost(2), |w: &mut Worker<'_>| {
        let said: Object<Said> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Said::default())?))?;
        match w.node() {
            NodeId(0) => {
                w.work(1_000_000_000);
                said.say(w, 1)?;
            }
            _ => {
                for _ in 0..1500 {
                    drop(said.start_at_least(w, 1)?);
                }
                assert!(w.now().as_secs() >= 1, "node 0 has said it before");
            }
        }
        w.barrier()?;
        Ok(())
    });
    run.unwrap();
}

#[test]
fn calls_whose_handles_are_kept_fill_a_limit_that_says_what_to_do() {
    let run = Config::nodes(2).run(|w| {
        let said: Object<Said> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Said::default())?))?;
        if w.node() == NodeId(1) {
            let mut all = Vec::new();
            let refused = loop {
                match said.start_say(w, 1) {
                    Ok(started) => all.push(started),
                    Err(refused) => break refused,
                }
            };
            assert_eq!(all.len(), 1024);
            let words = refused.to_string();
            for part in [
                "1024 operations that this node has started",
                "the most at a time",
                "call `wait` on some of them",
                "batches.rs:",
            ] {
                assert!(words.contains(part), "{words}");
            }
            drop(all.pop());
            all.push(said.start_say(w, 2)?);
            for started in all {
                started.wait(w)?;
            }
        }
        w.barrier()?;
        Ok(())
    });
    run.unwrap();
}
