use std::time::Duration;

use super::datagram::{Datagram, parse};
use super::flow::{Flow, FlowLimits};

/// Datagrams of one peer, each with its length before it, among frames of this node's own: what
/// comes of them lies within the limits, and what is sent for them too.
pub fn datagrams(bytes: &[u8]) {
    const LIMITS: FlowLimits = FlowLimits {
        largest: 2_048,
        datagram: 64,
        kept_back: 512,
        patience: Duration::from_secs(60),
    };
    let mut flow = Flow::new(LIMITS);
    let mut now = Duration::ZERO;
    let mut rest = bytes;
    let mut frames = Vec::new();
    while let Some((&[length, steps], behind)) = rest.split_first_chunk() {
        let (datagram, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        now += Duration::from_millis(u64::from(steps));
        flow.frame(now, &[&[7; 100]], 100);
        let mut sent = 0;
        flow.transmit(now, &mut |parts| {
            let bytes: usize = parts.iter().map(|part| part.len()).sum();
            assert!(bytes <= LIMITS.datagram);
            sent += 1;
            true
        });
        assert!(sent < 1_000, "{sent} datagrams for one");
        let received = match parse(datagram) {
            Some(Datagram::Shared(numbers, bytes)) => match numbers.of(1) {
                Some(number) => flow.receive_shared(now, number, bytes, &mut frames),
                None => Ok(()),
            },
            _ => flow.receive(now, datagram, &mut frames),
        };
        if received.is_err() {
            break;
        }
        frames
            .drain(..)
            .for_each(|frame| assert!(frame.len() <= LIMITS.largest));
    }
}
