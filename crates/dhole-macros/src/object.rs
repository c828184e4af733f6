//! Implements the attribute `object`: turns an `impl` into operations, a handle and a table of
//! operations.

mod argument;
mod generate;
mod operation;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Error, FnArg, GenericParam, ImplItem, ImplItemFn, ItemImpl, LitStr, Path, Result, ReturnType,
    Signature, Type,
};

use generate::generate;
use operation::{operation, takes_attributes};

/// Expands the attribute on an `impl`. A refused method gives an error and a stand-in, so that the
/// compiler reports no further errors for its callers.
pub(crate) fn object(arguments: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let mut block: ItemImpl = syn::parse2(input).map_err(|error| {
        Error::new(
            error.span(),
            format!("`object` marks the `impl` of a type: {error}"),
        )
    })?;
    let generated = operations_of(arguments, &mut block).unwrap_or_else(|error| {
        let functions = block.items.iter_mut().filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function),
            _ => None,
        });
        for function in functions {
            takes_attributes(function);
        }
        error.into_compile_error()
    });
    Ok(quote! {
        #block
        #generated
    })
}

fn operations_of(arguments: TokenStream, block: &mut ItemImpl) -> Result<TokenStream> {
    let (krate, private) = crate_of(arguments)?;
    if let Some((of, _)) = &block.trait_ {
        let what = "operations are a type's own methods: mark an `impl` that is of no trait";
        return Err(Error::new_spanned(of, what));
    }
    for param in &block.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            let what = "a shared object borrows nothing, so its type has no lifetimes";
            return Err(Error::new_spanned(lifetime, what));
        }
    }
    let Type::Path(path) = &*block.self_ty else {
        let what = "a shared object is of a named type";
        return Err(Error::new_spanned(&block.self_ty, what));
    };
    let type_name = path.path.segments.last().map(|it| it.ident.clone());
    let type_name = type_name.ok_or_else(|| Error::new_spanned(path, "a type has a name"))?;
    let (mut operations, mut refused) = (Vec::new(), Vec::new());
    let mut errors: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        match operation(function, &private) {
            Ok(operation) => operations.extend(operation),
            Err(error) => {
                takes_attributes(function);
                refused.push(function.clone());
                match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                }
            }
        }
    }
    let mut on_loss = operations.iter().filter(|it| it.on_loss);
    if let (Some(_), Some(second)) = (on_loss.next(), on_loss.next()) {
        let what = "a type has one method `#[on_loss]`";
        return Err(Error::new_spanned(&second.name, what));
    }
    if operations.iter().all(|it| it.on_loss) && errors.is_none() {
        let what = "no operations: those are the `pub` methods that take `&self` or `&mut self`";
        return Err(Error::new_spanned(&block.self_ty, what));
    }
    let stand_ins = refused
        .iter()
        .map(|function| stand_in(function, &block.self_ty, &private));
    let stand_ins: TokenStream = stand_ins.collect();
    let generated = generate(
        block,
        &type_name,
        (&operations, &stand_ins),
        &krate,
        &private,
    );
    let errors = errors.map(Error::into_compile_error);
    Ok(quote!(#errors #generated))
}

/// The handle's method for one that is refused, so that its callers cause no errors. It is never
/// called, because the program does not compile.
fn stand_in(function: &ImplItemFn, ty: &Type, private: &TokenStream) -> TokenStream {
    let (signature, visibility) = (&function.sig, &function.vis);
    let Signature {
        ident,
        generics,
        inputs,
        ..
    } = signature;
    let (parameters, _, where_clause) = generics.split_for_impl();
    let types = inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(argument) => Some(spelled_out(argument.ty.to_token_stream(), ty)),
        FnArg::Receiver(_) => None,
    });
    let result = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, result) => spelled_out(result.to_token_stream(), ty),
    };
    quote! {
        #visibility fn #ident #parameters (
            &self,
            _: &mut #private::Worker<'_>,
            #(_: #types),*
        ) -> ::core::result::Result<#result, #private::ObjectError> #where_clause {
            ::core::unreachable!()
        }
    }
}

/// The crate in which generated code finds dhole's items, as a name and as a path.
fn crate_of(arguments: TokenStream) -> Result<(LitStr, TokenStream)> {
    if arguments.is_empty() {
        let krate = LitStr::new("dhole", Span::call_site());
        return Ok((krate, quote!(::dhole::__private)));
    }
    let mut krate: Option<LitStr> = None;
    let parser = syn::meta::parser(|meta| {
        if !meta.path.is_ident("crate") {
            return Err(meta.error("the argument of `object` is `crate = \"path\"`"));
        }
        krate = Some(meta.value()?.parse()?);
        Ok(())
    });
    syn::parse::Parser::parse2(parser, arguments)?;
    let krate = krate.unwrap_or_else(|| LitStr::new("dhole", Span::call_site()));
    let path: Path = krate.parse()?;
    let private = match path.is_ident("crate") {
        true => quote!(crate::__private),
        false => quote!(::#path::__private),
    };
    Ok((krate, private))
}

/// The tokens with `Self` replaced by the type.
fn spelled_out(tokens: TokenStream, ty: &Type) -> TokenStream {
    let each = |token: TokenTree| match token {
        TokenTree::Ident(ident) if ident == "Self" => {
            let span = ident.span();
            quote_spanned!(span=> #ty)
        }
        TokenTree::Group(group) => {
            let inside = spelled_out(group.stream(), ty);
            let mut new = proc_macro2::Group::new(group.delimiter(), inside);
            new.set_span(group.span());
            TokenTree::Group(new).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map(each).collect()
}
