//! Operations that take a worker: a process of the object's node executes them (VOTE, section 3.3).

use proc_macro2::Ident;
use syn::{
    Error, FnArg, GenericArgument, PatType, PathArguments, PathSegment, Result, ReturnType,
    Signature, Type,
};

/// Whether a parameter is the worker: `&mut Worker<'_>`.
pub(super) fn is_worker(ty: &Type) -> bool {
    let lent = match ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    let Type::Path(path) = lent else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|it| it.ident == "Worker" && takes_lifetime(&it.arguments))
}

/// A worker has a lifetime, if anything: another type of that name has none, or has types.
fn takes_lifetime(arguments: &PathArguments) -> bool {
    match arguments {
        PathArguments::AngleBracketed(it) => {
            let is_lifetime = |it| matches!(it, &GenericArgument::Lifetime(_));
            it.args.iter().all(is_lifetime)
        }
        _ => false,
    }
}

/// Refuses `&mut Worker`, which is dhole's without its lifetime, or a type of the program's own.
pub(super) fn check_lifetime(ty: &Type) -> Result<()> {
    let Type::Reference(reference) = ty else {
        return Ok(());
    };
    let Type::Path(path) = &*reference.elem else {
        return Ok(());
    };
    let segments = &path.path.segments;
    let is_bare = |it: &PathSegment| it.ident == "Worker" && it.arguments.is_none();
    let first = segments.first().map(|it| &it.ident);
    let may_be_ours = segments.len() == 1 || first.is_some_and(|it| it == "dhole");
    match segments.last().is_some_and(is_bare) && may_be_ours {
        false => Ok(()),
        true => {
            let what = "dhole's worker has a lifetime: `w: &mut Worker<'_>` (a `Worker` of your \
                        own with its path: `&mut self::Worker`)";
            Err(Error::new_spanned(ty, what))
        }
    }
}

/// Refuses a worker that is not the first argument, or not lent mutably.
pub(super) fn check(argument: &PatType, index: usize, is_out: bool) -> Result<()> {
    let lent = match &*argument.ty {
        Type::Reference(reference) => reference.mutability.is_some(),
        _ => false,
    };
    if lent && index == 1 && !is_out {
        return Ok(());
    }
    let what = "an operation that waits takes the worker first: `w: &mut Worker<'_>`";
    Err(Error::new_spanned(&argument.ty, what))
}

/// Whether an operation takes a worker.
pub(super) fn takes(signature: &Signature) -> bool {
    let mut inputs = signature.inputs.iter();
    inputs.any(|argument| matches!(argument, FnArg::Typed(it) if is_worker(&it.ty)))
}

/// The `R` of the `dhole::Result<R>` that an operation with a worker returns.
pub(super) fn result<'a>(output: &'a ReturnType, name: &Ident) -> Result<&'a Type> {
    let what = "an operation that takes a worker returns a `dhole::Result<R>`, for calls of the \
                worker may fail";
    let ReturnType::Type(_, ty) = output else {
        return Err(Error::new_spanned(name, what));
    };
    let refused = || Error::new_spanned(ty, what);
    let Type::Path(path) = &**ty else {
        return Err(refused());
    };
    let last = path.path.segments.last().filter(|it| it.ident == "Result");
    let Some(PathArguments::AngleBracketed(arguments)) = last.map(|it| &it.arguments) else {
        return Err(refused());
    };
    let mut arguments = arguments.args.iter();
    match (arguments.next(), arguments.next()) {
        (Some(GenericArgument::Type(ty)), None) => Ok(ty),
        _ => Err(refused()),
    }
}
