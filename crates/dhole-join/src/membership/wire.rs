//! A connection while its two ends get to know each other.

use std::io::{self, ErrorKind};
use std::time::Instant;

use super::channel::Channel;
use super::error::HandshakeError;
use super::poll;

/// A channel, where it leads, and what is still to be sent over it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub channel: Channel,
    pub address: String,
    pub out: Vec<u8>,
}

/// What a read brought.
pub(crate) enum Received<'a> {
    Bytes(&'a [u8]),
    Nothing,
    End,
}

impl Wire {
    pub fn new(channel: Channel, address: String) -> Wire {
        Wire {
            channel,
            address,
            out: Vec::new(),
        }
    }

    /// Sends what there is room for.
    pub fn flush(&mut self) -> Result<(), HandshakeError> {
        while !self.out.is_empty() {
            match self.channel.write(&self.out) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) => return Err(HandshakeError::Broken(cause.to_string())),
            }
        }
        Ok(())
    }

    /// Sends everything, or as much as goes until `until`.
    pub fn flush_until(&mut self, until: Instant) -> Result<(), HandshakeError> {
        loop {
            self.flush()?;
            let left = until.saturating_duration_since(Instant::now());
            if self.out.is_empty() || left.is_zero() {
                return Ok(());
            }
            poll::writable(&self.channel, left)
                .map_err(|cause| HandshakeError::Broken(cause.to_string()))?;
        }
    }

    /// Reads at most as many bytes as fit.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> Result<Received<'a>, HandshakeError> {
        match self.channel.read(buffer) {
            Ok(0) => Ok(Received::End),
            Ok(count) => Ok(Received::Bytes(&buffer[..count])),
            Err(cause) if is_nothing(&cause) => Ok(Received::Nothing),
            // A write has found before that the connection is reset.
            Err(cause) if cause.kind() == ErrorKind::NotConnected => Ok(Received::End),
            Err(cause) if self.channel.binding().is_none() => {
                Err(HandshakeError::Encryption(cause.to_string()))
            }
            Err(cause) => Err(HandshakeError::Broken(cause.to_string())),
        }
    }

    /// Sends the last words and says that nothing follows.
    pub fn part(mut self) {
        // It is of no use any more; whether the peer learns why is as it may.
        let _ = self.flush();
        self.channel.end();
    }
}

fn is_nothing(cause: &io::Error) -> bool {
    matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
