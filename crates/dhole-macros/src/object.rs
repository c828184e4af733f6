//! Implements the attribute `object`: turns an `impl` into operations, a handle and a table of
//! operations.

mod argument;
mod client;
mod constructor;
mod execute;
mod generate;
mod on_end;
mod operation;
mod state;
mod worker;

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
    let Settings {
        krate,
        private,
        user,
        resident,
    } = Settings::parse(arguments)?;
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
    let (mut operations, mut locals, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let (mut constructors, mut ends) = (Vec::new(), Vec::new());
    let mut errors: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        let read = constructor::constructor(function).and_then(|constructor| {
            if constructor.is_some() {
                constructors.extend(constructor);
                return Ok((None, None));
            }
            if let Some(end) = on_end::on_end(function)? {
                ends.push(end);
                return Ok((None, None));
            }
            let operation = operation(function, &private)?;
            let Some(user) = &user else {
                return Ok((operation, None));
            };
            if let Some(operation) = &operation {
                client::check_operation(operation, user)?;
            }
            Ok((operation, client::local(function, user)?))
        });
        match read {
            Ok((operation, local)) => {
                operations.extend(operation);
                locals.extend(local);
            }
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
    let takes_worker = operations.iter().any(|it| it.takes_worker);
    if let Some(hook) = operations.iter().find(|it| takes_worker && it.on_loss) {
        let what = "a type whose operations take a worker has no `#[on_loss]`: they may be in \
                    progress when a node is lost";
        return Err(Error::new_spanned(&hook.name, what));
    }
    let mut on_loss = operations.iter().filter(|it| it.on_loss);
    if let (Some(_), Some(second)) = (on_loss.next(), on_loss.next()) {
        let what = "a type has one method `#[on_loss]`";
        return Err(Error::new_spanned(&second.name, what));
    }
    if let [_, second, ..] = &ends[..] {
        let what = "a type has one method `#[on_end]`";
        return Err(Error::new_spanned(second, what));
    }
    if operations.iter().all(|it| it.on_loss) && errors.is_none() {
        let what = "no operations: those are the `pub` methods that take `&self` or `&mut self`";
        return Err(Error::new_spanned(&block.self_ty, what));
    }
    if resident && constructors.is_empty() && errors.is_none() {
        let what = "a resident object is made where it stays, by a constructor: mark a `pub` \
                    function that returns `Self` with `#[new]`";
        return Err(Error::new_spanned(&block.self_ty, what));
    }
    let state = state::state(&block.self_ty, resident, &private);
    let stand_ins = refused
        .iter()
        .map(|function| stand_in(function, &block.self_ty, &private));
    let stand_ins: TokenStream = stand_ins.collect();
    let makers = constructor::makers(&constructors, &block.self_ty, &private);
    let constructors = constructor::table(&constructors, &type_name, &private);
    let generated = generate(
        block,
        &type_name,
        (&operations, &stand_ins),
        (&makers, &constructors, ends.first(), &state),
        &krate,
        &private,
    );
    let client = user.as_ref().map(|user| {
        let methods = (&operations[..], &locals[..], &refused[..]);
        client::client(block, &type_name, methods, user, &private)
    });
    let errors = errors.map(Error::into_compile_error);
    Ok(quote!(#errors #generated #client))
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

/// What the attribute says.
struct Settings {
    /// The crate in which generated code finds dhole's items.
    krate: LitStr,
    /// The path of these items.
    private: TokenStream,
    /// The type of the user half of clients.
    user: Option<Type>,
    /// Whether the objects stay where they are made.
    resident: bool,
}

impl Settings {
    fn parse(arguments: TokenStream) -> Result<Settings> {
        let (mut krate, mut user) = (LitStr::new("dhole", Span::call_site()), None);
        let mut resident = false;
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("crate") {
                krate = meta.value()?.parse()?;
            } else if meta.path.is_ident("client") {
                user = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("resident") {
                resident = true;
            } else {
                let what = "the arguments of `object` are `client = User`, the type of the user \
                            half of clients, `resident`, of objects that stay where they are made, \
                            and `crate = \"path\"`";
                return Err(meta.error(what));
            }
            Ok(())
        });
        syn::parse::Parser::parse2(parser, arguments)?;
        if let Some(user) = &user {
            client::check_user(user)?;
        }
        let path: Path = krate.parse()?;
        let private = if path.is_ident("crate") {
            quote!(crate::__private)
        } else {
            quote!(::#path::__private)
        };
        Ok(Settings {
            krate,
            private,
            user,
            resident,
        })
    }
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
