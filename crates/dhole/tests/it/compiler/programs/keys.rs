//! Keys that are none, and structs and enums of them.

use dhole::collections::{DistHash, DistMap};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, DistHash)]
struct Place<K> {
    of: Option<K>,
    rest: Vec<Place<K>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Unnamed(u64);

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, DistHash)]
enum Step {
    Nowhere,
    By(u64, Unnamed),
    To { place: Box<Step> },
}

#[derive(DistHash)]
union Bytes {
    number: u64,
}

#[derive(DistHash)]
struct Borrowed<'a>(&'a str);

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        DistMap::<Place<u8>, u64>::new(w)?;
        DistMap::<f64, u64>::new(w)?;
        DistMap::<Place<Unnamed>, u64>::new(w)?;
        Ok(())
    })?;
    Ok(())
}
