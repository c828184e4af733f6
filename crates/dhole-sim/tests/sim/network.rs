//! What the network's costs do to a run: interrupts, kinds, packets, hubs, losses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::stage::{ask, reply, run, settings, wake_up};
use dhole_model::{MessageKind, NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload};
use dhole_node::{Machine, Woken};
use dhole_protocol::Message;
use dhole_protocol::group::{GroupMessage, ViewId};
use dhole_protocol::objects::{ObjectsMessage, Ordered};
use dhole_sim::{Description, Medium, Network, Report, Settings, Sim};

const LONG: Duration = Duration::from_secs(1_000);

fn with(nodes: usize, change: impl FnOnce(&mut Network)) -> Sim {
    let mut settings = settings(nodes);
    change(&mut settings.network);
    Sim::new(settings)
}

#[test]
fn a_message_interrupts_a_worker_that_computes_and_none_that_waits() {
    for waits in [false, true] {
        let sim = with(2, |network| network.interrupt_ns = 5_000);
        run(&sim, |actor| {
            let (sim, node) = (actor.sim, actor.node);
            match node.0 {
                0 if waits => {
                    assert_eq!(sim.wait(node, Duration::from_micros(100)), Woken::ByTime);
                    assert_eq!(actor.now(), 100_000);
                }
                0 => {
                    actor.computes(100_000);
                    assert_eq!(actor.now(), 100_000 + 20 + 5_000 + 900 + 700);
                }
                _ => {
                    actor.send(0, ask(0));
                    sim.wait(node, LONG);
                    let bytes = ask(0).frame_bytes() + reply(0).frame_bytes();
                    let interrupt = if waits { 0 } else { 5_000 };
                    assert_eq!(actor.now(), 2 * (700 + 10_000 + 900) + bytes + interrupt);
                }
            }
        });
    }
}

#[test]
fn messages_that_come_while_one_is_handled_cost_no_further_interrupt() {
    let sim = with(4, |network| network.interrupt_ns = 5_000);
    run(&sim, |actor| {
        let node = actor.node;
        if node == NodeId(0) {
            actor.computes(100_000);
            assert_eq!(actor.now(), 100_000 + 20 + 5_000 + 3 * (900 + 700));
        } else {
            actor.send(0, ask(node.0.into()));
        }
    });
}

#[test]
fn a_signal_may_be_taken_while_waiting_too_but_not_for_what_is_waited_for() {
    let sim = with(2, |network| {
        network.interrupt_ns = 5_000;
        network.interrupt_when_waiting = true;
    });
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        if node == NodeId(0) {
            sim.wait(node, Duration::from_micros(100));
        } else {
            actor.send(0, ask(0));
            sim.wait(node, LONG);
            let bytes = ask(0).frame_bytes() + reply(0).frame_bytes();
            assert_eq!(actor.now(), 5_000 + 2 * (700 + 10_000 + 900) + bytes);
        }
    });
}

#[test]
fn bytes_and_kinds_cost_both_ends_their_processors() {
    const BYTES: usize = 1_000;
    let sim = with(2, |network| {
        network.send_ns_per_byte = 2.0;
        network.receive_ns_per_byte = 3.0;
        network.handling_ns[MessageKind::Fetch as usize] = 50_000;
        network.handling_ns[MessageKind::FetchReply as usize] = 4_000;
    });
    run(&sim, |actor| {
        if actor.node == NodeId(1) {
            actor.send_with(0, ask(0), BYTES);
            let bytes = ask(0).frame_bytes() + BYTES as u64;
            assert_eq!(actor.now(), 700 + 2 * bytes);
            actor.sim.wait(actor.node, LONG);
            let messages = 2 * (700 + 10_000 + 900) + 50_000 + 4_000;
            let all = bytes + reply(0).frame_bytes();
            assert_eq!(actor.now(), messages + all * (1 + 2 + 3));
        } else {
            actor.sim.wait(actor.node, Duration::from_millis(1));
        }
    });
}

#[test]
fn who_shares_a_hub_waits_for_it() {
    let together = |hub_nodes| {
        let sim = with(8, |network| {
            network.medium = Medium::Hubs;
            network.hub_nodes = hub_nodes;
        });
        run(&sim, |actor| {
            if actor.node.0 % 2 == 0 {
                actor.send_with(actor.node.0 + 1, wake_up(), 100_000);
            } else {
                assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
            }
        });
        sim.report()
    };
    let (apart, shared) = (together(2), together(8));
    let message = 100_000 + wake_up().frame_bytes();
    assert_eq!(apart.queued_ns, 0);
    assert_eq!(shared.queued_ns, (1 + 2 + 3) * message);
    assert_eq!(shared.elapsed_ns - apart.elapsed_ns, 3 * message);
}

