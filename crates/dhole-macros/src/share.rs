//! Implements the derive of `Share`: a layout, field by field, and the proofs that belong to it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Data, DataEnum, DeriveInput, Error, Fields, GenericParam, Path, Token, WherePredicate,
    parse_quote,
};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream, Error> {
    let Arguments {
        private,
        nullable,
        bound,
    } = arguments(input)?;
    let name = &input.ident;
    let (describe, complete) = match &input.data {
        Data::Struct(data) => (describe_struct(&data.fields), all_fields(&data.fields)),
        Data::Enum(data) => (describe_enum(input, data)?, all_variants(data)),
        Data::Union(_) => {
            return Err(Error::new_spanned(
                name,
                "a union cannot be shared: which of its bytes are data is not known; share a \
                 struct that holds its bytes as numbers",
            ));
        }
    };

    let mut generics = input.generics.clone();
    for param in &mut generics.params {
        match param {
            GenericParam::Type(_) if bound.is_some() => {}
            GenericParam::Type(param) => param.bounds.push(parse_quote!(#private::Share)),
            GenericParam::Lifetime(param) => {
                return Err(Error::new_spanned(
                    param,
                    "a shared type cannot borrow: references to shared objects are `Ref`, which \
                     has no lifetime",
                ));
            }
            GenericParam::Const(_) => {}
        }
    }
    if let Some(bound) = bound {
        generics.make_where_clause().predicates.extend(bound);
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();

    let no_drop = format!(
        "`{name}` cannot be shared: shared objects are never dropped, so the type must have \
         nothing to drop"
    );
    let aligned =
        format!("`{name}` cannot be shared: its alignment is more than a page of 4096 bytes");
    let proofs = quote! {
        ::core::assert!(!::core::mem::needs_drop::<Self>(), #no_drop);
        ::core::assert!(::core::mem::align_of::<Self>() <= #private::MAX_ALIGN, #aligned);
    };
    // Without parameters the proofs are made where the type is defined; with them, where the
    // type is first used with particular ones.
    let early = input.generics.params.is_empty().then(|| {
        quote! {
            const _: () = {
                ::core::assert!(!::core::mem::needs_drop::<#name>(), #no_drop);
                ::core::assert!(::core::mem::align_of::<#name>() <= #private::MAX_ALIGN, #aligned);
            };
        }
    });

    let nullable = nullable
        .then(|| describe_option(input, &private))
        .transpose()?;
    let nullable = nullable.map(|describe| {
        quote! {
            // SAFETY: the type is transparent over its field, which is `Nullable`.
            #[automatically_derived]
            unsafe impl #impl_generics #private::Nullable for #name #type_generics #where_clause {
                fn describe_option(map: &mut #private::TypeMap) {
                    #describe
                }
            }
        }
    });

    Ok(quote! {
        #nullable
        // SAFETY: `describe` describes every field at its offset; the fields are shared types by
        // the calls that do so. `TypeInfo::of` refuses the rest, whatever these paths lead to.
        #[automatically_derived]
        unsafe impl #impl_generics #private::Share for #name #type_generics #where_clause {
            fn describe(map: &mut #private::TypeMap) {
                const { #proofs }
                let _ = &map;
                // What is described is the type as it is after all attributes have had their
                // say: a field or a variant that one of them adds or changes does not compile.
                let _complete = |it: Self| { #complete };
                #describe
            }
        }
        #early
    })
}

/// The arguments of the attribute `share`.
struct Arguments {
    /// The path at which the generated code finds the trait.
    private: TokenStream,
    nullable: bool,
    /// The predicates for the type's parameters, if they replace `Share`.
    bound: Option<Punctuated<WherePredicate, Token![,]>>,
}

fn arguments(input: &DeriveInput) -> Result<Arguments, Error> {
    let mut krate: Option<Path> = None;
    let mut nullable = false;
    let mut bound = None;
    for attr in input
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("share"))
    {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("nullable") {
                nullable = true;
                return Ok(());
            }
            if meta.path.is_ident("bound") {
                let asked: syn::LitStr = meta.value()?.parse()?;
                bound = Some(asked.parse_with(Punctuated::parse_terminated)?);
                return Ok(());
            }
            if !meta.path.is_ident("crate") {
                return Err(meta.error(
                    "the arguments of `share` are `crate = \"path\"`, `nullable` and \
                     `bound = \"where predicates\"`",
                ));
            }
            let path: syn::LitStr = meta.value()?.parse()?;
            krate = Some(path.parse()?);
            Ok(())
        })?;
    }
    let private = match krate {
        Some(path) if path.leading_colon.is_none() && !path.is_ident("crate") => {
            quote!(::#path::__private)
        }
        Some(path) => quote!(#path::__private),
        None => quote!(::dhole::__private),
    };
    Ok(Arguments {
        private,
        nullable,
        bound,
    })
}

/// The layout of an `Option` of a transparent struct: that of its field's.
fn describe_option(input: &DeriveInput, private: &TokenStream) -> Result<TokenStream, Error> {
    let transparent = |attr: &syn::Attribute| {
        attr.path().is_ident("repr")
            && attr
                .parse_args::<Path>()
                .is_ok_and(|repr| repr.is_ident("transparent"))
    };
    let field = match &input.data {
        Data::Struct(data) if data.fields.len() == 1 => data.fields.iter().next(),
        _ => None,
    };
    match field.filter(|_| input.attrs.iter().any(transparent)) {
        Some(field) => {
            let ty = &field.ty;
            Ok(quote!(<#ty as #private::Nullable>::describe_option(map);))
        }
        None => Err(Error::new_spanned(
            &input.ident,
            "`nullable` is for a struct of one field that is `#[repr(transparent)]`",
        )),
    }
}

/// Generates the layout of a struct. No name of the program can change it: `map` is the real
/// trait's type, its methods are its own, and the rest is syntax.
fn describe_struct(fields: &Fields) -> TokenStream {
    let each = fields.iter().zip(fields.members()).map(|(field, member)| {
        let ty = &field.ty;
        // The span of the type is where a type that is not shared is reported.
        let at = quote!(unsafe { &raw const (*it).#member });
        let ty = quote_spanned!(ty.span()=> part::<#ty, Self>);
        // SAFETY: `it` points to as many bytes as a `Self` has, and nothing is read.
        quote!(map.#ty(it, #at);)
    });
    quote!(map.whole::<Self>(|map, it| { let _ = (&map, it); #(#each)* });)
}

/// Generates a pattern that names every field, with the type that was described.
fn all_fields(fields: &Fields) -> TokenStream {
    let members: Vec<_> = fields.members().collect();
    let names: Vec<_> = (0..members.len())
        .map(|i| quote::format_ident!("field_{i}"))
        .collect();
    let types = fields.iter().map(|field| &field.ty);
    quote! {
        let Self { #(#members: #names),* } = it;
        #(let _: #types = #names;)*
    }
}

/// Generates a match that names every variant.
fn all_variants(data: &DataEnum) -> TokenStream {
    let variants = data.variants.iter().map(|variant| &variant.ident);
    quote! {
        match it {
            #(Self::#variants {} => {})*
        }
    }
}

fn describe_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream, Error> {
    let name = &input.ident;
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            name,
            "an enum without variants has no values to share",
        ));
    }
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                variant,
                "an enum with fields cannot be shared: which of its bytes are data depends on \
                 the variant; share a struct with an enum without fields beside the fields, or \
                 hold a `Ref` to an object for each variant",
            ));
        }
    }
    let is_aligned = |attr: &syn::Attribute| {
        let list = attr.meta.require_list().ok();
        let words = list.map(|list| list.tokens.clone().into_iter().collect::<Vec<_>>());
        let align = |word: &proc_macro2::TokenTree| word.to_string() == "align";
        attr.path().is_ident("repr") && words.is_some_and(|words| words.iter().any(align))
    };
    if let Some(attr) = input.attrs.iter().find(|attr| is_aligned(attr)) {
        return Err(Error::new_spanned(
            attr,
            "an enum with an alignment of its own cannot be shared: which of its bytes are data \
             is not known; share a struct with that alignment and the enum in it",
        ));
    }
    let variants = data.variants.iter().map(|variant| &variant.ident);
    Ok(quote! {
        let values = [#(Self::#variants {}),*];
        // SAFETY: an enum without fields and alignment of its own, all of whose variants
        // `_complete` names.
        unsafe { map.fieldless_enum::<Self>(&values) };
    })
}
