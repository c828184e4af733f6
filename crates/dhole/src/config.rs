use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dhole_live::Threads;
use dhole_model::{Barriers, Coherence, Detector, NodeId, Placement};
use dhole_net::Waiting;
use dhole_node::{
    By, ConfigError, Domains, Error, LostNode, Machine, MemoryConsistency, MemoryLayout,
    MemoryManagers, Multiprocess, Optimisations, Outcome, PartsMaker, Program, Races, Result,
    RunError, Settings, Worker, check_nodes, keep_values, run_nodes,
};
use dhole_protocol::CoherenceProtocol;
#[cfg(feature = "sim")]
use dhole_sim::{SettingsError, Sim};

use crate::process;
#[cfg(feature = "sim")]
use crate::report::Simulated;
use crate::report::{Report, Run};
use crate::settings::{Defaults, ReportForm, TraceFile};
use crate::timeline::TimelineFile;

/// The settings of a run, and the methods that start it.
///
/// The command `dhole` overrides the number of nodes, so that it can run any program on any number;
/// `dhole sim` overrides the seed too.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the environment may set too.
    set: Defaults,
    nodes: usize,
    seed: u64,
    suspect_after: Duration,
    placement: Option<Placement>,
    detector: Option<Detector>,
    optimisations: Option<Optimisations>,
    watch_objects: bool,
    parts: Option<Arc<dyn PartsMaker>>,
    waiting: Waiting,
}

impl Config {
    /// A cluster of `nodes` nodes, 1 to [`MAX_NODES`](crate::MAX_NODES), which are threads of
    /// this process unless the program runs under `dhole sim` or `dhole run`.
    pub fn nodes(nodes: usize) -> Config {
        Config {
            set: Defaults::default(),
            nodes,
            seed: 0,
            suspect_after: Duration::from_secs(1),
            placement: None,
            detector: None,
            optimisations: None,
            watch_objects: false,
            parts: None,
            waiting: Waiting::default(),
        }
    }

    /// Sets the seed of the nodes' random numbers, [`Worker::random`].
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// Sets how long a node waits for a lock or at a barrier before it searches for a deadlock; 1 s
    /// unless set. The time doubles after each search that finds none.
    pub fn suspect_after(mut self, time: Duration) -> Config {
        self.suspect_after = time;
        self
    }

    /// Makes a protocol of the program's own known, so that `dhole run --protocol` and `dhole sim
    /// --protocol` find it by its name. A program that chooses the protocol itself does so too.
    ///
    /// # Panics
    /// As [`CoherenceProtocol::coherence`].
    pub fn with_protocol<P: CoherenceProtocol>(self) -> Config {
        // The call leaves the protocol's entry in the program.
        let _known: Coherence = P::coherence();
        self
    }

    /// Sets where a node stores copies of objects: in the order of its first accesses, unless set.
    ///
    /// With [`Placement::Everywhere`] each object has the same address on every node, in the order
    /// in which the program allocated them (DOSA, section 3.3). TreadMarks always places pages so:
    /// a run under it refuses the other placement ([`ConfigError::Conflict`]).
    pub fn placement(mut self, placement: Placement) -> Config {
        self.placement = Some(placement);
        self
    }

    /// Sets how the runtime detects misses and first writes: [`Detector::Check`]
    /// unless set.
    ///
    /// Only the time depends on it (`docs/detectors.md`). Where the system lacks what a detector
    /// needs, the run fails with [`RunError::Reserve`] before it starts.
    pub fn detector(mut self, detector: Detector) -> Config {
        self.detector = Some(detector);
        self
    }

    /// Sets which of DOSA's optimisations the lazy protocol uses: the default of [`Optimisations`]
    /// unless set. TreadMarks has none of them, and refuses this setting
    /// ([`ConfigError::Conflict`]).
    ///
    /// ```
    /// let mut optimisations = dhole::Optimisations::default();
    /// optimisations.read_aggregation = false;
    /// let config = dhole::Config::nodes(2).optimisations(optimisations);
    /// # drop(config);
    /// ```
    pub fn optimisations(mut self, optimisations: Optimisations) -> Config {
        self.optimisations = Some(optimisations);
        self
    }

    /// Keeps digests of all replicas after each of their last operations; off unless set. With them
    /// [`Object::compare`](crate::Object::compare) names the operation after which replicas differ.
    /// Each digest costs the time to serialise the state.
    pub fn watch_objects(mut self, watched: bool) -> Config {
        self.watch_objects = watched;
        self
    }