#[test]
fn packets_are_sent_transmitted_and_received_side_by_side() {
    const PACKETS: u64 = 10;
    // Nanoseconds a byte for the sender, the wire, whose byte takes 1, and the receiver.
    for (send, receive) in [(0.5, 0.25), (2.0, 1.0), (0.5, 3.0)] {
        for pipelined in [false, true] {
            let sim = with(2, |network| {
                network.medium = Medium::Switch;
                network.packet_bytes = 1_000;
                network.send_ns_per_byte = send;
                network.receive_ns_per_byte = receive;
                network.pipelined = pipelined;
            });
            let payload = (PACKETS * 1_000 - wake_up().frame_bytes()) as usize;
            run(&sim, |actor| {
                if actor.node == NodeId(1) {
                    actor.send_with(0, wake_up(), payload);
                    let sending = 700 + (send * 10_000.0) as u64;
                    assert_eq!(actor.now(), sending, "the processor is taken for all of it");
                    return;
                }
                assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
                let [send, receive] = [send, receive].map(|ns| (ns * 1_000.0) as u64);
                let fixed = 700 + 10_000 + 900;
                let packets = match pipelined {
                    // All one after the other; the switch sends on what it has.
                    false => PACKETS * send + 1_000 + PACKETS * 1_000 + PACKETS * receive,
                    // The slowest for all packets, the others for one.
                    true => {
                        let all = [send, 1_000, 1_000, receive];
                        let slowest = all.into_iter().max().unwrap();
                        all.iter().sum::<u64>() + (PACKETS - 1) * slowest
                    }
                };
                assert_eq!(
                    actor.now(),
                    fixed + packets,
                    "{pipelined}: {send}, {receive}"
                );
            });
        }
    }
}

#[test]
fn a_processor_takes_one_packet_after_the_other_whoever_sends_them() {
    const PACKETS: u64 = 10;
    let sim = with(3, |network| {
        network.medium = Medium::Switch;
        network.packet_bytes = 1_000;
        network.receive_ns_per_byte = 3.0;
        network.pipelined = true;
    });
    let payload = (PACKETS * 1_000 - wake_up().frame_bytes()) as usize;
    run(&sim, |actor| {
        if actor.node != NodeId(0) {
            actor.send_with(0, wake_up(), payload);
            return;
        }
        assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
        let first = actor.now();
        assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
        assert_eq!(actor.now(), first + 900 + PACKETS * 3_000);
    });
}

#[test]
fn packets_that_come_while_the_worker_computes_take_its_time_all_the_same() {
    for pipelined in [false, true] {
        let sim = with(2, |network| {
            network.medium = Medium::Switch;
            network.packet_bytes = 1_000;
            network.receive_ns_per_byte = 2.0;
            network.pipelined = pipelined;
        });
        let payload = 5_000 - wake_up().frame_bytes() as usize;
        run(&sim, |actor| {
            let node = actor.node;
            if node == NodeId(1) {
                actor.send_with(0, wake_up(), payload);
            } else {
                actor.computes(100_000);
                assert_eq!(actor.now(), 100_000 + 20 + 900 + 10_000, "{pipelined}");
            }
        });
    }
}

/// What a group says to a member, which a machine may send to all at once.
fn to_group(body: GroupMessage<Arc<Ordered>>) -> Message {
    Message::Objects(ObjectsMessage::Group(body).into())
}

const VIEW: ViewId = ViewId {
    number: 1,
    sequencer: NodeId(0),
};

