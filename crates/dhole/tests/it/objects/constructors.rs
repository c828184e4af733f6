//! Constructors: what travels, and what is refused.

use dhole::{Config, MessageKind, NodeId, ObjectType, on};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Big(Vec<u8>);

#[dhole::object]
impl Big {
    #[new]
    pub fn filled(length: usize, with: u8) -> Self {
        Big(vec![with; length])
    }

    #[new]
    pub fn copied(bytes: &[u8]) -> Result<Self, String> {
        Ok(Big(bytes.to_vec()))
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().map(|it| u64::from(*it)).sum()
    }
}

#[test]
fn a_constructor_elsewhere_sends_its_arguments_only() {
    const LENGTH: usize = 10_000_000;
    let run = |makes: bool| {
        let settings = dhole::sim::Settings::fixed_cost(2);
        let run = Config::nodes(2).simulate(settings, |w| {
            if makes && w.node() == NodeId(0) {
                let big = Big::filled_in(w, on(NodeId(1)), LENGTH, 1)?;
                assert_eq!(w.counters().messages, 1);
                assert_eq!(big.sum(w)?, LENGTH as u64);
            }
            w.barrier()?;
            Ok(())
        });
        run.expect("it runs").report.total()
    };
    let (made, not_made) = (run(true), run(false));
    assert_eq!(made.sent(MessageKind::ObjectState), 1);
    // Of making it, and of the call.
    assert_eq!(made.sent(MessageKind::OperationReply), 2);
    assert_eq!(made.messages - not_made.messages, 4);
    assert!(made.data_bytes - not_made.data_bytes < 200);
}

#[test]
fn bytes_that_no_constructor_takes_are_refused() {
    let made = |number, bytes: &[u8]| match Big::construct(number, bytes) {
        Ok(Ok((Big(bytes), _))) => bytes,
        other => panic!("{:?}", other.map(|made| made.map(drop))),
    };
    assert_eq!(made(0, &[3, 7]), [7; 3]);
    assert_eq!(made(1, &[2, 7, 8]), [7, 8]);
    for (number, bytes) in [(0, &[3][..]), (0, &[3, 7, 1]), (1, &[3, 7, 8]), (2, &[])] {
        let refused = Big::construct(number, bytes).err();
        let words = refused.expect("no constructor takes them").to_string();
        let wanted = ["the arguments", "none of this number"][usize::from(number == 2)];
        assert!(words.contains(wanted), "{words}");
    }
}
