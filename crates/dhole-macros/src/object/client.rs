//! Clients: the methods of a type on a handle with a user half (VOTE, section 3.1).

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, Error, FnArg, Generics, ImplItemFn, ItemImpl, Lifetime, Pat, Result, ReturnType,
    Safety, Type, Visibility,
};

use super::argument::Argument;
use super::execute::own;
use super::generate::{goes_on, names_of, parameters, starter_name};
use super::operation::Operation;
use super::spelled_out;

/// A function of a service that touches the user half alone.
pub(super) struct Local {
    name: Ident,
    visibility: Visibility,
    docs: Vec<Attribute>,
    generics: Generics,
    lifetime: Option<Lifetime>,
    writes: bool,
    arguments: Vec<(Ident, Type)>,
    output: ReturnType,
}

/// Whether two types are spelled alike.
fn is(ty: &Type, user: &Type) -> bool {
    ty.to_token_stream().to_string() == user.to_token_stream().to_string()
}

/// Refuses a type that cannot be a user half.
pub(super) fn check_user(user: &Type) -> Result<()> {
    let tokens = user.to_token_stream().to_string();
    if tokens.contains(['\'', '&']) {
        let what = "a user half goes to other nodes, so its type has no lifetimes: a `String` in \
                    place of a `&str`";
        return Err(Error::new_spanned(user, what));
    }
    Ok(())
}

/// Reads a method that runs at the client, if it is one.
pub(super) fn local(function: &ImplItemFn, user: &Type) -> Result<Option<Local>> {
    let signature = &function.sig;
    let is_plain = matches!(signature.safety, Safety::Default);
    let is_public = !matches!(function.vis, Visibility::Inherited);
    let Some(FnArg::Typed(first)) = signature.inputs.first() else {
        return Ok(None);
    };
    let Type::Reference(reference) = &*first.ty else {
        return Ok(None);
    };
    if !is_public || !is_plain || !is(&reference.elem, user) {
        return Ok(None);
    }
    if let Some(asyncness) = &signature.asyncness {
        let what = "a local method is an ordinary call of the client: it cannot be `async`";
        return Err(Error::new_spanned(asyncness, what));
    }
    let others = signature.inputs.iter().enumerate().skip(1);
    let arguments = others.filter_map(|(index, argument)| match argument {
        FnArg::Typed(argument) => {
            let name = match &*argument.pat {
                Pat::Ident(name) => name.ident.clone(),
                _ => format_ident!("argument_{index}"),
            };
            Some((name, (*argument.ty).clone()))
        }
        FnArg::Receiver(_) => None,
    });
    let docs = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(Some(Local {
        name: signature.ident.clone(),
        visibility: function.vis.clone(),
        docs: docs.cloned().collect(),
        generics: signature.generics.clone(),
        lifetime: reference.lifetime.clone(),
        writes: reference.mutability.is_some(),
        arguments: arguments.collect(),
        output: signature.output.clone(),
    }))
}

/// The user half among an operation's arguments: its place, and whether it comes back.
fn user_of(operation: &Operation, user: &Type) -> Option<(usize, bool)> {
    let mut all = operation.arguments.iter().enumerate();
    all.find_map(|(place, argument)| {
        let (ty, writes) = argument.lent()?;
        is(ty, user).then_some((place, writes))
    })
}

/// Refuses an operation that takes the user half by value, or twice.
pub(super) fn check_operation(operation: &Operation, user: &Type) -> Result<()> {
    let arguments = &operation.arguments;
    if let Some(by_value) = arguments.iter().find(|it| is(&it.ty, user)) {
        let what = "an operation borrows the user half: as `&` it goes to the object, as `&mut` it \
                    comes back too";
        return Err(Error::new_spanned(&by_value.ty, what));
    }
    let mut lent = arguments.iter().filter(|argument| {
        let ty = argument.lent();
        ty.is_some_and(|(ty, _)| is(ty, user))
    });
    match (lent.next(), lent.next()) {
        (Some(_), Some(second)) => {
            let what = "an operation has one user half, that of its caller: others by another type";
            Err(Error::new_spanned(&second.ty, what))
        }
        _ => Ok(()),
    }
}

/// The client's method for one that is refused, as [`stand_in`](super::stand_in) makes that of the
/// handle.
fn stand_in(
    function: &ImplItemFn,
    user: &Type,
    (ty, private): (&Type, &TokenStream),
) -> TokenStream {
    let (signature, visibility) = (&function.sig, &function.vis);
    let (parameters, _, where_clause) = signature.generics.split_for_impl();
    let name = &signature.ident;
    let types = signature.inputs.iter().filter_map(|argument| {
        let FnArg::Typed(argument) = argument else {
            return None;
        };
        let lent = match &*argument.ty {
            Type::Reference(reference) => &*reference.elem,
            other => other,
        };
        (!is(lent, user)).then(|| spelled_out(argument.ty.to_token_stream(), ty))
    });
    let result = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, result) => spelled_out(result.to_token_stream(), ty),
    };
    let (worker, result) = match signature.receiver() {
        Some(_) => (
            quote!(_: &mut #private::Worker<'_>,),
            quote!(::core::result::Result<#result, #private::ObjectError>),
        ),
        None => (quote!(), result),
    };
    quote! {
        #visibility fn #name #parameters (&self, #worker #(_: #types),*) -> #result #where_clause {
            ::core::unreachable!()
        }
    }
}

