//! Memory that other nodes may fetch from and store into, as far as a capability allows it
//! (PEACE's tickets: VOTE, section 3).

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock, TryLockError, Weak};

use dhole_model::NodeId;
use dhole_model::unpoisoned::{lock, read, write};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

use super::RpcRefusal;
use super::place::{KEY, Place};

/// The most capabilities that are good at a time on one node.
const MOST_CAPABILITIES: usize = 1 << 16;

/// What a capability allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rights {
    /// Fetching.
    Read,
    /// Storing.
    Write,
    /// Both.
    ReadWrite,
}

impl Rights {
    fn read(self) -> bool {
        self != Rights::Write
    }

    fn write(self) -> bool {
        self != Rights::Read
    }

    fn code(self) -> u8 {
        self as u8
    }

    fn from_code(code: u8) -> Option<Rights> {
        let all = [Rights::Read, Rights::Write, Rights::ReadWrite];
        all.get(usize::from(code)).copied()
    }
}

/// The right to fetch from, or store into, part of the memory of a node, which alone can make one.
/// Whoever has its bytes has the right, until the owner takes it back; what it says of length and
/// rights the owner knows better.
#[derive(Clone, PartialEq, Eq)]
pub struct Capability {
    owner: NodeId,
    rights: Rights,
    bytes: u64,
    key: [u8; KEY],
}

impl Capability {
    /// Bytes of one as [`to_bytes`](Capability::to_bytes) makes them.
    pub const BYTES: usize = 2 + 1 + 8 + KEY;

    /// Part of the memory that it is for.
    pub(super) fn place(&self, offset: usize, bytes: usize) -> Place {
        Place {
            key: self.key,
            offset: offset as u64,
            bytes: bytes as u64,
        }
    }

    /// Whose memory it is for.
    pub fn owner(&self) -> NodeId {
        self.owner
    }

    /// What it allows.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Bytes of the memory that it is for.
    pub fn len(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Whether it is for nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// As bytes, to be handed to another node.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..2].copy_from_slice(&self.owner.0.to_le_bytes());
        bytes[2] = self.rights.code();
        bytes[3..11].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[11..].copy_from_slice(&self.key);
        bytes
    }

    /// One that came as bytes; nothing where these are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Capability> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (mut length, mut key) = ([0; 8], [0; KEY]);
        length.copy_from_slice(&bytes[3..11]);
        key.copy_from_slice(&bytes[11..]);
        Some(Capability {
            owner: NodeId(u16::from_le_bytes([bytes[0], bytes[1]])),
            rights: Rights::from_code(bytes[2])?,
            bytes: u64::from_le_bytes(length),
            key,
        })
    }
}

/// Without the key: what is logged would be as good as the capability.
impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Capability {
            owner,
            rights,
            bytes,
            ..
        } = self;
        write!(f, "Capability({rights:?} {bytes} bytes of {owner})")
    }
}

/// Why no capability was made.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum GrantError {
    /// The memory is not that long.
    #[error("granting bytes {} to {} of a memory of {bytes}", .range.start, .range.end)]
    TooFar {
        /// What was to be granted.
        range: Range<usize>,
        /// The bytes there are.
        bytes: usize,
    },
    /// There are too many.
    #[error("granting one more than {most} capabilities; some should be taken back")]
    TooMany {
        /// The most there may be.
        most: usize,
    },
    /// The system has no random numbers.
    #[error("granting a capability: the system gives no random numbers")]
    Random,
}

dhole_model::debug_in_words!(GrantError);

type Bytes = RwLock<Vec<u8>>;

struct Grant {
    memory: Weak<Bytes>,
    range: Range<usize>,
    rights: Rights,
}

/// What a node has granted.
#[derive(Default)]
pub(super) struct Grants {
    by_key: Mutex<HashMap<[u8; KEY], Grant>>,
}

