//! Whether the payload of a message is longer than what the message names.

#[cfg(test)]
mod tests;

use dhole_model::NodeId;
use dhole_protocol::{PayloadOf, ProtocolError};

use crate::step::Step;

/// Refuses a message whose payload is longer than what it names. One that is shorter is refused
/// where its bytes are taken.
///
/// # Errors
/// [`ProtocolError::BadMessage`]; nothing was taken.
#[inline]
pub(crate) fn check_payload(
    from: NodeId,
    payload: PayloadOf<'_>,
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let named = match payload {
        PayloadOf::Bytes(bytes) => bytes,
        PayloadOf::Page => dhole_heap::PAGE_BYTES,
        // An id that is not known here is refused where its bytes are taken.
        PayloadOf::Objects(sent) => {
            let bytes = |oid| step.heap.see_bytes_of(oid).ok();
            match sum(sent.iter().map(|sent| sent.region), bytes) {
                Some(bytes) => bytes,
                None => return Ok(()),
            }
        }
        PayloadOf::Elements(sent) => {
            let bytes = |elements| step.heap.bytes_of_elements(elements).ok();
            match sum(sent.iter().map(|sent| sent.region), bytes) {
                Some(bytes) => bytes,
                None => return Ok(()),
            }
        }
        PayloadOf::Value => return Ok(()),
    };
    if step.payload.len() as u64 <= named {
        return Ok(());
    }
    let what = "a message holds more bytes than it names";
    Err(ProtocolError::BadMessage { from, what })
}

/// All bytes of these, where all are known.
fn sum<T>(these: impl Iterator<Item = T>, bytes: impl FnMut(T) -> Option<usize>) -> Option<u64> {
    let mut all = these.map(bytes);
    all.try_fold(0_u64, |all, bytes| Some(all.saturating_add(bytes? as u64)))
}
