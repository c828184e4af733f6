//! Elements of arrays: who may touch them and when, and what their bytes may be.

use std::num::NonZeroU8;

use dhole_heap::{
    AllocError, Array, ArrayMiss, BindError, ElementsRefusal, ForeignKind, HeapMut, Monitor,
    PAGE_BYTES, Presence, Share, TypeRef,
};
use dhole_model::{Elements, NodeId, OidRange};

use super::cluster;

fn one() -> Monitor<()> {
    Monitor::new(&cluster(1), NodeId(0), ())
}

fn zeros(node: &Monitor<()>, len: u64) -> Array<u64> {
    node.lock().split().0.alloc_array(len).unwrap()
}

fn part<T>(array: Array<T>, range: std::ops::Range<u64>) -> Elements {
    Elements::new(array.oid(), range)
}

fn refusal<R: std::fmt::Debug>(refused: Result<R, dhole_heap::ElementsRefused>) -> ElementsRefusal {
    refused.unwrap_err().refusal
}

fn bytes(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

#[test]
fn a_worker_that_computes_lets_nothing_change_but_others_read_what_it_does_not_write() {
    let node = one();
    let array = zeros(&node, 100);
    let all = part(array, 0..100);
    node.lock().split().0.zero_fill_elements(all).unwrap();
    let written = part(array, 40..50);
    node.lock()
        .split()
        .0
        .make_elements_writable(written)
        .unwrap();
    node.lend(|_token| {
        let mut guard = node.lock();
        let (mut heap, _) = guard.split();
        let computing = ElementsRefusal::Presence(Presence::Computing);
        assert_eq!(refusal(heap.invalidate_elements(all)), computing);
        assert_eq!(refusal(heap.make_elements_writable(all)), computing);
        assert_eq!(refusal(heap.make_elements_clean(written)), computing);
        assert_eq!(refusal(heap.install_elements(all, &[0; 800])), computing);
        assert_eq!(
            refusal(heap.overwrite_elements(all, &[1_u64; 100])),
            computing
        );
        let mut out = Vec::new();
        let meets = part(array, 39..41);
        assert_eq!(
            refusal(heap.gather_elements(meets, &mut out)),
            ElementsRefusal::Writable
        );
        assert!(out.is_empty());
        for clean in [part(array, 0..40), part(array, 50..100)] {
            heap.gather_elements(clean, &mut out).unwrap();
        }
        assert_eq!(out, vec![0; 90 * 8]);
    })
    .unwrap();
}

#[test]
fn a_shared_call_installs_only_elements_that_are_absent() {
    let node = one();
    let array = zeros(&node, 100);
    node.lock()
        .split()
        .0
        .zero_fill_elements(part(array, 10..20))
        .unwrap();
    node.lend(|token| {
        node.shared_call(&token, |call| {
            let (mut heap, _) = call.split();
            let meets = heap.install_elements(part(array, 19..21), &[0; 16]);
            assert_eq!(refusal(meets), ElementsRefusal::Present);
            heap.install_elements(part(array, 20..22), &bytes(&[1, 2]))
                .unwrap();
            let twice = heap.install_elements(part(array, 21..23), &[0; 16]);
            assert_eq!(
                refusal(twice),
                ElementsRefusal::Present,
                "though the worker knows not yet"
            );
            assert!(!heap.has_elements(part(array, 20..21)));
        });
        let mut guard = node.lock();
        assert!(guard.split().0.has_elements(part(array, 10..22)));
        assert!(!guard.split().0.has_elements(part(array, 9..22)));
    })
    .unwrap();
}

#[test]
fn no_elements_are_no_change_wherever_they_lie() {
    let node = one();
    let array = zeros(&node, 64 * 512);
    let behind = node.lock().split().0.alloc(5_u64).unwrap();
    let block = array.oid().chunk();
    assert_eq!(
        behind.oid().chunk(),
        block + 1,
        "the ids of the object follow"
    );
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let none = |first| part(array, first..first);
    heap.install_elements(none(600), &[]).unwrap();
    assert_eq!(heap.store_bytes(), PAGE_BYTES, "that of the object");
    heap.zero_fill_elements(part(array, 0..1)).unwrap();
    let beyond = heap.make_elements_writable(none(64 * 512 + 1));
    assert_eq!(refusal(beyond), ElementsRefusal::Beyond(64 * 512));
    heap.make_elements_writable(none(1)).unwrap();
    drop(guard);
    let written = |mut token: dhole_heap::Token<'_>| token.get_mut(behind).is_ok();
    assert!(!node.lend(written).unwrap(), "nobody has asked to write it");
}

#[test]
fn elements_without_an_end_are_refused() {
    let node = one();
    let array = zeros(&node, 10);
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    heap.zero_fill_elements(part(array, 0..10)).unwrap();
    let endless = Elements {
        array: array.oid(),
        first: 8,
        count: u64::MAX,
    };
    let mut out = Vec::new();
    assert_eq!(
        refusal(heap.gather_elements(endless, &mut out)),
        ElementsRefusal::NotStored
    );
    assert!(!heap.has_elements(endless));
}

#[test]
fn what_is_invalid_is_still_served_and_is_not_written() {
    let node = one();
    let array = zeros(&node, 10);
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    heap.install_elements(part(array, 0..4), &bytes(&[1, 2, 3, 4]))
        .unwrap();
    heap.make_elements_writable(part(array, 0..4)).unwrap();
    heap.invalidate_elements(part(array, 1..3)).unwrap();
    assert!(heap.may_write_elements(part(array, 0..1)) && heap.has_elements(part(array, 3..4)));
    assert!(!heap.may_write_elements(part(array, 0..2)) && !heap.has_elements(part(array, 0..2)));
    let absent = heap.make_elements_writable(part(array, 0..2));
    assert_eq!(refusal(absent), ElementsRefusal::Absent);
    let mut out = Vec::new();
    heap.gather_elements(part(array, 0..4), &mut out).unwrap();
    assert_eq!(out, bytes(&[1, 2, 3, 4]));
    heap.install_elements(part(array, 1..3), &bytes(&[7, 8]))
        .unwrap();
    assert!(heap.has_elements(part(array, 0..4)));
}

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
#[repr(u8)]
enum Kind {
    A = 2,
    B = 5,
}

#[derive(Share, Clone, Copy)]
#[share(crate = "dhole_heap")]
#[repr(C)]
struct Record {
    kind: Kind,
    letter: char,
    number: NonZeroU8,
    others: Array<Record>,
}

#[test]
fn bytes_that_are_no_elements_are_refused_and_change_nothing() {
    let node = one();
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let empty = Array::empty();
    let record = |others| Record {
        kind: [Kind::A, Kind::B][1],
        letter: 'x',
        number: NonZeroU8::MIN,
        others,
    };
    let others = heap.alloc_array_with(3, |_| record(empty)).unwrap();
    let array = heap.alloc_array_with(50, |_| record(others)).unwrap();
    let two = part(array, 7..9);
    let mut good = Vec::new();
    heap.gather_elements(two, &mut good).unwrap();
    assert_eq!(good.len(), 2 * (1 + 4 + 1 + 16), "padding does not travel");
    heap.invalidate_elements(two).unwrap();
    let (of_one, mut accepted) = (good.len() / 2, 0);
    // Another id may be one of a cluster that has ended, which leads nowhere.
    let of_id = 6..14;
    for spoiled in (0..of_one).filter(|place| !of_id.contains(place)) {
        let mut bad = good.clone();
        bad[of_one + spoiled] ^= 0xff;
        if heap.install_elements(two, &bad).is_ok() {
            heap.invalidate_elements(two).unwrap();
            accepted += 1;
        }
        assert!(!heap.has_elements(two));
    }
    assert_eq!(accepted, 3, "two bytes of a letter, and the number");
    let mut bad = good.clone();
    bad[of_one..].fill(0);
    assert!(matches!(
        refusal(heap.install_elements(two, &bad)),
        ElementsRefusal::Invalid(_)
    ));
    let long = heap.install_elements(two, &good[1..]);
    assert!(matches!(refusal(long), ElementsRefusal::Length { .. }));
    let beyond = heap.install_elements(part(array, 49..51), &good);
    assert_eq!(refusal(beyond), ElementsRefusal::Beyond(50));
    let none = heap.zero_fill_elements(two);
    assert_eq!(refusal(none), ElementsRefusal::NotZeros);
    heap.install_elements(two, &good).unwrap();
}

#[test]
fn an_access_that_lies_about_an_array_clashes() {
    let node = one();
    let array = zeros(&node, 100);
    let miss = |ty, len| ArrayMiss {
        elements: part(array, 0..1),
        within: part(array, 0..1),
        ty,
        len,
        site: std::panic::Location::caller(),
    };
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let bound = heap.bind_array(&miss(TypeRef::of::<u64>(), 100)).unwrap();
    assert!(bound.zeros);
    for (ty, len) in [(TypeRef::of::<i64>(), 100), (TypeRef::of::<u64>(), 101)] {
        assert!(matches!(
            heap.bind_array(&miss(ty, len)),
            Err(BindError::TypeClash { .. })
        ));
    }
    let others = heap.overwrite_elements(part(array, 0..1), &[1_i64]);
    assert!(matches!(
        refusal(others),
        ElementsRefusal::Reference(BindError::TypeClash { .. })
    ));
}

#[test]
fn a_block_is_no_object_and_an_object_is_no_array() {
    let node = one();
    let array = zeros(&node, 5000);
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let object = heap.alloc(1_u64).unwrap();
    assert!(heap.install(array.oid(), &[0; 8]).is_err());
    assert!(heap.zero_fill(array.oid()).is_err());
    assert!(heap.gather(array.oid(), &mut Vec::new()).is_err());
    let elements = Elements::new(object.oid(), 0..1);
    let refused = refusal(heap.install_elements(elements, &[0; 8]));
    assert!(matches!(
        refused,
        ElementsRefusal::Reference(BindError::Foreign(foreign))
            if matches!(foreign.kind, ForeignKind::NotYet { .. })
    ));
}

#[test]
fn arrays_take_storage_where_they_are_touched_and_give_it_back() {
    let cluster = cluster(1);
    let node = Monitor::new(&cluster, NodeId(0), ());
    let array = zeros(&node, 1 << 32);
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    assert_eq!(heap.store_bytes(), 0);
    let far = part(array, (1 << 31) + 511..(1 << 31) + 513);
    heap.zero_fill_elements(far).unwrap();
    assert_eq!(heap.store_bytes(), 0, "zeros that nobody has touched");
    heap.make_elements_writable(far).unwrap();
    assert_eq!(heap.store_bytes(), 2 * PAGE_BYTES);
    for near in [part(array, 0..1), part(array, 1..2)] {
        heap.zero_fill_elements(near).unwrap();
        heap.make_elements_writable(near).unwrap();
    }
    assert_eq!(heap.store_bytes(), 3 * PAGE_BYTES);
    let error = heap.alloc_array::<u8>(1 << 40).unwrap_err();
    assert!(matches!(error, AllocError::TooLarge { len, .. } if len == 1 << 40));
    drop(guard);
    drop(node);
    drop(cluster);
    let node = one();
    let array = zeros(&node, 1 << 32);
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let far = part(array, 1 << 31..(1 << 31) + 2000);
    let read = |heap: &mut HeapMut<'_>| {
        let mut out = Vec::new();
        heap.gather_elements(far, &mut out).unwrap();
        out
    };
    heap.zero_fill_elements(far).unwrap();
    assert!(
        read(&mut heap).iter().all(|byte| *byte == 0),
        "the next cluster finds zeros"
    );
}

