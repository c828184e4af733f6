//! The parameters of operations: what of each travels, and what the operation sees.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, PatType, Result, Type};

/// The attribute of a slice whose numbers only come back.
const OUT: &str = "out";

/// The types of numbers whose slices travel as one copy.
const NUMBERS: [&str; 12] = [
    "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64",
];

/// Types without a size, and the types that own them.
const UNSIZED: [(&str, &str); 3] = [
    ("Path", "PathBuf"),
    ("OsStr", "OsString"),
    ("CStr", "CString"),
];

/// A parameter of an operation.
pub(super) struct Argument {
    pub name: Ident,
    /// As the program writes it.
    pub ty: Type,
    form: Form,
}

/// How an argument is given.
enum Form {
    /// By value.
    Owned,
    /// Borrowed for the call.
    Lent(Shape, Way),
}

/// What is borrowed.
enum Shape {
    /// `str` that is only read: the operation sees it in the message.
    Text,
    /// `[u8]` that is only read: the operation sees it in the message.
    Bytes,
    /// One value.
    Value(Box<Type>),
    /// A slice whose elements serde writes.
    Slice(Box<Type>),
    /// A slice of numbers, which is one copy.
    Numbers(Box<Type>),
}

/// Which way the value of a borrowed argument travels.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// To the object.
    In,
    /// To the object, and back with the result.
    InOut,
    /// Back with the result.
    Out,
}

impl Argument {
    /// Reads a parameter.
    pub fn parse(argument: &PatType, name: Ident, is_out: bool) -> Result<Argument> {
        Ok(Argument {
            name,
            ty: (*argument.ty).clone(),
            form: form(&argument.ty, is_out)?,
        })
    }

    /// A parameter that is given by value.
    pub fn owned(name: Ident, ty: Type) -> Argument {
        let form = Form::Owned;
        Argument { name, ty, form }
    }

    /// Whether something of it comes back with the result.
    pub fn comes_back(&self) -> bool {
        matches!(&self.form, Form::Lent(_, Way::InOut | Way::Out))
    }

    /// Whether the operation sees zeros, whatever the caller has.
    pub fn is_out(&self) -> bool {
        matches!(&self.form, Form::Lent(_, Way::Out))
    }

    /// The type behind `&` or `&mut`, and whether it is `&mut`.
    pub fn lent(&self) -> Option<(&Type, bool)> {
        match &self.ty {
            Type::Reference(it) => Some((&it.elem, it.mutability.is_some())),
            _ => None,
        }
    }

