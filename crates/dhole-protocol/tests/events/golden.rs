//! Golden frames: one message of each kind and its bytes. Nodes of one run are of one build, so a
//! layout may change; but only on purpose. Then
//! `DHOLE_GOLDEN=write cargo test -p dhole-protocol-tests`
//! makes the list anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use dhole_protocol::Message;
use dhole_wire::Wire;

use crate::codec::{encoded, messages};

const LIST: &str = "events/golden.txt";

/// The message in one line.
fn said(message: &Message) -> String {
    let said = format!("{message:?}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of its variant and of those within, as far as they are alone there.
fn name(message: &Message) -> String {
    let said = said(message);
    let end = said.find([' ', ',', '[']).unwrap_or(said.len());
    let names = said[..end].split('(').filter(|name| !name.is_empty());
    // What is ordered is of several kinds too.
    let ordered = said.split("body: ").nth(1);
    let ordered = ordered.and_then(|body| body.split(' ').next());
    let names = names.chain(ordered).map(|name| name.trim_end_matches(')'));
    names.collect::<Vec<_>>().join(".")
}

/// A message of each variant, short ones as far as there are.
fn chosen() -> BTreeMap<String, Message> {
    let mut chosen: BTreeMap<String, Message> = BTreeMap::new();
    for message in messages() {
        let of_variant = chosen
            .entry(name(&message))
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
            format!(
                "{name} {}\n    {}\n",
                hex(&encoded(&message)),
                said(&message)
            )
        });
        std::fs::write(Path::new(LIST), lines.collect::<String>()).unwrap();
    }
    let list = std::fs::read_to_string(Path::new(LIST)).unwrap();
    let lines: Vec<&str> = list.lines().collect();
    let mut names = Vec::new();
    for [frame, words] in lines.as_chunks::<2>().0 {
        let (name, frame) = frame.split_once(' ').unwrap();
        let message = Message::decode(&bytes(frame));
        let message = message.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(said(&message), words.trim_start(), "{name}");
        assert_eq!(hex(&encoded(&message)), frame, "{name}");
        names.push(name.to_owned());
    }
    assert_eq!(names, chosen().into_keys().collect::<Vec<_>>());
}
