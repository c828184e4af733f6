//! What the bare simulator carries: pings among 32 and 1,024 nodes, in messages a second of the
//! host's time. The handlers do nothing but answer, so this is the simulator's own part.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use dhole_model::{NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload, Receiver, Wake};
use dhole_node::Machine;
use dhole_protocol::{Fetch, FetchReply, Follow, Message};
use dhole_sim::{Computation, Settings, Sim};

struct Echo(NodeId);

impl Receiver<Message> for Echo {
    fn deliver(&self, envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let Message::Fetch(Fetch { round, .. }) = envelope.body else {
            return Wake::Yes;
        };
        let body = Message::FetchReply(FetchReply {
            round,
            sent: Default::default(),
            keep: false,
        });
        out.push(Envelope {
            from: self.0,
            to: envelope.from,
            body,
            payload: Payload::NONE,
        });
        Wake::No
    }
}

/// Every node asks others, chosen at random, `rounds` times and waits for each answer; with
/// `enter`, it computes and enters the runtime in between, as a program does.
fn pings(nodes: usize, rounds: u32, enter: bool, computation: Computation) {
    let sim = Sim::new(Settings {
        computation,
        ..Settings::new(nodes)
    });
    let echoes: Vec<Echo> = (0..nodes).map(|node| Echo(NodeId::at(node))).collect();
    let receivers: Vec<&dyn Receiver<Message>> = echoes.iter().map(|echo| echo as _).collect();
    let begun = Instant::now();
    sim.start(&receivers, &|node| {
        let mut out = Outbox::default();
        for round in 0..rounds {
            let other = 1 + sim.random(node) as usize % (nodes - 1);
            let to = NodeId::at((node.index() + other) % nodes);
            let body = Message::Fetch(Fetch {
                round,
                wanted: Default::default(),
                beside: 0,
                follow: Follow::default(),
            });
            out.push(Envelope {
                from: node,
                to,
                body,
                payload: Payload::NONE,
            });
            sim.send(&receivers, node, &mut out, Notify::Now);
            sim.wait(node, Duration::from_secs(1));
            if enter {
                sim.leave(node);
                sim.work(node, 100);
                sim.enter(node);
            }
        }
    })
    .expect("the simulator starts");
    let (host, report) = (begun.elapsed(), sim.report());
    let (millions, ns) = (
        report.messages as f64 / host.as_secs_f64() / 1e6,
        host.as_nanos() as f64 / report.messages as f64,
    );
    println!(
        "{nodes:>5} nodes  {:<11} {:<28} {:>9} messages {millions:>6.2} M/s {ns:>6.0} ns each",
        if enter { "pings+enter" } else { "pings" },
        format!("{computation:?}"),
        report.messages,
    );
}

fn main() {
    let fixed = Computation::FixedCost { unit_ns: 1.0 };
    for (nodes, rounds) in [(32, 60_000), (1024, 2_000)] {
        pings(nodes, rounds, false, fixed);
        pings(nodes, rounds, true, fixed);
        pings(nodes, rounds, true, Computation::Measured);
    }
    println!("an envelope is {} bytes", size_of::<Envelope<Message>>());
}
