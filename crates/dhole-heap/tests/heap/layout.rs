//! What the derive says of a type, and what a round trip of its bytes keeps.

use std::marker::PhantomData;
use std::num::{NonZeroU16, NonZeroU32};

use dhole_heap::{
    Cluster, DataRange, HeapMut, InstallError, LeafTest, Monitor, Own, Ref, ReferenceForm, Refs,
    Row, Rows, Share, TypeInfo,
};
use dhole_model::{NodeId, Oid};
use proptest::prelude::*;

#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[share(crate = "dhole_heap")]
#[repr(C)]
struct Padded {
    small: u8,
    wide: u64,
    half: u16,
}

#[derive(Share, Clone, Copy, PartialEq, Eq, Debug)]
#[share(crate = "dhole_heap")]
#[repr(i16)]
enum Phase {
    Before = -3,
    During,
    After = 700,
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[share(crate = "dhole_heap")]
struct Mixed {
    flag: bool,
    letter: char,
    phase: Phase,
    count: NonZeroU32,
    maybe: Option<NonZeroU16>,
    pairs: [(bool, u32); 3],
    weight: f64,
}

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
#[repr(C)]
struct Leaves {
    flag: bool,
    letter: char,
    phase: Phase,
    count: NonZeroU32,
    maybe: Option<NonZeroU16>,
}

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
struct Tree {
    left: Option<Ref<Tree>>,
    right: Option<Ref<Tree>>,
    leaves: Refs<u32>,
    row: Row<f64>,
    rows: Rows<u8>,
    value: u8,
}

#[derive(Share)]
#[share(crate = "dhole_heap")]
struct Generic<T, const N: usize>
where
    T: Copy,
{
    items: [T; N],
    last: T,
    kind: PhantomData<T>,
}

#[derive(Share)]
#[share(crate = "dhole_heap")]
struct Unit;

#[derive(Share)]
#[share(crate = "dhole_heap")]
struct Tuple(u8, [Generic<u16, 2>; 2], Unit);

#[derive(Share)]
#[share(crate = "dhole_heap")]
#[repr(C, packed)]
struct Packed {
    small: u8,
    wide: u64,
}

fn ranges(info: &TypeInfo) -> Vec<(usize, usize)> {
    info.data.iter().map(|r| (r.offset, r.bytes)).collect()
}

#[test]
fn padding_is_no_data() {
    let info = TypeInfo::of::<Padded>();
    assert_eq!(ranges(info), [(0, 1), (8, 10)]);
    assert_eq!((info.size, info.packed_size), (24, 11));
    let info = TypeInfo::of::<[Padded; 2]>();
    assert_eq!(ranges(info), [(0, 1), (8, 10), (24, 1), (32, 10)]);
}

#[test]
fn dense_types_are_one_range() {
    let range = |bytes| [DataRange { offset: 0, bytes }];
    assert_eq!(
        *TypeInfo::of::<[[f64; 1000]; 1000]>().data,
        range(8_000_000)
    );
    assert_eq!(*TypeInfo::of::<Generic<u16, 2>>().data, range(6));
    assert_eq!(*TypeInfo::of::<Packed>().data, range(9));
    assert_eq!(TypeInfo::of::<Tuple>().packed_size, 13);
    assert_eq!(TypeInfo::of::<Unit>().packed_size, 0);
    assert_eq!(TypeInfo::of::<[Unit; 7]>().packed_size, 0);
}

#[test]
fn one_type_has_one_info() {
    assert!(std::ptr::eq(
        TypeInfo::of::<Mixed>(),
        TypeInfo::of::<Mixed>()
    ));
}

#[test]
fn leaves_of_an_array_are_counted_not_listed() {
    let info = TypeInfo::of::<[[bool; 10]; 100]>();
    assert_eq!(info.leaves.len(), 1);
    assert_eq!(
        (info.leaves[0].count, info.leaves[0].packed_stride),
        (1000, 1)
    );
    let info = TypeInfo::of::<[(bool, u32); 3]>();
    assert_eq!(info.leaves.len(), 1);
    assert_eq!((info.leaves[0].count, info.leaves[0].packed_stride), (3, 5));
    assert_eq!(info.leaves[0].test, LeafTest::Bool);
}

#[test]
fn references_are_told_from_data() {
    let info = TypeInfo::of::<Tree>();
    let forms: Vec<_> = info.references.iter().map(|r| r.form).collect();
    assert_eq!(
        forms.iter().filter(|&&f| f == ReferenceForm::Maybe).count(),
        2
    );
    assert_eq!(forms.len(), 5);
    assert_eq!(info.packed_size, 8 + 8 + 16 + 16 + 24 + 1);
    assert_eq!(size_of::<Option<Ref<Tree>>>(), 8);
    let rows = info
        .references
        .iter()
        .find(|r| r.form == ReferenceForm::Rows);
    assert_eq!(rows.unwrap().target.info().name, "u8");
}

/// Runs `f` with the heaps of two nodes, without workers, so that everything is allowed.
fn on_two(f: impl FnOnce(HeapMut<'_>, HeapMut<'_>)) {
    let cluster = Cluster::new(2).unwrap();
    let a = Monitor::new(&cluster, NodeId(0), ());
    let b = Monitor::new(&cluster, NodeId(1), ());
    f(a.lock().split().0, b.lock().split().0);
}

fn send<T: Share>(value: T) -> (Vec<u8>, Vec<u8>) {
    let (mut there, mut back) = (Vec::new(), Vec::new());
    on_two(|mut a, mut b| {
        let r = a.alloc(value).unwrap();
        a.gather(r.oid(), &mut there).unwrap();
        b.install(r.oid(), &there).unwrap();
        b.gather(r.oid(), &mut back).unwrap();
    });
    (there, back)
}

fn reply<T: Share>(value: T, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), InstallError> {
    let mut result = Ok(());
    on_two(|mut a, mut b| {
        let r = a.alloc(value).unwrap();
        let mut bytes = Vec::new();
        a.gather(r.oid(), &mut bytes).unwrap();
        change(&mut bytes);
        result = b.install(r.oid(), &bytes);
        assert_eq!(
            b.has_storage(r.oid()),
            result.is_ok(),
            "tested before anything is stored"
        );
    });
    result
}

#[test]
fn packed_bytes_are_the_fields_alone() {
    let (there, back) = send(Padded {
        small: 7,
        wide: 0x0102_0304_0506_0708,
        half: 9,
    });
    let mut expected = vec![7];
    expected.extend(0x0102_0304_0506_0708_u64.to_ne_bytes());
    expected.extend(9_u16.to_ne_bytes());
    assert_eq!(there, expected);
    assert_eq!(back, expected);
}

#[test]
fn what_is_installed_over_old_bytes_is_gathered_as_it_came() {
    on_two(|mut a, mut b| {
        let r = a
            .alloc(
                [Padded {
                    small: 1,
                    wide: 2,
                    half: 3,
                }; 40],
            )
            .unwrap();
        let mut bytes = Vec::new();
        assert_eq!(a.gather(r.oid(), &mut bytes), Ok(40 * 11));
        for round in 0..3 {
            bytes.iter_mut().for_each(|byte| *byte ^= round);
            b.install(r.oid(), &bytes).unwrap();
            let mut again = Vec::new();
            b.gather(r.oid(), &mut again).unwrap();
            assert_eq!(again, bytes);
            b.invalidate(r.oid()).unwrap();
        }
    });
}

fn refused(result: Result<(), InstallError>) -> &'static str {
    match result {
        Err(InstallError::Invalid { invalid, .. }) => invalid.leaf,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    assert_eq!(refused(reply([true; 5], |b| b[4] = 2)), "bool");
    let surrogate = 0xdc00_u32.to_ne_bytes();
    assert_eq!(
        refused(reply(['a', 'b'], |b| b[4..].copy_from_slice(&surrogate))),
        "char"
    );
    assert_eq!(
        refused(reply(NonZeroU32::MIN, |b| b.fill(0))),
        "non-zero number"
    );
    let between = (-1_i16).to_ne_bytes();
    assert_eq!(
        refused(reply(Phase::During, |b| b.copy_from_slice(&between))),
        "enum"
    );
    let after = 700_i16.to_ne_bytes();
    assert_eq!(reply(Phase::Before, |b| b.copy_from_slice(&after)), Ok(()));
    assert_eq!(refused(reply([(true, 1_u32); 3], |b| b[5] = 9)), "bool");
}

#[test]
fn bytes_of_another_length_are_refused() {
    assert!(matches!(
        reply(1_u32, |b| b.push(0)),
        Err(InstallError::Length {
            bytes: 5,
            wanted: 4,
            ..
        })
    ));
    assert!(matches!(
        reply(1_u32, |b| b.truncate(3)),
        Err(InstallError::Length { .. })
    ));
}

fn bad_reference<T: Share>(value: impl FnOnce(&mut HeapMut<'_>) -> T, word: impl Fn(u64) -> u64) {
    on_two(|mut a, mut b| {
        let value = value(&mut a);
        let r = a.alloc(value).unwrap();
        let mut bytes = Vec::new();
        a.gather(r.oid(), &mut bytes).unwrap();
        b.install(r.oid(), &bytes).unwrap();
        let last = bytes.len() - 8;
        let old = u64::from_ne_bytes(bytes[last..].try_into().unwrap());
        bytes[last..].copy_from_slice(&word(old).to_ne_bytes());
        let result = b.install(r.oid(), &bytes);
        assert!(
            matches!(result, Err(InstallError::Reference { .. })),
            "{result:?}"
        );
    });
}

#[test]
fn forged_references_are_refused() {
    bad_reference(|a| a.alloc(1_u8).unwrap(), |_| 0);
    bad_reference(|a| a.alloc(1_u8).unwrap(), |_| 1);
    bad_reference(|a| a.alloc(1_u8).unwrap(), |_| u64::MAX);
    bad_reference(|a| a.alloc(1_u8).unwrap(), |oid| oid + 64);
    bad_reference(|a| Some(a.alloc(1_u8).unwrap()), |_| u64::MAX);
    // The lengths of ranges and rows come last.
    bad_reference(|a| a.alloc_range(70, |i| i).unwrap(), |len| len + 1);
    bad_reference(|a| a.alloc_range(70, |i| i).unwrap(), |_| u64::MAX);
    bad_reference(
        |a| a.alloc_rows::<f32>(1, 10).unwrap().row(0),
        |len| len + 1,
    );
    bad_reference(|a| a.alloc_rows::<f32>(3, 10).unwrap(), |len| len - 1);
}

#[test]
fn a_reference_to_an_object_of_another_type_is_refused() {
    on_two(|mut a, mut b| {
        let number = a.alloc(1_u32).unwrap();
        let float = a.alloc(1.0_f32).unwrap();
        let r = a.alloc(float).unwrap();
        let bytes = number.oid().0.to_ne_bytes();
        let result = b.install(r.oid(), &bytes);
        assert!(
            matches!(result, Err(InstallError::Reference { .. })),
            "{result:?}"
        );
        let shown = result.unwrap_err().to_string();
        assert!(shown.contains("u32") && shown.contains("f32"), "{shown}");
    });
}

#[test]
fn references_to_ended_clusters_are_let_through_but_no_ranges_beyond_them() {
    let old = Cluster::new(1).unwrap();
    let there = Monitor::new(&old, NodeId(0), ());
    let range = there.lock().split().0.alloc_range(10, |i| i).unwrap();
    drop((there, old));
    on_two(|mut a, mut b| {
        let r = a.alloc(range).unwrap();
        let mut bytes = Vec::new();
        a.gather(r.oid(), &mut bytes).unwrap();
        b.install(r.oid(), &bytes).unwrap();
        bytes[8..].copy_from_slice(&(u64::MAX >> 8).to_ne_bytes());
        assert!(b.install(r.oid(), &bytes).is_err());
    });
}

#[test]
fn an_id_that_was_never_allocated_takes_no_bytes() {
    on_two(|mut a, _| {
        for oid in [Oid(0), Oid(63), Oid(u64::MAX)] {
            let result = a.install(oid, &[]);
            assert!(
                matches!(result, Err(InstallError::Foreign { .. })),
                "{result:?}"
            );
            assert!(!a.is_present(oid));
        }
    });
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(Phase::Before), Just(Phase::During), Just(Phase::After)]
}

prop_compose! {
    fn mixed()(
        flag: bool,
        letter: char,
        phase in phase(),
        count in 1_u32..,
        maybe: u16,
        pairs: [(bool, u32); 3],
        weight: f64,
    ) -> Mixed {
        Mixed {
            flag,
            letter,
            phase,
            count: NonZeroU32::new(count).unwrap(),
            maybe: NonZeroU16::new(maybe),
            pairs,
            weight,
        }
    }
}

/// Numbers near these, and any others.
fn words(near: &'static [u32]) -> impl Strategy<Value = u32> {
    let near = (prop::sample::select(near), 0..4_u32);
    prop_oneof![
        near.prop_map(|(word, n)| word.wrapping_add(n).wrapping_sub(2)),
        any::<u32>()
    ]
}

/// As [`words`].
fn halves(near: &'static [i16]) -> impl Strategy<Value = i16> {
    let near = (prop::sample::select(near), 0..4_i16);
    prop_oneof![
        near.prop_map(|(half, n)| half.wrapping_add(n).wrapping_sub(2)),
        any::<i16>()
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_value_survives_the_journey(value in mixed()) {
        let cluster = Cluster::new(2).unwrap();
        let a = Monitor::new(&cluster, NodeId(0), ());
        let b = Monitor::new(&cluster, NodeId(1), ());
        let r = a.lock().split().0.alloc(value).unwrap();
        let mut bytes = Vec::new();
        a.lock().split().0.gather(r.oid(), &mut bytes).unwrap();
        b.lock().split().0.install(r.oid(), &bytes).unwrap();
        let seen = b.lend(|token| *token.get(r).unwrap()).unwrap();
        prop_assert!(seen == value || value.weight.is_nan());
    }

    #[test]
    fn bytes_are_accepted_where_rust_has_such_a_value(
        flag in 0..4_u8,
        letter in words(&[0, 0xd800, 0xe000, 0x11_0000, 1 << 24]),
        phase in halves(&[-3, 0, 700, -2 << 8]),
        count in words(&[0, 1 << 8, 1 << 24]),
        maybe in halves(&[0]),
        leaf in 0..5_usize,
    ) {
        let value = Leaves {
            flag: true,
            letter: 'x',
            phase: Phase::After,
            count: NonZeroU32::MIN,
            maybe: None,
        };
        let (at, bytes, is_value) = [
            (0, vec![flag], flag < 2),
            (1, letter.to_ne_bytes().to_vec(), char::from_u32(letter).is_some()),
            (5, phase.to_ne_bytes().to_vec(), [-3, -2, 700].contains(&phase)),
            (7, count.to_ne_bytes().to_vec(), count != 0),
            (11, maybe.to_ne_bytes().to_vec(), true),
        ][leaf].clone();
        let change = |packed: &mut Vec<u8>| packed[at..at + bytes.len()].copy_from_slice(&bytes);
        prop_assert_eq!(reply(value, change).is_ok(), is_value);
    }

    #[test]
    fn dense_and_padded_round_trips_agree(small: u8, wide: u64, half: u16) {
        let (there, back) = send(Padded { small, wide, half });
        prop_assert_eq!(there.len(), 11);
        prop_assert_eq!(&there, &back);
        let (there, back) = send([wide, u64::from(half)]);
        prop_assert_eq!(there, back);
    }
}

#[derive(Share)]
#[share(crate = "dhole_heap")]
struct Family {
    friend: Ref<u64>,
    child: Own<u64>,
    more: [(u8, Option<Own<u64>>); 3],
}

#[test]
fn what_an_object_owns_is_read_from_its_bytes() {
    let node = Monitor::new(&Cluster::new(1).unwrap(), NodeId(0), ());
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let [friend, a, b, c] = [0, 1, 2, 3].map(|n| heap.alloc(n as u64).unwrap());
    let more = [(1, Some(b.into())), (2, None), (3, Some(c.into()))];
    let child = a.into();
    let family = Family {
        friend,
        child,
        more,
    };
    let family = heap.alloc(family).unwrap();
    let (mut bytes, mut named) = (Vec::new(), Vec::new());
    heap.gather(family.oid(), &mut bytes).unwrap();
    heap.named_in(family.oid(), &bytes, 8, &mut |it| named.push(it));
    let (owned, others): (Vec<_>, Vec<_>) = named.drain(..).partition(|it| it.owned);
    let mut owned: Vec<Oid> = owned.iter().map(|it| it.oid).collect();
    owned.sort_unstable();
    assert_eq!(owned, [a, b, c].map(Ref::oid));
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].oid, friend.oid());
    heap.named_in(family.oid(), &bytes[1..], 8, &mut |it| named.push(it));
    heap.named_in(friend.oid(), &bytes[..8], 8, &mut |it| named.push(it));
    assert!(named.is_empty(), "too few bytes, or nothing named");
    assert_eq!(size_of::<Option<Own<u64>>>(), 8);
    assert!(Own::from(family) == Own::from(family), "whatever is owned");
}
