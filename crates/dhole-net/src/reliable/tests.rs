//! Two flows over a network that loses, repeats and reorders by its seed, in virtual time.

use std::panic::catch_unwind;
use std::time::Duration;

use super::datagram::{Datagram, parse, shared_head};
#[path = "tests/beneath.rs"]
mod beneath;

use dhole_model::SplitMix64;
use dhole_testkit::seeds;

use super::flow::{Flow, FlowLimits};
use super::planted::{PLANTED, Planted};
use crate::Loss;

const LIMITS: FlowLimits = FlowLimits {
    largest: 4_096,
    datagram: 64,
    kept_back: 512,
    patience: Duration::from_secs(3_600),
};
/// Virtual time after which two flows that have not finished never will.
const FOR_EVER: Duration = Duration::from_secs(3_000);
/// Events after which they never will either.
const MOST_STEPS: u32 = 20_000;

/// What goes wrong on the way, in hundredths, and how long the way takes.
struct Network {
    random: SplitMix64,
    drop: u64,
    duplicate: u64,
    latest_us: u64,
    on_the_way: Vec<(Duration, usize, Vec<u8>)>,
}

impl Network {
    fn send(&mut self, now: Duration, to: usize, parts: &[&[u8]]) {
        let copies = 1 + u64::from(self.random.below(100) < self.duplicate);
        for _ in 0..copies {
            if self.random.below(100) >= self.drop {
                let takes = Duration::from_micros(20 + self.random.below(self.latest_us));
                self.on_the_way.push((now + takes, to, parts.concat()));
            }
        }
    }
}

fn frame(random: &mut SplitMix64) -> Vec<u8> {
    let bytes = match random.below(4) {
        0 => random.below(4),
        1 | 2 => random.below(100),
        _ => random.below(700),
    };
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// Exchanges frames both ways until everything has come and both have parted.
fn exchange(seed: u64) {
    let mut random = SplitMix64(seed);
    let mut network = Network {
        drop: random.below(40),
        duplicate: random.below(30),
        latest_us: 1 + random.below(20_000),
        on_the_way: Vec::new(),
        random: SplitMix64(seed ^ 0x5eed),
    };
    let frames = 1 + random.below(25);
    let mut said: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
    for side in &mut said {
        side.extend((0..frames).map(|_| frame(&mut random)));
    }
    let mut flows = [Flow::new(LIMITS), Flow::new(LIMITS)];
    let mut offered = [0, 0];
    let mut taken: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
    let mut now = Duration::ZERO;
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(
            steps < MOST_STEPS,
            "seed {seed}: the flows turn on the spot"
        );
        for side in 0..2 {
            let flow = &mut flows[side];
            while let Some(next) = said[side].get(offered[side])
                && flow.frame(
                    now,
                    &[&next[..next.len() / 2], &next[next.len() / 2..]],
                    next.len(),
                )
            {
                offered[side] += 1;
            }
            if offered[side] == said[side].len() {
                flow.goodbye(now);
            }
            flow.transmit(now, &mut |parts| {
                network.send(now, 1 - side, parts);
                true
            });
        }
        let parted = flows.iter().all(Flow::has_parted);
        let arrived = taken[0].len() == said[1].len() && taken[1].len() == said[0].len();
        if parted && arrived {
            break;
        }
        assert!(
            !parted || !network.on_the_way.is_empty(),
            "seed {seed}: frames are missing"
        );
        let timers = flows.iter().filter_map(|flow| flow.wake_at(now));
        let arrivals = network.on_the_way.iter().map(|&(at, ..)| at);
        let next = timers.chain(arrivals).min();
        now = next.expect("something is due").max(now);
        assert!(now < FOR_EVER, "seed {seed}: the flows hang");
        let mut due: Vec<_> = network
            .on_the_way
            .extract_if(.., |&mut (at, ..)| at <= now)
            .collect();
        due.sort_by_key(|&(at, ..)| at);
        for (_, to, datagram) in due {
            let received = flows[to].receive(now, &datagram, &mut taken[to]);
            assert_eq!(received, Ok(()), "seed {seed}");
        }
    }
    for side in 0..2 {
        assert_eq!(taken[1 - side], said[side], "seed {seed}: from {side}");
        let over = flows[side].is_over(now);
        assert!(
            matches!(over, None | Some(Loss::Left)),
            "seed {seed}: {over:?}"
        );
    }
}

