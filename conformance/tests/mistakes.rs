//! The suite of ports finds every bug that is planted in ports and in messages over them. A bug
//! that no check finds shows that a check is missing. A program of its own: its checks have to
//! fail, and so wait for a short time in all threads of the process.

use std::sync::Once;
use std::time::Duration;

use conformance::ports::{self, Make, Mistake, Patience, is_found};

/// How long a check waits here for what does not come.
const SHORT: Duration = Duration::from_secs(3);

/// Each mistake, and the check that is to find it.
const PLANTED: [(Mistake, fn(Make)); 21] = [
    (Mistake::Lose, ports::every_frame_comes_once_and_in_order),
    (Mistake::Repeat, ports::every_frame_comes_once_and_in_order),
    (
        Mistake::Overtake,
        ports::every_frame_comes_once_and_in_order,
    ),
    (Mistake::Spoil, ports::every_frame_comes_once_and_in_order),
    (
        Mistake::Cut,
        ports::frames_of_every_size_up_to_the_largest_come_whole,
    ),
    (Mistake::Misname, ports::every_frame_comes_once_and_in_order),
    (
        Mistake::DropWhenBusy,
        ports::a_peer_that_takes_nothing_is_busy_after_a_limit,
    ),
    (
        Mistake::BusyForEver,
        ports::what_cannot_be_addressed_is_an_error,
    ),
    (
        Mistake::ForgetGoodbye,
        ports::who_closes_has_left_when_its_frames_are_taken,
    ),
    (
        Mistake::TakeLossForGoodbye,
        ports::who_ends_without_a_goodbye_is_lost_once,
    ),
    (
        Mistake::TellTwice,
        ports::who_ends_without_a_goodbye_is_lost_once,
    ),
    (
        Mistake::KeepLoss,
        ports::who_is_given_up_is_lost_and_learns_of_it,
    ),
    (
        Mistake::Deaf,
        ports::a_peer_whose_bytes_come_is_heard_and_no_other,
    ),
    (Mistake::MixAnswers, ports::each_calls_each_and_is_answered),
    (Mistake::AnswerRefused, ports::what_a_peer_refuses_it_says),
    (Mistake::TellAgain, ports::each_calls_each_and_is_answered),
    (Mistake::LoseAnswer, ports::each_calls_each_and_is_answered),
    (
        Mistake::FetchStale,
        ports::memory_is_fetched_and_stored_whole,
    ),
    (
        Mistake::StoreBeside,
        ports::memory_is_fetched_and_stored_whole,
    ),
    (
        Mistake::LosePiece,
        ports::memory_is_fetched_and_stored_whole,
    ),
    (
        Mistake::ForgeCapability,
        ports::memory_is_used_only_as_far_as_allowed,
    ),
];

/// The ports in which they are planted.
const PORTS: &[Make] = &[
    ports::local,
    ports::shm,
    ports::tcp,
    #[cfg(feature = "mpi")]
    ports::mpi,
];

fn all_are_found(make: Make) {
    static SOUND: Once = Once::new();
    SOUND.call_once(|| {
        // Each check passes where there is no mistake, however long that takes.
        for port in PORTS {
            PLANTED.iter().for_each(|(_, check)| check(*port));
        }
        Patience::lasts(SHORT);
    });
    for (mistake, check) in PLANTED {
        assert!(is_found(make, mistake, check), "{mistake:?} is not found");
    }
}

#[test]
fn mistakes_of_the_reference_are_found() {
    all_are_found(ports::local);
}

#[test]
fn mistakes_over_shared_memory_are_found() {
    all_are_found(ports::shm);
}

#[test]
fn mistakes_over_tcp_are_found() {
    all_are_found(ports::tcp);
}

#[cfg(feature = "mpi")]
#[test]
fn mistakes_over_mpi_are_found() {
    all_are_found(ports::mpi);
}
