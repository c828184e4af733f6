//! Derives of dhole: [`Share`](derive@Share).
#![forbid(unsafe_code)]

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
/// `#[share(crate = "path")]` names the crate through which the generated code finds the trait,
/// where that is not `dhole`.
#[proc_macro_derive(Share, attributes(share))]
pub fn derive_share(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    share::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
