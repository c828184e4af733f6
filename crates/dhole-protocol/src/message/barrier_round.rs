//! The bytes of a round of a barrier: whole words, which the receiver may take without making a
//! message of them.

use super::Message;
use crate::barrier::BarrierRound;
use crate::objects::number;

/// How they begin: no other message's bytes do, for these are numbers that are written longer than
/// need be.
const ROUND: [u8; 2] = [0x84, 0];

const BYTES: usize = 24;

/// Whether bytes are those of such a message, if they are a message.
#[inline]
pub fn is_begun_by(bytes: &[u8]) -> bool {
    bytes.starts_with(&ROUND)
}

/// The bytes of what a node says to which so much of the objects' order was delivered. Its site is
/// not among them.
#[inline]
pub fn bytes(said: &BarrierRound, delivered: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..2].copy_from_slice(&ROUND);
    bytes[2] = u8::from(said.news);
    bytes[3] = said.round;
    bytes[4..8].copy_from_slice(&said.place.to_le_bytes());
    bytes[8..16].copy_from_slice(&said.number.to_le_bytes());
    bytes[16..].copy_from_slice(&delivered.to_le_bytes());
    bytes
}

/// The bytes of a message, if it is such a one and says no site.
pub(super) fn encode(message: &Message) -> Option<[u8; BYTES]> {
    let (message, delivered) = match message {
        Message::After { delivered, carrier } => (&**carrier, *delivered),
        message => (message, 0),
    };
    match *message {
        Message::BarrierRound(said) if said.site.is_none() => Some(bytes(&said, delivered)),
        _ => None,
    }
}

/// What these bytes say, and after what of the objects' order, if they are such a message.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<(BarrierRound, u64)> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let ([0x84, 0, news @ (0 | 1), round, place @ ..], rest) = bytes.split_first_chunk::<8>()?
    else {
        return None;
    };
    let (barrier, rest) = number(rest)?;
    let (delivered, _) = number(rest)?;
    let said = BarrierRound {
        number: barrier,
        round: *round,
        news: *news == 1,
        place: u32::from_le_bytes(*place),
        site: None,
    };
    Some((said, delivered))
}

#[cfg(test)]
mod tests {
    use dhole_model::CallSite;

    use super::*;

    fn round(site: Option<CallSite>) -> Message {
        Message::BarrierRound(BarrierRound {
            number: 1 << 40,
            round: u8::MAX,
            news: true,
            place: u32::MAX,
            site,
        })
    }

    fn bytes_of(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
        bytes
    }

    #[test]
    fn they_come_back_as_they_were_and_no_others_begin_so() {
        for delivered in [0, 1, 77, u64::MAX] {
            let bytes = bytes_of(&round(None).after(delivered));
            assert!(is_begun_by(&bytes) && bytes.len() == BYTES);
        }
        for delivered in (0..1 << 16).chain([u64::MAX]) {
            let site = Some(CallSite::caller());
            assert!(!is_begun_by(&bytes_of(&round(site).after(delivered))));
        }
    }

    #[test]
    fn what_is_too_short_too_long_or_says_what_nobody_says_is_none() {
        let whole = bytes_of(&round(None));
        for end in 2..BYTES {
            assert!(Message::decode(&whole[..end]).is_err());
        }
        assert!(Message::decode(&[&whole[..], &[0]].concat()).is_err());
        for (place, byte) in [(1, 1), (2, 2)] {
            let mut bytes = whole.clone();
            bytes[place] = byte;
            assert!(Message::decode(&bytes).is_err());
        }
    }
}
