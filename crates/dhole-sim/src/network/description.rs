use std::fs::File;
use std::io::{self, Read};

use thiserror::Error;
use toml::{Table, Value};

use super::keys::{Expected, set_by_kind};
use super::presets::PRESETS;
use super::{BY_KIND, KEYS, Network, Primitive, Published, Wrong};

/// A network as a file describes it (`docs/networks.md`).
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// Its name, in lower-case letters, digits and `-`.
    pub name: String,
    /// A sentence about it.
    pub about: String,
    /// The costs of messages.
    pub network: Network,
    /// Nanoseconds of a unit of work, if computation has fixed costs.
    pub unit_ns: Option<f64>,
    /// The computation time on the described machines, divided by the time measured on this host; 1
    /// unless the file sets it.
    pub compute_scale: f64,
    /// The published primitives of the real network.
    pub published: Vec<Published>,
}

impl Description {
    /// The most bytes of a file.
    const MOST_BYTES: u64 = 1 << 20;

    /// The names of the descriptions that come with dhole.
    pub fn known() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// The text of the description of this name that comes with dhole.
    pub fn text(name: &str) -> Option<&'static str> {
        let mut known = PRESETS.iter();
        known
            .find(|(known, _)| *known == name)
            .map(|(_, text)| *text)
    }

    /// The description with this name, or else the one in this file. The name of a file contains a
    /// `/` or a `.`.
    ///
    /// # Errors
    /// [`NetworkError`] if there is no such description, or its first error.
    pub fn find(name: &str) -> Result<Description, NetworkError> {
        if let Some((name, text)) = PRESETS.iter().find(|(known, _)| *known == name) {
            return Description::parse(name, text);
        }
        if !name.contains(['/', '.']) {
            return Err(NetworkError::Unknown {
                name: name.into(),
                known: Description::known().collect::<Vec<_>>().join(", "),
            });
        }
        let unread = |cause: io::Error| NetworkError::Unread {
            file: name.into(),
            cause: cause.to_string(),
        };
        let mut text = String::new();
        let file = File::open(name).map_err(unread)?;
        let mut limited = file.take(Description::MOST_BYTES + 1);
        limited.read_to_string(&mut text).map_err(unread)?;
        if text.len() as u64 > Description::MOST_BYTES {
            let cause = format!("it has more than {} bytes", Description::MOST_BYTES);
            return Err(unread(io::Error::other(cause)));
        }
        Description::parse(name, &text)
    }

    /// The description in `text`, which comes from `file`.
    ///
    /// # Errors
    /// [`NetworkError`] names the first key that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Description, NetworkError> {
        let mut sheet = Sheet::new(file, text)?;
        let mut network = Network::default();
        for key in KEYS {
            match sheet.take(key.name) {
                Some(value) => key
                    .set(&mut network, &sheet.text(key.name, &value)?)
                    .and_then(|()| key.check(&network))
                    .map_err(|wrong| sheet.wrong(wrong))?,
                None if key.needed => return Err(sheet.missing(key.name)),
                None => {}
            }
        }
        for table in &BY_KIND {
            for (kind, value) in sheet.table(table.name)? {
                let key = format!("{}.{kind}", table.name);
                match set_by_kind(&mut network, table, &kind, &sheet.text(&key, &value)?) {
                    Some(set) => set.map_err(|wrong| sheet.wrong(wrong))?,
                    None => return Err(sheet.unknown(key)),
                }
            }
        }
        network.check().map_err(|wrong| sheet.wrong(wrong))?;
        let description = Description {
            name: sheet.word("name")?,
            about: sheet.word("about")?,
            network,
            unit_ns: sheet.number("unit_ns", 0.0, MOST_UNIT_NS)?,
            compute_scale: sheet
                .number("compute_scale", LEAST_SCALE, MOST_SCALE)?
                .unwrap_or(1.0),
            published: published(&mut sheet)?,
        };
        match sheet.left.keys().next() {
            Some(key) => Err(sheet.unknown(key.clone())),
            None => sheet.named(description),
        }
    }
}

/// A unit of work takes at most a second.
pub(crate) const MOST_UNIT_NS: f64 = 1e9;
/// The smallest factor: no machine is so much faster than this host.
pub(crate) const LEAST_SCALE: f64 = 1e-6;
/// The largest factor: no machine is so much slower than this host.
pub(crate) const MOST_SCALE: f64 = 1e6;

fn published(sheet: &mut Sheet<'_>) -> Result<Vec<Published>, NetworkError> {
    let mut published = Vec::new();
    for (name, value) in sheet.table("published")? {
        let key = format!("published.{name}");
        let known = Primitive::ALL
            .into_iter()
            .find(|known| known.name() == name);
        let Some(primitive) = known else {
            return Err(sheet.unknown(key));
        };
        let value = sheet.in_range(&key, &value, 1e-6, 1e9)?;
        published.push(Published { primitive, value });
    }
    Ok(published)
}

