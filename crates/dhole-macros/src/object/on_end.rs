//! The method that says what is left of an object at the end of a run.

use proc_macro2::Ident;
use syn::{Error, FnArg, ImplItemFn, ReceiverKind, Result, ReturnType, Safety, Visibility};

use super::operation::{ON_END, takes_attribute};

/// Reads the method, if it is one, and removes its attribute: its name.
pub(super) fn on_end(function: &mut ImplItemFn) -> Result<Option<Ident>> {
    if !takes_attribute(function, ON_END) {
        return Ok(None);
    }
    let signature = &function.sig;
    if !matches!(function.vis, Visibility::Inherited) {
        let what = "the runtime calls what is `#[on_end]`, and no program: it is not `pub`";
        return Err(Error::new_spanned(&function.vis, what));
    }
    let plain = signature.generics.params.is_empty()
        && signature.asyncness.is_none()
        && matches!(signature.safety, Safety::Default)
        && matches!(signature.output, ReturnType::Type(..));
    let inputs: Vec<_> = signature.inputs.iter().collect();
    match inputs[..] {
        [FnArg::Receiver(receiver)]
            if plain && matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) =>
        {
            Ok(Some(signature.ident.clone()))
        }
        _ => {
            let what = "what is `#[on_end]` is `fn name(&self) -> Option<String>`";
            Err(Error::new_spanned(signature, what))
        }
    }
}
