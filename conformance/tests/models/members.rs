//! A protocol that a program brings: every run of small programs, and litmus tests.

use conformance::model::Fault;
use conformance::{OnThreads, Under, seeds};
use dhole::protocol::CoherenceProtocol;

use crate::announcing::{Announcing, CLAIMS, HASTY, KEEPS, NONE, SILENT, keeps_its_promise};

#[test]
fn every_run_of_a_protocol_with_notices_is_sound() {
    dhole_check::explore::<Announcing<NONE>>(2).assert_sound();
    dhole_check::explore::<Announcing<NONE>>(3).assert_sound();
}

#[test]
fn no_litmus_test_shows_what_must_not_be() {
    dhole_check::litmus::<Announcing<NONE>>(seeds(0..500));
}

#[test]
fn the_same_on_threads() {
    let threads = Under(OnThreads, Announcing::<NONE>::coherence());
    keeps_its_promise(&threads, 100);
}

#[test]
fn mistakes_of_a_protocol_with_notices_are_found() {
    dhole_check::hunt::<Announcing<SILENT>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
    dhole_check::hunt::<Announcing<KEEPS>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
    dhole_check::hunt::<Announcing<HASTY>>(2, Fault::Presence).assert_shows(Fault::Presence);
    dhole_check::hunt::<Announcing<CLAIMS>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
}

#[test]
fn an_array_under_a_protocol_with_one_writer_is_an_error() {
    let error = dhole::Config::nodes(2).run(|w| {
        w.under(Announcing::<NONE>::coherence())
            .alloc_array::<u32>(8);
        Ok(())
    });
    let said = error.unwrap_err().to_string();
    assert!(said.contains("an array under announcing"), "{said}");
}
