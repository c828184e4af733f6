//! What two flows say to each other: an acknowledgement in each datagram, and data in most.

/// The part of a datagram that acknowledges: a byte of flags, all numbers below which everything
/// has come, and which of the 64 behind the first missing one have.
const ACKNOWLEDGES: usize = 1 + 8 + 8;
/// The part before data: its number, and how long the frame is that begins with it.
const NUMBERS: usize = 8 + 4;
/// Bytes of a datagram that are not data.
pub(super) const OVERHEAD: usize = ACKNOWLEDGES + NUMBERS;

const DATA: u8 = 1;
const FIRST: u8 = 2;
const GOODBYE: u8 = 8;
const RESET: u8 = 16;
const SHARED: u8 = 32;

/// What is known at one end of what came from the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Acknowledgement {
    /// All fragments below this have come.
    pub below: u64,
    /// Bit `i`: fragment `below + 1 + i` has come too.
    pub beyond: u64,
}

/// A piece of a frame, or the goodbye.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fragment<B> {
    pub number: u64,
    pub place: Place,
    pub bytes: B,
}

/// Where in a frame a fragment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The first of a frame of so many bytes.
    First(u32),
    /// Any other of it.
    Further,
    /// Behind all frames.
    Goodbye,
}

/// A datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Datagram<'a> {
    /// The other side has given this one up.
    Reset,
    /// What has come, and perhaps something new.
    Sound(Acknowledgement, Option<Fragment<&'a [u8]>>),
    /// A whole frame that went to several: a fragment with another number for each of them.
    Shared(Numbers<'a>, &'a [u8]),
}

/// The numbers that a fragment has for each node of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbers<'a>(&'a [u8]);

/// Stands where a fragment has no number, for it is not for that node.
const NO_NUMBER: u64 = u64::MAX;

impl Numbers<'_> {
    /// That of node `index`, if it is for it.
    pub fn of(self, index: usize) -> Option<u64> {
        let number = self.0.chunks_exact(8).nth(index)?.first_chunk()?;
        Some(u64::from_le_bytes(*number)).filter(|number| *number != NO_NUMBER)
    }
}

/// Bytes of a shared datagram that are not data.
pub(super) fn shared_overhead(nodes: usize) -> usize {
    1 + 2 + 8 * nodes
}

/// The bytes before a frame that is shared; `numbers[n]` is its number for node `n`.
pub(super) fn shared_head(numbers: &[Option<u64>]) -> Vec<u8> {
    let mut head = Vec::with_capacity(shared_overhead(numbers.len()));
    head.push(SHARED);
    head.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
    for number in numbers {
        head.extend_from_slice(&number.unwrap_or(NO_NUMBER).to_le_bytes());
    }
    head
}

/// The bytes before those of `fragment`.
pub(super) fn head<B>(
    acknowledges: Acknowledgement,
    fragment: Option<&Fragment<B>>,
) -> ([u8; OVERHEAD], usize) {
    let mut head = [0; OVERHEAD];
    head[1..9].copy_from_slice(&acknowledges.below.to_le_bytes());
    head[9..17].copy_from_slice(&acknowledges.beyond.to_le_bytes());
    let Some(fragment) = fragment else {
        return (head, ACKNOWLEDGES);
    };
    let (flags, total) = match fragment.place {
        Place::First(total) => (DATA | FIRST, total),
        Place::Further => (DATA, 0),
        Place::Goodbye => (DATA | GOODBYE, 0),
    };
    head[0] = flags;
    head[17..25].copy_from_slice(&fragment.number.to_le_bytes());
    head[25..].copy_from_slice(&total.to_le_bytes());
    (head, OVERHEAD)
}

/// The datagram that says that the sender has given the receiver up.
pub(super) const RESET_DATAGRAM: [u8; 1] = [RESET];

/// What these bytes are, if they are a datagram.
pub(super) fn parse(bytes: &[u8]) -> Option<Datagram<'_>> {
    if bytes == RESET_DATAGRAM {
        return Some(Datagram::Reset);
    }
    let (&flags, rest) = bytes.split_first()?;
    if flags == SHARED {
        let (&nodes, rest) = rest.split_first_chunk()?;
        let numbers = 8 * usize::from(u16::from_le_bytes(nodes));
        let (numbers, bytes) = rest.split_at_checked(numbers)?;
        return Some(Datagram::Shared(Numbers(numbers), bytes));
    }
    let (&below, rest) = rest.split_first_chunk()?;
    let (&beyond, rest) = rest.split_first_chunk()?;
    let acknowledges = Acknowledgement {
        below: u64::from_le_bytes(below),
        beyond: u64::from_le_bytes(beyond),
    };
    if flags == 0 {
        return rest
            .is_empty()
            .then_some(Datagram::Sound(acknowledges, None));
    }
    let (&number, rest) = rest.split_first_chunk()?;
    let (&total, bytes) = rest.split_first_chunk()?;
    let total = u32::from_le_bytes(total);
    let place = match flags {
        flags if flags == DATA | FIRST => Place::First(total),
        DATA if total == 0 => Place::Further,
        flags if flags == DATA | GOODBYE && total == 0 && bytes.is_empty() => Place::Goodbye,
        _ => return None,
    };
    let number = u64::from_le_bytes(number);
    let fragment = Fragment {
        number,
        place,
        bytes,
    };
    Some(Datagram::Sound(acknowledges, Some(fragment)))
}
