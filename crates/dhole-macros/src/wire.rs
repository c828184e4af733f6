//! The derive [`Wire`](derive@crate::Wire).

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Fields, Ident, LitInt, Result, Token, Type, Variant,
};

/// One field: how it is bound, its type, and the type that encodes it.
struct Field {
    /// The name or number by which it is written down.
    member: syn::Member,
    /// The name to which it is bound.
    bound: Ident,
    /// `Wire` or `WireAs` of its type.
    form: TokenStream,
}

/// What `#[wire(name = ..)]` says, if it is there; `knows` is the error where another name is.
fn argument<T: Parse>(attributes: &[Attribute], name: &str, knows: &str) -> Result<Option<T>> {
    let mut argument = None;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("wire")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident(name) {
                return Err(meta.error(knows));
            }
            argument = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(argument)
}

/// How a variant is numbered.
enum Tag {
    /// By this.
    One(Expr),
    /// As the variants of the enum that is its field, of which there are so many.
    Within(u8),
}

impl Parse for Tag {
    fn parse(input: ParseStream<'_>) -> Result<Tag> {
        match input.peek(Token![..]) {
            true => {
                input.parse::<Token![..]>()?;
                Ok(Tag::Within(input.parse::<LitInt>()?.base10_parse()?))
            }
            false => input.parse().map(Tag::One),
        }
    }
}

