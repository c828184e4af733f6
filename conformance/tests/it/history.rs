//! The search for an order that explains a history, beside the one of `stateright`, which tries
//! all orders.

use dhole_check::history::{History, OneCopy};
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use stateright::semantics::{
    ConsistencyTester, LinearizabilityTester, SequentialConsistencyTester, SequentialSpec,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Set(usize, u8),
    Get(usize),
    /// Waits until the value is at least one.
    Take(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Values([u8; 2]);

impl OneCopy for Values {
    type Call = Call;
    type Result = u8;

    fn apply(&mut self, call: &Call) -> Option<u8> {
        match *call {
            Call::Set(of, value) => self.0[of] = value,
            Call::Get(of) => return Some(self.0[of]),
            Call::Take(of) => self.0[of] = self.0[of].checked_sub(1)?,
        }
        Some(0)
    }
}

impl SequentialSpec for Values {
    type Op = Call;
    type Ret = u8;

    fn invoke(&mut self, call: &Call) -> u8 {
        self.apply(call).unwrap_or(u8::MAX)
    }

    fn is_valid_step(&mut self, call: &Call, heard: &u8) -> bool {
        self.apply(call) == Some(*heard)
    }
}

const START: Values = Values([0, 0]);

/// The calls of a thread and their results, one after another without another thread between.
fn told(calls: &[(usize, Call, u8)]) -> History<Call, u8> {
    let mut history = History::default();
    for (thread, call, heard) in calls {
        history.calls(*thread, *call).unwrap();
        history.hears(*thread, *heard).unwrap();
    }
    history
}

#[test]
fn a_read_that_is_late_is_sequentially_consistent_and_not_linearizable() {
    let late = told(&[(0, Call::Set(0, 1), 0), (1, Call::Get(0), 0)]);
    assert!(late.is_sequentially_consistent(START));
    assert!(!late.is_linearizable(START));
}

#[test]
fn two_threads_that_both_miss_the_others_write_have_no_order() {
    let missed = told(&[
        (0, Call::Set(0, 1), 0),
        (1, Call::Set(1, 1), 0),
        (0, Call::Get(1), 0),
        (1, Call::Get(0), 0),
    ]);
    assert!(!missed.is_sequentially_consistent(START));
}

#[test]
fn a_call_without_result_may_have_happened_at_any_later_time_or_never() {
    let seen = |values: [u8; 3]| {
        let mut history = told(&[(0, Call::Get(0), values[0])]);
        history.calls(1, Call::Set(0, 7)).unwrap();
        for value in &values[1..] {
            history.calls(0, Call::Get(0)).unwrap();
            history.hears(0, *value).unwrap();
        }
        history.is_linearizable(START)
    };
    assert!(seen([0, 0, 0]) && seen([0, 0, 7]) && seen([0, 7, 7]));
    assert!(!seen([7, 7, 7]), "before it was made");
    assert!(!seen([0, 7, 0]), "undone");
}

#[test]
fn a_call_whose_guard_is_false_waits_for_its_turn() {
    let waits = |by: u8| {
        let mut history = History::default();
        history.calls(0, Call::Take(0)).unwrap();
        history.calls(1, Call::Set(0, by)).unwrap();
        history.hears(1, 0).unwrap();
        history.hears(0, 0).unwrap();
        history.is_linearizable(START)
    };
    assert!(waits(1));
    assert!(!waits(0));
}

#[test]
fn a_thread_has_one_call_at_a_time() {
    let mut history = History::<Call, u8>::default();
    assert!(history.hears(0, 0).is_err());
    history.calls(0, Call::Get(0)).unwrap();
    assert!(history.calls(0, Call::Get(0)).is_err());
    history.hears(0, 0).unwrap();
    assert!(history.hears(0, 0).is_err());
}

#[test]
fn the_search_finds_an_order_where_one_that_tries_all_does() {
    let mut verdicts = [[0; 2]; 2];
    for seed in 0..3_000 {
        let mut random = Random::seed_from_u64(seed);
        let mut history = History::default();
        let mut sequential = SequentialConsistencyTester::new(START);
        let mut linear = LinearizabilityTester::new(START);
        let mut open = [None; 3];
        for _ in 0..14 {
            let thread = random.random_range(0..3);
            if let Some(call) = open[thread].take() {
                let heard = match call {
                    Call::Get(_) => random.random_range(0..2),
                    Call::Set(..) | Call::Take(_) => 0,
                };
                history.hears(thread, heard).unwrap();
                sequential.on_return(thread, heard).unwrap();
                linear.on_return(thread, heard).unwrap();
            } else {
                let of = random.random_range(0..2);
                let call = match random.random_range(0..5) {
                    0 | 1 => Call::Set(of, 1),
                    2 => Call::Take(of),
                    _ => Call::Get(of),
                };
                open[thread] = Some(call);
                history.calls(thread, call).unwrap();
                sequential.on_invoke(thread, call).unwrap();
                linear.on_invoke(thread, call).unwrap();
            }
        }
        let found = [
            history.is_sequentially_consistent(START),
            history.is_linearizable(START),
        ];
        let expected = [sequential.is_consistent(), linear.is_consistent()];
        assert_eq!(found, expected, "seed {seed}: {history:?}");
        verdicts[usize::from(found[0])][usize::from(found[1])] += 1;
    }
    let [[neither, impossible], [sequential_alone, both]] = verdicts;
    assert_eq!(impossible, 0);
    assert!(
        neither.min(sequential_alone).min(both) > 100,
        "{verdicts:?}"
    );
}
