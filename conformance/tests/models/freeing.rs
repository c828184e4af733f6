//! Freed objects: a node that knows of the freeing gets no object, and no node waits for one for
//! ever.

use conformance::model::{Sight, programs::*};
use dhole::Races;
use dhole_model::Coherence;

use crate::sound;

#[test]
fn who_knows_that_an_object_is_freed_never_reads_it() {
    for nodes in 2..=3 {
        sound(freed_before_a_barrier(nodes), &[]);
    }
    sound(freed_under_a_lock(), &[Sight::Forwarded]);
}

#[test]
fn who_asks_for_a_freed_object_is_told() {
    sound(freed_while_read(), &[Sight::Gone]);
}

#[test]
fn a_freeing_races_with_writes_and_with_freeings() {
    for nodes in 2..=3 {
        let program = freed_while_written(nodes).finding(Races::Fail);
        sound(program, &[Sight::Race, Sight::Gone]);
    }
}

#[test]
fn objects_are_freed_under_every_protocol() {
    for coherence in [Coherence::Update, Coherence::Home] {
        for program in [
            freed_before_a_barrier(2),
            freed_while_read(),
            freed_under_a_lock(),
            freed_while_written(2),
        ] {
            sound(program.under(coherence), &[]);
        }
    }
}
