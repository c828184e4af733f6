//! What dhole derives and marks: [`Share`](derive@Share), [`object`](macro@object).
#![forbid(unsafe_code)]

mod object;
mod share;

use proc_macro::TokenStream;

/// Implements `Share` for a struct whose fields are all `Share`, or for an enum without fields.
///
/// It proves, or the program does not compile, that every field may be shared, that the type has
/// nothing to drop, and that its alignment is at most a page.
///
/// Whatever valid fields make a value of the type, even ones that no code of the program ever put
/// together: a node that merges what several have written takes each leaf from whoever wrote it,
/// and bytes that come are tested leaf by leaf. A type that promises more of its fields than their
/// types do, and lets `unsafe` code rely on it, must not be shared.
///
/// `#[share(nullable)]` on a `#[repr(transparent)]` struct of one field, whose `Option` may be
/// shared, such as a `Ref`: an `Option` of the struct may be shared then, and is no larger.
///
/// `#[share(bound = "predicates")]` asks this of the type's parameters instead of `Share`: for
/// types that only name others. Every field must be `Share` all the same.
///
/// `#[share(crate = "path")]` names the crate through which the generated code finds the trait,
/// where that is not `dhole`.
#[proc_macro_derive(Share, attributes(share))]
pub fn derive_share(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    share::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes the values of a type shared objects: the `pub` methods of the `impl` that take `&self` or
/// `&mut self` become operations, which the handle `Object` has with the worker before their
/// arguments, and which return a `Result`.
///
/// Operations with `&self` only read. One that is marked `#[when(condition)]` waits until the
/// condition is true; it may speak of `self` and, by reference, of the arguments. Arguments and
/// results are given by value and can be written as bytes (serde). Methods that are not `pub`, and
/// functions without `self`, stay what they are. The state of an object must be the same on every
/// node: operations must do the same wherever they are executed.
///
/// One method may be marked `#[on_loss]`: `fn name(&mut self, node: NodeId)`, which is not `pub`.
/// In a run that survives the loss of nodes the runtime executes it on every copy of the object
/// when a node is lost, in the same order with all operations everywhere. Then the operations that
/// wait are tried again.
///
/// `#[object(crate = "path")]` names the crate through which the generated code finds its own,
/// where that is not `dhole`.
#[proc_macro_attribute]
pub fn object(arguments: TokenStream, input: TokenStream) -> TokenStream {
    object::object(arguments.into(), input.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
