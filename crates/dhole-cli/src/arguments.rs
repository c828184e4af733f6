use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{
    Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use clap_complete::Shell;
use dhole::Defaults;
use dhole::settings::Setting;
use dhole::sim::{Computation, Crash, Description, Settings};
use dhole_cli::paper::Paper;

/// One object space for a pack of machines.
#[derive(Parser)]
#[command(name = "dhole", version)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Reads a command line. A negative number is a value, so that the error about it says what
    /// the option takes.
    ///
    /// # Errors
    /// An error in the words, or what is printed instead: help, or the version.
    pub fn read<W>(words: impl IntoIterator<Item = W>) -> Result<Arguments, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let mut command = with_negative_numbers(Arguments::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        let read = Arguments::from_arg_matches_mut(&mut matches);
        read.map_err(|error| error.format(&mut command))
    }
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The subcommands of `dhole`.
#[derive(Subcommand)]
pub enum Command {
    /// Runs a dhole program on processes, of this machine or of several
    Run(Run),
    /// Makes every node of a `dhole run` write what it does, holds and waits for
    Dump(Dump),
    /// Runs a dhole program inside a simulated cluster
    Sim(Sim),
    /// Repeats a paper's evaluation: its tables and figures, with its numbers beside dhole's
    #[command(subcommand)]
    Paper(Paper),
    /// Compiles and links a program in C that runs on several machines; the arguments are a
    /// compiler's
    Cc(Cc),
    /// Prints the manual page of this command, or of one of its subcommands, for `man -l -`
    Man {
        /// The subcommand
        #[arg(value_parser = ["run", "dump", "sim", "paper", "cc", "man", "completions"])]
        command: Option<String>,
    },
    /// Prints the completions of this command for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Becomes a program that ends with the process that started it; `dhole run` starts this
    #[command(hide = true)]
    Node(Node),
    /// Starts a node on this machine for a `dhole run` on another, which sends its order on
    /// standard input
    #[command(hide = true)]
    Agent,
}

/// The part of the help of `dhole cc` about its own options.
pub const CC_OPTIONS: &str = "Options of its own: --show prints the commands and runs none; \
    --pack-globals lets globals share pages, for programs with thousands; --shared-stacks puts the \
    stacks of all threads into shared memory, for programs that hand addresses of local variables \
    to threads. The environment: \
    DHOLE_CC names the compiler (default cc), DHOLE_C the folder with libdhole_c.a and dhole.h. \
    `dhole run -n N -- ./program` runs the program on N processes.";

/// `dhole cc`.
#[derive(Args)]
#[command(after_help = CC_OPTIONS, disable_version_flag = true)]
pub struct Cc {
    /// What the compiler takes: sources, object files, archives, options
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORDS"
    )]
    pub words: Vec<OsString>,
}

/// The part of the help of `dhole run` about exit codes.
const EXIT_CODES: &str = "The exit code is that of the node that failed first by its own word, or \
    128 and the number of the signal that ended it; the last line of standard error names the node \
    and the cause. It is 1 where no node failed and yet there was no run: the program never called \
    dhole::run, a node ended before it had joined, or output could not be written.";

/// `dhole run`.
#[derive(Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct Run {
    /// The number of processes, 1 to 1024 [default: with --hosts all their slots]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024),
        required_unless_present = "hosts"
    )]
    pub nodes: Option<u16>,

    /// The transport between the processes [default: DHOLE_TRANSPORT, or shm, with --hosts mixed]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(dhole_join::transports())
    )]
    pub transport: Option<String>,

    /// A file that names machines, one a line: `host slots=2 address=10.0.0.1`; nodes are numbered
    /// in this order
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,

    /// With --hosts, the command that starts another on a machine; its arguments are the host and
    /// that command
    #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes")]
    pub rsh: String,

    /// With --hosts, the path of `dhole` on the other machines [default: that on this machine]
    #[arg(long, value_name = "PATH")]
    pub remote_dhole: Option<String>,

    /// The lines of output that begin with their node, as in `[2] `: those of all nodes, all but
    /// node 0's standard output, or none
    #[arg(long, value_name = "WHOSE", default_value = "others", value_enum)]
    pub prefix: Prefix,

    /// Milliseconds for which the other nodes may end by themselves after one has failed [default:
    /// 4000, over udp longer, so that they notice the silence]
    #[arg(
        long,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(0..=3_600_000)
    )]
    pub grace_ms: Option<u64>,

    #[allow(missing_docs, reason = "clap would take the words for the command's")]
    #[command(flatten)]
    pub settings: Options<true>,

    /// The program and its arguments; all that follows the program is its own
    #[arg(trailing_var_arg = true, required = true, num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// Settings of runs: what the options say, by variable. `dhole run` has those too that concern
