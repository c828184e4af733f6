//! The numbers of a network by their names: the range of each, and how it is read and written.

use std::fmt::Display;
use std::str::FromStr;

use dhole_model::MessageKind;

use super::{Medium, Network};

/// A number of a network.
pub(crate) struct Key {
    pub name: &'static str,
    /// Whether a description must have it.
    pub needed: bool,
    place: Place,
}

/// The field of a number, and its range.
enum Place {
    Whole(fn(&mut Network) -> &mut u64, u64, u64),
    Number(fn(&mut Network) -> &mut f64, f64),
    Flag(fn(&mut Network) -> &mut bool),
    Medium,
}

/// The error in a value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wrong {
    pub key: String,
    pub value: String,
    pub expected: Expected,
}

/// The values that were expected.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expected {
    /// A value of this kind.
    Kind(&'static str),
    /// A value in this range.
    Range(String),
}

impl Wrong {
    pub fn range(key: &str, value: impl Display, range: impl Into<String>) -> Wrong {
        Wrong {
            key: key.into(),
            value: value.to_string(),
            expected: Expected::Range(range.into()),
        }
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;
const TERABYTE: u64 = 1 << 40;
/// The most nanoseconds a byte: a millisecond.
const MOST_NS_PER_BYTE: f64 = 1e6;

macro_rules! keys {
    ($($place:ident $name:ident $(, $limit:expr)*;)*) => {
        &[$(keys!(@ $place $name $(, $limit)*)),*]
    };
    (@ needed $name:ident, $least:expr, $most:expr) => {
        Key {
            name: stringify!($name),
            needed: true,
            place: Place::Whole(|network| &mut network.$name, $least, $most),
        }
    };
    (@ whole $name:ident, $most:expr) => {
        Key {
            name: stringify!($name),
            needed: false,
            place: Place::Whole(|network| &mut network.$name, 0, $most),
        }
    };
    (@ number $name:ident, $most:expr) => {
        Key {
            name: stringify!($name),
            needed: false,
            place: Place::Number(|network| &mut network.$name, $most),
        }
    };
    (@ flag $name:ident) => {
        Key {
            name: stringify!($name),
            needed: false,
            place: Place::Flag(|network| &mut network.$name),
        }
    };
    (@ medium $name:ident) => {
        Key {
            name: stringify!($name),
            needed: true,
            place: Place::Medium,
        }
    };
}

/// All numbers but those [by kind](BY_KIND).
pub(crate) const KEYS: &[Key] = keys! {
    medium medium;
    needed latency_ns, 0, HOUR_NS;
    needed bytes_per_second, 1, 1_000_000_000_000_000;
    needed send_ns, 0, HOUR_NS;
    needed receive_ns, 0, HOUR_NS;
    number jitter, 1.0;
    number send_ns_per_byte, MOST_NS_PER_BYTE;
    number receive_ns_per_byte, MOST_NS_PER_BYTE;
    whole interrupt_ns, HOUR_NS;
    flag interrupt_when_waiting;
    whole rendezvous_bytes, TERABYTE;
    whole packet_bytes, TERABYTE;
    whole least_packet_bytes, TERABYTE;
    whole packet_header_bytes, 1_000_000;
    whole packet_send_ns, HOUR_NS;
    whole packet_receive_ns, HOUR_NS;
    flag pipelined;
    whole switch_ns, HOUR_NS;
    flag cut_through;
    whole hub_nodes, 1_024;
    flag multicast;
    whole multicast_fanout, 1_024;
    whole multicast_hop_ns, HOUR_NS;
    flag card_sequencer;
    flag paper_sizes;
    flag remote_memory;
    whole queue_bytes, TERABYTE;
    number loss, 0.5;
    whole retransmit_ns, HOUR_NS;
    whole memory_bytes, TERABYTE;
    whole page_fault_ns, HOUR_NS;
    whole object_fault_ns, HOUR_NS;
    whole protect_ns, HOUR_NS;
    whole translate_ns, HOUR_NS;
    whole wake_ns, HOUR_NS;
    whole sweep_ns, HOUR_NS;
    number twin_ns_per_byte, MOST_NS_PER_BYTE;
    number diff_make_ns_per_byte, MOST_NS_PER_BYTE;
    number diff_apply_ns_per_byte, MOST_NS_PER_BYTE;
};

/// The runtime's times for messages, one for each kind.
pub(crate) struct ByKind {
    /// The name of the table. In the textual form it is before the kind's, with a dot.
    pub name: &'static str,
    /// The numbers.
    pub of: fn(&mut Network) -> &mut [u64; MessageKind::ALL.len()],
}

/// All of them.
pub(crate) const BY_KIND: [ByKind; 2] = [
    ByKind {
        name: "handling_ns",
        of: |network| &mut network.handling_ns,
    },
    ByKind {
        name: "making_ns",
        of: |network| &mut network.making_ns,
    },
];

impl Key {
    /// The number of this name.
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Sets the number from its text. It does not [`check`](Key::check) the range.
    pub fn set(&self, network: &mut Network, text: &str) -> Result<(), Wrong> {
        match &self.place {
            Place::Whole(place, ..) => *place(network) = parsed(self.name, text, "a whole number")?,
            Place::Number(place, ..) => *place(network) = parsed(self.name, text, "a number")?,
            Place::Flag(place) => *place(network) = parsed(self.name, text, "true or false")?,
            Place::Medium => {
                let known = Medium::ALL.iter().find(|(name, _)| *name == text);
                let Some((_, medium)) = known else {
                    return Err(kind(self.name, text, "\"links\", \"switch\" or \"hubs\""));
                };
                network.medium = *medium;
            }
        }
        Ok(())
    }

    /// Whether the number is within its range.
    pub fn check(&self, network: &Network) -> Result<(), Wrong> {
        let mut network = *network;
        match &self.place {
            Place::Whole(place, least, most) => {
                let value = *place(&mut network);
                match (*least..=*most).contains(&value) {
                    true => Ok(()),
                    false => Err(Wrong::range(self.name, value, format!("{least} to {most}"))),
                }
            }
            Place::Number(place, most) => {
                let value = *place(&mut network);
                match (0.0..=*most).contains(&value) {
                    true => Ok(()),
                    false => Err(Wrong::range(self.name, value, format!("0 to {most}"))),
                }
            }
            Place::Flag(_) | Place::Medium => Ok(()),
        }
    }

    /// The number's text.
    pub fn text(&self, network: &Network) -> String {
        let mut network = *network;
        match &self.place {
            Place::Whole(place, ..) => place(&mut network).to_string(),
            Place::Number(place, ..) => place(&mut network).to_string(),
            Place::Flag(place) => place(&mut network).to_string(),
            Place::Medium => {
                let medium = |named: &&(_, Medium)| named.1 == network.medium;
                Medium::ALL
                    .iter()
                    .find(medium)
                    .map_or("", |(name, _)| name)
                    .to_owned()
            }
        }
    }
}

/// Sets one of the runtime's times for a message of the kind of this name.
pub(crate) fn set_by_kind(
    network: &mut Network,
    table: &ByKind,
    kind: &str,
    text: &str,
) -> Option<Result<(), Wrong>> {
    let kind = MessageKind::ALL
        .into_iter()
        .find(|known| known.name() == kind)?;
    let key = format!("{}.{}", table.name, kind.name());
    Some(parsed(&key, text, "a whole number").and_then(|ns: u64| {
        if ns > HOUR_NS {
            return Err(Wrong::range(&key, ns, format!("0 to {HOUR_NS}")));
        }
        (table.of)(network)[kind as usize] = ns;
        Ok(())
    }))
}

/// Parses a number.
pub(crate) fn parsed<T: FromStr>(key: &str, text: &str, wanted: &'static str) -> Result<T, Wrong> {
    text.parse().map_err(|_| kind(key, text, wanted))
}

fn kind(key: &str, value: &str, wanted: &'static str) -> Wrong {
    Wrong {
        key: key.into(),
        value: value.into(),
        expected: Expected::Kind(wanted),
    }
}
