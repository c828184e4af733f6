//! A ring of nodes: in each round every node sends a number to the next one and receives one from
//! the node before it. `ring --rounds 100` makes so many rounds.

use dhole::mailbox::Mailboxes;
use dhole::{Config, MessageKind, NodeId};

fn rounds() -> Option<u64> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some(10),
        ["--rounds", rounds] => rounds.parse().ok(),
        _ => None,
    }
}

fn main() -> Result<(), dhole::RunError> {
    let Some(rounds) = rounds() else {
        eprintln!("usage: ring [--rounds ROUNDS]");
        std::process::exit(2);
    };
    let run = Config::nodes(4).run(|w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let (next, before) = ((me + 1) % nodes, (me + nodes - 1) % nodes);
        // A number has gone one node further in each round.
        let mut number = me as u64;
        for _ in 0..rounds {
            mail.send(w, NodeId::at(next), number)?;
            number = mail.recv_from(w, NodeId::at(before))?;
        }
        let went = (rounds % nodes as u64) as usize;
        assert_eq!(number as usize, (me + nodes - went) % nodes);
        Ok(())
    })?;
    if run.report.is_first() {
        let total = run.report.total();
        let requests = total.sent(MessageKind::OperationRequest);
        let replies = total.sent(MessageKind::OperationReply);
        println!("{rounds} rounds: {requests} requests, {replies} replies");
    }
    Ok(())
}
