//! What the derives make: one encoding for each value, of the length that it says, and nothing else
//! is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dhole_wire::{
    Message, Tail, Wire, WireAs, WireError, count, take_varint, varint_len, write_varint,
};
use proptest::prelude::*;
use smallvec::SmallVec;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Wire)]
struct Id(u16);

#[derive(Clone, PartialEq, Debug, Wire)]
struct Unit;

#[derive(Clone, PartialEq, Debug, Wire)]
enum Colour {
    Red,
    #[wire(tag = 9)]
    Grey(u8),
    Mixed {
        of: Vec<Colour>,
        name: Option<Arc<str>>,
    },
}

#[derive(Clone, PartialEq, Debug, Wire)]
enum Painted {
    Bare,
    #[wire(tag = ..2)]
    In(Flag),
    Striped(u8),
}

#[derive(Clone, Copy, PartialEq, Debug, Wire)]
enum Flag {
    Up,
    Down(u16),
}

#[test]
fn the_variants_of_an_enum_within_another_are_numbered_with_its_own() {
    let all = [
        (Painted::Bare, &[0][..]),
        (Painted::In(Flag::Up), &[1]),
        (Painted::In(Flag::Down(7)), &[2, 7, 0]),
        (Painted::Striped(9), &[3, 9]),
    ];
    for (value, bytes) in all {
        assert_eq!(value.to_bytes(), bytes);
        assert_eq!(value.wire_len(), bytes.len());
        assert_eq!(Painted::parse(bytes), Ok(value));
    }
    let what = "Painted";
    assert_eq!(
        Painted::parse(&[4]),
        Err(WireError::Variant { what, tag: 4 })
    );
}

/// Most of the numbers are small.
struct Short;

impl WireAs<Vec<u64>> for Short {
    type Head = u32;

    fn head(value: &Vec<u64>) -> u32 {
        count(value.len())
    }

    fn tail_len(value: &Vec<u64>) -> usize {
        value.iter().map(|it| varint_len(*it)).sum()
    }

    fn write_tail(value: &Vec<u64>, out: &mut Vec<u8>) {
        value.iter().for_each(|it| write_varint(*it, out));
    }

    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<Vec<u64>, WireError> {
        (0..*head).map(|_| take_varint(tail)).collect()
    }
}

#[derive(Clone, PartialEq, Debug, Wire)]
struct Everything<B> {
    numbers: (u8, u16, u32),
    long: u64,
    flag: bool,
    unit: Unit,
    list: SmallVec<[(Id, u64); 1]>,
    colours: Box<[Colour]>,
    #[wire(with = Short)]
    short: Vec<u64>,
    either: Result<B, String>,
    map: BTreeMap<Id, u64>,
    set: BTreeSet<(Id, i8)>,
    signed: (i16, i32, i64),
    nothing: (),
    last: Option<Box<B>>,
}

fn colour() -> impl Strategy<Value = Colour> {
    let leaf = prop_oneof![Just(Colour::Red), any::<u8>().prop_map(Colour::Grey)];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let name = prop::option::of("[a-z\u{e9}]{0,5}".prop_map(Arc::from));
        (prop::collection::vec(inner, 0..4), name).prop_map(|(of, name)| Colour::Mixed { of, name })
    })
}

fn everything() -> impl Strategy<Value = Everything<Id>> {
    let numbers = (any::<(u8, u16, u32)>(), any::<u64>(), any::<bool>());
    let list = prop::collection::vec((any::<u16>().prop_map(Id), any::<u64>()), 0..3);
    let colours = prop::collection::vec(colour(), 0..4);
    let short = prop::collection::vec(any::<u64>().prop_map(|it| it >> (it % 64)), 0..4);
    let either = prop_oneof![
        any::<u16>().prop_map(|it| Ok(Id(it))),
        "[a-z]{0,3}".prop_map(Err)
    ];
    let map = prop::collection::btree_map(any::<u16>().prop_map(Id), any::<u64>(), 0..3);
    let item = (any::<u16>().prop_map(Id), any::<i8>());
    let (set, signed) = (
        prop::collection::btree_set(item, 0..3),
        any::<(i16, i32, i64)>(),
    );
    let ordered = (map, set, signed);
    let last = prop::option::of(any::<u16>().prop_map(|it| Box::new(Id(it))));
    (numbers, list, colours, short, either, ordered, last).prop_map(
        |((numbers, long, flag), list, colours, short, either, ordered, last)| Everything {
            numbers,
            long,
            flag,
            unit: Unit,
            list: list.into(),
            colours: colours.into(),
            short,
            either,
            map: ordered.0,
            set: ordered.1,
            signed: ordered.2,
            nothing: (),
            last,
        },
    )
}

