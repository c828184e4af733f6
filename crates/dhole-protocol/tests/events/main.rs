//! What the protocols answer, a file an event or a mechanism.

mod acquire;
mod array_family;
mod arrays;
mod arrive;
mod bad_messages;
mod collect;
mod conditions;
mod element_races;
mod exclusive;
mod finish;
mod flush;
mod freeing;
mod gates;
mod keeping;
mod owned;
mod pack;
mod races;
mod races_at_home;
mod read_miss;
mod read_misses;
mod release;
mod serve;
mod switch;
mod update;
mod waited_long;
mod write_fault;
