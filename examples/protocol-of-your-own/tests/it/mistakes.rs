//! Would the checks find a mistake? Here are five of each protocol, of the kind that one makes.

use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange, WorkerIs};
use dhole_check::Fault;
use protocol_of_your_own::pushing::{self, Pushing};
use protocol_of_your_own::{Says, Uncached};

/// Copies that were fetched stay after the worker has acquired something.
const KEEPS_COPIES: usize = 0;
/// The worker goes on before what it wrote is at home.
const RELEASES_EARLY: usize = 1;
/// A home stores while its worker may be reading.
const STORES_AT_ONCE: usize = 2;
/// A home forgets a request that comes while it writes.
const FORGETS: usize = 3;
/// A home answers that it has stored, and has not.
const STORES_NOTHING: usize = 4;

/// The protocol with a mistake.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Mistaken<const MISTAKE: usize>(Uncached);

impl<const MISTAKE: usize> CoherenceProtocol for Mistaken<MISTAKE> {
    const NAME: &'static str = ["keeps", "early", "at-once", "forgets", "nothing"][MISTAKE];
    type Message = Says;
    type Notice = ();
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, nodes: usize) -> Self {
        Mistaken(Uncached::new(me, nodes))
    }

    fn allocated(&mut self, units: OidRange, cx: &mut Context<'_, Self>) {
        self.0.allocated(units, &mut cx.of());
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) {
        self.0.read_miss(unit, creator, &mut cx.of());
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>) {
        self.0.write_fault(unit, &mut cx.of());
    }

    fn must_release(&self) -> bool {
        self.0.must_release()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Self>) {
        self.0.before_release(&mut cx.of());
        if MISTAKE == RELEASES_EARLY {
            cx.released();
        }
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Self>) {
        if MISTAKE != KEEPS_COPIES {
            self.0.after_acquire(&mut cx.of());
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        match message {
            Says::Store(units) if MISTAKE == STORES_AT_ONCE => {
                units.iter().for_each(|unit| cx.merge(*unit));
                cx.send(from, &Says::Stored);
                Ok(())
            }
            Says::Store(_) if MISTAKE == STORES_NOTHING => {
                cx.send(from, &Says::Stored);
                Ok(())
            }
            Says::Store(_) | Says::Fetch(_)
                if MISTAKE == FORGETS && cx.worker() == WorkerIs::Computing =>
            {
                Ok(())
            }
            message => self.0.deliver(from, message, &mut cx.of()),
        }
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, cx: &mut Context<'_, Self>) {
        self.0.adopt(unit, holder, &mut cx.of());
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) -> NodeId {
        self.0.give_up(unit, creator, &mut cx.of())
    }

    fn freed(&mut self, unit: Oid) {
        self.0.freed(unit);
    }
}

#[test]
fn copies_that_are_kept_make_a_stale_read() {
    dhole_check::hunt::<Mistaken<KEEPS_COPIES>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
}

#[test]
fn a_release_before_the_stores_are_made_makes_a_stale_read() {
    let checked = dhole_check::hunt::<Mistaken<RELEASES_EARLY>>(2, Fault::StaleRead);
    checked.assert_shows(Fault::StaleRead);
}

#[test]
fn a_store_under_a_reading_worker_is_refused_by_the_heap() {
    let checked = dhole_check::hunt::<Mistaken<STORES_AT_ONCE>>(2, Fault::Presence);
    checked.assert_shows(Fault::Presence);
}

#[test]
fn a_request_that_is_forgotten_leaves_a_node_stuck() {
    dhole_check::hunt::<Mistaken<FORGETS>>(2, Fault::Stuck).assert_shows(Fault::Stuck);
}

#[test]
fn a_store_that_is_not_made_makes_a_stale_read() {
    let checked = dhole_check::hunt::<Mistaken<STORES_NOTHING>>(2, Fault::StaleRead);
    checked.assert_shows(Fault::StaleRead);
}

#[test]
#[should_panic(expected = "DHOLE_SEED=")]
fn the_litmus_tests_find_it_too() {
    dhole_check::litmus::<Mistaken<KEEPS_COPIES>>(0..50);
}

/// The protocol that pushes, with a mistake, and how many pushes have arrived.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Mispushing<const MISTAKE: usize>(Pushing, u64);

/// A receiver numbers pushes as they arrive, so that an older one takes the place of a newer one.
const ARRIVAL: usize = 0;
/// A receiver answers a push that it has passed over.
const PASSES_OVER: usize = 1;
/// The copy of before stays when a push has come and the worker has acquired something.
const STAYS: usize = 2;
/// The worker goes on before all readers have what it wrote.
const GOES_ON: usize = 3;
/// A receiver does not answer a push.
const IS_SILENT: usize = 4;

impl<const MISTAKE: usize> CoherenceProtocol for Mispushing<MISTAKE> {
    const NAME: &'static str = [
        "pushing-arrival",
        "pushing-over",
        "pushing-stays",
        "pushing-on",
        "pushing-silent",
    ][MISTAKE];
    type Message = pushing::Says;
    type Notice = ();
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, nodes: usize) -> Self {
        Mispushing(Pushing::new(me, nodes), 0)
    }

    fn allocated(&mut self, units: OidRange, cx: &mut Context<'_, Self>) {
        self.0.allocated(units, &mut cx.of());
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) {
        self.0.read_miss(unit, creator, &mut cx.of());
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>) {
        self.0.write_fault(unit, &mut cx.of());
    }

    fn must_release(&self) -> bool {
        self.0.must_release()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Self>) {
        self.0.before_release(&mut cx.of());
        if MISTAKE == GOES_ON {
            cx.released();
        }
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Self>) {
        if MISTAKE != STAYS {
            self.0.after_acquire(&mut cx.of());
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: pushing::Says,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        use pushing::Says::{Push, Pushed};
        match message {
            Push { change, unit, .. } if MISTAKE == ARRIVAL => {
                self.1 += 1;
                let number = (1 << 32) + self.1;
                let push = Push {
                    change,
                    unit,
                    number,
                };
                self.0.deliver(from, push, &mut cx.of())
            }
            Push { change, .. } if MISTAKE == PASSES_OVER => {
                cx.skip();
                cx.send(from, &Pushed(change));
                Ok(())
            }
            Push { .. } if MISTAKE == IS_SILENT => Ok(()),
            message => self.0.deliver(from, message, &mut cx.of()),
        }
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, cx: &mut Context<'_, Self>) {
        self.0.adopt(unit, holder, &mut cx.of());
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) -> NodeId {
        self.0.give_up(unit, creator, &mut cx.of())
    }

    fn freed(&mut self, unit: Oid) {
        self.0.freed(unit);
    }
}

#[test]
fn mistakes_of_a_protocol_that_pushes_are_found() {
    use Fault::{StaleRead, Stuck};
    dhole_check::hunt::<Mispushing<ARRIVAL>>(3, StaleRead).assert_shows(StaleRead);
    dhole_check::hunt::<Mispushing<PASSES_OVER>>(2, StaleRead).assert_shows(StaleRead);
    dhole_check::hunt::<Mispushing<STAYS>>(2, StaleRead).assert_shows(StaleRead);
    dhole_check::hunt::<Mispushing<GOES_ON>>(2, StaleRead).assert_shows(StaleRead);
    dhole_check::hunt::<Mispushing<IS_SILENT>>(2, Stuck).assert_shows(Stuck);
}
