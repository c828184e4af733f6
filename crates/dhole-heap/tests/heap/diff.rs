//! What writers changed, merged: whole leaves, whatever else was written meanwhile.

use std::num::NonZeroU16;

use dhole_heap::{Cluster, InstallError, Monitor, Ref, Row, Share};
use dhole_model::NodeId;
use proptest::prelude::*;

use super::cluster;

#[derive(Share, Clone, Copy, PartialEq, Eq, Debug)]
#[share(crate = "dhole_heap")]
#[repr(u32)]
enum Phase {
    Early = 0x0001_00ff,
    Late = 0x00ff_0001,
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[share(crate = "dhole_heap")]
struct Leaves {
    flag: bool,
    letters: [char; 3],
    phase: Phase,
    wide: u64,
    pairs: [(u16, NonZeroU16); 4],
    weight: f32,
}

/// The number of leaves.
const LEAVES: usize = 15;

impl Leaves {
    /// All leaves say `value`, as well as each can.
    fn of(value: u16) -> Leaves {
        let mut leaves = Leaves {
            flag: false,
            letters: ['a'; 3],
            phase: Phase::Early,
            wide: 0,
            pairs: [(0, NonZeroU16::MIN); 4],
            weight: 0.0,
        };
        (0..LEAVES).for_each(|leaf| leaves.set(leaf, value));
        leaves
    }

    fn set(&mut self, leaf: usize, value: u16) {
        let letter = char::from_u32(0x1_0000 + 0x101 * u32::from(value % 999));
        match leaf {
            0 => self.flag = value % 2 == 1,
            1..=3 => self.letters[leaf - 1] = letter.expect("a letter"),
            4 => self.phase = [Phase::Early, Phase::Late][usize::from(value % 2)],
            5 => self.wide = u64::from(value) * 0x0001_0001_0001,
            6..=9 => self.pairs[leaf - 6].0 = value,
            10..=13 => self.pairs[leaf - 10].1 = NonZeroU16::MIN.saturating_add(value % 999),
            _ => self.weight = f32::from(value),
        }
    }
}

fn node(cluster: &std::sync::Arc<Cluster>, i: u16) -> Monitor<()> {
    Monitor::new(cluster, NodeId(i), ())
}

/// A copy of what `home` has, writable and with a twin.
fn fetch<T: Share>(home: &Monitor<()>, at: &Monitor<()>, r: Ref<T>) {
    let mut bytes = Vec::new();
    home.lock().split().0.gather(r.oid(), &mut bytes).unwrap();
    let mut guard = at.lock();
    let mut heap = guard.split().0;
    heap.install(r.oid(), &bytes).unwrap();
    heap.make_writable(r.oid(), true).unwrap();
}

fn diff<T: Share>(at: &Monitor<()>, r: Ref<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let gathered = at.lock().split().0.gather_diff(r.oid(), &mut bytes);
    assert_eq!(gathered.unwrap(), bytes.len());
    bytes
}

fn write<T: Share + Copy>(at: &Monitor<()>, r: Ref<T>, f: impl FnOnce(&mut T)) {
    at.lend(|mut token| f(token.get_mut(r).unwrap())).unwrap();
}

fn read<T: Share + Copy>(at: &Monitor<()>, r: Ref<T>) -> T {
    at.lend(|token| *token.get(r).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Two writers and the home each write leaves of their own; merged in either order, every leaf
    /// is that of the one who wrote it.
    #[test]
    fn writers_of_different_leaves_are_merged_as_if_they_had_taken_turns(
        owners in proptest::collection::vec(0_usize..4, LEAVES),
        values in proptest::array::uniform3(any::<u16>()),
        swapped in any::<bool>(),
    ) {
        let cluster = cluster(3);
        let nodes = [0, 1, 2].map(|i| node(&cluster, i));
        let r = nodes[0].lock().split().0.alloc(Leaves::of(7)).unwrap();
        nodes[0].lock().split().0.make_writable(r.oid(), false).unwrap();
        (1..3).for_each(|at| fetch(&nodes[0], &nodes[at], r));
        let mut naive = Leaves::of(7);
        for (me, value) in values.into_iter().enumerate() {
            for leaf in (0..LEAVES).filter(|leaf| owners[*leaf] == me) {
                write(&nodes[me], r, |leaves| leaves.set(leaf, value));
                naive.set(leaf, value);
            }
        }
        let order = if swapped { [2, 1] } else { [1, 2] };
        for at in order {
            let bytes = diff(&nodes[at], r);
            nodes[0].lock().split().0.merge(r.oid(), &bytes).unwrap();
        }
        prop_assert_eq!(read(&nodes[0], r), naive);
    }

    /// Two writers of one leaf: the value is that of one of them, never a part of each.
    #[test]
    fn of_two_writers_of_a_leaf_one_wins(leaf in 0..LEAVES, a in any::<u16>(), b in any::<u16>()) {
        let cluster = cluster(3);
        let nodes = [0, 1, 2].map(|i| node(&cluster, i));
        let r = nodes[0].lock().split().0.alloc(Leaves::of(7)).unwrap();
        let mut either = [Leaves::of(7); 2];
        for (at, value) in [(1, a), (2, b)] {
            fetch(&nodes[0], &nodes[at], r);
            write(&nodes[at], r, |leaves| leaves.set(leaf, value));
            either[at - 1].set(leaf, value);
        }
        for at in [1, 2] {
            let bytes = diff(&nodes[at], r);
            nodes[0].lock().split().0.merge(r.oid(), &bytes).unwrap();
        }
        prop_assert!(either.contains(&read(&nodes[0], r)));
    }

    /// Bytes that nobody gathered are refused or lead to a valid object; nothing else happens.
    #[test]
    fn bytes_from_anywhere_make_a_value_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        place in 0_u64..60, length in 0_u32..20,
    ) {
        let cluster = cluster(1);
        let home = node(&cluster, 0);
        let r = home.lock().split().0.alloc(Leaves::of(7)).unwrap();
        let run = [&place.to_le_bytes()[..], &length.to_le_bytes(), &bytes].concat();
        for diff in [&bytes, &run] {
            let merged = home.lock().split().0.merge(r.oid(), diff);
            let mut packed = Vec::new();
            home.lock().split().0.gather(r.oid(), &mut packed).unwrap();
            prop_assert!(dhole_heap::TypeInfo::of::<Leaves>().check(&packed).is_ok());
            if merged.is_err() {
                prop_assert_eq!(read(&home, r), Leaves::of(7));
                break;
            }
        }
    }
}

#[test]
fn a_surrogate_or_another_enum_value_is_refused() {
    let cluster = cluster(1);
    let home = node(&cluster, 0);
    let r = home.lock().split().0.alloc(['a'; 2]).unwrap();
    let half = [&5_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0xd8]].concat();
    let merged = home.lock().split().0.merge(r.oid(), &half);
    assert!(
        matches!(merged, Err(InstallError::Invalid { .. })),
        "{merged:?}"
    );
    assert_eq!(read(&home, r), ['a'; 2]);
}