/// processes alone.
pub struct Options<const OF_PROCESSES: bool>(Vec<(&'static str, String)>);

impl<const OF_PROCESSES: bool> Options<OF_PROCESSES> {
    /// The settings in the order of the help.
    fn all() -> impl Iterator<Item = &'static Setting> {
        let (survive, defaults) = Defaults::SETTINGS.split_at(1);
        let waiting = Defaults::WAITING.iter().filter(|_| OF_PROCESSES);
        survive.iter().chain(waiting).chain(defaults)
    }

    /// What is said of a setting.
    fn said(&self, variable: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(name, _)| *name == variable)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the program writes its report as a JSON object.
    pub fn reports_json(&self) -> bool {
        let variable = || std::env::var(Defaults::REPORT).ok();
        let said = self.said(Defaults::REPORT).map(str::to_owned);
        said.or_else(variable).is_some_and(|name| name == "json")
    }

    /// Whether runs go on when nodes are lost.
    pub fn survive(&self) -> bool {
        self.said(Defaults::SURVIVE).is_some()
    }

    /// The environment variables for the program.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().cloned()
    }
}

impl<const OF_PROCESSES: bool> FromArgMatches for Options<OF_PROCESSES> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |setting: &Setting| match setting.value_name {
            "" => matches.get_flag(setting.variable).then(|| "1".to_owned()),
            _ => matches.get_one(setting.variable).cloned(),
        };
        let said = Self::all().filter_map(|setting| Some((setting.variable, value(setting)?)));
        Ok(Options(said.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Options::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const OF_PROCESSES: bool> Args for Options<OF_PROCESSES> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Self::all().map(option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// The option of a setting.
fn option(setting: &'static Setting) -> Arg {
    let Setting {
        variable,
        option,
        value_name,
        help,
        allowed,
        check,
    } = *setting;
    let arg = Arg::new(variable).long(option).help(help);
    if value_name.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = arg.value_name(value_name).action(ArgAction::Set);
    let known = allowed();
    // The words of the help name most values; those of a switch are listed behind it all the same.
    let named = known != ["on", "off"] && known.iter().all(|value| help.contains(value));
    let arg = arg.hide_possible_values(named);
    let checked = move |said: &str| match check(said) {
        Ok(()) => Ok(said.to_owned()),
        Err(unknown) => Err(format!("{} is expected", unknown.expected)),
    };
    match variable {
        // Which there are the program knows.
        Defaults::PROTOCOL => arg,
        Defaults::REPORT => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("text")
            .value_parser(PossibleValuesParser::new(known)),
        _ if known.is_empty() => arg.value_parser(checked),
        _ => arg.value_parser(PossibleValuesParser::new(known)),
    }
}

impl Run {
    /// The transport between the processes.
    pub fn transport(&self) -> String {
        let named = || std::env::var("DHOLE_TRANSPORT").ok();
        let named = || named().filter(|name| !name.is_empty());
        let usual = || if self.hosts.is_some() { "mixed" } else { "shm" };
        let asked = self.transport.clone().or_else(named);
        asked.unwrap_or_else(|| usual().to_owned())
    }

    /// Milliseconds for which the other nodes may end by themselves after one has failed. A silent
    /// node is lost after `bound_ms`.
    pub fn grace_ms(&self, bound_ms: Option<u64>) -> u64 {
        const USUAL: u64 = 4_000;
        const BOUND: u64 = 5_000;
        // After three quarters of it they are asked to end. Over UDP a death is silence: before
        // they are asked, they are to have heard it.
        let silence = match &*self.transport() {
            "udp" => bound_ms.unwrap_or(BOUND).saturating_mul(4) / 3,
            _ => 0,
        };
        self.grace_ms.unwrap_or(USUAL.saturating_add(silence))
    }
}

/// The lines that begin with their node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Prefix {
    /// Those of all nodes.
    All,
    /// All but node 0's standard output, which stays as the program wrote it.
    Others,
    /// None.
    None,
}

/// `dhole dump`.
#[derive(Args)]
pub struct Dump {
    /// The process number of the `dhole run` [default: the only one]
    #[arg(value_name = "PROCESS")]
    pub run: Option<i32>,
}

/// `dhole node`.
#[derive(Args)]
pub struct Node {
    /// The process that started this one
    #[arg(long)]
    pub parent: i32,

    /// The program and its arguments
    #[arg(last = true, required = true, num_args = 1..)]
    pub program: Vec<OsString>,
}

/// `dhole sim`. Options that are left out are as in [`Settings::new`].
#[derive(Args)]
pub struct Sim {
    /// The number of nodes, 1 to 1024
    #[arg(short, long, value_name = "N", required_unless_present = "calibrate")]
    nodes: Option<usize>,

    /// The network
    #[arg(long, value_name = "NAME|FILE", default_value = "default", help = networks())]
    pub network: String,

    /// Measure the network's primitives, instead of running a program, and print each beside the
    /// published value
    #[arg(long, conflicts_with_all = ["nodes", "fixed_cost", "compute_scale", "program"])]
    pub calibrate: bool,

    /// With --calibrate, print one JSON object instead of a table
    #[arg(long, conflicts_with = "program")]
    pub json: bool,

    /// The seed of every random choice of the run
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Charge the work that the program says with `work`, this many nanoseconds a unit, instead of
    /// measuring computation; the run then repeats exactly. Without a number, the network's
    /// description sets it, or it is 1
    #[arg(
        long,
        value_name = "NS_PER_UNIT",
        num_args = 0..=1,
        require_equals = true
    )]
    fixed_cost: Option<Option<f64>>,

    /// Multiply measured computation by this [default: the network's]
    #[arg(long, value_name = "X", conflicts_with = "fixed_cost")]
    compute_scale: Option<f64>,

    /// Scale computation so that the program's computation on one node takes this long. The program
    /// runs on one node first, and its output there is dropped
    #[arg(
        long,
        value_name = "S",
        value_parser = seconds,
        conflicts_with_all = ["fixed_cost", "compute_scale", "calibrate"]
    )]
    pub sequential_seconds: Option<f64>,

    /// Microseconds of latency of a message [default: the network's]
    #[arg(long, value_name = "X", value_parser = micros)]
    latency_us: Option<u64>,

    /// Megabits a second of each link, port or hub [default: the network's]
    #[arg(long, value_name = "Y", value_parser = mbits)]
    bandwidth_mbit: Option<u64>,

    /// The largest part of the latency that is added to it at random, 0 to 1 [default: the
    /// network's]
    #[arg(long, value_name = "F")]
    jitter: Option<f64>,

    /// Let a node crash at a time in nanoseconds, as 1@2500; may be given several times. Only a
    /// run that survives (`--survive`, or `Config::survive` of the program) goes on
    #[arg(long, value_name = "NODE@NS")]
    crash: Vec<Crash>,

    /// Microseconds until the other nodes are told of a crash, and at most twice as many [default:
    /// 1000]
    #[arg(long, value_name = "X", value_parser = micros)]
    notice_us: Option<u64>,

    /// KiB of each node's stack [default: 1024]
    #[arg(long, value_name = "K")]
    stack_kib: Option<usize>,

    #[allow(missing_docs, reason = "clap would take the words for the command's")]
    #[command(flatten)]
    pub settings: Options<false>,

    /// The program and its arguments; all that follows the program is its own
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "calibrate",
        num_args = 1..,
        value_name = "PROGRAM"
    )]
    pub program: Vec<OsString>,
}