    /// Gives the run raw memory ([`memory`](crate::memory)): none unless set. The argument is
    /// [`MemorySettings`](crate::memory::MemorySettings), or
    /// [`ProgramMemory`](crate::memory::ProgramMemory) where addresses are alike on all nodes.
    ///
    /// Where the system lacks what that needs, the run fails with [`RunError::Start`] before it
    /// starts. A run that survives losses has none, nor one under the detector `vm`
    /// ([`ConfigError::Conflict`]).
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    pub fn memory(mut self, memory: impl PartsMaker + 'static) -> Config {
        self.parts = Some(Arc::new(memory));
        self
    }

    /// Sets the file to which a run writes when its nodes waited, for what and at which line, when
    /// it is over: a timeline with a track for each node, in the JSON of Chrome's trace viewer,
    /// which Perfetto (`ui.perfetto.dev`) and speedscope open too. Unless set, it is what
    /// `--trace FILE` of `dhole run` or `dhole sim` says ([`Defaults`]), or none.
    ///
    /// A slice is named after its phase and its line; what is between two waits is `computing`. A
    /// slice has processor time beside its time if the worker looked at that clock (`tdur`). One
    /// in 16 one-sided reads is drawn. The times of nodes that are processes are counted from where
    /// the nodes began the run together, and differ by at most the time that a message takes there.
    /// In a simulation they are virtual.
    ///
    /// At most 32,768 waits of a node are kept: of more, the shortest are left out, and the end of
    /// the node's track says how many. A failed run leaves it empty. The second run of a process
    /// writes `name.2.json` beside `name.json`, and so on.
    ///
    /// ```
    /// let file = std::env::temp_dir().join("dhole-timeline.json");
    /// dhole::Config::nodes(2).trace(&file).run(|w| Ok(w.barrier()?))?;
    /// # assert!(std::fs::read_to_string(&file).unwrap().contains("\"cat\":\"barrier\""));
    /// # std::fs::remove_file(&file).unwrap();
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    ///
    /// [`run`](Config::run) returns [`ConfigError::Trace`] if the file cannot be written.
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Config {
        self.set.trace = Some(TraceFile(file.into()));
        self
    }

    /// Whether the run goes on when nodes are lost. A program that cannot go on can report that
    /// before it runs.
    pub fn survives(&self) -> bool {
        let environment = Defaults::from_env().unwrap_or_default();
        self.set.clone().or(environment).survive.unwrap_or_default()
    }

    /// Sets how nodes wait, in three numbers ([`Waiting`]). The options of the command override it
    /// (`dhole run --spin-us`, `--backoff-us`, `--sleep-ms`; `DHOLE_SPIN_US` and so on). Only the
    /// time depends on it; in a simulation not even that.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// // Leaves the cores to others at once.
    /// let waiting = dhole::Waiting {
    ///     spin: Duration::ZERO,
    ///     ..dhole::Waiting::default()
    /// };
    /// let run = dhole::Config::nodes(2).waiting(waiting).run(|w| Ok(w.barrier()?))?;
    /// # drop(run);
    /// # Ok::<(), dhole::RunError>(())
    /// ```
    pub fn waiting(mut self, waiting: Waiting) -> Config {
        self.waiting = waiting;
        self
    }

    /// Runs `program` once on every node, and returns when all have finished. The run ends in a
    /// barrier, at which a node that has finished still serves the others.
    ///
    /// Under `dhole run` nodes are processes. Each process runs the same `main`, makes the same
    /// number of runs, and gets the value of its own node ([`Run::node`]).
    ///
    /// # Errors
    /// [`RunError`] if the cluster cannot be made. Also if `program` panics or returns an error on
    /// any node: the run then ends on all nodes, with that node's error.
    pub fn run<R: Send>(
        &self,
        program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
    ) -> Result<Run<R>, RunError> {
        let (value, report) = keep_values(program, |program| {
            say_hello();
            let form = Defaults::from_env()?.report;
            let (first, report) = self.run_where_asked(program)?;
            if let Some(form) = form.filter(|_| report.is_first()) {
                write_report(&report, form)?;
            }
            Ok((first, report))
        })?;
        Ok(Run { value, report })
    }

