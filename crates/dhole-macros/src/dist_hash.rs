//! Implements the derive of `DistHash`: every field is a key.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, parse_quote};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let arms = match &input.data {
        Data::Struct(data) => vec![arm(&quote!(#name), &data.fields)],
        Data::Enum(data) => {
            let variants = data.variants.iter();
            let arm = |it: &syn::Variant| {
                let variant = &it.ident;
                arm(&quote!(#name::#variant), &it.fields)
            };
            variants.map(arm).collect()
        }
        Data::Union(_) => {
            let why = "a union is no key: which of its bytes are data is not known";
            return Err(Error::new_spanned(name, why));
        }
    };
    let mut generics = input.generics.clone();
    for param in &mut generics.params {
        match param {
            GenericParam::Type(param) => {
                param
                    .bounds
                    .push(parse_quote!(::dhole::collections::DistHash));
            }
            GenericParam::Lifetime(param) => {
                let why = "a key does not borrow, for it goes to other nodes: hold the value, as a \
                           `String` in place of a `&str`";
                return Err(Error::new_spanned(param, why));
            }
            GenericParam::Const(_) => {}
        }
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::dhole::collections::DistHash for #name #type_generics #where_clause {}
        const _: () = {
            #[allow(dead_code, unreachable_code, deprecated)]
            fn fields #impl_generics (it: &#name #type_generics) #where_clause {
                fn is_key<K: ::dhole::collections::DistHash>(_: &K) {}
                match *it {
                    #(#arms)*
                    #[allow(unreachable_patterns)]
                    _ => {}
                }
            }
        };
    })
}

/// Names each field of a struct or a variant, with its type. The span of the type is where a type
/// that is no key is reported.
fn arm(of: &TokenStream, fields: &Fields) -> TokenStream {
    let members = fields.members();
    let names: Vec<_> = (0..fields.len())
        .map(|i| format_ident!("field_{i}"))
        .collect();
    let checks = fields.iter().zip(&names).map(|(field, name)| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> is_key::<#ty>(#name);)
    });
    quote!(#of { #(#members: ref #names),* } => { #(#checks)* })
}
