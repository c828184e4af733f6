//! Jackal's counter in a simulated cluster, where virtual time is the number of messages on the
//! critical path.

use apps::jackal::{Found, Home, PROGRAM, Problem};
use apps::solve::Steps;
use dhole::sim::{Description, Network, Settings};
use dhole::{
    Coherence, Config, Counters, Lockable, MessageKind, Races, Ref, Result, Run, Section, section,
};

const MS: u64 = 1_000_000;

/// A network on which each message takes a millisecond, and nothing else takes time.
fn one_way() -> Network {
    Network {
        latency_ns: MS,
        bytes_per_second: 1_000_000_000_000,
        send_ns: 0,
        receive_ns: 0,
        ..Description::find("default").expect("there is one").network
    }
}

fn counter(sections: bool, home: Home, keepers: &[usize]) -> Run<Found> {
    let problem = Problem {
        each: 50,
        turns: true,
        home,
        keepers: keepers.to_vec(),
    };
    let settings = Settings {
        network: one_way(),
        ..Settings::fixed_cost(3)
    };
    let config = Config::nodes(3)
        .coherence(Coherence::Home)
        .races(Races::Ignore)
        .sections(sections);
    let run = config.simulate(settings, |w| {
        (PROGRAM.shared)(w, &problem, &mut Steps::default())
    });
    let run = run.unwrap();
    assert_eq!(run.value.value, 100);
    run
}

/// Thousandths of a millisecond that an increment takes.
fn micros(run: &Run<Found>) -> [u64; 2] {
    [run.value.increments_ns / 100, run.value.longest_ns].map(|ns| (ns + 500) / 1_000)
}

fn sent(run: &Run<Found>) -> Counters {
    run.report.measured().expect("a part is measured")
}

/// The messages of an increment whose section runs at its caller.
const AT_CALLER: [MessageKind; 7] = [
    MessageKind::SyncRequest,
    MessageKind::SyncGrant,
    MessageKind::Fetch,
    MessageKind::FetchReply,
    MessageKind::Flush,
    MessageKind::FlushAck,
    MessageKind::SyncRelease,
];

const AT_HOME: [MessageKind; 2] = [MessageKind::OperationRequest, MessageKind::OperationReply];

#[test]
fn an_increment_at_its_caller_takes_seven_messages_and_three_round_trips() {
    let run = counter(false, Home::Waits, &[]);
    assert_eq!(micros(&run), [6_000, 6_000]);
    let sent = sent(&run);
    assert_eq!(AT_CALLER.map(|kind| sent.sent(kind)), [100; 7]);
    assert_eq!(AT_HOME.map(|kind| sent.sent(kind)), [0; 2]);
}

#[test]
fn an_increment_at_its_home_takes_one_round_trip() {
    let run = counter(true, Home::Waits, &[]);
    assert_eq!(micros(&run), [2_000, 2_000]);
    let sent = sent(&run);
    assert_eq!(AT_HOME.map(|kind| sent.sent(kind)), [100; 2]);
    assert_eq!(AT_CALLER.map(|kind| sent.sent(kind)), [0; 7]);
    assert_eq!((sent.sections, sent.sections_elsewhere), (100, 0));
}

#[test]
fn no_increment_is_seen_under_a_reference() {
    // The program fails if one is.
    let run = counter(true, Home::Reads, &[]);
    assert_eq!(sent(&run).sections_in_use, 1);
    assert!(micros(&run)[1] >= 1_000_000, "{:?}", micros(&run));
}

#[test]
fn who_keeps_a_copy_is_told_before_an_increment() {
    for keeper in [1, 2] {
        let run = counter(true, Home::Waits, &[keeper]);
        // The first increment waits for it.
        assert_eq!(micros(&run), [2_020, 4_000], "{keeper}");
        let told = [MessageKind::Outdated, MessageKind::OutdatedAck];
        assert_eq!(told.map(|kind| sent(&run).sent(kind)), [1; 2], "{keeper}");
    }
}

/// Units of work, which take a nanosecond each.
const UNITS: u64 = 5_000_000;

fn works(s: &mut Section<'_>, x: Ref<u64>) -> Result<()> {
    s.work(UNITS);
    *s.get_mut(x)? += 1;
    Ok(())
}

#[test]
fn the_work_of_a_section_takes_time_where_it_runs() {
    for (sections, messages_ns, computed) in
        [(true, 2 * MS, [UNITS, 0]), (false, 6 * MS, [0, UNITS])]
    {
        let settings = Settings {
            network: one_way(),
            ..Settings::fixed_cost(2)
        };
        let config = Config::nodes(2)
            .coherence(Coherence::Home)
            .races(Races::Ignore)
            .sections(sections);
        let run = config.simulate(settings, |w| {
            let x = w.once(|w| Ok(w.alloc(0_u64)))?;
            w.barrier()?;
            let begun = w.now();
            if w.node().index() == 1 {
                x.lock().run(w, x, section!(works))?;
            }
            let took = w.now() - begun;
            w.barrier()?;
            Ok(w.all_gather(took.as_nanos() as u64)?)
        });
        let run = run.unwrap();
        assert_eq!(
            (run.value[1] + 500) / 1_000 * 1_000,
            messages_ns + UNITS,
            "{sections}"
        );
        let each = &run.report.per_node;
        assert_eq!([0, 1].map(|node| each[node].computed_ns), computed);
    }
}
