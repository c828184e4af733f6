//! The directory protocol, a member that dhole brings: every run of small programs, litmus tests,
//! planted mistakes, and exact costs.

use apps::sor;
use conformance::model::Fault;
use conformance::oracle::{End, Size, execute, expected, generate};
use conformance::{OnThreads, Simulated, Under, seeds};
use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange, Version};
use dhole::sim::Settings;
use dhole::{Array2, Coherence, Config, Lock, Result, Rows, Worker};
use dhole_protocol::WorkerIs;
use dhole_protocol::built_in::Directory;

use crate::announcing::keeps_its_promise;

type Says = <Directory as CoherenceProtocol>::Message;
type Notice = <Directory as CoherenceProtocol>::Notice;

#[test]
fn every_run_under_the_directory_protocol_is_sound() {
    dhole_check::explore::<Directory>(2).assert_sound();
    dhole_check::explore::<Directory>(3).assert_sound();
}

#[test]
fn no_litmus_test_under_the_directory_protocol_shows_what_must_not_be() {
    dhole_check::litmus::<Directory>(seeds(0..500));
    keeps_its_promise(&Under(OnThreads, Directory::coherence()), 100);
}

/// Outdated copies stay after an acquire.
const KEEPS: usize = 0;
/// A release does not wait for acknowledgements.
const EARLY: usize = 1;
/// An invalidation is acknowledged, and the copy counts as valid.
const BLIND: usize = 2;
/// The owner forgets a request that comes while its worker computes.
const FORGETS: usize = 3;
/// A node does not announce what it has come to own.
const SILENT: usize = 4;
/// An invalidation is not acknowledged.
const DEAF: usize = 5;

/// The protocol with a mistake.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Mistaken<const MISTAKE: usize>(Directory);