impl Sim {
    /// The settings that the options ask for, not yet checked, on a network that is `described`.
    pub fn settings(&self, described: Description) -> Settings {
        let mut settings = Settings::new(self.nodes.unwrap_or(1));
        settings.seed = self.seed;
        if self.fixed_cost.is_some() {
            settings.computation = Computation::FixedCost { unit_ns: 1.0 };
        }
        settings.set_network(described);
        if let Some(Some(unit_ns)) = self.fixed_cost {
            settings.computation = Computation::FixedCost { unit_ns };
        }
        settings.compute_scale = self.compute_scale.unwrap_or(settings.compute_scale);
        settings.crashes.clone_from(&self.crash);
        settings.notice_ns = self.notice_us.unwrap_or(settings.notice_ns);
        if let Some(kib) = self.stack_kib {
            settings.stack_bytes = kib.saturating_mul(1024);
        }
        self.change(&mut settings);
        settings
    }

    /// Changes single numbers of the network, and its name, so that reports show the change.
    fn change(&self, settings: &mut Settings) {
        let (network, name) = (&mut settings.network, &mut settings.network_name);
        let changes = [
            (
                "latency_ns",
                self.latency_us.map(|ns| network.latency_ns = ns),
            ),
            (
                "bytes_per_second",
                self.bandwidth_mbit
                    .map(|rate| network.bytes_per_second = rate),
            ),
            ("jitter", self.jitter.map(|jitter| network.jitter = jitter)),
        ];
        for (key, _) in changes.iter().filter(|(_, changed)| changed.is_some()) {
            name.push_str(" with another ");
            name.push_str(key);
        }
    }
}