impl Grants {
    /// The memory that a request may use, and which part of it.
    fn find(
        &self,
        place: &Place,
        allows: impl Fn(Rights) -> bool,
    ) -> Result<(Arc<Bytes>, Range<usize>), RpcRefusal> {
        let by_key = lock(&self.by_key);
        let grant = by_key.get(&place.key).ok_or(RpcRefusal::NotGood)?;
        let memory = grant.memory.upgrade().ok_or(RpcRefusal::NotGood)?;
        if !allows(grant.rights) {
            return Err(RpcRefusal::NotAllowed);
        }
        let end = place.offset.checked_add(place.bytes);
        let reaches = |end: &u64| *end <= grant.range.len() as u64;
        let end = end.filter(reaches).ok_or(RpcRefusal::TooFar)? as usize;
        let begin = grant.range.start;
        Ok((memory, begin + place.offset as usize..begin + end))
    }

    /// Shows the bytes that are to be fetched.
    pub fn read<T>(&self, place: &Place, see: impl FnOnce(&[u8]) -> T) -> Result<T, RpcRefusal> {
        let (memory, range) = self.find(place, Rights::read)?;
        // Whoever serves must not wait for the owner: it may be the same thread.
        let memory = not_in_use(memory.try_read())?;
        Ok(see(&memory[range]))
    }

    /// Lets bytes be stored.
    pub fn write(&self, place: &Place, store: impl FnOnce(&mut [u8])) -> Result<(), RpcRefusal> {
        let (memory, range) = self.find(place, Rights::write)?;
        let mut memory = not_in_use(memory.try_write())?;
        store(&mut memory[range]);
        Ok(())
    }
}

fn not_in_use<T>(locked: Result<T, TryLockError<T>>) -> Result<T, RpcRefusal> {
    match locked {
        Ok(bytes) => Ok(bytes),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(RpcRefusal::InUse),
    }
}

/// Memory of this node that others may use, as far as capabilities for it were handed out. When it
/// is dropped none of them is good any more.
pub struct Memory {
    owner: NodeId,
    bytes: Arc<Bytes>,
    grants: Arc<Grants>,
}

impl Memory {
    pub(super) fn new(owner: NodeId, bytes: Vec<u8>, grants: &Arc<Grants>) -> Memory {
        Memory {
            owner,
            bytes: Arc::new(RwLock::new(bytes)),
            grants: Arc::clone(grants),
        }
    }

    /// Makes a capability for part of the memory, to be handed to whoever may use it.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn grant(&self, range: Range<usize>, rights: Rights) -> Result<Capability, GrantError> {
        let bytes = self.read(<[u8]>::len);
        if range.start > range.end || range.end > bytes {
            return Err(GrantError::TooFar { range, bytes });
        }
        let mut key = [0; KEY];
        // So few bytes come whole or not at all (getrandom(2)).
        let filled = getrandom(&mut key, GetRandomFlags::empty());
        filled.map_err(|_| GrantError::Random)?;
        let mut by_key = lock(&self.grants.by_key);
        if by_key.len() >= MOST_CAPABILITIES {
            let most = MOST_CAPABILITIES;
            return Err(GrantError::TooMany { most });
        }
        let capability = Capability {
            owner: self.owner,
            rights,
            bytes: range.len() as u64,
            key,
        };
        let memory = Arc::downgrade(&self.bytes);
        let grant = Grant {
            memory,
            range,
            rights,
        };
        by_key.insert(key, grant);
        Ok(capability)
    }

    /// Takes a capability back, whoever has it; whether it was good.
    pub fn revoke(&self, capability: &Capability) -> bool {
        lock(&self.grants.by_key).remove(&capability.key).is_some()
    }

    /// Shows the bytes. Whoever would store meanwhile waits.
    pub fn read<T>(&self, see: impl FnOnce(&[u8]) -> T) -> T {
        see(&read(&self.bytes))
    }

    /// Lets the bytes be changed. Whoever would fetch or store meanwhile waits.
    pub fn write<T>(&self, change: impl FnOnce(&mut [u8]) -> T) -> T {
        change(&mut write(&self.bytes))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mine = Arc::downgrade(&self.bytes);
        let mut by_key = lock(&self.grants.by_key);
        by_key.retain(|_, grant| !grant.memory.ptr_eq(&mine));
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory of {}", self.owner)
    }
}