proptest! {
    #[test]
    fn a_value_comes_back_and_has_the_length_that_it_says(value in everything()) {
        let bytes = value.to_bytes();
        prop_assert_eq!(bytes.len(), value.wire_len());
        prop_assert_eq!(Everything::parse(&bytes), Ok(value));
    }

    #[test]
    fn what_is_cut_off_or_has_more_behind_it_is_refused(value in everything()) {
        let mut bytes = value.to_bytes();
        for end in 0..bytes.len() {
            prop_assert!(Everything::<Id>::parse(&bytes[..end]).is_err());
        }
        bytes.push(0);
        let more = Everything::<Id>::parse(&bytes);
        prop_assert_eq!(more, Err(WireError::Long { rest: 1 }));
    }

    #[test]
    fn other_bytes_are_another_value_or_none(
        value in everything(),
        bit in any::<prop::sample::Index>(),
    ) {
        let mut bytes = value.to_bytes();
        let bit = bit.index(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(other) = Everything::parse(&bytes) {
            prop_assert_ne!(&other, &value);
            prop_assert_eq!(other.to_bytes(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(value) = Everything::<Id>::parse(&bytes) {
            prop_assert_eq!(value.to_bytes(), bytes);
        }
    }
}

#[test]
fn heads_come_before_tails_and_numbers_are_little_endian() {
    let value = vec![
        Colour::Grey(7),
        Colour::Mixed {
            of: vec![Colour::Red],
            name: Some("x".into()),
        },
    ];
    let expected = [
        &[2, 0, 0, 0][..],   // how many
        &[9, 2],             // their heads
        &[7],                // the first one's tail
        &[1, 0, 0, 0, 1, 0], // the second's: a count, a flag, and the head of the one item
        &[1, 0, 0, 0, b'x'], // and its name
    ];
    assert_eq!(value.to_bytes(), expected.concat());
}

#[test]
fn what_no_value_is_encoded_as_is_refused() {
    assert!(bool::parse(&[2]).is_err());
    assert!(Option::<u8>::parse(&[2, 1]).is_err());
    assert!(
        Colour::parse(&[1, 0]).is_err(),
        "9 is the number of the second variant"
    );
    assert!(String::parse(&[1, 0, 0, 0, 0xff]).is_err());
    let twice = [&2_u32.to_le_bytes()[..], &[5, 0, 1], &[5, 0, 1]].concat();
    assert!(BTreeMap::<Id, u8>::parse(&twice).is_err());
    assert!(BTreeSet::<(Id, u8)>::parse(&twice).is_err());
    let in_order = [&2_u32.to_le_bytes()[..], &[5, 0, 1], &[6, 0, 1]].concat();
    assert!(BTreeMap::<Id, u8>::parse(&in_order).is_ok());
    assert!(BTreeSet::<(Id, u8)>::parse(&in_order).is_ok());
}

#[test]
fn numbers_with_a_point_come_back_bit_by_bit() {
    for bits in [0, 1 << 63, 0x7ff8_0000_0000_0001, 1.5_f64.to_bits()] {
        let read = <(f64, f32)>::parse(&(f64::from_bits(bits), -0.0_f32).to_bytes());
        let (double, single) = read.expect("any bits are a number");
        assert_eq!((double.to_bits(), single.to_bits()), (bits, 1 << 31));
    }
}

#[test]
fn a_count_that_is_only_claimed_is_refused_before_anything_is_made() {
    let short = Vec::<u64>::parse(&[0xff, 0xff, 0xff, 0xff, 1, 2]);
    let needed = 8 * 0xffff_ffff;
    assert_eq!(short, Err(WireError::Short { left: 2, needed }));
}

#[derive(Message)]
#[message(
    /// The name.
    fn name() -> &'static str,
    fn is_urgent() -> bool = false,
    fn weight(each: u32) -> u32 = each,
)]
enum Post {
    #[message(name = "card")]
    Card,
    #[message(name = "letter", is_urgent, weight = each * u32::from(*pages))]
    Letter { pages: u8 },
    #[message(name = it.name(), weight = 10 + it.weight(each))]
    Parcel(Box<Post>),
}

#[test]
fn a_message_has_the_properties_that_it_says_and_the_others_by_default() {
    let letter = || Post::Letter { pages: 3 };
    let parcel = Post::Parcel(Box::new(letter()));
    let of = |post: &Post| (post.name(), post.is_urgent(), post.weight(2));
    assert_eq!(of(&Post::Card), ("card", false, 2));
    assert_eq!(of(&letter()), ("letter", true, 6));
    assert_eq!(of(&parcel), ("letter", false, 16));
}
