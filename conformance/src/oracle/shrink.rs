use super::{Program, expected};

/// The smallest program that can be had from `program` by leaving actions and phases out, one
/// after the other, and that `fails` as well. Programs with a race are not tried.
pub fn shrink(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    let worse = |program: &Program| expected(program).is_ok() && fails(program);
    loop {
        let smaller = without_phase(&program)
            .chain(without_action(&program))
            .find(worse);
        match smaller {
            Some(smaller) => program = smaller,
            None => return program,
        }
    }
}

fn without_phase(program: &Program) -> impl Iterator<Item = Program> {
    (0..program.phases.len()).map(|phase| {
        let mut smaller = program.clone();
        smaller.phases.remove(phase);
        smaller
    })
}

fn without_action(program: &Program) -> impl Iterator<Item = Program> {
    let places = program.phases.iter().enumerate().flat_map(|(phase, at)| {
        let nodes = at.actions.iter().enumerate();
        nodes.flat_map(move |(node, actions)| (0..actions.len()).map(move |i| (phase, node, i)))
    });
    places.map(|(phase, node, i)| {
        let mut smaller = program.clone();
        smaller.phases[phase].actions[node].remove(i);
        smaller
    })
}
