//! Constructors: functions that make an object where it is kept (VOTE, section 3.3).

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, ImplItemFn, Pat, PathArguments, Result, ReturnType,
    Safety, Type, Visibility,
};

use super::argument::{self, Argument};
use super::execute::own;
use super::generate::parameters;
use super::operation::{NEW, takes_attribute};
use super::worker;

/// A constructor, as the program writes it.
pub(super) struct Constructor {
    name: Ident,
    visibility: Visibility,
    docs: Vec<Attribute>,
    arguments: Vec<Argument>,
    output: Type,
}

/// Reads a constructor from a function, if it is one, and removes its attribute.
pub(super) fn constructor(function: &mut ImplItemFn) -> Result<Option<Constructor>> {
    if !takes_attribute(function, NEW) {
        return Ok(None);
    }
    let signature = &function.sig;
    if let Some(receiver) = signature.receiver() {
        let what = "a constructor makes the object, so it takes no `self`";
        return Err(Error::new_spanned(receiver, what));
    }
    if matches!(function.vis, Visibility::Inherited) {
        let what = "a constructor is called by programs: it is `pub`";
        return Err(Error::new_spanned(&signature.ident, what));
    }
    let is_plain = signature.generics.params.is_empty()
        && signature.asyncness.is_none()
        && matches!(signature.safety, Safety::Default);
    let ReturnType::Type(_, output) = &signature.output else {
        let what = "a constructor returns `Self`, or a `Result<Self, E>`";
        return Err(Error::new_spanned(signature, what));
    };
    if !is_plain {
        let what = "a constructor runs on the node that keeps the object: it is not `async`, not \
                    `unsafe`, and has no parameters of its own";
        return Err(Error::new_spanned(signature, what));
    }
    let mut arguments = Vec::new();
    for (index, argument) in signature.inputs.iter().enumerate() {
        let FnArg::Typed(argument) = argument else {
            continue;
        };
        let name = match &*argument.pat {
            Pat::Ident(name) => name.ident.clone(),
            _ => format_ident!("argument_{index}"),
        };
        if worker::is_worker(&argument.ty) {
            let what = "a constructor takes no worker: it runs at once on the node that keeps the \
                        object, where its request is delivered";
            return Err(Error::new_spanned(&argument.ty, what));
        }
        let parsed = Argument::parse(argument, name, false)?;
        if parsed.comes_back() {
            let what = "nothing comes back from a constructor: `&T` in place of `&mut T`";
            return Err(Error::new_spanned(&argument.ty, what));
        }
        arguments.push(parsed);
    }
    let docs = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(Some(Constructor {
        name: signature.ident.clone(),
        visibility: function.vis.clone(),
        docs: docs.cloned().collect(),
        arguments,
        output: (**output).clone(),
    }))
}

/// The functions that make objects, each with the worker and the place before its arguments.
pub(super) fn makers(
    constructors: &[Constructor],
    ty: &Type,
    private: &TokenStream,
) -> Vec<TokenStream> {
    let each = constructors.iter().enumerate().map(|(number, it)| {
        let number = number as u16;
        let Constructor {
            name,
            visibility,
            docs,
            arguments,
            output,
        } = it;
        let (made, make) = match gives_user_half(output) {
            true => (quote!(Client), quote!(make_client)),
            false => (quote!(Object), quote!(make)),
        };
        let maker = format_ident!("{name}_in");
        let (worker, place) = (own("worker"), own("place"));
        let parameters = parameters(arguments.iter(), ty);
        let given = arguments.iter().map(|it| it.given(private));
        quote! {
            #(#docs)*
            #[track_caller]
            #visibility fn #maker(
                #worker: &mut #private::Worker<'_>,
                #place: impl ::core::convert::Into<#private::Strategy>,
                #(#parameters),*
            ) -> ::core::result::Result<#private::#made<#ty>, #private::ObjectError> {
                #private::#make(#worker, #place, #number, (#(#given,)*))
            }
        }
    });
    each.collect()
}

/// Whether a constructor that returns this gives a user half back: a pair in the place of `Self`.
fn gives_user_half(output: &Type) -> bool {
    match output {
        Type::Tuple(pair) => pair.elems.len() == 2,
        Type::Path(path) => {
            let last = path.path.segments.last();
            let Some(PathArguments::AngleBracketed(arguments)) = last.map(|it| &it.arguments)
            else {
                return false;
            };
            match arguments.args.first() {
                Some(GenericArgument::Type(Type::Tuple(pair))) => pair.elems.len() == 2,
                _ => false,
            }
        }
        _ => false,
    }
}

/// What a type says of its constructors: which there are, and how they are executed.
pub(super) fn table(
    constructors: &[Constructor],
    type_name: &Ident,
    private: &TokenStream,
) -> Option<TokenStream> {
    if constructors.is_empty() {
        return None;
    }
    let infos = constructors.iter().map(|it| {
        let name = format!("{type_name}::{}", it.name);
        let (output, types) = (&it.output, it.arguments.iter().map(Argument::signature));
        let signature = format!("{} -> {}", quote!(#(#types),*), quote!(#output));
        quote!(#private::ConstructorInfo { name: #name, signature: #signature })
    });
    let arms = constructors.iter().enumerate().map(|(number, it)| {
        let number = number as u16;
        let Constructor {
            name,
            arguments,
            output,
            ..
        } = it;
        let travel = arguments.iter().filter_map(Argument::travels);
        let travel = travel.map(|ty| argument::travels(ty, private));
        let patterns = arguments.iter().map(|it| it.decoded_pattern(private));
        let types = arguments.iter().map(|it| it.decoded(private));
        let lent = arguments.iter().map(Argument::lent_there);
        let made = quote_spanned!(output.span()=> #private::Makes::<Self>::made(made));
        quote! {
            #number => {
                #(#travel)*
                let (#(#patterns,)*): (#(#types,)*) =
                    #private::decode("the arguments", arguments)?;
                let made = Self::#name(#(#lent),*);
                ::core::result::Result::Ok(#made)
            }
        }
    });
    Some(quote! {
        const CONSTRUCTORS: &'static [#private::ConstructorInfo] = &[#(#infos),*];

        fn construct(
            constructor: u16,
            arguments: &[u8],
        ) -> ::core::result::Result<#private::Constructed<Self>, #private::Malformed> {
            match constructor {
                #(#arms)*
                _ => ::core::result::Result::Err(#private::Malformed::NO_CONSTRUCTOR),
            }
        }
    })
}