/// A node sends the same frames to three others, some of them to all at once, over networks that
/// are bad each in its own way.
fn share(seed: u64) {
    const TO: usize = 3;
    let mut random = SplitMix64(seed);
    let mut networks: Vec<Network> = (0..TO as u64)
        .map(|to| Network {
            drop: random.below(60),
            duplicate: random.below(30),
            latest_us: 1 + random.below(20_000),
            on_the_way: Vec::new(),
            random: SplitMix64(seed ^ to << 32),
        })
        .collect();
    let frames: Vec<Vec<u8>> = (0..1 + random.below(25))
        .map(|_| frame(&mut random))
        .collect();
    let mut here: Vec<Flow> = (0..TO).map(|_| Flow::new(LIMITS)).collect();
    let mut there: Vec<Flow> = (0..TO).map(|_| Flow::new(LIMITS)).collect();
    let (mut offered, mut taken) = ([0; TO], [const { Vec::new() }; TO]);
    let (mut now, mut steps) = (Duration::ZERO, 0);
    while taken.iter().any(|t: &Vec<Vec<u8>>| t.len() < frames.len()) {
        steps += 1;
        assert!(
            steps < MOST_STEPS,
            "seed {seed}: the flows turn on the spot"
        );
        for (at, next) in frames.iter().enumerate() {
            let mut numbers = Vec::new();
            for to in 0..TO {
                let goes = offered[to] == at && here[to].frame(now, &[next], next.len());
                offered[to] += usize::from(goes);
                numbers.push(here[to].alone().filter(|_| goes && next.len() <= 30));
            }
            if numbers.iter().flatten().count() > 1 {
                let head = shared_head(&numbers);
                for to in 0..TO {
                    networks[to].send(now, 1, &[&head, next]);
                    if numbers[to].is_some() {
                        here[to].went(now);
                    }
                }
            }
        }
        for (to, network) in networks.iter_mut().enumerate() {
            for (side, flow) in [&mut here[to], &mut there[to]].into_iter().enumerate() {
                flow.transmit(now, &mut |parts| {
                    network.send(now, 1 - side, parts);
                    true
                });
            }
        }
        let flows = here.iter().chain(&there);
        let timers = flows.filter_map(|flow| flow.wake_at(now));
        let arrivals = networks
            .iter()
            .flat_map(|n| &n.on_the_way)
            .map(|&(at, ..)| at);
        let next = timers.chain(arrivals).min();
        now = next
            .unwrap_or_else(|| panic!("seed {seed}: nothing is due"))
            .max(now);
        assert!(now < FOR_EVER, "seed {seed}: the flows hang");
        for (to, network) in networks.iter_mut().enumerate() {
            let due = network.on_the_way.extract_if(.., |&mut (at, ..)| at <= now);
            let mut due: Vec<_> = due.collect();
            due.sort_by_key(|&(at, ..)| at);
            for (_, side, datagram) in due {
                let received = match (side, parse(&datagram)) {
                    (0, _) => here[to].receive(now, &datagram, &mut Vec::new()),
                    (_, Some(Datagram::Shared(numbers, bytes))) => match numbers.of(to) {
                        Some(number) => {
                            there[to].receive_shared(now, number, bytes, &mut taken[to])
                        }
                        None => Ok(()),
                    },
                    _ => there[to].receive(now, &datagram, &mut taken[to]),
                };
                assert_eq!(received, Ok(()), "seed {seed}");
            }
        }
    }
    assert!(taken.iter().all(|taken| *taken == frames), "seed {seed}");
}

#[test]
fn what_goes_to_several_at_once_is_lost_to_nobody() {
    seeds(0..3_000).for_each(share);
}

#[test]
fn a_shared_frame_that_is_taken_to_have_come_is_found() {
    assert!(finds(Planted::SharedIsArrived, share));
}

#[test]
fn ten_thousand_bad_networks_lose_nothing() {
    seeds(0..10_000).for_each(exchange);
}

/// The first of some seeds that finds what is planted.
fn is_found(error: Planted) -> bool {
    finds(error, exchange)
}

fn finds(error: Planted, run: fn(u64)) -> bool {
    PLANTED.set(error);
    let found = (0..300).any(|seed| catch_unwind(|| run(seed)).is_err());
    PLANTED.set(Planted::Nothing);
    found
}

#[test]
fn duplicates_that_are_taken_are_found() {
    assert!(is_found(Planted::DuplicatesTaken));
}

#[test]
fn a_missing_timeout_is_found() {
    assert!(is_found(Planted::NoTimeout));
}

#[test]
fn an_acknowledgement_that_says_too_much_is_found() {
    assert!(is_found(Planted::BeyondIsBelow));
}

#[test]
fn random_bytes_and_changed_datagrams_are_refused_or_harmless() {
    for seed in seeds(0..3_000) {
        let mut random = SplitMix64(seed);
        let mut flow = Flow::new(LIMITS);
        let mut sound = Vec::new();
        let mut other = Flow::new(LIMITS);
        other.frame(Duration::ZERO, &[&[1; 300]], 300);
        other.transmit(Duration::ZERO, &mut |parts| {
            sound.push(parts.concat());
            true
        });
        let mut frames = Vec::new();
        let mut now = Duration::ZERO;
        for _ in 0..50 {
            now += Duration::from_millis(1);
            let mut datagram = match random.below(3) {
                0 => (0..random.below(90))
                    .map(|_| random.below(256) as u8)
                    .collect(),
                _ => sound[random.below(sound.len() as u64) as usize].clone(),
            };
            for _ in 0..random.below(3) {
                if !datagram.is_empty() {
                    let at = random.below(datagram.len() as u64) as usize;
                    datagram[at] = random.below(256) as u8;
                }
            }
            flow.frame(now, &[&[2; 100]], 100);
            let mut sent = 0;
            flow.transmit(now, &mut |_| {
                sent += 1;
                true
            });
            assert!(sent < 1_000, "seed {seed}");
            if flow.receive(now, &datagram, &mut frames).is_err() {
                break;
            }
        }
        let bytes: usize = frames.iter().map(Vec::len).sum();
        assert!(bytes <= 50 * LIMITS.largest, "seed {seed}");
    }
}

#[test]
fn who_answers_nothing_is_silent() {
    let patience = Duration::from_secs(2);
    let mut flow = Flow::new(FlowLimits { patience, ..LIMITS });
    let mut now = Duration::from_secs(100);
    assert!(flow.frame(now, &[b"anybody?"], 8));
    let mut sent = 0;
    flow.look(now);
    while flow.is_over(now).is_none() {
        flow.transmit(now, &mut |_| {
            sent += 1;
            true
        });
        now = flow
            .wake_at(now)
            .expect("a timer")
            .max(now + Duration::from_millis(1));
        flow.look(now);
        assert!(now < Duration::from_secs(200));
    }
    assert_eq!(flow.is_over(now), Some(Loss::Silent(patience)));
    assert!(
        (3..50).contains(&sent),
        "tried {sent} times, ever more rarely"
    );
}
