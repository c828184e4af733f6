use std::time::Duration;

use dhole_model::{MessageKind, NodeId, Notify};
use dhole_net::{Envelope, Outbox, PayloadPool, Receiver, Wake};
use dhole_node::{Machine, Receivers, StartError};
use dhole_protocol::{FetchReply, Message};

use crate::{Settings, Sim};

/// Wakes the worker that waits for a message.
struct Doorbell;

impl Receiver<Message> for Doorbell {
    fn deliver(&self, _: Envelope<Message>, _: &mut Outbox<Message>) -> Wake {
        Wake::Yes
    }
}

/// Nanoseconds of the smallest message, and `bytes` bytes with it, from node 0 to node 1 and back,
/// the average of a hundred.
/// Each node waits for it and does nothing else. Papers call this the round-trip latency, without
/// any runtime's work.
///
/// # Errors
/// [`StartError`] if a cluster with these settings cannot run.
pub fn round_trip_ns(settings: &Settings, bytes: usize) -> Result<u64, StartError> {
    const ROUNDS: u32 = 100;
    let mut settings = Settings {
        nodes: 2,
        crashes: Vec::new(),
        ..settings.clone()
    };
    settings.network.handling_ns = [0; MessageKind::ALL.len()];
    settings.network.making_ns = [0; MessageKind::ALL.len()];
    let sim = Sim::new(settings);
    let receivers: [&dyn Receiver<Message>; 2] = [&Doorbell, &Doorbell];
    sim.start(&receivers, &|node| {
        for round in 0..ROUNDS {
            match node.index() {
                0 => {
                    ring(&sim, &receivers, node, round, bytes);
                    hear(&sim, node);
                }
                _ => {
                    hear(&sim, node);
                    ring(&sim, &receivers, node, round, bytes);
                }
            }
        }
    })?;
    Ok(sim.report().elapsed_ns / u64::from(ROUNDS))
}

fn ring(sim: &Sim, receivers: &Receivers<'_>, from: NodeId, round: u32, bytes: usize) {
    let mut payload = PayloadPool::default().take();
    payload.buffer().resize(bytes, 0);
    let mut out = Outbox::default();
    out.push(Envelope {
        from,
        to: NodeId(1 - from.0),
        body: Message::FetchReply(FetchReply {
            keep: false,
            round,
            sent: Default::default(),
        }),
        payload,
    });
    sim.send(receivers, from, &mut out, Notify::Lazy);
}

fn hear(sim: &Sim, node: NodeId) {
    const LONG: Duration = Duration::from_secs(1 << 30);
    sim.wait(node, LONG);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_two_messages() {
        let ns = round_trip_ns(&Settings::new(1), 0).unwrap();
        // 26 bytes at 10 Gb/s.
        assert_eq!(ns, 2 * (1_000 + 21 + 10_000 + 1_000));
        let ns = round_trip_ns(&Settings::new(1), 1_250).unwrap();
        assert_eq!(ns, 2 * (1_000 + 1_021 + 10_000 + 1_000));
    }
}