    /// Runs `program` on what the command says, or on threads.
    fn run_where_asked(&self, program: &Program<'_>) -> Result<(NodeId, Report), RunError> {
        #[cfg(not(feature = "sim"))]
        refuse_simulation()?;
        #[cfg(feature = "sim")]
        if let Some(settings) = dhole_sim::Settings::from_env().map_err(impossible)? {
            let run = self.run_simulated(settings, program)?;
            say_computed(&run.1);
            return Ok(run);
        }
        if let Some(machine) = process::joined(self.seed)? {
            machine.reseed(self.seed);
            machine.waits(self.waits()?);
            let settings = self.settings(machine.nodes())?;
            return self.run_on(&*machine, &settings, program);
        }
        let machine = Threads::new(check_nodes(self.nodes)?, self.seed).waiting(self.waits()?);
        let settings = self.settings(self.nodes)?;
        self.run_on(&machine, &settings, program)
    }

    /// Runs `program` on a machine, and writes the timeline if one is asked for.
    fn run_on(
        &self,
        machine: &dyn Machine,
        settings: &Settings,
        program: &Program<'_>,
    ) -> Result<(NodeId, Report), RunError> {
        let trace = self.set.clone().or(Defaults::from_env()?).trace;
        let path = trace.as_ref().map(|TraceFile(path)| &**path);
        let is_first = |node: NodeId| node.index() == 0;
        let writes = machine.multiprocess().is_none_or(|it| is_first(it.me()));
        let file = path.filter(|_| writes).map(make).transpose()?;
        let mut timelines = Vec::new();
        let run = run_nodes(machine, settings, program, &mut timelines);
        let (of, timelines) = ([machine.name(), settings.coherence.name()], &timelines);
        let outcome = match run {
            Ok(outcome) => outcome,
            Err(why) => {
                // The run's error says more than that the timeline cannot be written.
                let _ = file.map(|file| file.end_failed(of, timelines));
                return Err(why);
            }
        };
        let (value, report) = report(settings, machine, outcome);
        if let Some(path) = path.filter(|_| report.is_first()) {
            // The node that was to write it may have been lost.
            let file = file.map_or_else(|| make(path), Ok)?;
            file.write(of, timelines)
                .map_err(|cause| no_trace(path, &cause))?;
        }
        Ok((value, report))
    }

    /// Runs `program` on a simulated cluster, whatever the command says. `settings` decide the
    /// number of nodes and the seed; those of this configuration are ignored.
    ///
    /// # Errors
    /// As [`run`](Config::run).
    #[cfg(feature = "sim")]
    pub fn simulate<R: Send>(
        &self,
        settings: dhole_sim::Settings,
        program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
    ) -> Result<Run<R>, RunError> {
        let run = |program: &Program<'_>| self.run_simulated(settings, program);
        let (value, report) = keep_values(program, run)?;
        Ok(Run { value, report })
    }

    #[cfg(feature = "sim")]
    fn run_simulated(
        &self,
        settings: dhole_sim::Settings,
        program: &Program<'_>,
    ) -> Result<(NodeId, Report), RunError> {
        settings.check().map_err(impossible)?;
        let machine = Sim::new(settings);
        let settings = self.settings(machine.settings().nodes)?;
        let (value, mut report) = self.run_on(&machine, &settings, program)?;
        report.simulated = Some(Simulated::of(&machine));
        Ok((value, report))
    }

    /// How workers wait: as the command says, or else as the program does.
    fn waits(&self) -> Result<Waiting, RunError> {
        let waiting = self.waiting.or_env();
        waiting.map_err(|wrong| RunError::Join(Arc::new(wrong.into())))
    }

    fn settings(&self, nodes: usize) -> Result<Settings, ConfigError> {
        let environment = Defaults::from_env()?;
        let mut set_by = self.set.set_by(&environment);
        let by = |method, is_set: bool| is_set.then_some(By::Program(method));
        set_by.add("placement", by("placement", self.placement.is_some()));
        set_by.add(
            "optimisations",
            by("optimisations", self.optimisations.is_some()),
        );
        set_by.add("detector", by("detector", self.detector.is_some()));
        set_by.add("memory", by("memory", self.parts.is_some()));
        let set = self.set.clone().or(environment);
        let layout = set.memory_layout.unwrap_or_default();
        Ok(Settings {
            nodes,
            suspect_after: self.suspect_after,
            coherence: set.coherence.unwrap_or_default(),
            placement: self.placement.unwrap_or_default(),
            races: set.races.unwrap_or_default(),
            barriers: set.barriers.unwrap_or_default(),
            detector: self.detector.unwrap_or_default(),
            optimisations: self.optimisations.unwrap_or_default(),
            one_sided: set.one_sided.unwrap_or(true),
            sections: set.sections.unwrap_or(true),
            domains: set.domains.unwrap_or(match layout {
                MemoryLayout::Views => Domains::default(),
                MemoryLayout::Isolate => Domains::Node,
            }),
            layout,
            managers: set.memory_managers.unwrap_or_default(),
            consistency: set.memory_consistency.unwrap_or_default(),
            watch_objects: self.watch_objects,
            survive: set.survive.unwrap_or_default(),
            parts: self.parts.clone(),
            set_by,
            records: set.trace.is_some(),
        })
    }
}

