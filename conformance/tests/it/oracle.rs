//! The oracle itself: which programs have a race, and how a program that differs is shrunk.

use conformance::oracle::{Action, End, Phase, Program, Race, Size, expected, generate, shrink};

fn one_phase(actions: Vec<Vec<Action>>) -> Program {
    let end = End::Barrier;
    Program {
        nodes: 2,
        items: 2,
        rows: 1,
        mixed: false,
        sums: false,
        phases: vec![Phase { actions, end }],
    }
}

#[test]
fn two_nodes_that_write_one_row_race_unless_both_add_under_its_lock() {
    let write = Action::WriteRow(0, 1, 5);
    let race = Race {
        phase: 0,
        node: 1,
        action: write,
    };
    assert_eq!(
        expected(&one_phase(vec![vec![write], vec![write]])),
        Err(race)
    );
    let add = Action::AddToRow(0, 1, 5);
    let sums = expected(&one_phase(vec![vec![add], vec![add]])).unwrap();
    let moved = expected(&one_phase(vec![vec![add, add], vec![]])).unwrap();
    assert_eq!(sums, moved, "in any order");
}

#[test]
fn an_item_can_be_read_by_others_from_the_next_phase_on() {
    let alloc = Action::Alloc { first: 0, count: 1 };
    let mut program = one_phase(vec![vec![alloc], vec![Action::Read(0)]]);
    assert!(expected(&program).is_err());
    let read = program.phases[0].actions[1].split_off(0);
    program.phases.push(Phase {
        actions: vec![read.clone(), read],
        end: End::Once,
    });
    let digests = expected(&program).unwrap();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn what_does_not_matter_is_left_out() {
    let adds = |program: &Program| {
        let actions = program
            .phases
            .iter()
            .flat_map(|phase| phase.actions.iter().flatten());
        actions
            .filter(|action| matches!(action, Action::AddToRow(..)))
            .count()
    };
    let program = (0..)
        .map(|seed| generate(seed, Size::default()))
        .find(|program| adds(program) > 3)
        .expect("some program adds to rows");
    let shrunk = shrink(program, |program| adds(program) >= 2);
    let left: usize = shrunk
        .phases
        .iter()
        .flat_map(|p| &p.actions)
        .map(Vec::len)
        .sum();
    assert_eq!((adds(&shrunk), left), (2, 2));
}
