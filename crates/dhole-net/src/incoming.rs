use crate::atomic::AtomicU64;
use crate::ring::unpack;

/// A frame that has come and lies where its port has it, so that who takes it copies it to where it
/// belongs, and nowhere else before.
///
/// It may lie in memory that its sender still can write. What is looked at is copied out first, and
/// stays as it was seen.
pub struct Incoming<'a>(FrameBytes<'a>);

/// Where the bytes of a frame are.
enum FrameBytes<'a> {
    /// In memory of this process.
    Local(&'a [u8]),
    /// In shared words.
    Shared {
        words: &'a [AtomicU64],
        bytes: usize,
        /// Its beginning, as far as it was looked at.
        seen: &'a mut Vec<u8>,
        /// How far: whole words, or all.
        up_to: usize,
    },
}

impl<'a> Incoming<'a> {
    /// A frame that lies in memory of this process.
    pub fn of(bytes: &'a [u8]) -> Incoming<'a> {
        Incoming(FrameBytes::Local(bytes))
    }

    /// A frame of `bytes` bytes in shared words. What is looked at is copied to `seen`.
    #[inline]
    pub(crate) fn shared(
        words: &'a [AtomicU64],
        bytes: usize,
        seen: &'a mut Vec<u8>,
    ) -> Incoming<'a> {
        Incoming(FrameBytes::Shared {
            words,
            bytes,
            seen,
            up_to: 0,
        })
    }

    /// Bytes of the frame.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            FrameBytes::Local(frame) => frame.len(),
            FrameBytes::Shared { bytes, .. } => *bytes,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `bytes` bytes, or all where there are fewer.
    #[inline]
    pub fn first(&mut self, bytes: usize) -> &[u8] {
        let bytes = bytes.min(self.len());
        match &mut self.0 {
            FrameBytes::Local(frame) => &frame[..bytes],
            FrameBytes::Shared {
                words,
                bytes: all,
                seen,
                up_to,
            } => {
                if bytes > *up_to {
                    let end = bytes.next_multiple_of(8).min(*all);
                    make_room(seen, end);
                    unpack(&words[*up_to / 8..end.div_ceil(8)], &mut seen[*up_to..end]);
                    *up_to = end;
                }
                &seen[..bytes]
            }
        }
    }

    /// All of it.
    #[inline]
    pub fn bytes(&mut self) -> &[u8] {
        self.first(usize::MAX)
    }

    /// Copies the bytes from `at` on, as many as `into` has.
    ///
    /// # Panics
    /// When the frame is shorter than that.
    #[inline]
    pub fn copy(&mut self, at: usize, into: &mut [u8]) {
        let end = at + into.len();
        assert!(end <= self.len(), "bytes behind a frame's end");
        self.first(at);
        match &mut self.0 {
            FrameBytes::Local(frame) => into.copy_from_slice(&frame[at..end]),
            FrameBytes::Shared {
                words, seen, up_to, ..
            } => {
                let (old, new) = into.split_at_mut(up_to.saturating_sub(at).min(end - at));
                old.copy_from_slice(&seen[at..at + old.len()]);
                if !new.is_empty() {
                    unpack(&words[*up_to / 8..end.div_ceil(8)], new);
                }
            }
        }
    }
}

/// Has `seen` hold so many bytes.
#[inline]
fn make_room(seen: &mut Vec<u8>, bytes: usize) {
    #[cold]
    fn grow(seen: &mut Vec<u8>, bytes: usize) {
        seen.resize(bytes, 0);
    }
    if seen.len() < bytes {
        grow(seen, bytes);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn shared(frame: &[u8]) -> Vec<AtomicU64> {
        let word = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            AtomicU64::new(u64::from_le_bytes(whole))
        };
        frame.chunks(8).map(word).collect()
    }

    #[test]
    fn any_part_is_copied_from_anywhere_after_any_look() {
        for len in [0, 1, 7, 8, 9, 24, 600, 1_023] {
            let frame: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let words = shared(&frame);
            for looked in [0, 1, 8, 13, len] {
                for at in [0, 1, 7, 8, 17, len].into_iter().filter(|&at| at <= len) {
                    for bytes in [0, 1, 8, 521, len - at] {
                        let bytes = bytes.min(len - at);
                        let mut seen = Vec::new();
                        let lying = Incoming::shared(&words, len, &mut seen);
                        for mut incoming in [lying, Incoming::of(&frame)] {
                            let first = incoming.first(looked);
                            assert_eq!(first, &frame[..looked.min(len)]);
                            let mut into = vec![0; bytes];
                            incoming.copy(at, &mut into);
                            assert_eq!(into, frame[at..at + bytes]);
                            assert_eq!(incoming.bytes(), frame);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_seen_stays_though_its_sender_writes_on() {
        let words = shared(&[1; 32]);
        let mut seen = Vec::new();
        let mut incoming = Incoming::shared(&words, 32, &mut seen);
        assert_eq!(incoming.first(8), [1; 8]);
        words
            .iter()
            .for_each(|word| word.store(0x0202_0202_0202_0202, Ordering::Relaxed));
        assert_eq!(incoming.first(8), [1; 8]);
        let mut into = [0; 12];
        incoming.copy(0, &mut into);
        assert_eq!(into, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(incoming.bytes()[..12], into);
    }
}
