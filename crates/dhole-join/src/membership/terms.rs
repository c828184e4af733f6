//! What must be alike on both sides of a connection, and where a node can be reached.

use super::build_id::BuildId;
use super::error::HandshakeError;
use super::frame::{Body, put_run};
use super::places::Places;

/// The version of everything that processes say to each other.
pub const PROTOCOL_VERSION: u32 = 1;

/// What a node tells the other once both have proved that they know the secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The version of the protocol.
    pub version: u32,
    /// The build of the program.
    pub build: BuildId,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Settings by their names, which must be alike.
    pub settings: Vec<(String, String)>,
    /// Where this node listens for those of higher numbers.
    pub places: Places,
}

impl Terms {
    /// The most settings there can be.
    pub(crate) const MOST_SETTINGS: usize = 32;
    /// The most bytes of a setting's name, or of its value.
    pub(crate) const MOST_SETTING_BYTES: usize = 200;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        put_run(self.build.as_bytes(), out);
        out.extend_from_slice(&(self.nodes as u16).to_le_bytes());
        self.places.write(out);
        out.extend_from_slice(&(self.settings.len() as u16).to_le_bytes());
        for (name, value) in &self.settings {
            put_run(name.as_bytes(), out);
            put_run(value.as_bytes(), out);
        }
    }

    /// Reads what a peer says. Another version may mean everything behind it differently, so it is
    /// compared before that is read.
    pub(crate) fn read(bytes: &[u8], ours: &Terms) -> Result<Terms, HandshakeError> {
        let mut body = Body(bytes);
        let version = body.u32()?;
        if version != ours.version {
            return Err(HandshakeError::Version {
                ours: ours.version,
                theirs: version,
            });
        }
        let build = BuildId::from_bytes(body.run()?).ok_or(HandshakeError::Malformed {
            what: "a build id that is too long",
        })?;
        let nodes = usize::from(body.u16()?);
        let places = Places::read(&mut body)?;
        let count = usize::from(body.u16()?);
        if count > Self::MOST_SETTINGS {
            return Err(HandshakeError::Malformed {
                what: "too many settings",
            });
        }
        let mut settings = Vec::with_capacity(count);
        for _ in 0..count {
            settings.push((body.text()?.to_owned(), body.text()?.to_owned()));
        }
        body.end()?;
        Ok(Terms {
            version,
            build,
            nodes,
            settings,
            places,
        })
    }

    /// Finds what differs. Both sides find the same, each from its own point of view.
    pub(crate) fn compare(&self, theirs: &Terms) -> Result<(), HandshakeError> {
        if self.build != theirs.build {
            return Err(HandshakeError::Build {
                ours: self.build.clone(),
                theirs: theirs.build.clone(),
            });
        }
        if self.nodes != theirs.nodes {
            return Err(HandshakeError::Nodes {
                ours: self.nodes,
                theirs: theirs.nodes,
            });
        }
        let all = self.settings.iter().chain(&theirs.settings);
        let mut names: Vec<&String> = all.map(|(name, _)| name).collect();
        names.sort();
        let differs = names
            .into_iter()
            .find(|name| self.setting(name) != theirs.setting(name));
        match differs {
            None => Ok(()),
            Some(name) => Err(HandshakeError::Setting {
                name: name.clone(),
                ours: self.setting(name).cloned(),
                theirs: theirs.setting(name).cloned(),
            }),
        }
    }

    fn setting(&self, name: &str) -> Option<&String> {
        let mut settings = self.settings.iter();
        settings.find(|(n, _)| n == name).map(|(_, value)| value)
    }
}
