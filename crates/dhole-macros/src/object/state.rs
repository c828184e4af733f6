//! How the state of an object becomes bytes, or that it never does (VOTE, section 3.3).

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

/// What a type says of its state.
pub(super) fn state(ty: &Type, resident: bool, private: &TokenStream) -> TokenStream {
    if resident {
        return quote!(
            const RESIDENT: bool = true;
        );
    }
    // An error of the compiler stands at the name of the type.
    let save = quote_spanned!(ty.span()=> #private::save::<#ty>(self));
    let restore = quote_spanned!(ty.span()=> #private::restore::<#ty>(bytes));
    quote! {
        fn save(&self) -> ::core::result::Result<#private::Bytes, #private::Malformed> {
            #save
        }

        fn restore(bytes: &[u8]) -> ::core::result::Result<Self, #private::Malformed> {
            #restore
        }
    }
}