/// The client of a type: a struct with the methods, and which it is.
pub(super) fn client(
    block: &ItemImpl,
    type_name: &Ident,
    (operations, locals, refused): (&[Operation], &[Local], &[ImplItemFn]),
    user: &Type,
    private: &TokenStream,
) -> TokenStream {
    let ty = &block.self_ty;
    let stand_ins = refused.iter().map(|it| stand_in(it, user, (ty, private)));
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let params = &block.generics.params;
    let names = names_of(block);
    let client = format_ident!("{type_name}Client");
    let doc = format!("The methods of a client of [`{type_name}`].");
    let called = operations.iter().filter(|it| !it.on_loss);
    let methods = called.map(|operation| {
        let user = user_of(operation, user);
        let result = spelled_out(operation.result.clone(), ty);
        let called = (&operation.name, &result, None);
        let calls = method(operation, called, user, (ty, private));
        let starts = starter_name(operation, operations);
        let starts = starts.filter(|starts| locals.iter().all(|it| it.name != *starts));
        let starts = starts.map(|starts| {
            let result = quote!(#private::Pending<#result>);
            let goes_on = goes_on(operation, private);
            method(operation, (&starts, &result, goes_on), user, (ty, private))
        });
        quote!(#calls #starts)
    });
    let locals = locals.iter().map(|local| local_method(local, ty));
    quote! {
        const _: () = {
            #[doc = #doc]
            pub struct #client<#params>(#private::ClientParts<#ty>) #where_clause;

            #[automatically_derived]
            impl #impl_generics ::core::convert::From<#private::ClientParts<#ty>>
                for #client<#(#names),*> #where_clause
            {
                fn from(parts: #private::ClientParts<#ty>) -> Self {
                    Self(parts)
                }
            }

            #[automatically_derived]
            impl #impl_generics ::core::convert::AsRef<#private::ClientParts<#ty>>
                for #client<#(#names),*> #where_clause
            {
                fn as_ref(&self) -> &#private::ClientParts<#ty> {
                    &self.0
                }
            }

            #[automatically_derived]
            impl #impl_generics ::core::convert::AsMut<#private::ClientParts<#ty>>
                for #client<#(#names),*> #where_clause
            {
                fn as_mut(&mut self) -> &mut #private::ClientParts<#ty> {
                    &mut self.0
                }
            }

            impl #impl_generics #client<#(#names),*> #where_clause {
                #(#methods)*
                #(#locals)*
                #(#stand_ins)*
            }

            #[automatically_derived]
            impl #impl_generics #private::ClientType for #ty #where_clause {
                type User = #user;
                type Methods = #client<#(#names),*>;
            }
        };
    }
}

/// The client's method that calls or starts an operation, with the user half where it is named.
fn method(
    operation: &Operation,
    (name, result, goes_on): (&Ident, &TokenStream, Option<TokenStream>),
    user: Option<(usize, bool)>,
    (ty, private): (&Type, &TokenStream),
) -> TokenStream {
    let Operation {
        visibility,
        docs,
        arguments,
        ..
    } = operation;
    let (worker, object, half) = (own("worker"), own("object"), own("user"));
    let is_user = |place: usize| user.is_some_and(|(it, _)| it == place);
    let others = arguments.iter().enumerate();
    let others = others.filter(|(place, _)| !is_user(*place));
    let parameters = parameters(others.map(|(_, it)| it), ty);
    let given = arguments.iter().enumerate().map(|(place, it)| {
        let Argument { name, .. } = it;
        if is_user(place) {
            quote!(#half)
        } else {
            quote!(#name)
        }
    });
    let (receiver, parts) = match user {
        Some((_, true)) => (quote!(&mut self), quote!(&mut self.0)),
        _ => (quote!(&self), quote!(&self.0)),
    };
    let half = user.map(|_| quote!(user: #half,));
    quote! {
        #(#docs)*
        #[track_caller]
        #[inline]
        #visibility fn #name(
            #receiver,
            #worker: &mut #private::Worker<'_>,
            #(#parameters),*
        ) -> ::core::result::Result<#result, #private::ObjectError>
        #goes_on
        {
            let #private::ClientParts { object: #object, #half .. } = #parts;
            #object.#name(#worker, #(#given),*)
        }
    }
}

/// The client's method that runs at the client.
fn local_method(local: &Local, ty: &Type) -> TokenStream {
    let Local {
        name,
        visibility,
        docs,
        generics,
        lifetime,
        writes,
        arguments,
        output,
    } = local;
    let (parameters, _, where_clause) = generics.split_for_impl();
    let in_words = |it: &Type| spelled_out(it.to_token_stream(), ty);
    let names: Vec<_> = arguments.iter().map(|(name, _)| name).collect();
    let types = arguments.iter().map(|(_, it)| in_words(it));
    let output = spelled_out(output.to_token_stream(), ty);
    let where_clause = spelled_out(where_clause.to_token_stream(), ty);
    let changes = writes.then(|| quote!(mut));
    quote! {
        #(#docs)*
        #[inline]
        #visibility fn #name #parameters (
            &#lifetime #changes self,
            #(#names: #types),*
        ) #output #where_clause {
            <#ty>::#name(&#changes self.0.user, #(#names),*)
        }
    }
}
