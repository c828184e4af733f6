//! Frames of the handshake: `DHJ1`, a kind, a length of four bytes, and that many bytes.

use dhole_model::Variants;

use super::error::HandshakeError;

/// What begins each frame; its last byte is the version of this framing.
const MAGIC: [u8; 4] = *b"DHJ1";
/// Bytes before a frame's body.
const HEADER_BYTES: usize = 9;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Who connects, to whom, and a nonce.
    Hello = 1,
    /// Who answers, a nonce, a proof.
    Challenge,
    /// The proof of the one who connects.
    Proof,
    /// What must be alike on both sides.
    Terms,
    /// Where everybody is.
    Table,
    /// This node is connected with all.
    Ready,
    /// All nodes are.
    Go,
    /// A node cannot join.
    Failed,
    /// The peer is refused, before anybody has proved anything.
    Refusal,
}

impl Kind {
    /// The most bytes of a body.
    fn most_bytes(self) -> usize {
        match self {
            Kind::Hello => 37,
            Kind::Challenge => 66,
            Kind::Proof => 32,
            Kind::Terms => 16 << 10,
            Kind::Table => 1 << 20,
            Kind::Ready | Kind::Go => 32,
            Kind::Failed => 4 << 10,
            Kind::Refusal => 1,
        }
    }
}

/// Adds a frame with this body.
pub(crate) fn write(kind: Kind, body: &[u8], out: &mut Vec<u8>) {
    debug_assert!(body.len() <= kind.most_bytes());
    out.extend_from_slice(&MAGIC);
    out.push(kind as u8);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(body);
}

/// Puts a frame together from the bytes that come. It asks for no byte behind the frame's last,
/// since what follows the handshake is somebody else's.
#[derive(Default, Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// Bytes that are still wanted, of a header or of a body.
    pub fn wants(&self) -> usize {
        self.expected() - self.buffer.len()
    }

    /// Bytes of the frame, as far as it is announced.
    fn expected(&self) -> usize {
        match self.buffer.get(5..HEADER_BYTES) {
            None => HEADER_BYTES,
            Some(length) => {
                let length: [u8; 4] = length.try_into().expect("four bytes were taken");
                HEADER_BYTES + u32::from_le_bytes(length) as usize
            }
        }
    }

    /// Takes bytes, at most as many as are [wanted](Reader::wants), and returns a frame when its
    /// last has come. Of a kind that is not among `expected`, or longer than its kind can be,
    /// nothing more than the header is ever kept.
    pub fn take(
        &mut self,
        bytes: &[u8],
        expected: &[Kind],
    ) -> Result<Option<(Kind, Vec<u8>)>, HandshakeError> {
        assert!(
            bytes.len() <= self.wants(),
            "no more is taken than is wanted"
        );
        self.buffer.extend_from_slice(bytes);
        let magic = self.buffer.len().min(MAGIC.len());
        if self.buffer[..magic] != MAGIC[..magic] {
            // A handshake of TLS, or an alert.
            return Err(match self.buffer[0] {
                0x15 | 0x16 => HandshakeError::Encrypts,
                _ => HandshakeError::NotDhole,
            });
        }
        if self.buffer.len() < HEADER_BYTES {
            return Ok(None);
        }
        let known = Kind::ALL
            .into_iter()
            .find(|kind| *kind as u8 == self.buffer[4]);
        let kind =
            known
                .filter(|kind| expected.contains(kind))
                .ok_or(HandshakeError::Malformed {
                    what: "a message that does not belong here",
                })?;
        let (bytes, most) = (self.expected() - HEADER_BYTES, kind.most_bytes());
        if bytes > most {
            let bytes = bytes as u64;
            return Err(HandshakeError::Oversized { bytes, most });
        }
        if self.wants() > 0 {
            return Ok(None);
        }
        let body = self.buffer.split_off(HEADER_BYTES);
        self.buffer.clear();
        Ok(Some((kind, body)))
    }

    /// What it means that no byte will come any more; `first` says that none was ever taken.
    pub fn ended(&self, first: bool) -> HandshakeError {
        match self.buffer.len() {
            0 if first => HandshakeError::NoWord,
            0 => HandshakeError::LeftEarly,
            had => HandshakeError::HalfFrame {
                had,
                expected: self.expected(),
            },
        }
    }
}

/// Reads numbers and bytes of a body, one after the other.
pub(crate) struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], HandshakeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(HandshakeError::Malformed {
                what: "a message that is too short",
            })?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], HandshakeError> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("as many bytes as the array has"))
    }

    pub fn u8(&mut self) -> Result<u8, HandshakeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, HandshakeError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, HandshakeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length of two bytes, and as many bytes.
    pub fn run(&mut self) -> Result<&'a [u8], HandshakeError> {
        let length = self.u16()?;
        self.bytes(usize::from(length))
    }

    /// Such a run that is text.
    pub fn text(&mut self) -> Result<&'a str, HandshakeError> {
        std::str::from_utf8(self.run()?).map_err(|_| HandshakeError::Malformed {
            what: "text that is none",
        })
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), HandshakeError> {
        match self.0 {
            [] => Ok(()),
            _ => Err(HandshakeError::Malformed {
                what: "a message that is too long",
            }),
        }
    }
}

/// Adds a length of two bytes and the bytes, cut where the length cannot say it.
pub(crate) fn put_run(bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}
