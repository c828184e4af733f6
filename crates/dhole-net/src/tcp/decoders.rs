use super::frame::{HEADER, Next, next};

/// A stream of frames: they lie in it one behind the other, and none is longer than allowed.
pub fn frames(bytes: &[u8]) {
    const LARGEST: usize = 4_096;
    let mut rest = bytes;
    loop {
        match next(rest, LARGEST) {
            Next::Frame(frame) => {
                assert!(frame.len() <= LARGEST);
                rest = &rest[HEADER + frame.len()..];
            }
            Next::Goodbye => rest = &rest[HEADER..],
            Next::Partial(needed) => {
                assert!(needed > rest.len() && needed <= HEADER + LARGEST);
                return;
            }
            Next::TooLarge(length) => {
                assert!(length as usize > LARGEST);
                return;
            }
        }
    }
}
