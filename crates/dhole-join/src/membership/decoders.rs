use dhole_model::NodeId;

use super::BuildId;
use super::frame::Body;
use super::handshake::{Binding, Handshake, Party, Use};
use super::places::Places;
use super::secret::Secret;
use super::terms::{PROTOCOL_VERSION, Terms};

fn own() -> Terms {
    Terms {
        version: PROTOCOL_VERSION,
        build: BuildId::from_bytes(&[1; 20]).expect("a short one"),
        nodes: 3,
        settings: vec![("transport".into(), "tcp".into())],
        places: Places::default(),
    }
}

/// What a peer that knows the secret says of itself, and node 0's table of where all are: whatever
/// is read is written as it was, and a difference is found by both sides.
pub fn terms(bytes: &[u8]) {
    let own = own();
    if let Ok(theirs) = Terms::read(bytes, &own) {
        let mut again = Vec::new();
        theirs.write(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(own.compare(&theirs).is_ok(), theirs.compare(&own).is_ok());
    }
    let mut body = Body(bytes);
    for _ in 0..own.nodes {
        let Ok(places) = Places::read(&mut body) else {
            return;
        };
        for text in [&places.machine, &places.tcp, &places.unix] {
            assert!(text.len() <= Places::MOST_BYTES);
        }
    }
}

/// A conversation of two nodes of which a third changes what it likes: each change is a place in it
/// and what is added to the byte there. The last byte cuts what a socket brings at once. Nobody
/// joins whose words were changed.
pub fn handshake(bytes: &[u8]) {
    let secret = Secret::new(b"what only nodes know").expect("long enough");
    let terms = own();
    let party = |node: u16| Party {
        me: NodeId(node),
        secret: &secret,
        terms: &terms,
        binding: Binding::Plain,
        nonce: [node as u8; 32],
    };
    let (step, changes) = bytes.split_last().unwrap_or((&0, &[]));
    let step = usize::from(*step).max(1);
    let mut changes = changes.chunks_exact(3);
    let mut out = [Vec::new(), Vec::new()];
    let mut sides = [
        Handshake::connect(&party(2), NodeId(0), Use::Port, &mut out[0]),
        Handshake::listen(),
    ];
    let mut over = [false; 2];
    let mut changed = false;
    while !out.iter().all(Vec::is_empty) {
        for from in 0..2 {
            let mut said = std::mem::take(&mut out[from]);
            if let Some(&[low, high, add]) = changes.next().and_then(|c| c.first_chunk())
                && let Some(byte) = said.get_mut(usize::from(u16::from_le_bytes([low, high])))
            {
                *byte = byte.wrapping_add(add);
                changed |= add != 0;
            }
            let to = 1 - from;
            let mut rest = &said[..];
            while !over[to] && !rest.is_empty() {
                let wants = sides[to].wants();
                assert!((1..=1 << 20).contains(&wants), "it wants {wants} bytes");
                let (now, behind) = rest.split_at(wants.min(step).min(rest.len()));
                rest = behind;
                let me = party([2, 0][to]);
                let expected = |said: NodeId, _: Use| said.0 < 3;
                match sides[to].take(&me, &expected, now, &mut out[to]) {
                    Ok(None) => {}
                    Ok(Some(_)) => over[to] = true,
                    Err(_) => {
                        over[to] = true;
                        assert!(changed, "a sound peer is refused");
                    }
                }
            }
        }
    }
}