impl<const MISTAKE: usize> CoherenceProtocol for Mistaken<MISTAKE> {
    const NAME: &'static str = [
        "directory-keeps",
        "directory-early",
        "directory-blind",
        "directory-forgets",
        "directory-silent",
        "directory-deaf",
    ][MISTAKE];
    type Message = Says;
    type Notice = Notice;
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, nodes: usize) -> Self {
        Mistaken(Directory::new(me, nodes))
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
        self.0.must_release() && MISTAKE != EARLY
    }

    fn before_release(&mut self, cx: &mut Context<'_, Self>) {
        self.0.before_release(&mut cx.of());
    }

    fn notice(&mut self, version: Version) -> Option<Notice> {
        let notice = self.0.notice(version);
        notice.filter(|_| MISTAKE != SILENT)
    }

    fn noticed(&mut self, version: Version, notice: Notice, cx: &mut Context<'_, Self>) {
        self.0.noticed(version, notice, &mut cx.of());
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Self>) {
        if MISTAKE != KEEPS {
            self.0.after_acquire(&mut cx.of());
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        let computes = cx.worker() == WorkerIs::Computing;
        match message {
            Says::Invalidate(unit, grant, owner) if MISTAKE == BLIND => {
                cx.send(owner, &Says::Acknowledge(unit, grant));
                Ok(())
            }
            Says::Invalidate(..) if MISTAKE == DEAF => Ok(()),
            Says::Forward(_) | Says::Ask(..) if MISTAKE == FORGETS && computes => Ok(()),
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
fn mistakes_of_the_directory_protocol_are_found() {
    dhole_check::hunt::<Mistaken<KEEPS>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
    dhole_check::hunt::<Mistaken<EARLY>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
    dhole_check::hunt::<Mistaken<BLIND>>(2, Fault::StaleRead).assert_shows(Fault::StaleRead);
    dhole_check::hunt::<Mistaken<FORGETS>>(2, Fault::Stuck).assert_shows(Fault::Stuck);
    dhole_check::hunt::<Mistaken<SILENT>>(2, Fault::Heap).assert_shows(Fault::Heap);
    dhole_check::hunt::<Mistaken<DEAF>>(2, Fault::Stuck).assert_shows(Fault::Stuck);
}

/// Runs a program on simulated nodes; the messages of the protocol.
fn sent(nodes: usize, program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync) -> u64 {
    let chosen: Coherence = "directory".parse().expect("dhole brings it");
    assert_eq!(chosen, Directory::coherence());
    let config = Config::nodes(nodes).coherence(chosen);
    let run = config.simulate(Settings::fixed_cost(nodes), program);
    let total = run.expect("a sound program").report.total();
    total.by_protocol["directory"].messages
}

#[test]
fn a_counter_goes_from_owner_to_owner_under_a_lock() {
    let messages = sent(4, |w| {
        let counter = w.once(|w| Ok(w.alloc(0_u64)))?;
        for turn in 0..40 {
            if turn % w.nodes() == w.node().index() {
                Lock::numbered(0).with(w, |w| {
                    *counter.get_mut(w) += 1;
                    Ok(())
                })?;
            }
            w.barrier()?;
        }
        assert_eq!(counter.read(w), 40);
        Ok(())
    });
    // A turn of node 0 sends 4: a request that the directory passes on and the copy, and then an
    // invalidation and its acknowledgement. One of node 1, before which node 0 is the owner, sends
    // 5, and one of the others 7. In the end three nodes read.
    assert_eq!(messages, 9 * 4 + 10 * (5 + 7 + 7) + (2 + 3 + 3));
}

#[test]
fn readers_keep_their_copies_until_the_owner_writes_again() {
    let messages = sent(4, |w| {
        let row = w.once(|w| Ok(w.alloc([0_u64; 100])))?;
        for round in 1..=10 {
            if w.node().index() == 0 && round % 5 == 0 {
                row.get_mut(w).fill(round);
            }
            w.barrier()?;
            assert_eq!(row.get(w)[99], round / 5 * 5);
            w.barrier()?;
        }
        Ok(())
    });
    // Three nodes read three times, and are told two times in between that their copies are
    // outdated.
    assert_eq!(messages, 3 * 3 * 2 + 2 * 3 * 2);
}

#[test]
fn random_programs_under_the_directory_protocol_are_as_if_sequential() {
    for seed in seeds(0..1_000) {
        let mut program = generate(seed, Size::default());
        for phase in &mut program.phases {
            // Every third switch is one to the protocol, of objects, rows and arrays.
            if let End::Switch(to @ Coherence::Lazy) = &mut phase.end {
                *to = Directory::coherence();
            }
        }
        let wanted = expected(&program).expect("generated programs have no race");
        let simulated = Under(Simulated::default(), Directory::coherence());
        let got = execute(&program, &simulated, seed);
        assert_eq!(got.as_ref(), Ok(&wanted), "DHOLE_SEED={seed}");
        if seed % 10 == 0 {
            let threads = Under(OnThreads, Directory::coherence());
            let got = execute(&program, &threads, seed);
            assert_eq!(got.as_ref(), Ok(&wanted), "on threads, DHOLE_SEED={seed}");
        }
    }
}

#[test]
fn what_nodes_ask_for_is_counted_by_type() {
    let config = Config::nodes(2).coherence(Directory::coherence());
    let run = config.simulate(Settings::fixed_cost(2), |w| {
        let number = w.once(|w| Ok(w.alloc(1_u64)))?;
        let array = w.once(|w| Ok(w.alloc_array::<u32>(2_000)))?;
        if w.node().index() == 1 {
            assert_eq!(number.read(w), 1);
            *number.get_mut(w) = 2;
            // It is the owner now.
            *number.get_mut(w) = 3;
            assert_eq!(array.slice(w, ..).iter().sum::<u32>(), 0);
        }
        w.barrier()?;
        Ok(())
    });
    let report = run.expect("a sound program").report;
    let total = report.total();
    // The number to read and then to write, and two blocks at once.
    assert_eq!((total.fetch_rounds, total.misses), (3, 4));
    let of_type = |name: &str| total.by_type[name].misses;
    assert_eq!([of_type("u64"), of_type("u32")], [2, 2]);
    let said = report.to_string();
    assert!(!said.contains("0 fetches"), "{said}");
}

/// The messages of the directory protocol while SOR finds its grid.
fn sor_sends<L: sor::Layout>(nodes: usize, steps: usize) -> u64 {
    let problem = sor::Problem {
        rows: 32,
        columns: 63,
        steps,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    let alone = sor::sequential::run(problem, |_| ());
    let config = Config::nodes(nodes).coherence(Directory::coherence());
    let run = config.simulate(Settings::fixed_cost(nodes), |w| {
        sor::shared::run::<L>(w, &problem, Some(&alone.grid), |_| ())
    });
    let run = run.expect("a sound program");
    assert_eq!(run.value.max_error, Some(0.0), "on {nodes} nodes");
    let sent = run.report.total().by_protocol;
    sent.get("directory").map_or(0, |sent| sent.messages)
}

#[test]
fn sor_sends_what_its_boundaries_need() {
    let nodes = [1, 2, 4];
    let sent = nodes.map(|nodes| sor_sends::<Rows<f64>>(nodes, 6));
    assert_eq!(sent, [0, 280, 694]);
    // A step writes each row at a boundary twice, and each neighbour reads it twice. Node 0 is the
    // directory of all rows, so what it writes or reads there takes 4 or 5 messages, and 7 if it
    // has no part in it.
    let more = nodes.map(|nodes| sor_sends::<Rows<f64>>(nodes, 7));
    let a_step = [0, 2 * (4 + 5), 2 * (4 + 5 + 4 * 7)];
    let sums: Vec<u64> = sent
        .iter()
        .zip(a_step)
        .map(|(sent, step)| sent + step)
        .collect();
    assert_eq!(more, sums[..]);
    // An array has several rows in a block.
    let sent = nodes.map(|nodes| sor_sends::<Array2<f64>>(nodes, 6));
    assert_eq!(sent, [0, 131, 460]);
}