    /// The parameter, as the type's signature names it.
    pub fn signature(&self) -> TokenStream {
        let ty = &self.ty;
        let out = self.is_out().then(|| quote!(#[out]));
        quote!(#out #ty)
    }

    /// What the caller gives: an expression of the parameter's name, and the pattern that takes it.
    pub fn given(&self, private: &TokenStream) -> TokenStream {
        let name = &self.name;
        match &self.form {
            Form::Lent(_, Way::Out) => quote!(#private::Zeros(#name)),
            Form::Lent(Shape::Numbers(_) | Shape::Bytes, _) => quote!(#private::Numbers(#name)),
            _ => quote!(#name),
        }
    }

    /// What the operation gets where the copy is at the caller, of what was
    /// [given](Argument::given).
    pub fn lent_here(&self, private: &TokenStream) -> TokenStream {
        let name = &self.name;
        if self.is_out() {
            return quote!(#private::zeroed(#name));
        }
        quote!(#name)
    }

    /// The type as which the guard sees it; `None` where it does not.
    pub fn in_guard(&self) -> Option<TokenStream> {
        let ty = &self.ty;
        match &self.form {
            Form::Owned => Some(quote!(&#ty)),
            Form::Lent(_, Way::Out) => None,
            Form::Lent(..) => {
                let (lent, _) = self.lent()?;
                Some(quote!(&#lent))
            }
        }
    }

    /// The type that has to travel.
    pub fn travels(&self) -> Option<&Type> {
        match &self.form {
            Form::Owned => Some(&self.ty),
            Form::Lent(Shape::Value(ty) | Shape::Slice(ty), _) => Some(&**ty),
            Form::Lent(Shape::Text | Shape::Bytes | Shape::Numbers(_), _) => None,
        }
    }

    /// The type that is decoded where the object is.
    pub fn decoded(&self, private: &TokenStream) -> TokenStream {
        let ty = &self.ty;
        match &self.form {
            Form::Owned | Form::Lent(Shape::Text | Shape::Bytes, _) => quote!(#ty),
            Form::Lent(Shape::Value(ty), _) => quote!(#ty),
            Form::Lent(Shape::Slice(ty), _) => quote!(::std::vec::Vec<#ty>),
            Form::Lent(Shape::Numbers(ty), Way::Out) => {
                quote!(#private::Zeros<::std::vec::Vec<#ty>>)
            }
            Form::Lent(Shape::Numbers(ty), _) => quote!(#private::Numbers<::std::vec::Vec<#ty>>),
        }
    }

    /// The pattern of what is [decoded](Argument::decoded).
    pub fn decoded_pattern(&self, private: &TokenStream) -> TokenStream {
        let name = &self.name;
        let changes = self.comes_back().then(|| quote!(mut));
        match &self.form {
            Form::Lent(_, Way::Out) => quote!(#private::Zeros(#changes #name)),
            Form::Lent(Shape::Numbers(_), _) => quote!(#private::Numbers(#changes #name)),
            _ => quote!(#changes #name),
        }
    }

    /// What the operation gets of what was decoded.
    pub fn lent_there(&self) -> TokenStream {
        let name = &self.name;
        match &self.form {
            Form::Owned | Form::Lent(Shape::Text | Shape::Bytes, _) => quote!(#name),
            Form::Lent(_, Way::In) => quote!(&#name),
            Form::Lent(_, Way::InOut | Way::Out) => quote!(&mut #name),
        }
    }

    /// What is encoded behind the result, of what was decoded and lent.
    pub fn sent_back(&self, private: &TokenStream) -> TokenStream {
        let name = &self.name;
        match &self.form {
            Form::Lent(Shape::Numbers(_), _) => quote!(#private::Numbers(&#name[..])),
            _ => quote!(#name),
        }
    }

    /// The type that the caller decodes behind the result.
    pub fn received(&self, private: &TokenStream) -> TokenStream {
        match &self.form {
            Form::Lent(Shape::Numbers(ty), _) => quote!(#private::NumberBytes<'_, #ty>),
            _ => self.decoded(private),
        }
    }

    /// Tests, at the caller, that an `#[out]` is not too long.
    pub fn checked_out(&self, private: &TokenStream) -> Option<TokenStream> {
        let name = &self.name;
        let words = name.to_string();
        match &self.form {
            Form::Lent(Shape::Numbers(ty), Way::Out) => {
                Some(quote!(#private::check_out::<#ty>(#words, #name.len())?;))
            }
            _ => None,
        }
    }

    /// Tests that as many elements came back as `received` as the borrowed slice has.
    pub fn checked_length(&self, received: &Ident, private: &TokenStream) -> Option<TokenStream> {
        let name = &self.name;
        let words = name.to_string();
        match &self.form {
            Form::Lent(Shape::Slice(_) | Shape::Numbers(_), _) => {
                Some(quote!(#private::check_length(#words, #name.len(), #received.len())?;))
            }
            _ => None,
        }
    }

    /// Writes what came back into the caller's borrow.
    pub fn put(&self, received: &Ident, private: &TokenStream) -> TokenStream {
        let name = &self.name;
        match &self.form {
            Form::Lent(Shape::Numbers(_), _) => quote!(#received.put(#name);),
            Form::Lent(Shape::Slice(_), _) => quote!(#private::put(#name, #received);),
            _ => quote!(*#name = #received;),
        }
    }

    /// A name for what comes back, which no argument has.
    pub fn received_name(&self) -> Ident {
        Ident::new(&format!("received_{}", self.name), Span::mixed_site())
    }
}

/// Removes the attribute `#[out]` from a parameter, and returns whether it was there.
pub(super) fn takes_out(argument: &mut FnArg) -> bool {
    let FnArg::Typed(argument) = argument else {
        return false;
    };
    let before = argument.attrs.len();
    argument.attrs.retain(|attr| !attr.path().is_ident(OUT));
    argument.attrs.len() < before
}

/// How an argument of this type is given.
fn form(ty: &Type, is_out: bool) -> Result<Form> {
    let refused = |why: &str| {
        let words = format!("an argument {why}");
        Err(Error::new_spanned(ty, words))
    };
    let Type::Reference(reference) = ty else {
        if is_out {
            return refused("that is `#[out]` is a slice of numbers, as `&mut [f64]` is");
        }
        by_value(ty, "an argument")?;
        return Ok(Form::Owned);
    };
    if reference
        .lifetime
        .as_ref()
        .is_some_and(|it| it.ident != "_")
    {
        return refused("is borrowed for the call alone: `&T`, without a lifetime");
    }
    let way = match (is_out, reference.mutability.is_some()) {
        (true, false) => return refused("that is `#[out]` is `&mut`"),
        (true, true) => Way::Out,
        (false, true) => Way::InOut,
        (false, false) => Way::In,
    };
    let lent = &*reference.elem;
    by_value(lent, "an argument")?;
    let shape = match lent {
        Type::Slice(slice) if is_number(&slice.elem) => match (way, named(&slice.elem)) {
            (Way::In, Some(name)) if name == "u8" => Shape::Bytes,
            _ => Shape::Numbers(slice.elem.clone()),
        },
        Type::Slice(slice) => Shape::Slice(slice.elem.clone()),
        Type::TraitObject(_) => {
            return refused("is of a type with a name in place of `dyn`, for every node knows it");
        }
        lent => match named(lent) {
            Some(name) if name == "str" && way == Way::In => Shape::Text,
            Some(name) if name == "str" => {
                return refused(
                    "that is a `str` cannot grow: `&mut String` in place of `&mut str`",
                );
            }
            _ => match without_size(lent) {
                Some((it, owner)) => {
                    return refused(&format!(
                        "is of a type with a size: `&{owner}`, not `&{it}` (a `{it}` of your own \
                         with its path: `&self::{it}`)"
                    ));
                }
                None => Shape::Value(reference.elem.clone()),
            },
        },
    };
    match (&shape, way) {
        (Shape::Numbers(_), _) | (_, Way::In | Way::InOut) => Ok(Form::Lent(shape, way)),
        (_, Way::Out) => refused(
            "that is `#[out]` is a slice of numbers, as `&mut [f64]` is: others without `#[out]`",
        ),
    }
}

/// The name of a type that has no path and no parameters.
fn named(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// A type of the standard library without a size, by its name, and the type that owns it.
fn without_size(ty: &Type) -> Option<&'static (&'static str, &'static str)> {
    let Type::Path(path) = ty else {
        return None;
    };
    let segments = &path.path.segments;
    let (first, last) = (&segments.first()?.ident, &segments.last()?.ident);
    let of_std = segments.len() == 1 || first == "std" || first == "core";
    UNSIZED.iter().find(|(it, _)| of_std && last == it)
}

fn is_number(ty: &Type) -> bool {
    named(ty).is_some_and(|name| NUMBERS.iter().any(|it| name == it))
}

/// Whether a type has a reference somewhere.
fn has_reference(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_reference(group.stream()),
        TokenTree::Punct(punct) => punct.as_char() == '&',
        _ => false,
    })
}

/// Refuses a type that is no value, or has a reference within: that cannot go to another node.
pub(super) fn by_value(ty: &Type, what: &str) -> Result<()> {
    let why = match ty {
        Type::Reference(_) => {
            "is given by value, for the operation may run on another node: a `String` in place of \
             a `&str`, a `Vec<T>` in place of a `&[T]`"
        }
        Type::ImplTrait(_) => "is of a type with a name, for every node has to know it",
        Type::Ptr(_) | Type::FnPtr(_) => "is made of values: an address means nothing elsewhere",
        _ if has_reference(ty.to_token_stream()) => {
            "has no reference within it, for it may go to another node: the value in place of a \
             reference to it"
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, format!("{what} {why}")))
}

/// Whether tokens name the identifier somewhere: the span of the first.
pub(super) fn names(tokens: TokenStream, ident: &Ident) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => names(group.stream(), ident),
        TokenTree::Ident(it) if it == *ident => Some(it.span()),
        _ => None,
    })
}

/// Tests that the type can travel, where the program wrote it.
pub(super) fn travels(ty: &Type, private: &TokenStream) -> TokenStream {
    quote_spanned!(ty.span()=> #private::travels::<#ty>();)
}
