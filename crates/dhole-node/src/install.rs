//! Installing the objects of a message's payload.

use dhole_heap::InstallError;
use dhole_model::Oid;
use dhole_protocol::{ProtocolError, Sent};

use crate::count::Counting;
use crate::step::{Step, bad};

/// Makes the next object in the payload the copy here.
#[inline]
pub(crate) fn install(
    sent: Sent,
    counting: &mut Counting,
    owned: &mut Vec<Oid>,
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let installed = step.heap.install_first(sent.oid, step.payload);
    let (info, bytes) = installed.map_err(|refused| refuses(sent, &refused))?;
    let (object, rest) = step.payload.split_at(bytes);
    step.payload = rest;
    counting.installed(info.name, bytes);
    if info.owns {
        step.heap.owned(sent.oid, object, owned);
    }
    Ok(())
}

#[cold]
fn refuses(sent: Sent, refused: &InstallError) -> ProtocolError {
    match refused {
        InstallError::Length { .. } => bad(sent, "a reply holds fewer bytes than its objects"),
        refused => ProtocolError::NotStored {
            oid: sent.oid,
            cause: refused.to_string(),
        },
    }
}
