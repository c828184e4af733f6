//! The derive [`Counts`](derive@crate::Counts).

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Result, Type};

/// The word in `#[counts(..)]`, if there is one.
fn said(attributes: &[Attribute], known: &[&str]) -> Result<Option<String>> {
    let Some(counts) = attributes.iter().find(|it| it.path().is_ident("counts")) else {
        return Ok(None);
    };
    let word: Ident = counts.parse_args()?;
    match known.contains(&word.to_string().as_str()) {
        true => Ok(Some(word.to_string())),
        false => Err(Error::new(
            word.span(),
            format!("one of {}", known.join(", ")),
        )),
    }
}

/// The last name in a type's path.
fn is(field: &Field, name: &str) -> bool {
    let Type::Path(path) = &field.ty else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == name)
}

/// How a field is added, and how it is taken since an earlier time.
fn steps(field: &Field, saturating: bool) -> Result<[TokenStream; 2]> {
    let name = &field.ident;
    let special = said(&field.attrs, &["most", "kept"])?;
    let [add, take] = match (is(field, "u64"), saturating) {
        (true, false) => [
            quote!(self.#name += other.#name;),
            quote!(since.#name -= earlier.#name;),
        ],
        (true, true) => [
            quote!(self.#name = self.#name.saturating_add(other.#name);),
            quote!(since.#name = since.#name.saturating_sub(earlier.#name);),
        ],
        (false, _) if is(field, "BTreeMap") => [
            quote! {
                for (key, more) in &other.#name {
                    let key = ::core::clone::Clone::clone(key);
                    self.#name.entry(key).or_default().add(more);
                }
            },
            quote! {
                for (key, then) in &earlier.#name {
                    let key = ::core::clone::Clone::clone(key);
                    let now = since.#name.entry(key).or_default();
                    *now = now.since(then);
                }
            },
        ],
        (false, _) => [
            quote!(self.#name.add(&other.#name);),
            quote!(since.#name = since.#name.since(&earlier.#name);),
        ],
    };
    Ok(match special.as_deref() {
        Some("most") => [quote!(self.#name = self.#name.max(other.#name);), quote!()],
        Some(_) => [add, quote!()],
        None => [add, take],
    })
}

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(
            input.span(),
            "counts are the fields of a struct",
        ));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new(input.span(), "each count has a name"));
    };
    let saturating = said(&input.attrs, &["saturating"])?.is_some();
    let steps = fields.named.iter().map(|field| steps(field, saturating));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    let (adds, takes): (Vec<_>, Vec<_>) = steps.into_iter().map(|[add, take]| (add, take)).unzip();
    let numbers = fields.named.iter().filter(|field| is(field, "u64"));
    let numbers: Vec<_> = numbers.filter_map(|field| field.ident.as_ref()).collect();
    let names = numbers.iter().map(|name| name.to_string());
    let (of, visibility, count) = (&input.ident, &input.vis, numbers.len());
    let (add_docs, since_docs) = match saturating {
        false => (
            "Adds what was counted elsewhere.",
            "In debug builds, if `earlier` is not earlier.",
        ),
        true => (
            "Adds what was counted elsewhere. The sums of what a malicious peer says do not \
             overflow.",
            "Never: where `earlier` is more, nothing is left.",
        ),
    };
    Ok(quote! {
        impl #of {
            #[doc = #add_docs]
            #visibility fn add(&mut self, other: &Self) {
                #(#adds)*
            }

            /// What was counted since these stood at `earlier`. What is stored, and the most of
            /// something, are no events and stay as they are.
            ///
            /// # Panics
            #[doc = #since_docs]
            #[must_use]
            #visibility fn since(&self, earlier: &Self) -> Self {
                let mut since = ::core::clone::Clone::clone(self);
                #(#takes)*
                since
            }

            /// Each number with its name, in order.
            #visibility fn numbers(&self) -> [(&'static str, u64); #count] {
                [#((#names, self.#numbers)),*]
            }
        }
    })
}