/// The keys of a file that have not been read yet.
struct Sheet<'a> {
    file: &'a str,
    left: Table,
}

impl<'a> Sheet<'a> {
    fn new(file: &'a str, text: &str) -> Result<Sheet<'a>, NetworkError> {
        match text.parse() {
            Ok(left) => Ok(Sheet { file, left }),
            Err(error) => Err(NetworkError::Syntax {
                file: file.into(),
                cause: toml::de::Error::to_string(&error).trim_end().to_owned(),
            }),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key)
    }

    fn table(&mut self, key: &str) -> Result<Table, NetworkError> {
        match self.take(key) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(other) => Err(self.kind(key, &other, "a table")),
        }
    }

    fn word(&mut self, key: &'static str) -> Result<String, NetworkError> {
        match self.take(key) {
            None => Err(self.missing(key)),
            Some(Value::String(word)) => Ok(word),
            Some(other) => Err(self.kind(key, &other, "a text")),
        }
    }

    fn number(
        &mut self,
        key: &'static str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, NetworkError> {
        let value = self.take(key);
        value
            .map(|value| self.in_range(key, &value, least, most))
            .transpose()
    }

    fn in_range(
        &self,
        key: &str,
        value: &Value,
        least: f64,
        most: f64,
    ) -> Result<f64, NetworkError> {
        let number = match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return Err(self.kind(key, value, "a number")),
        };
        match (least..=most).contains(&number) {
            true => Ok(number),
            false => Err(self.wrong(Wrong::range(key, number, format!("{least} to {most}")))),
        }
    }

    /// A single value as text.
    fn text(&self, key: &str, value: &Value) -> Result<String, NetworkError> {
        match value {
            Value::String(text) if key == "medium" => Ok(text.clone()),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(value.to_string()),
            other => Err(self.kind(key, other, "a number, or true or false")),
        }
    }

    /// Returns the description if its name is valid.
    fn named(&self, description: Description) -> Result<Description, NetworkError> {
        let name = &description.name;
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match (1..=64).contains(&name.len()) && name.chars().all(fine) {
            true => Ok(description),
            false => {
                let wanted = "1 to 64 lower-case letters, digits and \"-\"";
                Err(self.kind("name", &Value::String(name.clone()), wanted))
            }
        }
    }

    fn wrong(&self, wrong: Wrong) -> NetworkError {
        let Wrong {
            key,
            value,
            expected,
        } = wrong;
        let file = self.file.to_owned();
        match expected {
            Expected::Kind(wanted) => NetworkError::BadValue {
                file,
                key,
                value,
                wanted,
            },
            Expected::Range(range) => NetworkError::OutOfRange {
                file,
                key,
                value,
                range,
            },
        }
    }

    fn kind(&self, key: &str, value: &Value, wanted: &'static str) -> NetworkError {
        NetworkError::BadValue {
            file: self.file.into(),
            key: key.into(),
            value: value.to_string(),
            wanted,
        }
    }

    fn missing(&self, key: &'static str) -> NetworkError {
        let file = self.file.to_owned();
        NetworkError::Missing { file, key }
    }

    fn unknown(&self, key: String) -> NetworkError {
        let file = self.file.to_owned();
        NetworkError::UnknownKey { file, key }
    }
}

/// The error in the description of a network.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// There is no network of this name.
    #[error("there is no network \"{name}\"; known are {known}, and any file, as in ./{name}.toml")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The file cannot be read.
    #[error("the network in {file}: {cause}")]
    Unread {
        /// As it was given.
        file: String,
        /// The system's own words.
        cause: String,
    },
    /// The file is not TOML.
    #[error("the network in {file} is not TOML: {cause}")]
    Syntax {
        /// As it was given.
        file: String,
        /// The place, and the parser's error.
        cause: String,
    },
    /// There is no such key.
    #[error("the network in {file}: there is no key \"{key}\"")]
    UnknownKey {
        /// As it was given.
        file: String,
        /// The key.
        key: String,
    },
    /// A required key is missing.
    #[error("the network in {file}: the key \"{key}\" is missing")]
    Missing {
        /// As it was given.
        file: String,
        /// The key.
        key: &'static str,
    },
    /// A value is of the wrong kind.
    #[error("the network in {file}: \"{key}\" is {wanted}, not {value}")]
    BadValue {
        /// As it was given.
        file: String,
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A value is too small or too large.
    #[error("the network in {file}: \"{key}\" is {range}, not {value}")]
    OutOfRange {
        /// As it was given.
        file: String,
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it may be.
        range: String,
    },
}

dhole_model::debug_in_words!(NetworkError);