#[test]
fn an_array_is_found_in_an_object_only_as_it_was_allocated() {
    let node = one();
    let mut guard = node.lock();
    let (mut heap, _) = guard.split();
    let array = heap.alloc_array::<u32>(3000).unwrap();
    let mut packed = Vec::new();
    dhole_heap::pack(&array, &mut packed);
    assert_eq!(heap.unpack::<Array<u32>>(&packed).unwrap(), array);
    assert!(heap.unpack::<Array<u16>>(&packed).is_err());
    let words = [array.oid().0, 3000];
    for lie in [
        [words[0], 2999],
        [words[0] + 1, 3000],
        [words[0] + 1, 1],
        [0, 3000],
        [words[0], u64::MAX],
    ] {
        let bytes: Vec<u8> = lie.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert!(heap.unpack::<Array<u32>>(&bytes).is_err(), "{lie:?}");
    }
    assert_eq!(
        heap.unpack::<Array<u32>>(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            .unwrap(),
        Array::empty()
    );
}

#[test]
fn elements_that_never_came_travel_as_zeros_wherever_the_array_lies() {
    let node = Monitor::new(&cluster(1), NodeId(0), ());
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let secret = heap.alloc([u64::MAX; 100]).unwrap();
    heap.free(OidRange::one(secret.oid())).unwrap();
    let array = heap.alloc_array::<u64>(100).unwrap();
    let part = |range| Elements::new(array.oid(), range);
    heap.install_elements(part(0..1), &7_u64.to_ne_bytes())
        .unwrap();
    let mut out = Vec::new();
    heap.gather_elements(part(0..100), &mut out).unwrap();
    assert_eq!(out[..8], 7_u64.to_ne_bytes());
    assert!(out[8..].iter().all(|byte| *byte == 0));
}