fn fields(fields: &Fields) -> Result<Vec<Field>> {
    let numbered = fields.members().zip(fields).enumerate();
    let each = numbered.map(|(place, (member, field))| {
        let ty = &field.ty;
        let with = argument::<Type>(&field.attrs, "with", "a field knows `with = Type`")?;
        let form = match with {
            None => quote!(<#ty as __wire::Wire>),
            Some(with) => quote!(<#with as __wire::WireAs<#ty>>),
        };
        Ok(Field {
            member,
            bound: format_ident!("field_{place}"),
            form,
        })
    });
    each.collect()
}

/// Pairs of these, nested to the right.
fn nested(all: &[TokenStream]) -> TokenStream {
    match all {
        [] => quote!(()),
        [one] => one.clone(),
        [one, rest @ ..] => {
            let rest = nested(rest);
            quote!(__wire::Pair(#one, #rest))
        }
    }
}

fn nested_type(all: &[TokenStream]) -> TokenStream {
    match all {
        [] => quote!(()),
        [one] => one.clone(),
        [one, rest @ ..] => {
            let rest = nested_type(rest);
            quote!(__wire::Pair<#one, #rest>)
        }
    }
}

/// What is made of some fields that are bound to their names by reference.
struct Parts {
    /// `Name { member: bound, .. }`, without the name.
    bind: TokenStream,
    /// The type of their head.
    head: TokenStream,
    /// An expression that is their head.
    make_head: TokenStream,
    /// An expression that is the length of their tails.
    tail_len: TokenStream,
    /// Statements that write their tails.
    write_tails: TokenStream,
    /// A pattern of the head.
    take_head: TokenStream,
    /// `{ member: read, .. }`
    read: TokenStream,
}

impl Parts {
    fn of(all: &Fields) -> Result<Parts> {
        let all = fields(all)?;
        let each = |make: &dyn Fn(&Field) -> TokenStream| -> Vec<TokenStream> {
            all.iter().map(make).collect()
        };
        let bind = each(&|Field { member, bound, .. }| quote!(#member: #bound));
        let heads = each(&|Field { form, .. }| quote!(#form::Head));
        let make = each(&|Field { form, bound, .. }| quote!(#form::head(#bound)));
        let lens = each(&|Field { form, bound, .. }| quote!(+ #form::tail_len(#bound)));
        let tails = each(&|Field { form, bound, .. }| quote!(#form::write_tail(#bound, out);));
        let bound = each(&|Field { bound, .. }| quote!(#bound));
        let read = each(&|field| {
            let Field {
                member,
                bound,
                form,
            } = field;
            quote!(#member: #form::read(#bound, tail)?)
        });
        Ok(Parts {
            bind: quote!({ #(#bind),* }),
            head: nested_type(&heads),
            make_head: match make.is_empty() {
                true => quote!(::std::convert::identity(())),
                false => nested(&make),
            },
            tail_len: quote!(0 #(#lens)*),
            write_tails: quote!(#(#tails)*),
            take_head: nested(&bound),
            read: quote!({ #(#read),* }),
        })
    }
}

/// Where the generated code finds the crate `dhole-wire`, which it calls `__wire`.
pub enum Found {
    /// Among the dependencies of the crate that derives.
    AsCrate,
    /// In `dhole`, for programs.
    InFacade,
}

pub fn derive(input: &DeriveInput, found: &Found) -> Result<TokenStream> {
    let body = match &input.data {
        Data::Struct(data) => of_struct(&data.fields)?,
        Data::Enum(data) => of_enum(&input.ident, data.variants.iter())?,
        Data::Union(_) => return Err(Error::new(input.span(), "a union has no wire format")),
    };
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(__wire::Wire));
    }
    let (implemented, of, predicates) = generics.split_for_impl();
    let name = &input.ident;
    let wire = match found {
        Found::AsCrate => quote!(::dhole_wire),
        Found::InFacade => quote!(::dhole::__private::wire),
    };
    Ok(quote! {
        const _: () = {
            use #wire as __wire;
            impl #implemented __wire::Wire for #name #of #predicates {
                #body
            }
        };
    })
}

fn of_struct(fields: &Fields) -> Result<TokenStream> {
    let Parts {
        bind,
        head,
        make_head,
        tail_len,
        write_tails,
        take_head,
        read,
    } = Parts::of(fields)?;
    Ok(quote! {
        type Head = #head;

        #[inline]
        fn head(&self) -> Self::Head {
            let Self #bind = self;
            #make_head
        }

        #[inline]
        #[allow(unused_variables, reason = "not every field has a tail")]
        fn tail_len(&self) -> usize {
            let Self #bind = self;
            #tail_len
        }

        #[inline]
        #[allow(unused_variables, reason = "not every field has a tail")]
        fn write_tail(&self, out: &mut ::std::vec::Vec<u8>) {
            let Self #bind = self;
            #write_tails
        }

        #[inline]
        fn read(
            head: &Self::Head,
            tail: &mut __wire::Tail<'_>,
        ) -> ::std::result::Result<Self, __wire::WireError> {
            let #take_head = head;
            ::std::result::Result::Ok(Self #read)
        }
    })
}

fn of_enum<'a>(
    name: &Ident,
    variants: impl ExactSizeIterator<Item = &'a Variant>,
) -> Result<TokenStream> {
    if variants.len() == 0 {
        return Err(Error::new(
            name.span(),
            "an enum without variants has no values",
        ));
    }
    let (mut tags, mut lens, mut writes, mut reads) = (vec![], vec![], vec![], vec![]);
    let mut place = 0_usize;
    for variant in variants {
        let parts = Parts::of(&variant.fields)?;
        let knows = "a variant knows `tag = number` or `tag = ..count`";
        let tag = argument::<Tag>(&variant.attrs, "tag", knows)?;
        let own = u8::try_from(place)
            .map_err(|_| Error::new(variant.span(), "more than 256 variants"))?;
        place += 1;
        let tag = match tag {
            Some(Tag::One(tag)) => quote!(#tag),
            Some(Tag::Within(count)) => {
                place += usize::from(count) - 1;
                let (variant, end) = (&variant.ident, own.saturating_add(count));
                tags.push(quote!(Self::#variant(it) => #own + __wire::Wire::head(it)));
                lens.push(quote!(Self::#variant(it) => __wire::Wire::tail_len(it)));
                writes.push(quote!(Self::#variant(it) => __wire::Wire::write_tail(it, out),));
                reads.push(quote! {
                    tag @ #own..#end => {
                        __wire::Wire::read(&(tag - #own), tail).map(Self::#variant)
                    }
                });
                continue;
            }
            None => quote!(#own),
        };
        let Parts {
            bind,
            head,
            make_head,
            tail_len,
            write_tails,
            take_head,
            read,
        } = parts;
        let variant = &variant.ident;
        tags.push(quote!(Self::#variant { .. } => #tag));
        lens.push(quote!(Self::#variant #bind => <#head as __wire::Head>::LEN + #tail_len));
        writes.push(quote! {
            Self::#variant #bind => {
                __wire::write_head::<#head>(&#make_head, out);
                #write_tails
            }
        });
        reads.push(quote! {
            #tag => {
                let #take_head = &tail.head::<#head>()?;
                ::std::result::Result::Ok(Self::#variant #read)
            }
        });
    }
    let what = name.to_string();
    Ok(quote! {
        type Head = u8;

        #[inline]
        fn head(&self) -> u8 {
            match self {
                #(#tags,)*
            }
        }

        #[inline]
        #[allow(unused_variables, reason = "not every field has a tail")]
        fn tail_len(&self) -> usize {
            match self {
                #(#lens,)*
            }
        }

        #[inline]
        #[allow(unused_variables, reason = "not every field has a tail")]
        fn write_tail(&self, out: &mut ::std::vec::Vec<u8>) {
            match self {
                #(#writes)*
            }
        }

        #[inline]
        fn read(
            head: &u8,
            tail: &mut __wire::Tail<'_>,
        ) -> ::std::result::Result<Self, __wire::WireError> {
            match *head {
                #(#reads)*
                tag => ::std::result::Result::Err(__wire::WireError::Variant {
                    what: #what,
                    tag,
                }),
            }
        }
    })
}