impl dhole_node::IntoError for NetworkError {}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "name = \"x\"\nabout = \"y\"\nmedium = \"links\"\nlatency_ns = 1\n\
                         bytes_per_second = 2\nsend_ns = 3\nreceive_ns = 4\n";

    fn error(change: impl Fn(&str) -> String) -> NetworkError {
        Description::parse("f.toml", &change(LEAST)).unwrap_err()
    }

    fn with(line: &str) -> NetworkError {
        error(|least| format!("{line}\n{least}"))
    }

    #[test]
    fn every_preset_can_be_read_and_is_called_as_it_is_named() {
        for name in Description::known() {
            let found = Description::find(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.name, name);
            assert!(!found.about.is_empty());
        }
    }

    #[test]
    fn the_default_network_is_described_as_it_is() {
        let described = Description::find("default").unwrap();
        assert_eq!(described.network, Network::default());
        assert_eq!((described.unit_ns, described.compute_scale), (None, 1.0));
    }

    #[test]
    fn what_may_be_left_out_is_none() {
        let least = Description::parse("f.toml", LEAST).unwrap().network;
        let expected = Network {
            latency_ns: 1,
            bytes_per_second: 2,
            send_ns: 3,
            receive_ns: 4,
            ..Network::default()
        };
        assert_eq!(least, expected);
    }

    #[test]
    fn a_key_that_is_missing_or_unknown_is_named() {
        let file = || "f.toml".to_owned();
        for key in [
            "latency_ns",
            "bytes_per_second",
            "send_ns",
            "receive_ns",
            "medium",
            "about",
        ] {
            let rest = |least: &str| {
                let others = least.lines().filter(|line| !line.starts_with(key));
                others.collect::<Vec<_>>().join("\n")
            };
            assert_eq!(error(rest), NetworkError::Missing { file: file(), key });
        }
        for (line, key) in [
            ("latencyns = 1", "latencyns"),
            ("handling_ns.dance = 1", "handling_ns.dance"),
            ("making_ns.dance = 1", "making_ns.dance"),
            ("published.dance_us = 1", "published.dance_us"),
        ] {
            let key = key.to_owned();
            assert_eq!(with(line), NetworkError::UnknownKey { file: file(), key });
        }
    }

    #[test]
    fn a_value_that_cannot_be_is_named_with_its_range() {
        for (line, says) in [
            ("jitter = -0.5", "\"jitter\" is 0 to 1, not -0.5"),
            ("jitter = nan", "\"jitter\" is 0 to 1, not NaN"),
            ("loss = 0.6", "\"loss\" is 0 to 0.5, not 0.6"),
            ("hub_nodes = 1025", "\"hub_nodes\" is 0 to 1024, not 1025"),
            (
                "interrupt_ns = 4000000000000",
                "0 to 3600000000000, not 4000000000000",
            ),
            (
                "interrupt_ns = -1",
                "\"interrupt_ns\" is a whole number, not -1",
            ),
            (
                "interrupt_ns = 1.5",
                "\"interrupt_ns\" is a whole number, not 1.5",
            ),
            (
                "interrupt_ns = \"1\"",
                "a number, or true or false, not \"1\"",
            ),
            ("cut_through = 1", "\"cut_through\" is true or false, not 1"),
            ("unit_ns = -1", "\"unit_ns\" is 0 to 1000000000, not -1"),
            (
                "compute_scale = 0",
                "\"compute_scale\" is 0.000001 to 1000000, not 0",
            ),
            (
                "handling_ns.fetch = -1",
                "\"handling_ns.fetch\" is a whole number, not -1",
            ),
            (
                "published.round_trip_us = 0",
                "\"published.round_trip_us\" is",
            ),
            ("handling_ns = 1", "\"handling_ns\" is a table, not 1"),
            (
                "loss = 0.1",
                "\"retransmit_ns\" is at least 1 where messages can be lost, not 0",
            ),
        ] {
            let said = with(line).to_string();
            assert!(said.starts_with("the network in f.toml: "), "{said}");
            assert!(said.contains(says), "{line}: {said}");
        }
        let medium = error(|least| least.replace("links", "string")).to_string();
        assert!(
            medium.contains("\"links\", \"switch\" or \"hubs\", not string"),
            "{medium}"
        );
        let name = error(|least| least.replace("\"x\"", "\"a,b\"")).to_string();
        assert!(name.contains("\"name\" is 1 to 64"), "{name}");
        assert!(with("latency_ns = 7").to_string().contains("is not TOML"));
    }

    #[test]
    fn a_network_that_is_not_there_is_named_with_those_that_are() {
        let said = Description::find("dosa").unwrap_err().to_string();
        assert!(
            said.contains("\"dosa\"") && said.contains("orca-myrinet"),
            "{said}"
        );
        for file in ["/nowhere/n.toml", "/", "/dev/zero"] {
            let said = Description::find(file).unwrap_err();
            assert!(matches!(said, NetworkError::Unread { .. }), "{said}");
        }
    }
}
