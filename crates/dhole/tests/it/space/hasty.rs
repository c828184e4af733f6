//! A protocol of the program's own that says that accesses are ready which cannot be made.

use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange};
use dhole::{Config, Result, RunError, Worker};

/// It installs nothing, and makes nothing writable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Hasty;

impl CoherenceProtocol for Hasty {
    const NAME: &'static str = "hasty";
    type Message = ();
    type Notice = ();
    // So it may keep arrays consistent.
    const SEVERAL_WRITERS: bool = true;

    fn new(_: NodeId, _: usize) -> Self {
        Hasty
    }

    fn allocated(&mut self, _: OidRange, _: &mut Context<'_, Self>) {}

    fn read_miss(&mut self, unit: Oid, _: NodeId, cx: &mut Context<'_, Self>) {
        cx.ready(unit);
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>) {
        cx.ready(unit);
    }

    fn must_release(&self) -> bool {
        false
    }

    fn before_release(&mut self, cx: &mut Context<'_, Self>) {
        cx.released();
    }

    fn after_acquire(&mut self, _: &mut Context<'_, Self>) {}

    fn deliver(
        &mut self,
        _: NodeId,
        (): (),
        _: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        Err("it says nothing")
    }

    fn adopt(&mut self, _: Oid, _: NodeId, _: &mut Context<'_, Self>) {}

    fn give_up(&mut self, _: Oid, creator: NodeId, _: &mut Context<'_, Self>) -> NodeId {
        creator
    }

    fn freed(&mut self, _: Oid) {}
}

/// What comes of a program under the protocol, on two nodes.
fn said(program: impl for<'id> Fn(&mut Worker<'id>) -> Result<u64> + Sync) -> String {
    let config = Config::nodes(2).coherence(Hasty::coherence());
    let run: Result<_, RunError> = config.run(program);
    run.map(|run| run.value).unwrap_err().to_string()
}

#[test]
fn an_access_that_a_protocol_calls_ready_and_is_not_names_the_protocol_and_the_line() {
    let reads = said(|w| {
        let number = w.once(|w| Ok(w.alloc(5_u64)))?;
        Ok(*number.get(w))
    });
    let writes = said(|w| {
        let number = w.once(|w| Ok(w.alloc(5_u64)))?;
        // It has the copy that was allocated.
        if w.node().index() == 0 {
            *number.get_mut(w) += 1;
        }
        w.barrier()?;
        Ok(0)
    });
    let elements = said(|w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(10)))?;
        w.barrier()?;
        Ok(array.range(2..4).get(w)[0])
    });
    let calls = [
        "(Context::install)",
        "(Context::make_writable)",
        "(Context::install)",
    ];
    for (said, call) in [reads, writes, elements].iter().zip(calls) {
        assert!(
            said.contains("the protocol hasty has made a mistake"),
            "{said}"
        );
        assert!(
            said.contains("hasty.rs:") && said.contains("object 0x"),
            "{said}"
        );
        assert!(said.contains("it says that the access to "), "{said}");
        assert!(said.contains(call), "{said}");
    }
}
