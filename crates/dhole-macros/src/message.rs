//! The derive [`Message`](derive@crate::Message).

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, FnArg, Ident, Result, ReturnType, Token, Variant,
    Visibility, parenthesized,
};

/// A method whose result each variant says: `pub fn kind(..) -> MessageKind = default`.
struct Property {
    docs: Vec<Attribute>,
    visibility: Visibility,
    name: Ident,
    arguments: Punctuated<FnArg, Token![,]>,
    output: ReturnType,
    default: Option<Expr>,
}

impl Parse for Property {
    fn parse(input: ParseStream<'_>) -> Result<Property> {
        let docs = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        input.parse::<Token![fn]>()?;
        let name = input.parse()?;
        let arguments;
        parenthesized!(arguments in input);
        let arguments = arguments.parse_terminated(FnArg::parse, Token![,])?;
        let output = input.parse()?;
        let default = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Property {
            docs,
            visibility,
            name,
            arguments,
            output,
            default,
        })
    }
}

/// What a variant says of one property: `name = expression`, or `name` for `name = true`.
struct Said {
    name: Ident,
    value: Expr,
}

impl Parse for Said {
    fn parse(input: ParseStream<'_>) -> Result<Said> {
        let name = input.parse()?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => input.parse()?,
            None => syn::parse_quote!(true),
        };
        Ok(Said { name, value })
    }
}

fn attributes<T: Parse>(attributes: &[Attribute]) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("message")) {
        all.extend(attribute.parse_args_with(Punctuated::<T, Token![,]>::parse_terminated)?);
    }
    Ok(all)
}

/// The pattern that binds all fields of a variant by their names; `it` is the field without one.
fn pattern(variant: &Variant) -> Result<TokenStream> {
    let name = &variant.ident;
    let bound = variant.fields.iter().map(|field| {
        let named = field.ident.clone();
        named.unwrap_or_else(|| format_ident!("it"))
    });
    match &variant.fields {
        syn::Fields::Named(_) => Ok(quote!(Self::#name { #(#bound),* })),
        syn::Fields::Unit => Ok(quote!(Self::#name)),
        syn::Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Ok(quote!(Self::#name(it))),
        fields => Err(Error::new(
            fields.span(),
            "a message has at most one field without a name",
        )),
    }
}

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(
            input.span(),
            "the messages are the variants of an enum",
        ));
    };
    let properties: Vec<Property> = attributes(&input.attrs)?;
    let said = data.variants.iter().map(|variant| {
        let said: Vec<Said> = attributes(&variant.attrs)?;
        let is_known = |said: &Said| properties.iter().any(|it| it.name == said.name);
        match said.iter().find(|said| !is_known(said)) {
            Some(unknown) => Err(Error::new(
                unknown.name.span(),
                "no property of the messages",
            )),
            None => Ok((variant, pattern(variant)?, said)),
        }
    });
    let said = said.collect::<Result<Vec<_>>>()?;
    let methods = properties.iter().map(|property| {
        let name = &property.name;
        let arms = said.iter().map(|(variant, pattern, said)| {
            let own = said.iter().find(|said| said.name == *name);
            match (own, &property.default) {
                (Some(Said { value, .. }), _) => Ok(quote!(#pattern => #value)),
                (None, Some(default)) => {
                    let variant = &variant.ident;
                    Ok(quote!(Self::#variant { .. } => #default))
                }
                (None, None) => {
                    let what = format!("a message without `{name}`");
                    Err(Error::new(variant.span(), what))
                }
            }
        });
        let arms = arms.collect::<Result<Vec<_>>>()?;
        let Property {
            docs,
            visibility,
            arguments,
            output,
            ..
        } = property;
        Ok(quote! {
            #(#docs)*
            #[allow(unused_variables, reason = "a message need not look at all its fields")]
            #visibility fn #name(&self, #arguments) #output {
                match self {
                    #(#arms,)*
                }
            }
        })
    });
    let methods = methods.collect::<Result<Vec<_>>>()?;
    let (implemented, of, predicates) = input.generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        impl #implemented #name #of #predicates {
            #(#methods)*
        }
    })
}
