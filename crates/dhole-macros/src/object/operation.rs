//! Operations, as the program writes them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, ImplItemFn, Pat, ReceiverKind, Result, ReturnType, Safety, Type,
    Visibility,
};

use super::argument::{self, Argument, by_value, takes_out};
use super::worker::{self, is_worker};

/// The attribute of the method that the engine executes when a node is lost.
const ON_LOSS: &str = "on_loss";

/// The attribute of the method that says what is left of an object at the end of a run.
pub(super) const ON_END: &str = "on_end";

/// The attribute of a constructor.
pub(super) const NEW: &str = "new";

/// An operation, as the program writes it.
pub(super) struct Operation {
    pub name: Ident,
    pub visibility: Visibility,
    pub docs: Vec<Attribute>,
    pub writes: bool,
    pub arguments: Vec<Argument>,
    pub result: TokenStream,
    pub result_span: Span,
    pub guard: Option<Expr>,
    /// It takes a worker, so a process of the object's node executes it.
    pub takes_worker: bool,
    /// The engine alone executes it, when a node is lost: the handle does not have it.
    pub on_loss: bool,
}

impl Operation {
    /// The arguments of which something comes back with the result.
    pub fn outs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|it| it.comes_back())
    }

    /// The names of the arguments.
    pub fn names(&self) -> impl Iterator<Item = &Ident> {
        self.arguments.iter().map(|it| &it.name)
    }
}

/// Reads an operation from a method, if it is one, and removes its guard.
pub(super) fn operation(
    function: &mut ImplItemFn,
    private: &TokenStream,
) -> Result<Option<Operation>> {
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
    let writes = mutability.is_some();
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
    let mut arguments = Vec::new();
    for (index, argument) in function.sig.inputs.iter_mut().enumerate() {
        let is_out = takes_out(argument);
        let FnArg::Typed(argument) = argument else {
            continue;
        };
        worker::check_lifetime(&argument.ty)?;
        if is_worker(&argument.ty) {
            worker::check(argument, index, is_out)?;
            continue;
        }
        let name = match &*argument.pat {
            Pat::Ident(name) => name.ident.clone(),
            _ if guard.is_some() => {
                let what = "an argument of an operation that waits has a name";
                return Err(Error::new_spanned(&argument.pat, what));
            }
            _ => format_ident!("argument_{index}"),
        };
        arguments.push(Argument::parse(argument, name, is_out)?);
    }
    let signature = &function.sig;
    let takes_worker = worker::takes(signature);
    let (result, result_span) = match &signature.output {
        output if takes_worker => {
            let ty = worker::result(output, &signature.ident)?;
            by_value(ty, "a result")?;
            (ty.to_token_stream(), ty.span())
        }
        ReturnType::Default => (quote!(()), signature.ident.span()),
        ReturnType::Type(_, ty) => {
            by_value(ty, "a result")?;
            (ty.to_token_stream(), ty.span())
        }
    };
    if let Some(guard) = &guard {
        sees_no_outs(guard, &arguments)?;
        // An argument that only the guard looks at is used all the same.
        let named = arguments.iter().map(|it| &it.name);
        let used: syn::Stmt = syn::parse_quote!(let _ = (#(&#named,)*););
        function.block.stmts.insert(0, used);
    }
    let signature = &function.sig;
    let docs = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(Some(Operation {
        name: signature.ident.clone(),
        visibility: function.vis.clone(),
        docs: docs.cloned().collect(),
        writes,
        arguments,
        result,
        result_span,
        guard,
        takes_worker,
        on_loss: false,
    }))
}

/// Refuses a guard that looks at an argument that has no value before the operation.
fn sees_no_outs(guard: &Expr, arguments: &[Argument]) -> Result<()> {
    for argument in arguments.iter().filter(|it| it.is_out()) {
        if let Some(span) = argument::names(guard.to_token_stream(), &argument.name) {
            let what = "what is `#[out]` has no value before the operation: without `#[out]`, as \
                        `&mut`, the guard may look at it";
            return Err(Error::new(span, what));
        }
    }
    Ok(())
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
            let node: Type = syn::parse2(quote!(#private::NodeId))?;
            Ok(Operation {
                name: signature.ident.clone(),
                visibility: Visibility::Inherited,
                docs: Vec::new(),
                writes: true,
                arguments: vec![Argument::owned(format_ident!("node"), node)],
                result: quote!(()),
                result_span: signature.ident.span(),
                guard: None,
                takes_worker: false,
                on_loss: true,
            })
        }
        _ => {
            let what = "what is `#[on_loss]` is `fn name(&mut self, node: NodeId)`";
            Err(Error::new_spanned(signature, what))
        }
    }
}

/// Removes the attributes of a method that are the macro's own.
pub(super) fn takes_attributes(function: &mut ImplItemFn) {
    takes_attribute(function, "when");
    takes_attribute(function, ON_LOSS);
    takes_attribute(function, ON_END);
    takes_attribute(function, NEW);
    for argument in &mut function.sig.inputs {
        takes_out(argument);
    }
}

/// Removes an attribute without arguments from a method, and returns whether it was there.
pub(super) fn takes_attribute(function: &mut ImplItemFn, name: &str) -> bool {
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
