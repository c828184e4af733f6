//! Numbers of seven bits a byte, for lists in which most are small. Each number has one form: the
//! shortest.

use super::{Tail, WireError};

/// Bytes of a number.
#[inline]
pub fn varint_len(number: u64) -> usize {
    (number | 1).ilog2() as usize / 7 + 1
}

/// Appends a number, its lowest bits first.
#[inline]
pub fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number.
///
/// # Errors
/// [`WireError`] when the bytes end before it, when it is longer than need be, or beyond 64 bits.
#[inline]
pub fn take_varint(from: &mut Tail<'_>) -> Result<u64, WireError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = from.bytes(1)?[0];
        let bits = u64::from(byte & 0x7f);
        number |= bits << shift;
        if byte & 0x80 == 0 {
            if bits == 0 && shift > 0 || bits << shift >> shift != bits {
                break;
            }
            return Ok(number);
        }
    }
    Err(WireError::Value(
        "a number that is longer than need be, or beyond 64 bits",
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_has_one_form_and_none_is_beyond_64_bits() {
        let take = |bytes: &[u8]| take_varint(&mut Tail::new(bytes));
        assert_eq!(take(&[0]), Ok(0));
        assert!(take(&[0x80, 0]).is_err() && take(&[0x80]).is_err());
        let mut most = vec![0xff; 9];
        most.push(1);
        assert_eq!(take(&most), Ok(u64::MAX));
        most[9] = 2;
        assert!(take(&most).is_err());
        most[9] = 0x81;
        most.push(0);
        assert!(take(&most).is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back(bits in 0..64_u32, number in any::<u64>()) {
            let number = number >> bits;
            let mut bytes = Vec::new();
            write_varint(number, &mut bytes);
            prop_assert_eq!(bytes.len(), varint_len(number));
            let mut tail = Tail::new(&bytes);
            prop_assert_eq!(take_varint(&mut tail), Ok(number));
            prop_assert!(tail.end().is_ok());
        }
    }
}
