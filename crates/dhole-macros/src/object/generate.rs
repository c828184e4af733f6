//! What the attribute writes: the handle, its methods, and the table of operations.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericParam, ItemImpl, LitStr, Type};

use super::argument::Argument;
use super::execute::{arm, executed, guard_name, own, seen};
use super::operation::Operation;
use super::spelled_out;

/// How objects are made, what is left of them, and how their state becomes bytes.
pub(super) type Made<'a> = (
    &'a [TokenStream],
    &'a Option<TokenStream>,
    Option<&'a Ident>,
    &'a TokenStream,
);

pub(super) fn generate(
    block: &ItemImpl,
    type_name: &Ident,
    (operations, stand_ins): (&[Operation], &TokenStream),
    (makers, constructors, end, state): Made<'_>,
    krate: &LitStr,
    private: &TokenStream,
) -> TokenStream {
    let ty = &block.self_ty;
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let params = &block.generics.params;
    let names = names_of(block);
    let handle = format_ident!("{type_name}Operations");
    let called = operations.iter().enumerate().filter(|(_, it)| !it.on_loss);
    let proxies = called.map(|(number, operation)| {
        let number = number as u16;
        let proxy = proxy(number, operation, ty, private);
        let starts = starter_name(operation, operations);
        let starter = starts.map(|starts| starter(number, operation, &starts, ty, private));
        quote!(#proxy #starter)
    });
    let guards = operations.iter().filter_map(when);
    let on_loss = operations.iter().position(|it| it.on_loss).map(|number| {
        let number = number as u16;
        quote! {
            const ON_LOSS: ::core::option::Option<u16> = ::core::option::Option::Some(#number);
        }
    });
    let left = end.map(|end| {
        quote! {
            fn left(&self) -> ::core::option::Option<::std::string::String> {
                self.#end()
            }
        }
    });
    // No name that an operation gives an argument may meet one of the code around it.
    let out = own("out");
    let infos = operations.iter().map(|it| info(it, type_name, private));
    let executes = if operations.iter().any(|it| it.takes_worker) {
        executed(operations, private)
    } else {
        let arms = operations.iter().enumerate().map(|(number, it)| {
            let number = number as u16;
            arm(number, it, &out, private)
        });
        quote! {
            fn apply(
                &mut self,
                operation: u16,
                arguments: &[u8],
                #out: &mut ::std::vec::Vec<u8>,
            ) -> ::core::result::Result<#private::Applied, #private::Malformed> {
                match operation {
                    #(#arms)*
                    _ => ::core::result::Result::Err(#private::Malformed::NO_OPERATION),
                }
            }
        }
    };
    let doc = format!("The operations of [`{type_name}`], as a handle has them.");
    quote! {
        const _: () = {
            #[doc = #doc]
            #[derive(#private::DeriveShare)]
            #[share(crate = #krate, nullable, bound = "")]
            #[repr(transparent)]
            pub struct #handle<#params>(#private::Tag<#ty>) #where_clause;

            #[automatically_derived]
            impl #impl_generics ::core::clone::Clone for #handle<#(#names),*> #where_clause {
                #[inline]
                fn clone(&self) -> Self {
                    *self
                }
            }

            #[automatically_derived]
            impl #impl_generics ::core::marker::Copy for #handle<#(#names),*> #where_clause {}

            #[automatically_derived]
            impl #impl_generics ::core::convert::From<#private::Tag<#ty>>
                for #handle<#(#names),*> #where_clause
            {
                #[inline]
                fn from(tag: #private::Tag<#ty>) -> Self {
                    Self(tag)
                }
            }

            #[automatically_derived]
            impl #impl_generics ::core::convert::From<#handle<#(#names),*>>
                for #private::Tag<#ty> #where_clause
            {
                #[inline]
                fn from(operations: #handle<#(#names),*>) -> Self {
                    operations.0
                }
            }

            impl #impl_generics #handle<#(#names),*> #where_clause {
                #(#proxies)*
                #stand_ins
            }

            impl #impl_generics #ty #where_clause {
                #(#guards)*
                #(#makers)*
            }

            #[automatically_derived]
            impl #impl_generics #private::ObjectType for #ty #where_clause {
                type Operations = #handle<#(#names),*>;
                const OPERATIONS: &'static [#private::OperationInfo] = &[#(#infos),*];
                #state
                #on_loss
                #constructors
                #left

                #executes
            }
        };
    }
}

