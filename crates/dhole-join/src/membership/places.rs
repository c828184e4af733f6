//! Where a node can be reached.

use ring::digest;

use super::error::HandshakeError;
use super::frame::{Body, put_run};

/// Where a node can be reached, and from where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// Names the machine, or that part of it whose processes reach each other by names.
    pub machine: String,
    /// Its address for TCP; empty where it has none.
    pub tcp: String,
    /// Its name on the machine; empty where it has none.
    pub unix: String,
}

impl Places {
    /// The most bytes of one of them.
    pub(crate) const MOST_BYTES: usize = 300;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for text in [&self.machine, &self.tcp, &self.unix] {
            put_run(text.as_bytes(), out);
        }
    }

    pub(crate) fn read(body: &mut Body<'_>) -> Result<Places, HandshakeError> {
        let mut text = || match body.text() {
            Ok(text) if text.len() > Self::MOST_BYTES => Err(HandshakeError::Malformed {
                what: "an address that is too long",
            }),
            text => text.map(str::to_owned),
        };
        Ok(Places {
            machine: text()?,
            tcp: text()?,
            unix: text()?,
        })
    }

    /// Whether the two share a machine, and so can share memory.
    pub(crate) fn near(&self, other: &Places) -> bool {
        !self.machine.is_empty() && self.machine == other.machine
    }
}

/// Names this machine since it was started, and the network names that this process sees. Empty
/// where the system does not say: then nothing is near.
pub(crate) fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let Ok(names) = std::fs::read_link("/proc/self/ns/net") else {
        return String::new();
    };
    if boot.is_empty() {
        return String::new();
    }
    let both = format!("{} {}", boot.trim(), names.display());
    let digest = digest::digest(&digest::SHA256, both.as_bytes());
    let short = &digest.as_ref()[..8];
    short.iter().map(|byte| format!("{byte:02x}")).collect()
}
