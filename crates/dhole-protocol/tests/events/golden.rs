//! Golden frames: one message of each kind and its bytes. Nodes of one run are of one build, so a
//! layout may change; but only on purpose. Then `DHOLE_GOLDEN=write cargo test -p dhole-protocol`
//! makes the list anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use dhole_protocol::Message;
use dhole_wire::Wire;

use crate::codec::{VARIANTS, encoded, messages, variant};

const LIST: &str = "tests/events/golden.txt";

/// A message of each variant, short ones as far as there are.
fn chosen() -> BTreeMap<&'static str, Message> {
    let mut chosen: BTreeMap<&str, Message> = BTreeMap::new();
    for message in messages() {
        let of_variant = chosen
            .entry(variant(&message))
            .or_insert_with(|| message.clone());
        // The longest of a few hundred bytes shows most.
        let length = |message: &Message| (message.wire_len() <= 300, message.wire_len());
        if length(&message) > length(of_variant) && message.wire_len() <= 300 {
            *of_variant = message;
        }
    }
    chosen
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all");
        hex
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

#[test]
fn no_byte_of_any_layout_has_changed() {
    if std::env::var_os("DHOLE_GOLDEN").is_some() {
        let lines = chosen().into_iter().map(|(name, message)| {
            format!("{name} {}\n    {message:?}\n", hex(&encoded(&message)))
        });
        std::fs::write(Path::new(LIST), lines.collect::<String>()).unwrap();
    }
    let list = std::fs::read_to_string(Path::new(LIST)).unwrap();
    let lines: Vec<&str> = list.lines().collect();
    let mut names = Vec::new();
    for [frame, said] in lines.as_chunks::<2>().0 {
        let (name, frame) = frame.split_once(' ').unwrap();
        let message = Message::decode(&bytes(frame));
        let message = message.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{message:?}"), said.trim_start(), "{name}");
        assert_eq!(hex(&encoded(&message)), frame, "{name}");
        names.push(name.to_owned());
    }
    let mut wanted = VARIANTS.to_vec();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
}