#[test]
fn a_diff_holds_what_was_changed_and_joins_what_follows_on_itself() {
    let cluster = cluster(2);
    let (home, other) = (node(&cluster, 0), node(&cluster, 1));
    let r = home.lock().split().0.alloc([0_u32; 1000]).unwrap();
    fetch(&home, &other, r);
    assert_eq!(diff(&other, r), [0_u8; 0], "nothing was changed");
    write(&other, r, |all| all[500..503].fill(1));
    assert_eq!(diff(&other, r).len(), 12 + 3 * 4);
    write(&other, r, |all| all[0] = 1);
    assert_eq!(diff(&other, r).len(), 2 * 12 + 4 * 4);
    let bytes = diff(&other, r);
    home.lock().split().0.merge(r.oid(), &bytes).unwrap();
    assert_eq!(read(&home, r), read(&other, r));
}

#[test]
fn rows_are_merged_number_by_number() {
    let cluster = cluster(2);
    let (home, other) = (node(&cluster, 0), node(&cluster, 1));
    let row: Row<u16> = home.lock().split().0.alloc_rows(1, 700).unwrap().row(0);
    for at in [&home, &other] {
        let mut guard = at.lock();
        let mut heap = guard.split().0;
        heap.zero_fill(row.oid()).unwrap();
        heap.make_writable(row.oid(), true).unwrap();
    }
    home.lend(|mut token| token.get_mut(row).unwrap()[3] = 0x0100)
        .unwrap();
    other
        .lend(|mut token| token.get_mut(row).unwrap()[699] = 1)
        .unwrap();
    let mut bytes = Vec::new();
    other
        .lock()
        .split()
        .0
        .gather_diff(row.oid(), &mut bytes)
        .unwrap();
    home.lock().split().0.merge(row.oid(), &bytes).unwrap();
    let sum = home.lend(|token| token.get(row).unwrap().iter().sum::<u16>());
    assert_eq!(sum, Ok(0x0101));
}
