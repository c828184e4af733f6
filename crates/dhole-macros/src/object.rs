//! Implements the attribute `object`: turns an `impl` into operations, a handle and a table of
//! operations.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, GenericParam, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr,
    Pat, Path, ReceiverKind, Result, ReturnType, Safety, Signature, Type, Visibility,
};

/// The attribute of the method that the engine executes when a node is lost.
const ON_LOSS: &str = "on_loss";

/// An operation, as the program writes it.
struct Operation {
    name: Ident,
    visibility: Visibility,
    docs: Vec<Attribute>,
    writes: bool,
    arguments: Vec<Ident>,
    types: Vec<Type>,
    result: TokenStream,
    result_span: Span,
    guard: Option<Expr>,
    /// The engine alone executes it, when a node is lost: the handle does not have it.
    on_loss: bool,
}

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
            takes_attribute(function, "when");
            takes_attribute(function, ON_LOSS);
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

/// Reads an operation from a method, if it is one, and removes its guard.
fn operation(function: &mut ImplItemFn, private: &TokenStream) -> Result<Option<Operation>> {
    let guard = guard(function)?;
    if takes_attribute(function, ON_LOSS) {
        return hook(function, guard, private).map(Some);
    }
    let signature = &function.sig;
    let public = !matches!(function.vis, Visibility::Inherited);
    let receiver = signature.receiver();
    let Some(receiver) = receiver.filter(|_| public) else {
        return match guard {
            None => Ok(None),
            Some(guard) => Err(Error::new_spanned(
                guard,
                "only operations wait: `pub` methods that take `&self` or `&mut self`",
            )),
        };
    };
    let ReceiverKind::Reference(_, _, mutability) = &receiver.kind else {
        let what = "an operation takes `&self` if it only reads, or `&mut self`";
        return Err(Error::new_spanned(receiver, what));
    };
    if let Some(asyncness) = &signature.asyncness {
        let what = "an operation is executed at once: it cannot be `async`";
        return Err(Error::new_spanned(asyncness, what));
    }
    if let Safety::Unsafe(unsafety) = &signature.safety {
        let what = "an operation may be called by any node: it cannot be `unsafe`";
        return Err(Error::new_spanned(unsafety, what));
    }
    if !signature.generics.params.is_empty() {
        let what = "an operation has one number on all nodes, so it has no parameters of its own";
        return Err(Error::new_spanned(&signature.generics, what));
    }
    let (mut arguments, mut types) = (Vec::new(), Vec::new());
    for (index, argument) in signature.inputs.iter().enumerate() {
        let FnArg::Typed(argument) = argument else {
            continue;
        };
        by_value(&argument.ty, "an argument")?;
        arguments.push(match &*argument.pat {
            Pat::Ident(name) => name.ident.clone(),
            _ if guard.is_some() => {
                let what = "an argument of an operation that waits has a name";
                return Err(Error::new_spanned(&argument.pat, what));
            }
            _ => format_ident!("argument_{index}"),
        });
        types.push((*argument.ty).clone());
    }
    let (result, result_span) = match &signature.output {
        ReturnType::Default => (quote!(()), signature.ident.span()),
        ReturnType::Type(_, ty) => {
            by_value(ty, "a result")?;
            (ty.to_token_stream(), ty.span())
        }
    };
    if guard.is_some() {
        // An argument that only the guard looks at is used all the same.
        let named = arguments.iter();
        let used: syn::Stmt = syn::parse_quote!(let _ = (#(&#named,)*););
        function.block.stmts.insert(0, used);
    }
    let signature = &function.sig;
    let docs = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(Some(Operation {
        name: signature.ident.clone(),
        visibility: function.vis.clone(),
        docs: docs.cloned().collect(),
        writes: mutability.is_some(),
        arguments,
        types,
        result,
        result_span,
        guard,
        on_loss: false,
    }))
}

/// Reads the method that the engine executes when a node is lost.
fn hook(function: &ImplItemFn, guard: Option<Expr>, private: &TokenStream) -> Result<Operation> {
    let signature = &function.sig;
    if let Some(guard) = guard {
        let what = "what a loss means cannot wait: `#[on_loss]` has no `#[when(..)]`";
        return Err(Error::new_spanned(guard, what));
    }
    if !matches!(function.vis, Visibility::Inherited) {
        let what = "the runtime calls what is `#[on_loss]`, and no program: it is not `pub`";
        return Err(Error::new_spanned(&function.vis, what));
    }
    let inputs: Vec<_> = signature.inputs.iter().collect();
    let plain = signature.generics.params.is_empty()
        && signature.asyncness.is_none()
        && matches!(signature.safety, Safety::Default)
        && matches!(signature.output, ReturnType::Default);
    match inputs[..] {
        [FnArg::Receiver(receiver), FnArg::Typed(_)]
            if plain && matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_))) =>
        {
            Ok(Operation {
                name: signature.ident.clone(),
                visibility: Visibility::Inherited,
                docs: Vec::new(),
                writes: true,
                arguments: vec![format_ident!("node")],
                types: vec![syn::parse2(quote!(#private::NodeId))?],
                result: quote!(()),
                result_span: signature.ident.span(),
                guard: None,
                on_loss: true,
            })
        }
        _ => {
            let what = "what is `#[on_loss]` is `fn name(&mut self, node: NodeId)`";
            Err(Error::new_spanned(signature, what))
        }
    }
}

/// Removes an attribute without arguments from a method, and returns whether it was there.
fn takes_attribute(function: &mut ImplItemFn, name: &str) -> bool {
    let before = function.attrs.len();
    function.attrs.retain(|attr| !attr.path().is_ident(name));
    function.attrs.len() < before
}

/// Removes `#[when(..)]` from a method, and returns its condition.
fn guard(function: &mut ImplItemFn) -> Result<Option<Expr>> {
    let (when, others): (Vec<_>, Vec<_>) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition(|attr| attr.path().is_ident("when"));
    function.attrs = others;
    let mut when = when.into_iter();
    let first = when.next();
    if let Some(second) = when.next() {
        let what = "an operation has one guard: join the conditions with `&&` or `||`";
        return Err(Error::new_spanned(second, what));
    }
    first.map(|attr| attr.parse_args()).transpose()
}

/// Refuses a type that is a reference: a reference cannot go to another node.
fn by_value(ty: &Type, what: &str) -> Result<()> {
    let why = match ty {
        Type::Reference(_) => {
            "is given by value, for the operation may run on another node: a `String` in place of \
             a `&str`, a `Vec<T>` in place of a `&[T]`"
        }
        Type::ImplTrait(_) => "is of a type with a name, for every node has to know it",
        Type::Ptr(_) | Type::FnPtr(_) => "is made of values: an address means nothing elsewhere",
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, format!("{what} {why}")))
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

fn generate(
    block: &ItemImpl,
    type_name: &Ident,
    (operations, stand_ins): (&[Operation], &TokenStream),
    krate: &LitStr,
    private: &TokenStream,
) -> TokenStream {
    let ty = &block.self_ty;
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let params = &block.generics.params;
    let names = block.generics.params.iter().map(|param| match param {
        GenericParam::Type(param) => param.ident.to_token_stream(),
        GenericParam::Const(param) => param.ident.to_token_stream(),
        GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
    });
    let names: Vec<_> = names.collect();
    let handle = format_ident!("{type_name}Operations");
    let called = operations.iter().enumerate().filter(|(_, it)| !it.on_loss);
    let proxies = called.map(|(number, operation)| {
        let number = number as u16;
        let starts = format_ident!("start_{}", operation.name);
        // An operation that is called so itself keeps its name.
        let starts = Some(starts).filter(|starts| operations.iter().all(|it| it.name != *starts));
        let proxy = proxy(number, operation, ty, private);
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
    // No name that an operation gives an argument may meet one of the code around it.
    let out = Ident::new("out", Span::mixed_site());
    let infos = operations.iter().map(|it| info(it, type_name, private));
    let arms = operations.iter().enumerate().map(|(number, it)| {
        let number = number as u16;
        arm(number, it, &out, private)
    });
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
            }

            #[automatically_derived]
            impl #impl_generics #private::ObjectType for #ty #where_clause {
                type Operations = #handle<#(#names),*>;
                const OPERATIONS: &'static [#private::OperationInfo] = &[#(#infos),*];
                #on_loss

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
    }
}

fn guard_name(operation: &Operation) -> Ident {
    format_ident!("__dhole_when_{}", operation.name)
}

/// The guard, as a method that sees the arguments by reference.
fn when(operation: &Operation) -> Option<TokenStream> {
    let guard = operation.guard.as_ref()?;
    let (name, arguments, types) = (
        guard_name(operation),
        &operation.arguments,
        &operation.types,
    );
    Some(quote_spanned! {guard.span()=>
        fn #name(&self, #(#arguments: &#types),*) -> bool {
            let _ = (#(#arguments,)*);
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
        types,
        result,
        guard,
        ..
    } = operation;
    let types: Vec<_> = types
        .iter()
        .map(|it| spelled_out(it.to_token_stream(), ty))
        .collect();
    let result = spelled_out(result.clone(), ty);
    let worker = Ident::new("worker", Span::mixed_site());
    let state = Ident::new("state", Span::mixed_site());
    let may = match guard {
        None => quote!(|_, _| true),
        Some(_) => {
            let guard = guard_name(operation);
            quote!(|#state: &#ty, (#(#arguments,)*)| #state.#guard(#(#arguments),*))
        }
    };
    let (call, lent) = match writes {
        true => (quote!(write), quote!(&mut #ty)),
        false => (quote!(read), quote!(&#ty)),
    };
    quote! {
        #(#docs)*
        #[track_caller]
        #[inline]
        #visibility fn #name(
            &self,
            #worker: &mut #private::Worker<'_>,
            #(#arguments: #types),*
        ) -> ::core::result::Result<#result, #private::ObjectError> {
            #private::#call(
                #worker,
                self.0,
                #number,
                (#(#arguments,)*),
                #may,
                |#state: #lent, (#(#arguments,)*)| #state.#name(#(#arguments),*),
            )
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
        types,
        result,
        ..
    } = operation;
    let doc = format!("Starts [`{name}`](Self::{name}) and goes on.");
    let types: Vec<_> = types
        .iter()
        .map(|it| spelled_out(it.to_token_stream(), ty))
        .collect();
    let result = spelled_out(result.clone(), ty);
    let worker = Ident::new("worker", Span::mixed_site());
    quote! {
        #[doc = #doc]
        #[track_caller]
        #visibility fn #starts(
            &self,
            #worker: &mut #private::Worker<'_>,
            #(#arguments: #types),*
        ) -> ::core::result::Result<#private::Pending<#result>, #private::ObjectError> {
            #private::start(#worker, self.0, #number, #writes, (#(#arguments,)*))
        }
    }
}

fn info(operation: &Operation, type_name: &Ident, private: &TokenStream) -> TokenStream {
    let Operation {
        name,
        writes,
        types,
        result,
        guard,
        ..
    } = operation;
    let guarded = guard.is_some();
    let full = format!("{type_name}::{name}");
    let signature = format!("{} -> {result}", quote!(#(#types),*));
    quote! {
        #private::OperationInfo {
            name: #full,
            writes: #writes,
            guarded: #guarded,
            signature: #signature,
        }
    }
}

/// The arm that executes an operation on the state, from bytes to bytes.
fn arm(number: u16, operation: &Operation, out: &Ident, private: &TokenStream) -> TokenStream {
    let Operation {
        name,
        arguments,
        types,
        result,
        result_span,
        guard,
        ..
    } = operation;
    let travel = types
        .iter()
        .map(|ty| quote_spanned!(ty.span()=> #private::travels::<#ty>();));
    let result = quote_spanned!(*result_span=> #private::travels::<#result>(););
    let blocked = guard.as_ref().map(|_| {
        let guard = guard_name(operation);
        quote! {
            if !self.#guard(#(&#arguments),*) {
                return ::core::result::Result::Ok(#private::Applied::Blocked);
            }
        }
    });
    quote! {
        #number => {
            #(#travel)*
            #result
            let (#(#arguments,)*): (#(#types,)*) =
                #private::decode("the arguments", arguments)?;
            #blocked
            let result = self.#name(#(#arguments),*);
            #private::encode_to("the result", &result, #out)?;
            ::core::result::Result::Ok(#private::Applied::Done)
        }
    }
}
