//! Installing the objects of a message's payload.

use dhole_heap::InstallError;
use dhole_protocol::{ProtocolError, Sent};

use crate::count::Counting;
use crate::graphs::Graphs;
use crate::step::{Step, bad};

/// Makes the next object in the payload the copy here.
#[inline]
pub(crate) fn install(
    sent: Sent,
    counting: &mut Counting,
    graphs: &mut Graphs,
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let installed = step.heap.install_first(sent.region, step.payload);
    let (info, bytes) = installed.map_err(|refused| refuses(sent, &refused))?;
    let (object, rest) = step.payload.split_at(bytes);
    step.payload = rest;
    counting.installed(info.name, bytes);
    if info.owns || graphs.learns() && !info.references.is_empty() {
        graphs.names(sent.region, object, None, step.heap);
    }
    Ok(())
}

#[cold]
fn refuses(sent: Sent, refused: &InstallError) -> ProtocolError {
    match refused {
        InstallError::Length { .. } => bad(sent, "a reply holds fewer bytes than its objects"),
        refused => ProtocolError::NotStored {
            oid: sent.region,
            cause: refused.to_string(),
        },
    }
}

/// Takes the next object's bytes out of the payload.
pub(crate) fn take<'a>(sent: Sent, step: &mut Step<'a, '_>) -> Result<&'a [u8], ProtocolError> {
    let oid = sent.region;
    let bytes = step
        .heap
        .see_bytes_of(oid)
        .map_err(|foreign| ProtocolError::NotStored {
            oid,
            cause: foreign.to_string(),
        })?;
    let Some((object, rest)) = step.payload.split_at_checked(bytes) else {
        return Err(bad(sent, "a reply holds fewer bytes than its objects"));
    };
    step.payload = rest;
    Ok(object)
}
