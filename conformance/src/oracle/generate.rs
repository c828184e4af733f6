use dhole::Coherence;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::expect::World;
use super::program::{ARRAY_LEN, ARRAYS, Action, End, Part, Phase, Program, ROW_LEN, SUMS};

/// How large programs are.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// At most so many phases.
    pub phases: usize,
    /// At most so many actions of a node in a phase.
    pub actions: usize,
    /// Mostly the same few parts of an array are read, over and over, and now and then written.
    pub again: bool,
}

impl Default for Size {
    fn default() -> Size {
        Size {
            phases: 6,
            actions: 8,
            again: false,
        }
    }
}

/// The program of a seed, of 2 to 5 nodes.
pub fn generate(seed: u64, size: Size) -> Program {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut program = Program {
        nodes: random.random_range(2..=5),
        items: random.random_range(1..=12),
        rows: random.random_range(0..=2),
        mixed: random.random_bool(0.5),
        sums: seed % 4 == 3,
        phases: Vec::new(),
    };
    let mut world = World::new(&program);
    for _ in 0..random.random_range(1..=size.phases) {
        let owners = Owners::new(&mut random, &program);
        let actions = (0..program.nodes)
            .map(|node| node_actions(&mut random, &program, &mut world, node, &owners, size))
            .collect();
        let end = match random.random_range(0..10) {
            0 | 1 => End::Once,
            2 => End::Switch(
                Coherence::BY_OBJECT[random.random_range(0..Coherence::BY_OBJECT.len())],
            ),
            3 => End::AllToAll,
            _ => End::Barrier,
        };
        program.phases.push(Phase { actions, end });
        world.meet();
    }
    program
}

/// The use of each item in a phase, so that nodes share without races.
struct Owners(Vec<Owner>);

#[derive(Clone, Copy)]
enum Owner {
    Node(usize),
    Readers,
    Adders,
}

impl Owners {
    fn new(random: &mut Xoshiro256PlusPlus, program: &Program) -> Owners {
        let owner = |_| match random.random_range(0..4) {
            0 => Owner::Readers,
            1 => Owner::Adders,
            _ => Owner::Node(random.random_range(0..program.nodes)),
        };
        Owners((0..program.items + program.rows).map(owner).collect())
    }
}

fn node_actions(
    random: &mut Xoshiro256PlusPlus,
    program: &Program,
    world: &mut World,
    node: usize,
    owners: &Owners,
    size: Size,
) -> Vec<Action> {
    let mut actions = Vec::new();
    for _ in 0..random.random_range(0..=size.actions) {
        let action = match size.again && random.random_bool(0.7) {
            true => again(random),
            false => action(random, program, world, node, owners),
        };
        // What would be a race, or has nothing to work on yet, is left out.
        if world.act(node, action) {
            actions.push(action);
        }
    }
    actions
}

fn action(
    random: &mut Xoshiro256PlusPlus,
    program: &Program,
    world: &World,
    node: usize,
    owners: &Owners,
) -> Action {
    let value = random.random_range(1..1000);
    let item = random.random_range(0..program.items);
    let other = random.random_range(0..program.items);
    match random.random_range(0..if program.sums { 17 } else { 15 }) {
        0 => return Action::Work(random.random_range(0..40_000)),
        1 => return Action::Pause,
        2 | 3 if program.rows > 0 => {
            let row = random.random_range(0..program.rows);
            let at = random.random_range(0..ROW_LEN);
            return match owners.0[program.items + row] {
                Owner::Node(owner) if owner == node => Action::WriteRow(row, at, value),
                Owner::Adders => Action::AddToRow(row, at, value),
                _ => Action::ReadRow(row),
            };
        }
        15.. => return on_sum(random, value),
        12.. => return on_array(random, node, program, value),
        _ if !world.exists(item) => {
            let most = (item..program.items)
                .take_while(|at| !world.exists(*at))
                .count();
            let count = random.random_range(1..=most.min(3));
            return Action::Alloc { first: item, count };
        }
        _ => {}
    }
    match (owners.0[item], random.random_range(0..5)) {
        (Owner::Node(owner), 0 | 1) if owner == node => Action::Write(item, value),
        (Owner::Node(owner), 2) if owner == node => Action::Link(item, other),
        (Owner::Node(owner), 3) if owner == node && value % 3 == 0 => Action::Put(item, value),
        (Owner::Node(owner), 3) if owner == node => Action::Combine(item, other),
        (Owner::Adders, 0) => Action::Move(item.min(other), item.max(other), value),
        (Owner::Adders, _) => Action::Add(item, value),
        (_, 0) => Action::Read(item),
        _ => Action::Walk(item, random.random_range(1..6)),
    }
}

/// Starts operations, mostly few of them, or reads what they came to.
fn on_sum(random: &mut Xoshiro256PlusPlus, value: u64) -> Action {
    let sum = random.random_range(0..SUMS);
    match random.random_range(0..4) {
        0 => Action::ReadSum(sum),
        1 => Action::Start(sum, value, random.random_range(1..150)),
        _ => Action::Start(sum, value, random.random_range(1..5)),
    }
}

/// Reads one of four parts of an array, which lie within blocks and over their ends, or writes some
/// of it.
fn again(random: &mut Xoshiro256PlusPlus) -> Action {
    let first = 30 * random.random_range(0..4);
    let whole = Part {
        array: 0,
        start: first,
        end: first + 30,
    };
    if random.random_bool(0.85) {
        return Action::ReadPart(whole);
    }
    let start = first + random.random_range(0..20);
    let end = start + random.random_range(1..10);
    let part = Part {
        start,
        end,
        ..whole
    };
    Action::WritePart(part, random.random_range(1..1000))
}

/// Something with a part of an array; each node favours a region of its own, which begins and
/// ends within blocks.
fn on_array(random: &mut Xoshiro256PlusPlus, node: usize, program: &Program, value: u64) -> Action {
    let region = ARRAY_LEN * node / program.nodes..ARRAY_LEN * (node + 1) / program.nodes;
    let whole = random.random_bool(0.3);
    let within = if whole { 0..ARRAY_LEN } else { region };
    let start = random.random_range(within);
    let part = Part {
        array: random.random_range(0..ARRAYS),
        start,
        end: (start + random.random_range(0..50)).min(ARRAY_LEN),
    };
    match random.random_range(0..8) {
        0 | 1 => Action::ReadPart(part),
        2 => Action::Prefetch(part),
        3 | 4 => Action::WritePart(part, value),
        5 => Action::Overwrite(part, value),
        6 => Action::Update(Part { array: 1, ..part }, value),
        _ => Action::AddToPart(
            Part {
                end: start + 1,
                ..part
            },
            value,
        ),
    }
}