/// The names of a type's parameters.
pub(super) fn names_of(block: &ItemImpl) -> Vec<TokenStream> {
    let names = block.generics.params.iter().map(|param| match param {
        GenericParam::Type(param) => param.ident.to_token_stream(),
        GenericParam::Const(param) => param.ident.to_token_stream(),
        GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
    });
    names.collect()
}

/// The name of the method that starts an operation, if no operation is called so itself.
pub(super) fn starter_name(operation: &Operation, operations: &[Operation]) -> Option<Ident> {
    let starts = format_ident!("start_{}", operation.name);
    Some(starts).filter(|starts| operations.iter().all(|it| it.name != *starts))
}

/// The arguments as parameters, in the words of the type.
pub(super) fn parameters<'a>(
    arguments: impl Iterator<Item = &'a Argument>,
    ty: &Type,
) -> Vec<TokenStream> {
    let each = arguments.map(|it| {
        let (name, of) = (&it.name, spelled_out(it.ty.to_token_stream(), ty));
        quote!(#name: #of)
    });
    each.collect()
}

/// The guard, as a method that sees the arguments by reference.
fn when(operation: &Operation) -> Option<TokenStream> {
    use syn::spanned::Spanned;
    let guard = operation.guard.as_ref()?;
    let name = guard_name(operation);
    let seen: Vec<_> = seen(operation).collect();
    let types = operation.arguments.iter().filter_map(Argument::in_guard);
    Some(quote_spanned! {guard.span()=>
        fn #name(&self, #(#seen: #types),*) -> bool {
            let _ = (#(#seen,)*);
            #guard
        }
    })
}

/// The handle's method that calls an operation and waits for its result.
fn proxy(number: u16, operation: &Operation, ty: &Type, private: &TokenStream) -> TokenStream {
    let Operation {
        name,
        visibility,
        docs,
        writes,
        arguments,
        guard,
        ..
    } = operation;
    let parameters = parameters(arguments.iter(), ty);
    let result = spelled_out(operation.result.clone(), ty);
    let (worker, state) = (own("worker"), own("state"));
    let given: Vec<_> = arguments.iter().map(|it| it.given(private)).collect();
    let patterns = taken(operation, |_| true, private);
    let lent = arguments.iter().map(|it| it.lent_here(private));
    let may = match guard {
        None => quote!(|_, _| true),
        Some(_) => {
            let (guard, names) = (guard_name(operation), seen(operation));
            let seen = taken(operation, |it| !it.is_out(), private);
            quote!(|#state: &#ty, (#(#seen,)*)| #state.#guard(#(#names),*))
        }
    };
    let (call, of) = match writes {
        true => (quote!(write), quote!(&mut #ty)),
        false => (quote!(read), quote!(&#ty)),
    };
    let (there, back) = (there(operation, private), back(operation, private));
    let body = if operation.takes_worker {
        called_by_process(number, &worker, &given, (there, back), private)
    } else {
        quote! {
            #private::#call(
                #worker,
                self.0,
                #number,
                (#(#given,)*),
                #may,
                |#state: #of, (#(#patterns,)*)| #state.#name(#(#lent),*),
                #private::Travel { there: #there, back: #back },
            )
        }
    };
    quote! {
        #(#docs)*
        #[track_caller]
        #[inline]
        #visibility fn #name(
            &self,
            #worker: &mut #private::Worker<'_>,
            #(#parameters),*
        ) -> ::core::result::Result<#result, #private::ObjectError> {
            #body
        }
    }
}

/// The handle's method that calls an operation with a worker, but for what all methods have.
fn called_by_process(
    number: u16,
    worker: &Ident,
    given: &[TokenStream],
    (there, back): (TokenStream, TokenStream),
    private: &TokenStream,
) -> TokenStream {
    quote! {
        #private::call_by_process(
            #worker,
            self.0,
            #number,
            (#(#given,)*),
            #private::Travel { there: #there, back: #back },
        )
    }
}

/// How the arguments become bytes. An `#[out]` must not be too long.
fn there(operation: &Operation, private: &TokenStream) -> TokenStream {
    let checks: Vec<_> = operation
        .arguments
        .iter()
        .filter_map(|it| it.checked_out(private))
        .collect();
    if checks.is_empty() {
        return quote!(#private::encode_arguments);
    }
    let (lent, bytes) = (own("lent"), own("bytes"));
    let taken = taken(operation, Argument::is_out, private);
    quote! {
        |#lent, #bytes| {
            let (#(#taken,)*) = #lent;
            #(#checks)*
            #private::encode_arguments(#lent, #bytes)
        }
    }
}

/// The patterns that take those arguments of an operation that are wanted.
fn taken(
    operation: &Operation,
    wanted: fn(&Argument) -> bool,
    private: &TokenStream,
) -> Vec<TokenStream> {
    let arguments = operation.arguments.iter();
    let each = arguments.map(|it| {
        if wanted(it) {
            it.given(private)
        } else {
            quote!(_)
        }
    });
    each.collect()
}

/// What the caller does with the reply: takes the result, and what comes back in the arguments. It
/// writes nothing before all of it was read.
fn back(operation: &Operation, private: &TokenStream) -> TokenStream {
    if operation.outs().next().is_none() {
        return quote!(#private::decode_to);
    }
    let (bytes, value, result) = (own("bytes"), own("value"), own("result"));
    let taken = taken(operation, Argument::comes_back, private);
    let received: Vec<_> = operation.outs().map(Argument::received_name).collect();
    let types = operation.outs().map(|it| it.received(private));
    let outs = || operation.outs().zip(&received);
    let checks = outs().filter_map(|(it, received)| it.checked_length(received, private));
    let puts = outs().map(|(it, received)| it.put(received, private));
    quote! {
        |(#(#taken,)*), #bytes, #result| {
            let (#value, #(#received,)*): (_, #(#types,)*) =
                #private::decode("the result", #bytes)?;
            #(#checks)*
            #(#puts)*
            *#result = ::core::option::Option::Some(#value);
            ::core::result::Result::Ok(())
        }
    }
}

/// The handle's method that starts an operation and goes on.
fn starter(
    number: u16,
    operation: &Operation,
    starts: &Ident,
    ty: &Type,
    private: &TokenStream,
) -> TokenStream {
    let Operation {
        name,
        visibility,
        writes,
        arguments,
        ..
    } = operation;
    let doc = format!("Starts [`{name}`](Self::{name}) and goes on.");
    let parameters = parameters(arguments.iter(), ty);
    let result = spelled_out(operation.result.clone(), ty);
    let worker = own("worker");
    let given = arguments.iter().map(|it| it.given(private));
    let goes_on = goes_on(operation, private);
    let body = if goes_on.is_none() {
        quote!(#private::start(#worker, self.0, #number, #writes, (#(#given,)*)))
    } else {
        let unused = operation.names();
        quote! {
            let _ = (#worker, #(#unused,)*);
            ::core::unreachable!()
        }
    };
    quote! {
        #[doc = #doc]
        #[track_caller]
        #visibility fn #starts(
            &self,
            #worker: &mut #private::Worker<'_>,
            #(#parameters),*
        ) -> ::core::result::Result<#private::Pending<#result>, #private::ObjectError>
        #goes_on
        {
            #body
        }
    }
}

/// Forbids to start an operation that gives something back in its arguments: a call of the method
/// is an error, and the method is none.
pub(super) fn goes_on(operation: &Operation, private: &TokenStream) -> Option<TokenStream> {
    let outs = operation.outs().next();
    outs.map(|_| quote!(where for<'never> #private::Borrows<'never>: #private::GoesOn))
}

fn info(operation: &Operation, type_name: &Ident, private: &TokenStream) -> TokenStream {
    let Operation {
        name,
        writes,
        arguments,
        result,
        guard,
        ..
    } = operation;
    let (guarded, takes_worker) = (guard.is_some(), operation.takes_worker);
    let full = format!("{type_name}::{name}");
    let worker = takes_worker.then(|| quote!(&mut Worker));
    let types = worker
        .into_iter()
        .chain(arguments.iter().map(Argument::signature));
    let signature = format!("{} -> {result}", quote!(#(#types),*));
    quote! {
        #private::OperationInfo {
            name: #full,
            writes: #writes,
            guarded: #guarded,
            takes_worker: #takes_worker,
            signature: #signature,
        }
    }
}