#[test]
fn a_message_to_all_is_sent_and_transmitted_once_where_the_medium_carries_that() {
    let token = to_group(GroupMessage::Token {
        view: VIEW,
        round: 1,
        high: 2,
        stable: 0,
    });
    let bytes = token.frame_bytes();
    for (multicast, sent) in [(true, [1, 1, 1]), (false, [1, 2, 3])] {
        let sim = with(4, |network| network.multicast = multicast);
        run(&sim, |actor| {
            let (sim, node) = (actor.sim, actor.node);
            if node == NodeId(0) {
                let mut out = Outbox::default();
                for to in 1..4 {
                    out.push(Envelope {
                        from: node,
                        to: NodeId(to),
                        body: token.clone(),
                        payload: Payload::NONE,
                    });
                }
                sim.send(actor.receivers, node, &mut out, Notify::Now);
                assert_eq!(actor.now(), 700 * sent[2]);
            } else {
                assert_eq!(sim.wait(node, LONG), Woken::ByWake);
                // A message is shorter than what sending it takes, so none waits for the link.
                assert!(bytes < 700);
                let departed = 700 * sent[node.index() - 1];
                assert_eq!(actor.now(), departed + bytes + 10_000 + 900);
            }
        });
        assert_eq!(sim.report().bytes, bytes * sent[2]);
    }
}

#[test]
fn who_asks_the_networks_own_sequencer_disturbs_no_processor() {
    let ask = to_group(GroupMessage::Ask {
        view: VIEW,
        serial: 0,
        parts: 1,
        done: 0,
    });
    for by_card in [true, false] {
        let sim = with(2, |network| {
            network.card_sequencer = by_card;
            network.interrupt_ns = 5_000;
        });
        run(&sim, |actor| {
            let node = actor.node;
            if node == NodeId(0) {
                actor.computes(100_000);
                let disturbed = if by_card { 0 } else { 5_000 + 900 };
                assert_eq!(actor.now(), 100_000 + 20 + disturbed);
            } else {
                actor.send(0, ask.clone());
            }
        });
    }
}

#[test]
fn what_the_networks_own_sequencer_brings_about_wakes_who_waits() {
    let ask = to_group(GroupMessage::Ask {
        view: VIEW,
        serial: 0,
        parts: 1,
        done: 0,
    });
    let arrives = 700 + ask.frame_bytes() + 10_000;
    let sim = with(2, |network| network.card_sequencer = true);
    run(&sim, |actor| {
        if actor.node == NodeId(1) {
            actor.send(0, ask.clone());
            return;
        }
        assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
        assert_eq!(actor.now(), arrives, "the processor does nothing");
    });
}

/// Every node asks every other some times and waits for each answer.
fn everybody_asks(sim: &Sim) -> Report {
    const ROUNDS: u32 = 20;
    let nodes = sim.settings().nodes as u16;
    let log = run(sim, |actor| {
        let (mut before, node) = (0, actor.node);
        for round in 0..ROUNDS {
            for other in (0..nodes).filter(|other| *other != node.0) {
                actor.computes(3_000);
                actor.send_with(other, ask(round), 3_000);
                assert_eq!(actor.sim.wait(node, LONG), Woken::ByWake);
                assert!(actor.now() > before, "time runs forward");
                before = actor.now();
            }
        }
    });
    let mut log = std::mem::take(&mut *log.lock().unwrap());
    let sent = u64::from(nodes) * u64::from(nodes - 1) * u64::from(2 * ROUNDS);
    assert_eq!(log.len() as u64, sent, "each message arrives");
    log.sort_unstable();
    log.chunk_by(|one, other| one == other)
        .for_each(|same| assert_eq!(same.len(), 2, "once as a question, once as an answer"));
    sim.report()
}

#[test]
fn no_message_is_lost_to_the_engine_or_comes_twice_on_any_network() {
    for name in Description::known() {
        for seed in 0..5 {
            let mut settings = settings(14);
            settings.set_network(Description::find(name).unwrap());
            settings.seed = seed;
            settings.network.loss = 0.02;
            settings.network.retransmit_ns = 1_000_000;
            let report = everybody_asks(&Sim::new(settings.clone()));
            assert!(report.lost > 0, "{name}");
            assert_eq!(
                report,
                everybody_asks(&Sim::new(settings)),
                "{name}: a seed repeats"
            );
        }
    }
}

