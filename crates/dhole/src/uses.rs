//! Which parts of the family of protocols a run used (VOTE, section 1: a program pays for the
//! extensions that it uses).

use dhole_model::{Counters, MessageKind};

use crate::Report;

/// The protocols and the machines that a run used: see [`Report::uses`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uses {
    /// The protocols that kept objects, elements and pages consistent, and changed something or
    /// fetched something, by their names.
    pub protocols: Vec<String>,
    /// The other machines that the program used: `barriers`, `collectives`, `conditions and
    /// semaphores`, `locks`, `operations`, `ordered multicasts`, `raw memory` and `sections`.
    pub machines: Vec<&'static str>,
}

impl Report {
    /// The protocols and machines that the run used, as far as the counters of the report say so:
    /// if nodes are processes, those of all nodes on node 0 alone. Each is in alphabetical order.
    /// What is not in it has sent no message and counted no event.
    ///
    /// ```
    /// let run = dhole::Config::nodes(2).run(|w| {
    ///     let row = w.once(|w| Ok(w.alloc([0_u64; 4])))?;
    ///     w.barrier()?;
    ///     Ok(row.get(w)[0])
    /// })?;
    /// let uses = run.report.uses();
    /// assert_eq!(uses.protocols, ["lazy"]);
    /// assert_eq!(uses.machines, ["barriers"]);
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn uses(&self) -> Uses {
        let total = self.total();
        let mut protocols: Vec<String> = total.by_protocol.keys().cloned().collect();
        let touched = [
            total.misses,
            total.zero_fills,
            total.write_faults,
            total.one_sided_reads,
            total.intervals,
        ];
        let of_members: u64 = total.by_protocol.values().map(|it| it.messages).sum();
        if of_members == 0 && touched.iter().any(|count| *count > 0) {
            protocols.push(self.protocol.to_owned());
        }
        let by_their_messages = [
            ("home", total.sent(MessageKind::Flush)),
            ("update", total.pushes),
        ];
        let found = by_their_messages.into_iter().filter(|(_, sent)| *sent > 0);
        protocols.extend(found.map(|(name, _)| name.to_owned()));
        protocols.sort_unstable();
        protocols.dedup();
        let machines = MACHINES.iter().filter(|(_, used)| used(&total));
        Uses {
            protocols,
            machines: machines.map(|(name, _)| *name).collect(),
        }
    }
}

type IsUsed = fn(&Counters) -> bool;

/// The machines beside protocols, and whether counters say that one was used.
const MACHINES: [(&str, IsUsed); 8] = [
    ("barriers", |it| it.barriers > 0),
    ("collectives", |it| it.sent(MessageKind::Collective) > 0),
    ("conditions and semaphores", |it| {
        it.sent(MessageKind::Notify) + it.sent(MessageKind::SyncRequest) > 0
    }),
    ("locks", |it| {
        it.lock_acquires_local + it.lock_acquires_remote > 0
    }),
    ("operations", |it| {
        !it.by_object.is_empty() || it.sent(MessageKind::OperationRequest) > 0
    }),
    ("ordered multicasts", |it| it.broadcasts > 0),
    ("raw memory", |it| {
        it.raw_read_faults + it.raw_write_faults + it.sent(MessageKind::MemoryRequest) > 0
    }),
    ("sections", |it| it.sections + it.sections_elsewhere > 0),
];

#[cfg(test)]
mod tests {
    use crate::{Coherence, Config, NodeId, Result, Worker};

    fn uses(config: Config, program: fn(&mut Worker<'_>) -> Result<()>) -> super::Uses {
        let run = config.run(program).expect("a run");
        run.report.uses()
    }

    fn shares(w: &mut Worker<'_>) -> Result<()> {
        let row = w.once(|w| Ok(w.alloc([0_u64; 4])))?;
        for round in 0..3 {
            if w.node() == NodeId(0) {
                row.get_mut(w)[0] = round + 1;
            }
            w.barrier()?;
            assert_eq!(row.get(w)[0], round + 1);
            w.barrier()?;
        }
        Ok(())
    }

    #[test]
    fn a_program_over_one_protocol_uses_that_and_nothing_else() {
        for coherence in [Coherence::Lazy, Coherence::Update, Coherence::Home] {
            let uses = uses(Config::nodes(2).coherence(coherence), shares);
            assert_eq!(uses.protocols, [coherence.name()]);
            assert_eq!(uses.machines, ["barriers"]);
        }
    }

    #[test]
    fn locks_operations_and_multicasts_are_used_by_who_uses_them() {
        let uses = uses(Config::nodes(2), |w| {
            let lock = w.new_lock();
            lock.with(w, |_| Ok(()))?;
            w.bind(&w.node().to_string(), &7_u64)?;
            Ok(())
        });
        assert!(uses.protocols.is_empty(), "{uses:?}");
        assert!(uses.machines.contains(&"locks"), "{uses:?}");
        assert!(uses.machines.contains(&"ordered multicasts"), "{uses:?}");
        assert!(!uses.machines.contains(&"collectives"), "{uses:?}");
    }
}