/// Makes a method of each setting that the environment may set too.
macro_rules! setters {
    ($($(#[$docs:meta])* $setting:ident: $type:ty;)*) => {
        impl Config {
            $(
                $(#[$docs])*
                pub fn $setting(mut self, $setting: $type) -> Config {
                    self.set.$setting = Some($setting);
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets the protocol that keeps objects consistent unless their allocation names another
    /// ([`Worker::under`]).
    ///
    /// Unless set, it is what `dhole run --protocol` or `dhole sim --protocol` says ([`Defaults`]),
    /// or lazy. The results of a program without races do not depend on it; its messages do
    /// (`docs/protocols.md`).
    coherence: Coherence;

    /// Sets whether races are ignored, reported, or end the run.
    ///
    /// Unless set, it is what `dhole run --races` or `dhole sim --races` says ([`Defaults`]), or
    /// [`Races::Warn`]. A report names the object, its type, the line that allocated it, and both
    /// nodes and lines that wrote it. TreadMarks, whose pages have several writers, detects none,
    /// and refuses all but [`Races::Ignore`] ([`ConfigError::Conflict`]).
    races: Races;

    /// Sets how nodes learn that all have reached a barrier. Unless set, it is what `dhole run
    /// --barrier` or `dhole sim --barrier` says ([`Defaults`]), or [`Barriers::Dissemination`].
    /// Only the messages and the time depend on it.
    barriers: Barriers;

    /// Sets whether a node reads an object in the memory of the node that wrote it last, without a
    /// message, where it sees that memory: nodes that are threads of one process do, and simulated
    /// ones on a network that offers it (`infiniband`).
    ///
    /// Unless set, it is what `dhole run --one-sided` or `dhole sim --one-sided` says
    /// ([`Defaults`]), or `true`. Only the messages and the time depend on it. A run that survives
    /// losses, and one under TreadMarks, has none of it.
    ///
    /// ```
    /// let config = dhole::Config::nodes(2).one_sided(false);
    /// # drop(config);
    /// ```
    one_sided: bool;

    /// Sets whether [sections](crate::ObjectLock::run) run at the home of their lock's object, in
    /// one round trip. Otherwise their callers run them, under the lock. Only the messages and the
    /// time depend on it.
    ///
    /// Unless set, it is what `dhole run --sections` or `dhole sim --sections` says ([`Defaults`]),
    /// or `true`.
    ///
    /// ```
    /// let config = dhole::Config::nodes(2).sections(false);
    /// # drop(config);
    /// ```
    sections: bool;

    /// Sets whether the run goes on when nodes are lost: off unless set, or set by `dhole run
    /// --survive`.
    ///
    /// Replicated objects with operations survive, with every acknowledged write of any node
    /// (`docs/objects.md`). An object whose only copy is lost does not, nor do references, locks
    /// and conditions: a worker that waits for one gets an error that names it. Barriers and
    /// [`once`](Worker::once) count the nodes that are left.
    ///
    /// After a loss, more than half of the nodes that were left before must be left, or half of
    /// them with the lowest-numbered. Other nodes end with an error.
    ///
    /// ```
    /// let config = dhole::Config::nodes(3).survive(true);
    /// # drop(config);
    /// ```
    survive: bool;

    /// Sets which nodes have the same raw memory: unless set those whose processes are on one
    /// machine ([`Domains::Host`]). The protocol of raw memory runs between domains only. Nodes
    /// that are threads of one process, or simulated, are no domain.
    domains: Domains;

    /// Sets how allocations lie in raw memory: unless set, as `dhole run --memory` says
    /// ([`Defaults`]), or [`MemoryLayout::Views`]. [`MemoryLayout::Isolate`] finds accesses past
    /// the end of an allocation and after it was freed. Each node has its own memory then, and the
    /// run is refused if other [domains](Config::domains) are asked for
    /// ([`ConfigError::Conflict`]).
    memory_layout: MemoryLayout;

    /// Sets which node manages a minipage of raw memory: unless set, as `dhole run --managers` says
    /// ([`Defaults`]), or the one that allocates it ([`MemoryManagers::Allocator`]). With
    /// [`MemoryManagers::One`] node 0 manages all of them, and all nodes allocate of one memory.
    /// With [`MemoryManagers::Nodes`] those of a list do, each a part.
    /// Only messages and time depend on it. A run whose allocations are
    /// [isolated](Config::memory_layout) refuses it ([`ConfigError::Conflict`]).
    memory_managers: MemoryManagers;

    /// Sets when a node sees what others write in raw memory: unless set, as `dhole run
    /// --consistency` says ([`Defaults`]), or at once ([`MemoryConsistency::Sequential`]). It is
    /// for all allocations that do not say so themselves (`memory::with_consistency`).
    memory_consistency: MemoryConsistency;
}

/// The report of a run with these settings on this machine.
fn report(
    settings: &Settings,
    machine: &dyn Machine,
    outcome: Outcome<NodeId>,
) -> (NodeId, Report) {
    let Outcome {
        value,
        counters,
        measured,
        measured_time,
        elapsed,
        races,
        warnings,
        lost,
        costs,
        measured_costs,
        domains,
        one_sided,
    } = outcome;
    let report = Report {
        node: machine
            .multiprocess()
            .map_or_else(|| first_left(&lost), Multiprocess::me),
        nodes: counters.len(),
        transport: machine.name(),
        protocol: settings.coherence.name(),
        detector: settings.detector.name(),
        elapsed,
        per_node: counters,
        measured_per_node: measured,
        measured_time,
        simulated: None,
        costs,
        measured_costs,
        one_sided,
        races,
        warnings,
        lost,
        domains,
        managers: domains.map(|_| settings.managers),
        consistency: domains.map(|_| settings.consistency),
    };
    (value, report)
}

/// Makes the file of a run's timeline.
fn make(path: &Path) -> Result<TimelineFile, ConfigError> {
    TimelineFile::begin(path).map_err(|cause| no_trace(path, &cause))
}

fn no_trace(path: &Path, cause: &io::Error) -> ConfigError {
    ConfigError::Trace {
        path: path.display().to_string(),
        cause: cause.to_string(),
    }
}

/// Writes the report to standard error, as the command asks with `--report`.
fn write_report(report: &Report, form: ReportForm) -> Result<(), RunError> {
    let text = match form {
        ReportForm::Text => report.lines().to_string(),
        ReportForm::Json => report.json() + "\n",
    };
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    let text = crate::memory::with_names(text);
    let written = std::io::stderr().write_all(text.as_bytes());
    written.map_err(|cause| RunError::Failed {
        node: report.node,
        error: Box::new(Error::program(format!("writing the report: {cause}"))),
        others: Vec::new(),
    })
}

/// The lowest-numbered node that is left.
fn first_left(lost: &[LostNode]) -> NodeId {
    let mut all = (0..).map(NodeId);
    let left = all.find(|node| lost.iter().all(|lost| lost.node != *node));
    left.unwrap_or(NodeId(0))
}

/// A program without the feature `sim` that `dhole sim` starts must not run on threads instead.
#[cfg(not(feature = "sim"))]
fn refuse_simulation() -> Result<(), ConfigError> {
    match std::env::var_os("DHOLE_SIM").filter(|said| !said.is_empty()) {
        None => Ok(()),
        Some(_) => Err(dhole_model::MissingFeature {
            feature: "sim",
            asked: "this program was started as a simulated cluster (DHOLE_SIM is set)",
        }
        .into()),
    }
}

#[cfg(feature = "sim")]
fn impossible(error: SettingsError) -> ConfigError {
    ConfigError::Simulation {
        cause: error.to_string(),
    }
}

/// Tells the command `dhole`, if it started this program, that the program uses dhole.
fn say_hello() {
    say("run\n");
}

#[cfg(feature = "sim")]
/// Tells the command what the program's nodes computed.
fn say_computed(report: &Report) {
    if let Some(simulated) = &report.simulated {
        say(&format!("computed_ns={}\n", simulated.work().as_nanos()));
    }
}

/// Appends a line to the file that the command reads. If the file cannot be written, the command
/// reports that it heard nothing.
fn say(line: &str) {
    let Some(file) = std::env::var_os("DHOLE_HELLO") else {
        return;
    };
    let file = std::fs::OpenOptions::new().append(true).open(file);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Runs `program` on as many nodes as the machine has cores, or as the command `dhole` says, and
/// returns node 0's result.
///
/// # Errors
/// As [`Config::run`].
pub fn run<R: Send>(
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<R, RunError> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    Config::nodes(cores).run(program).map(|run| run.value)
}
