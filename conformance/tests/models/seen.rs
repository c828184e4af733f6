//! One-sided reads: a node reads an object in another's memory, in three parts that fall between
//! any two steps of the owner, under each protocol of objects.

use dhole_model::Coherence;
use dhole_protocol::Races;

use conformance::Bug;
use conformance::model::{Fault, Program, Sight, programs::*};

use crate::{caught, sound};

/// The protocols that keep objects consistent.
const PROTOCOLS: [Coherence; 3] = [Coherence::Lazy, Coherence::Update, Coherence::Home];

fn under_each(program: impl Fn() -> Program, sights: &[Sight]) {
    for coherence in PROTOCOLS {
        sound(program().under(coherence), sights);
    }
}

#[test]
fn what_is_read_between_two_writes_is_announced() {
    under_each(read_between_writes, &[Sight::ReadThere]);
    under_each(read_between_writes_by_two, &[Sight::ReadThere]);
}

#[test]
fn what_is_expected_to_be_written_and_was_read_is_announced() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        for program in [
            read_beside_what_is_written().expecting(),
            read_between_writes().expecting(),
            read_while_expected().expecting().seeing(),
            written_while_expected().expecting().seeing(),
        ] {
            sound(program.under(coherence), &[Sight::ReadThere]);
        }
    }
    let beside = read_beside_what_is_written();
    sound(beside.clone(), &[Sight::ReadThere]);
    caught(Bug::SkipMark, beside.expecting(), Fault::StaleRead);
}

#[test]
fn what_stays_clean_is_read_there_though_nobody_was_told_of_it() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        for program in [
            read_between_writes_alone().seeing_clean(1),
            read_between_writes_alone().seeing_clean(8),
            read_between_writes_alone().expecting().seeing_clean(8),
            owned_and_exclusive(1).seeing_clean(1),
        ] {
            sound(program.under(coherence), &[Sight::ReadThere]);
        }
    }
    let two_readers = read_between_writes_by_two();
    under_each(|| two_readers.clone().seeing_clean(8), &[Sight::ReadThere]);
    for program in [
        racing_writers_and_readers(2),
        racing_writers(2, 2),
        overwriting_what_is_written_alone(),
    ] {
        sound(program.seeing_clean(8), &[]);
    }
    let program = read_between_writes_alone().seeing_clean(8);
    caught(Bug::SkipMark, program, Fault::StaleRead);
}

#[test]
fn what_was_written_alone_and_is_only_expected_to_be_written_is_not_announced() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        let program = written_by_another_while_expected().expecting();
        sound(program.under(coherence).seeing_clean(8), &[]);
    }
    let program = written_by_another_while_expected().expecting();
    caught(
        Bug::AnnounceExpected,
        program.seeing_clean(8),
        Fault::StaleRead,
    );
}

#[test]
fn what_lies_beside_an_exclusive_object_that_is_asked_for_is_read_there() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        let program = read_beside_what_was_exclusive();
        let sights = [Sight::Exclusive, Sight::ReadThere];
        sound(program.under(coherence), &sights);
    }
}

#[test]
fn what_is_read_there_ahead_of_a_miss_is_announced_when_it_is_written() {
    for frees in [false, true] {
        let program = objects_read_ahead(2, frees);
        sound(program.clone().seeing(), &[Sight::ReadThere]);
        sound(program.clone().expecting().seeing(), &[Sight::ReadThere]);
        sound(program.clone().gating(), &[Sight::ReadThere]);
    }
    let program = objects_read_ahead(2, false).seeing();
    for bug in [Bug::KeepAhead, Bug::SkipMark] {
        caught(bug, program.clone(), Fault::StaleRead);
    }
    caught(Bug::SkipSecondLook, program, Fault::TornRead);
}

#[test]
fn a_reader_sees_one_version_whole() {
    let sights = [Sight::ReadThere, Sight::ChangedThere];
    sound(read_while_two_leaves_are_written(1), &sights);
    let program = read_while_two_leaves_are_written(1);
    sound(program.under(Coherence::Update), &sights);
    under_each(
        one_leaf_read_while_the_other_is_written,
        &[Sight::ReadThere],
    );
}

#[test]
fn what_is_freed_is_not_read() {
    let sights = [Sight::ReadThere, Sight::ChangedThere, Sight::Gone];
    under_each(freed_while_read_there, &sights);
}

#[test]
fn an_object_that_wanders_is_read_where_it_was_written_last() {
    under_each(wanders_and_is_read, &[Sight::ReadThere]);
}

#[test]
fn whoever_reads_in_a_writers_memory_is_pushed_the_next_version() {
    let program = written_and_read_in_phases().under(Coherence::Update);
    sound(program, &[Sight::ReadThere, Sight::Pushed]);
}

#[test]
fn programs_of_old_are_as_sound_where_nodes_see_each_other() {
    let programs = [
        message_passing_by_lock(),
        message_passing_by_barrier(),
        chain_of_locks(),
        two_objects(),
        once(3),
        counter(2, 2),
        wandering(3),
        barrier_after_lock(2),
    ];
    for program in programs.map(Program::seeing) {
        for coherence in PROTOCOLS {
            // A home keeps what it alone has written for itself, and is asked.
            let reads = coherence != Coherence::Home;
            let sights: &[Sight] = if reads { &[Sight::ReadThere] } else { &[] };
            sound(program.clone().under(coherence), sights);
        }
    }
    under_each(|| written_alone(2, 0).seeing(), &[]);
    under_each(|| written_alone_in_phases(false).seeing(), &[]);
    sound(written_alone_in_phases(true).seeing(), &[]);
    let compared = message_passing_by_barrier().comparing();
    sound(compared.seeing(), &[Sight::ReadThere]);
    sound(racing_writers_and_readers(2).seeing(), &[Sight::ReadThere]);
    sound(racing_writers(2, 2).seeing(), &[]);
}

#[test]
fn races_are_found_where_nodes_see_each_other() {
    for races in [Races::Warn, Races::Fail] {
        sound(racing_writers(2, 1).finding(races).seeing(), &[Sight::Race]);
        sound(counter(2, 2).finding(races).seeing(), &[Sight::ReadThere]);
    }
}

#[test]
fn an_object_that_is_written_while_it_is_published_is_torn() {
    let program = || read_while_two_leaves_are_written(1);
    caught(Bug::WritePublished, program(), Fault::TornRead);
}

#[test]
fn a_reader_that_does_not_look_again_reads_a_mixture() {
    let program = || read_while_two_leaves_are_written(1);
    caught(Bug::SkipSecondLook, program(), Fault::TornRead);
}

#[test]
fn a_reader_that_leaves_no_mark_reads_a_stale_object() {
    caught(Bug::SkipMark, read_between_writes(), Fault::StaleRead);
}

#[test]
fn a_freed_object_that_stays_published_is_another_one() {
    caught(
        Bug::FreePublished,
        freed_while_read_there(),
        Fault::TornRead,
    );
}
