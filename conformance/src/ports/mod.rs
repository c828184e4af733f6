//! The suite for ports: the checks that every port must pass.
//!
//! ```
//! conformance::port_suite!(local, conformance::ports::local);
//! # fn main() {}
//! ```
//!
//! A check gets all ports of a cluster. A thread of its own uses each, as a process would. The part
//! of one node in an [`exchange`] can also run as a process of its own, as under `mpirun`.

mod clusters;
mod ending;
mod exchanging;
mod mistaken;
mod node;
mod patience;
mod remote;
mod waiting;
mod windows;

use dhole_net::Port;

pub use clusters::*;
pub use ending::*;
pub use exchanging::*;
pub use mistaken::{Mistake, is_found};
pub use node::{Node, together};
pub use patience::Patience;
pub use remote::*;
pub use waiting::*;
pub use windows::reaching;

/// Makes the ports of a cluster of so many nodes, in the order of the nodes.
pub type Make = fn(usize) -> Vec<Box<dyn Port>>;

/// Makes a test of every check, in a module of this name, for the ports that a [`Make`] makes.
#[macro_export]
macro_rules! port_suite {
    ($module:ident, $make:expr) => {
        mod $module {
            $crate::port_suite!(@ $make;
                every_frame_comes_once_and_in_order
                frames_of_every_size_up_to_the_largest_come_whole
                a_peer_whose_bytes_come_is_heard_and_no_other
                both_may_flood_each_other
                many_threads_may_send
                a_taker_may_send
                frames_to_all_and_to_one_come_once_and_in_order
                what_cannot_be_addressed_is_an_error
                a_taker_that_panics_takes_its_frame_once
                a_peer_that_takes_nothing_is_busy_after_a_limit
                a_frame_ends_the_park_of_its_receiver
                an_unpark_ends_a_park_before_and_during_it
                a_park_that_ends_only_by_its_time_is_counted
                no_doorbell_is_lost_where_parks_are_short
                room_ends_the_park_of_who_was_refused
                while_one_polls_another_gets_nothing
                who_closes_has_left_when_its_frames_are_taken
                all_may_close_at_once
                who_closes_twice_says_one_goodbye
                who_ends_without_a_goodbye_is_lost_once
                the_others_go_on_when_one_is_lost
                who_is_given_up_is_lost_and_learns_of_it
                each_calls_each_and_is_answered
                what_a_peer_refuses_it_says
                a_peer_that_does_not_serve_is_given_its_time
                a_lost_peer_ends_the_calls_of_it
                memory_is_fetched_and_stored_whole
                memory_is_used_only_as_far_as_allowed
                memory_in_use_is_waited_for
                who_says_what_nobody_says_is_cut_off
            );
        }
    };
    (@ $make:expr; $($check:ident)*) => {
        $(
            #[test]
            fn $check() {
                $crate::ports::$check($make);
            }
        )*
    };
}
