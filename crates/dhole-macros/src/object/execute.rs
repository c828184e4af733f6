//! How operations are executed where the object is, from bytes to bytes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::argument::{self, Argument};
use super::operation::Operation;

/// An identifier that no name of the program meets.
pub(super) fn own(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

pub(super) fn guard_name(operation: &Operation) -> Ident {
    format_ident!("__dhole_when_{}", operation.name)
}

/// The names of the arguments that the guard sees.
pub(super) fn seen(operation: &Operation) -> impl Iterator<Item = &Ident> {
    let seen = operation.arguments.iter().filter(|it| !it.is_out());
    seen.map(|it| &it.name)
}

/// The arm that executes an operation on the state, from bytes to bytes.
pub(super) fn arm(
    number: u16,
    operation: &Operation,
    out: &Ident,
    private: &TokenStream,
) -> TokenStream {
    let Operation {
        name,
        arguments,
        result,
        result_span,
        guard,
        ..
    } = operation;
    let travel = arguments.iter().filter_map(Argument::travels);
    let travel = travel.map(|ty| argument::travels(ty, private));
    let result = quote_spanned!(*result_span=> #private::travels::<#result>(););
    let blocked = guard.as_ref().map(|_| {
        let (guard, seen) = (guard_name(operation), seen(operation));
        quote! {
            if !self.#guard(#(&#seen),*) {
                return ::core::result::Result::Ok(#private::Applied::Blocked);
            }
        }
    });
    let patterns = arguments.iter().map(|it| it.decoded_pattern(private));
    let types = arguments.iter().map(|it| it.decoded(private));
    let lent = arguments.iter().map(Argument::lent_there);
    let value = own("value");
    let backs = operation.outs().map(|it| it.sent_back(private));
    quote! {
        #number => {
            #(#travel)*
            #result
            let (#(#patterns,)*): (#(#types,)*) =
                #private::decode("the arguments", arguments)?;
            #blocked
            let #value = self.#name(#(#lent),*);
            #private::encode_to("the result", &#value, #out)?;
            #(#private::encode_to("the result", &#backs, #out)?;)*
            ::core::result::Result::Ok(#private::Applied::Done)
        }
    }
}

/// How the operations of a type are executed, where some take a worker.
pub(super) fn executed(operations: &[Operation], private: &TokenStream) -> TokenStream {
    let out = own("out");
    let numbered = || (0_u16..).zip(operations);
    let plain = |writes: bool| {
        let of_them = numbered().filter(move |(_, it)| !it.takes_worker && it.writes == writes);
        let arms = of_them.map(|(number, it)| arm(number, it, &own("out"), private));
        arms.collect::<TokenStream>()
    };
    let with_worker = |writes: bool| {
        let of_them = numbered().filter(move |(_, it)| it.takes_worker && it.writes == writes);
        let arms = of_them.map(|(number, it)| worker_arm(number, it, private));
        arms.collect::<TokenStream>()
    };
    let guards = numbered().filter(|(_, it)| it.takes_worker);
    let guards = guards.map(|(number, it)| guard_arm(number, it, private));
    let (changing, reading) = (plain(true), plain(false));
    let (alone, shared) = (with_worker(true), with_worker(false));
    let executes = |name: TokenStream, state: TokenStream, arms: TokenStream| {
        let worker = own("worker");
        quote! {
            fn #name(
                #state,
                #worker: &mut #private::Worker<'_>,
                operation: u16,
                arguments: &[u8],
                #out: &mut ::std::vec::Vec<u8>,
            ) -> ::core::result::Result<#private::Ran<()>, #private::Malformed> {
                match operation {
                    #arms
                    _ => ::core::result::Result::Err(#private::Malformed::NO_OPERATION),
                }
            }
        }
    };
    let execute = executes(quote!(execute), quote!(&mut self), alone);
    let execute_shared = executes(quote!(execute_shared), quote!(&self), shared);
    quote! {
        fn apply(
            &mut self,
            operation: u16,
            arguments: &[u8],
            #out: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<#private::Applied, #private::Malformed> {
            match operation {
                #changing
                _ => #private::ObjectType::look(self, operation, arguments, #out),
            }
        }

        fn look(
            &self,
            operation: u16,
            arguments: &[u8],
            #out: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<#private::Applied, #private::Malformed> {
            match operation {
                #reading
                _ => ::core::result::Result::Err(#private::Malformed::NO_OPERATION),
            }
        }

        fn may(
            &self,
            operation: u16,
            arguments: &[u8],
        ) -> ::core::result::Result<bool, #private::Malformed> {
            match operation {
                #(#guards)*
                _ => ::core::result::Result::Err(#private::Malformed::NO_OPERATION),
            }
        }

        #execute
        #execute_shared
    }
}

/// The arm that says whether the guard of an operation that takes a worker is true.
fn guard_arm(number: u16, operation: &Operation, private: &TokenStream) -> TokenStream {
    if operation.guard.is_none() {
        return quote!(#number => ::core::result::Result::Ok(true),);
    }
    let arguments = &operation.arguments;
    let patterns = arguments.iter().map(|it| {
        if it.is_out() {
            quote!(_)
        } else {
            it.decoded_pattern(private)
        }
    });
    let types = arguments.iter().map(|it| it.decoded(private));
    let (guard, seen) = (guard_name(operation), seen(operation));
    quote! {
        #number => {
            #[allow(unused_mut, reason = "the guard only looks at what the operation changes")]
            let (#(#patterns,)*): (#(#types,)*) =
                #private::decode("the arguments", arguments)?;
            ::core::result::Result::Ok(self.#guard(#(&#seen),*))
        }
    }
}

/// The arm that executes an operation with a worker, from bytes to bytes.
fn worker_arm(number: u16, operation: &Operation, private: &TokenStream) -> TokenStream {
    let Operation {
        name,
        arguments,
        result,
        result_span,
        ..
    } = operation;
    let travel = arguments.iter().filter_map(Argument::travels);
    let travel = travel.map(|ty| argument::travels(ty, private));
    let travels = quote_spanned!(*result_span=> #private::travels::<#result>(););
    let patterns = arguments.iter().map(|it| it.decoded_pattern(private));
    let types = arguments.iter().map(|it| it.decoded(private));
    let lent = arguments.iter().map(Argument::lent_there);
    let (worker, ran, value, out) = (own("worker"), own("ran"), own("value"), own("out"));
    let backs = operation.outs().map(|it| it.sent_back(private));
    let returns = quote_spanned!(*result_span=> let #ran: #private::Ran<#result>);
    quote! {
        #number => {
            #(#travel)*
            #travels
            let (#(#patterns,)*): (#(#types,)*) =
                #private::decode("the arguments", arguments)?;
            #returns = self.#name(#worker, #(#lent),*);
            let #value = match #ran {
                ::core::result::Result::Ok(value) => value,
                ::core::result::Result::Err(error) => {
                    return ::core::result::Result::Ok(::core::result::Result::Err(error));
                }
            };
            #private::encode_to("the result", &#value, #out)?;
            #(#private::encode_to("the result", &#backs, #out)?;)*
            ::core::result::Result::Ok(::core::result::Result::Ok(()))
        }
    }
}
