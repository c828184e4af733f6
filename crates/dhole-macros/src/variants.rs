//! The derive [`Variants`](derive@crate::Variants).

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Ident, LitStr, Result, Token, Variant};

/// What `#[variants(..)]` on the enum says: `method`, `method = "snake_case"`, `method, setting`.
struct Named {
    method: Ident,
    separator: char,
    setting: bool,
}

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> Result<Named> {
        let method = input.parse()?;
        let mut separator = '-';
        if input.parse::<Option<Token![=]>>()?.is_some() {
            let case: LitStr = input.parse()?;
            separator = match case.value().as_str() {
                "snake_case" => '_',
                "kebab-case" => '-',
                _ => return Err(Error::new(case.span(), "`snake_case` or `kebab-case`")),
            };
        }
        let mut setting = false;
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let word: Ident = input.parse()?;
            setting = word == "setting";
            if !setting {
                return Err(Error::new(word.span(), "`setting`, or nothing"));
            }
        }
        Ok(Named {
            method,
            separator,
            setting,
        })
    }
}

impl Named {
    /// What a variant says itself, or its identifier in small letters.
    fn name_of(&self, variant: &Variant) -> Result<String> {
        if let Some(own) = variant
            .attrs
            .iter()
            .find(|it| it.path().is_ident("variants"))
        {
            return Ok(own.parse_args::<LitStr>()?.value());
        }
        let mut name = String::new();
        for letter in variant.ident.to_string().chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push(self.separator);
            }
            name.extend(letter.to_lowercase());
        }
        Ok(name)
    }

    fn methods(&self, input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
        let (of, method, visibility) = (&input.ident, &self.method, &input.vis);
        let names = data.variants.iter().map(|variant| self.name_of(variant));
        let names = names.collect::<Result<Vec<String>>>()?;
        let variants = data.variants.iter().map(|variant| &variant.ident);
        let listed = names.iter().map(|name| format!("`{name}`"));
        let docs = match self.setting {
            true => format!(
                "What it is called: {}.",
                listed.collect::<Vec<_>>().join(", ")
            ),
            false => "What it is called.".to_owned(),
        };
        let mut methods = quote! {
            impl #of {
                #[doc = #docs]
                #visibility const fn #method(self) -> &'static str {
                    match self {
                        #(Self::#variants => #names,)*
                    }
                }
            }
        };
        methods.extend(quote! {
            impl ::dhole_model::Named for #of {
                const VARIANTS: &'static [Self] = &Self::ALL;

                fn named(self) -> &'static str {
                    self.#method()
                }
            }
        });
        if self.setting {
            methods.extend(quote! {
                impl ::dhole_model::Value for #of {
                    fn find(said: &str) -> ::core::option::Option<Self> {
                        Self::ALL.into_iter().find(|one| one.#method() == said)
                    }

                    fn allowed() -> ::std::vec::Vec<&'static str> {
                        Self::ALL.map(Self::#method).to_vec()
                    }
                }

                impl ::core::fmt::Display for #of {
                    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.pad(self.#method())
                    }
                }

                impl ::core::str::FromStr for #of {
                    type Err = ::dhole_model::UnknownValue;

                    fn from_str(said: &str) -> ::core::result::Result<Self, Self::Err> {
                        ::dhole_model::Value::accept(said)
                    }
                }
            });
        }
        Ok(methods)
    }
}

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.span(), "an enum has variants"));
    };
    let fields = |it: &&Variant| !matches!(it.fields, Fields::Unit);
    if let Some(variant) = data.variants.iter().find(fields) {
        return Err(Error::new(
            variant.span(),
            "a variant with fields is no one value",
        ));
    }
    let (of, visibility, number) = (&input.ident, &input.vis, data.variants.len());
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let mut all = quote! {
        impl #of {
            /// Every variant, in order.
            #visibility const ALL: [Self; #number] = [#(Self::#variants),*];
        }
    };
    if let Some(named) = input.attrs.iter().find(|it| it.path().is_ident("variants")) {
        all.extend(named.parse_args::<Named>()?.methods(input, data)?);
    }
    Ok(all)
}
