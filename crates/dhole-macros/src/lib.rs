//! The macros of dhole: the derives [`Share`](derive@Share) and [`DistHash`](derive@DistHash) and
//! the attribute [`object`](macro@object) for programs, the derives [`Wire`](derive@Wire) and
//! [`Message`](derive@Message) for the messages of the protocols, and
//! [`Variants`](derive@Variants) and [`Counts`](derive@Counts) for what exists in lists: names and
//! counters.
#![forbid(unsafe_code)]

mod counts;
mod dist_hash;
mod message;
mod object;
mod share;
mod variants;
mod wire;

use proc_macro::TokenStream;

/// Implements `Share` for a struct whose fields are all `Share`, or for an enum without fields.
///
/// The derive proves that every field may be shared, that the type has nothing to drop, and that
/// its alignment is at most a page. Otherwise the program does not compile.
///
/// Every combination of valid fields is a value of the type, even one that no code of the program
/// ever made. A node that merges the writes of several nodes takes each leaf from the node that
/// wrote it, and tests received bytes leaf by leaf. So do not share a type that promises more of
/// its fields than their types do, if `unsafe` code relies on that.
///
/// `#[share(nullable)]` on a `#[repr(transparent)]` struct of one field lets an `Option` of the
/// struct be shared, with no more bytes. The field's `Option` must be one that may be shared, such
/// as that of a `Ref`.
///
/// `#[share(bound = "predicates")]` requires these predicates of the type's parameters instead of
/// `Share`: for types that only name other types. Every field must be `Share` all the same.
///
/// `#[share(crate = "path")]` names the crate in which the generated code finds the trait, if that
/// is not `dhole`.
#[proc_macro_derive(Share, attributes(share))]
pub fn derive_share(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    share::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Implements `DistHash` for a struct or an enum whose fields are all `DistHash`: it is a key of
/// maps and sets that all nodes share.
///
/// The type derives `Clone`, `PartialEq`, `Eq` and `Hash`, and serde's `Serialize` and
/// `Deserialize` too. The derive proves that every field is a key. So a type whose hash differs
/// between processes does not compile: one that holds a pointer or a number that each process
/// gives by itself.
#[proc_macro_derive(DistHash)]
pub fn derive_dist_hash(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    dist_hash::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes the values of a type shared objects. The `pub` methods of the `impl` that take `&self` or
/// `&mut self` become operations. The handle `Object` has a method for each, which takes the worker
/// before the other arguments and returns a `Result`.
///
/// Operations with `&self` only read. An operation marked `#[when(condition)]` waits until the
/// condition is true. The condition may use `self` and, by reference, the arguments. Results are
/// passed by value and implement serde's traits. Methods that are not `pub`, and functions without
/// `self`, stay as they are. The state of an object must be the same on every node, so an operation
/// must do the same wherever a node executes it.
///
/// Arguments are passed by value, or borrowed for the call. What `&` leads to goes to the object,
/// what `&mut` leads to comes back too. A slice of numbers marked `#[out]` only comes back: the
/// operation sees zeros.
///
/// `#[object(client = User)]` also makes clients of the type: handles with a value of type `User`
/// of their own, the user half. An operation that borrows a `User` borrows that of its caller. A
/// `pub` function without `self` that borrows a `User` first is a method that runs at the client.
///
/// A `pub` function without `self` that is marked `#[new]` is a constructor, such as `open`. The
/// attribute adds a function `open_in`, which makes the object where it is kept.
///
/// `#[object(resident)]` marks a type whose state cannot travel, such as a file. Serde's traits are
/// not needed then. A constructor makes each object on its node, in one copy that stays there.
///
/// One method may be marked `#[on_loss]`: `fn name(&mut self, node: NodeId)`, not `pub`. In a run
/// that survives, the runtime executes it on every copy of the object when a node is lost, at the
/// same place in the order of operations. Then it tries the operations that wait again.
///
/// One method may be marked `#[on_end]`: `fn name(&self) -> Option<String>`, not `pub`. The runtime
/// calls it at the end of a run, where the object is. What it returns is a warning of the run.
///
/// `#[object(crate = "path")]` names the crate in which the generated code finds dhole's items, if
/// that is not `dhole`.
#[proc_macro_attribute]
pub fn object(arguments: TokenStream, input: TokenStream) -> TokenStream {
    object::object(arguments.into(), input.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Implements `dhole_wire::Wire`, the form in bytes, for a struct or an enum whose fields are
/// `Wire`.
///
/// The head of a struct is the heads of its fields, in their order. Its tail is their tails. The
/// head of an enum is one byte, the number of the variant; head and tail of the variant's fields
/// follow in the tail. Variants are numbered by their places from 0.
///
/// `#[wire(tag = NUMBER)]` gives a variant another number: a literal, or the path of a constant.
/// `#[wire(tag = ..COUNT)]` gives a variant that holds an enum a number for each of the variants of
/// that, so many from its place on.
/// `#[wire(with = Type)]` encodes a field by `dhole_wire::WireAs` of that type instead.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(input: TokenStream) -> TokenStream {
    wire_found(input, &wire::Found::AsCrate)
}

/// As [`Wire`](derive@Wire), for programs that use `dhole` alone: `dhole::protocol::Wire`.
#[proc_macro_derive(WireOfProgram, attributes(wire))]
pub fn derive_wire_of_program(input: TokenStream) -> TokenStream {
    wire_found(input, &wire::Found::InFacade)
}

fn wire_found(input: TokenStream, found: &wire::Found) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    wire::derive(&input, found)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes a method of each property that all messages of an enum have, such as how they are counted.
///
/// `#[message(pub fn kind() -> Kind, fn is_urgent() -> bool = false)]` on the enum declares the
/// properties, each with a default or without. `#[message(kind = Kind::Ask, is_urgent)]` on a
/// variant says what it has: an expression in which the variant's fields are bound, by reference,
/// to their names, or to `it` where the one field has none. A name alone means `true`.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    message::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Lists the variants of an enum without fields: the constant `ALL` has each of them, in order.
///
/// `#[variants(name)]` on the enum also makes a method of that identifier, which returns what a
/// variant is called: its identifier in small letters, in `kebab-case`, or in
/// `#[variants(name = "snake_case")]`. `#[variants("other words")]` on a variant says otherwise.
/// `#[variants(name, setting)]` makes the enum a `dhole_model::Value` too, with `Display` and
/// `FromStr`, so that it can be a setting of runs.
#[proc_macro_derive(Variants, attributes(variants))]
pub fn derive_variants(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    variants::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Adds and compares structs of counters: `add`, `since` an earlier time, and `numbers`, each with
/// its name.
///
/// A field is a `u64`, a `BTreeMap` of counts, or counts itself. `#[counts(most)]` on a field: the
/// greatest counts, and not the sum. `#[counts(kept)]`: it is no count of events, and `since`
/// leaves it. `#[counts(saturating)]` on the struct: sums and differences stay within their limits.
#[proc_macro_derive(Counts, attributes(counts))]
pub fn derive_counts(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    counts::derive(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