/// The help of `--network`.
fn networks() -> String {
    let known: Vec<&str> = Description::known().collect();
    let known = known.join(", ");
    format!("A network by its name, or the file that describes one: {known}")
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (1e-6..=1e9).contains(&number) => Ok(number),
        _ => Err("0.000001 to 1000000000 seconds are expected".into()),
    }
}

/// Microseconds, as nanoseconds.
fn micros(text: &str) -> Result<u64, String> {
    scaled(text, 1_000.0, 0.0, "0 or more microseconds")
}

/// Megabits a second, as bytes a second.
fn mbits(text: &str) -> Result<u64, String> {
    scaled(text, 125_000.0, 1.0, "more than 0 megabits a second")
}

fn scaled(text: &str, factor: f64, least: f64, wanted: &str) -> Result<u64, String> {
    const MOST: f64 = 1e18;
    match text.parse::<f64>() {
        Ok(number) if (least..=MOST).contains(&(number * factor)) => {
            Ok((number * factor).round() as u64)
        }
        _ => Err(format!("{wanted} are expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &str) -> Settings {
        let words = format!("dhole sim {options} -- program --seed 3");
        let Command::Sim(sim) = Arguments::parse_from(words.split_whitespace()).command else {
            panic!("these are words of dhole sim");
        };
        assert_eq!(sim.program, ["program", "--seed", "3"]);
        sim.settings(Description::find(&sim.network).unwrap())
    }

    #[test]
    fn nodes_over_udp_are_given_the_time_to_hear_a_silence() {
        let grace = |options: &str, bound| {
            let words = format!("dhole run -n 2 {options} -- program");
            let Command::Run(run) = Arguments::parse_from(words.split_whitespace()).command else {
                panic!("these are words of dhole run");
            };
            run.grace_ms(bound)
        };
        assert_eq!(grace("", None), 4_000);
        assert_eq!(grace("--transport tcp", Some(60_000)), 4_000);
        assert_eq!(grace("--transport udp --grace-ms 7", None), 7);
        for bound in [10, 5_000, 3_600_000] {
            let asked = grace("--transport udp", Some(bound)) * 3 / 4;
            assert!(asked >= bound + 2_000, "{bound}: {asked}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        with_negative_numbers(Arguments::command()).debug_assert();
    }

    #[test]
    fn the_help_of_sim_names_every_network() {
        let mut command = Arguments::command();
        let sim = command.find_subcommand_mut("sim").expect("a subcommand");
        let help = sim.render_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for name in Description::known() {
            assert!(help.contains(&format!(" {name}")), "{name} in {help}");
        }
    }

    #[test]
    fn a_negative_number_is_a_value_that_is_refused() {
        for (words, what) in [
            ("run -n -1 -- program", "-1 is not in 1..=1024"),
            ("run -n 2 --sleep-ms -3 -- program", "'-3' for '--sleep-ms"),
            ("paper dosa --nodes -4", "'-4' for '--nodes"),
        ] {
            let words = format!("dhole {words}");
            let refused = Arguments::read(words.split(' ')).err().expect(&words);
            assert!(refused.to_string().contains(what), "{refused}");
        }
        let words = "dhole run -n 2 -- program -1";
        let Ok(Arguments {
            command: Command::Run(run),
        }) = Arguments::read(words.split(' '))
        else {
            panic!("{words}");
        };
        assert_eq!(run.program, ["program", "-1"]);
    }

    #[test]
    fn a_program_follows_the_options_with_two_dashes_or_without() {
        let program = |words: &str| {
            let words = format!("dhole {words}");
            match Arguments::read(words.split(' ')).map(|read| read.command) {
                Ok(Command::Run(run)) => Ok((run.nodes.map(usize::from), run.program)),
                Ok(Command::Sim(sim)) => Ok((sim.nodes, sim.program)),
                Ok(_) => panic!("{words}"),
                Err(refused) => Err(refused.to_string()),
            }
        };
        for command in ["run", "sim"] {
            for (words, expected) in [
                ("-n 2 -- program -n 3 --report", "program -n 3 --report"),
                ("-n 2 program -n 3 --report", "program -n 3 --report"),
                ("-n 2 --report program -1 -- x --", "program -1 -- x --"),
                ("-n 2 -- program -- x", "program -- x"),
            ] {
                let (nodes, program) = program(&format!("{command} {words}")).unwrap();
                assert_eq!(nodes, Some(2), "{command} {words}");
                let expected: Vec<OsString> = expected.split(' ').map(Into::into).collect();
                assert_eq!(program, expected, "{command} {words}");
            }
            let refused = program(&format!("{command} -n 2 --prtocol home program")).unwrap_err();
            assert!(refused.contains("'--prtocol'"), "{refused}");
            assert!(program(&format!("{command} -n 2")).is_err());
            let refused = program(&format!("{command} program -n 2")).unwrap_err();
            assert!(refused.contains("--nodes"), "{refused}");
        }
    }

    #[test]
    fn run_and_sim_take_the_same_words_for_nodes_and_defaults() {
        let words = "-n 3 --protocol home --races warn-all --barrier central --report \
                     --domains node --memory views --managers one --consistency release \
                     --trace a.json -- program";
        let told = [
            ("DHOLE_PROTOCOL", "home"),
            ("DHOLE_RACES", "warn-all"),
            ("DHOLE_BARRIER", "central"),
            ("DHOLE_DOMAINS", "node"),
            ("DHOLE_MEMORY", "views"),
            ("DHOLE_MANAGERS", "one"),
            ("DHOLE_CONSISTENCY", "release"),
            ("DHOLE_REPORT", "text"),
            ("DHOLE_TRACE", "a.json"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        let parse = |command: &str| {
            let words = format!("dhole {command} {words}");
            Arguments::parse_from(words.split_whitespace()).command
        };
        let (Command::Run(run), Command::Sim(sim)) = (parse("run"), parse("sim")) else {
            panic!("these are words of dhole run and dhole sim");
        };
        assert_eq!((run.nodes, sim.nodes), (Some(3), Some(3)));
        assert_eq!(run.settings.0, told);
        assert_eq!(sim.settings.0, told);
    }

    #[test]
    fn options_that_are_left_out_are_the_simulators_own() {
        assert_eq!(settings("--nodes 3"), Settings::new(3));
    }

    #[test]
    fn options_become_settings_with_their_units() {
        let all = settings(
            "--nodes 3 --seed 7 --fixed-cost=2.5 --latency-us 1.5 --bandwidth-mbit 100 \
             --jitter 0.25 --stack-kib 64",
        );
        assert_eq!((all.nodes, all.seed, all.stack_bytes), (3, 7, 65_536));
        assert_eq!(all.computation, Computation::FixedCost { unit_ns: 2.5 });
        let network = all.network;
        assert_eq!(
            (network.latency_ns, network.bytes_per_second),
            (1_500, 12_500_000)
        );
        assert_eq!(network.jitter, 0.25);
        let name =
            "default with another latency_ns with another bytes_per_second with another jitter";
        assert_eq!(all.network_name, name);
    }

    #[test]
    fn a_network_brings_its_numbers() {
        let dosa = settings("--nodes 3 --network dosa-1999");
        let described = Description::find("dosa-1999").unwrap();
        assert_eq!(dosa.network, described.network);
        assert_eq!(dosa.network_name, "dosa-1999");
        let slower = settings("--nodes 3 --network dosa-1999 --compute-scale 40");
        assert_eq!(
            (slower.network, slower.compute_scale),
            (described.network, 40.0)
        );
    }

    #[test]
    fn a_fixed_cost_is_1_ns_if_it_is_not_said() {
        let fixed = settings("--fixed-cost --nodes 3").computation;
        assert_eq!(fixed, Computation::FixedCost { unit_ns: 1.0 });
    }
}