#[test]
fn a_lost_message_is_sent_again_after_the_timeout_at_the_senders_cost() {
    const RETRANSMIT_NS: u64 = 1_000_000;
    let ends = Mutex::new(Vec::new());
    for seed in 0..40 {
        let mut settings = Settings {
            seed,
            ..settings(2)
        };
        settings.network.loss = 0.3;
        settings.network.retransmit_ns = RETRANSMIT_NS;
        let sim = Sim::new(settings);
        run(&sim, |actor| {
            if actor.node == NodeId(0) {
                actor.send(1, wake_up());
                actor.sim.leave(actor.node);
                actor.sim.work(actor.node, 20 * RETRANSMIT_NS);
                actor.sim.enter(actor.node);
                ends.lock().unwrap().push(actor.now() - 20 * RETRANSMIT_NS);
            } else {
                actor.sim.wait(actor.node, LONG);
                let lost = (actor.now() - 10_000) / RETRANSMIT_NS;
                let bytes = wake_up().frame_bytes();
                let message = 700 + bytes + 10_000 + 900;
                assert_eq!(actor.now(), message + lost * (700 + RETRANSMIT_NS));
            }
        });
        let report = sim.report();
        assert_eq!(report.bytes, (1 + report.lost) * wake_up().frame_bytes());
        let end = ends.lock().unwrap().pop().unwrap();
        assert_eq!(end, 700 + 20 + report.lost * 700);
    }
}

#[test]
fn packets_that_are_sent_again_are_sent_transmitted_and_received_side_by_side() {
    const PACKETS: u64 = 10;
    const RETRANSMIT_NS: u64 = 1_000_000;
    let mut most = 0;
    for (send, receive) in [(0.5, 0.25), (2.0, 1.0), (0.5, 3.0)] {
        for seed in 0..10 {
            let mut settings = Settings {
                seed,
                ..settings(2)
            };
            let network = &mut settings.network;
            network.medium = Medium::Switch;
            network.packet_bytes = 1_000;
            network.send_ns_per_byte = send;
            network.receive_ns_per_byte = receive;
            network.pipelined = true;
            network.loss = 0.05;
            network.retransmit_ns = RETRANSMIT_NS;
            let sim = Sim::new(settings);
            let payload = (PACKETS * 1_000 - wake_up().frame_bytes()) as usize;
            run(&sim, |actor| {
                if actor.node == NodeId(1) {
                    actor.send_with(0, wake_up(), payload);
                    return;
                }
                assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
                let lost = actor.now() / RETRANSMIT_NS;
                let all = [send * 1_000.0, 1_000.0, 1_000.0, receive * 1_000.0].map(|ns| ns as u64);
                // The slowest for all packets, the others for one: once, for what is sent again is
                // on its way like the first time when its sender's processor is done with it.
                let slowest = all.into_iter().max().unwrap();
                let packets = all.iter().sum::<u64>() + (PACKETS - 1) * slowest;
                let sending = 700 + (send * 10_000.0) as u64;
                let again = lost * (RETRANSMIT_NS + sending);
                assert_eq!(actor.now(), again + 700 + 10_000 + 900 + packets);
            });
            most = most.max(sim.report().lost);
        }
    }
    assert!(most > 1, "some are lost more than once");
}

#[test]
fn what_the_networks_own_sequencer_sends_again_disturbs_no_processor() {
    const RETRANSMIT_NS: u64 = 1_000_000;
    let number = to_group(GroupMessage::Grant {
        view: VIEW,
        serial: 0,
        first: 1,
        stable: 0,
    });
    let mut all_lost = 0;
    for by_card in [true, false] {
        for seed in 0..20 {
            let mut settings = Settings {
                seed,
                ..settings(2)
            };
            settings.network.card_sequencer = by_card;
            settings.network.loss = 0.3;
            settings.network.retransmit_ns = RETRANSMIT_NS;
            let sim = Sim::new(settings);
            let ended = Mutex::new([0; 2]);
            run(&sim, |actor| {
                if actor.node == NodeId(0) {
                    actor.send(1, number.clone());
                    actor.computes(20 * RETRANSMIT_NS);
                } else {
                    actor.sim.wait(actor.node, LONG);
                }
                ended.lock().unwrap()[actor.node.index()] = actor.now();
            });
            let lost = sim.report().lost;
            let sending = if by_card { 0 } else { 700 };
            let computed = 20 * RETRANSMIT_NS + 20 + (1 + lost) * sending;
            let bytes = number.frame_bytes();
            let came = lost * RETRANSMIT_NS + (1 + lost) * sending + bytes + 10_000 + 900;
            assert_eq!(ended.into_inner().unwrap(), [computed, came], "{by_card}");
            assert_eq!(sim.report().bytes, (1 + lost) * bytes);
            all_lost += lost;
        }
    }
    assert!(all_lost > 0);
}
