//! The settings of runs that the environment and the command have too, and all other variables of
//! the environment that dhole reads: one table. ARCHITECTURE says how a setting is added.

use std::path::PathBuf;

use dhole_model::{Barriers, Coherence, Variants};
pub use dhole_model::{Bounded, UnknownValue, UnknownVariable, Value};
use dhole_net::variables::{
    LEAST_BOUND_MS, LONGEST_BACKOFF_US, LONGEST_BOUND_MS, LONGEST_JOIN_MS, LONGEST_SLEEP_MS,
    LONGEST_SPIN_US, MOST_LEARNT_RUNS, MOST_MESSAGE_MIB,
};
pub use dhole_node::{By, Said};
use dhole_node::{
    ConfigError, Domains, MemoryConsistency, MemoryLayout, MemoryManagers, Races, SetBy,
};

/// A setting of runs, as the environment and the options of the command have it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable.
    pub variable: &'static str,
    /// The option, without its two dashes; nothing where there is none.
    pub option: &'static str,
    /// What the option's help calls the value; nothing where the option is a switch.
    pub value_name: &'static str,
    /// The option's help.
    pub help: &'static str,
    /// The values, where they can be listed.
    pub allowed: fn() -> Vec<&'static str>,
    /// Refuses what is no value, and says what is expected.
    pub check: fn(&str) -> Result<(), UnknownValue>,
}

impl Setting {
    const fn of<V: Value>(
        [variable, option, value_name]: [&'static str; 3],
        help: &'static str,
    ) -> Setting {
        Setting {
            variable,
            option,
            value_name,
            help,
            allowed: V::allowed,
            check: |said| V::accept(said).map(drop),
        }
    }
}

/// What carries messages between processes.
#[derive(Clone, Copy, PartialEq, Eq, Variants)]
#[variants(name, setting)]
enum Transport {
    Tcp,
    Shm,
    Mixed,
    Udp,
}

/// Which connections between processes are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Variants)]
#[variants(name, setting)]
enum Encryption {
    Auto,
    Always,
    Never,
}

/// How faults of raw memory are caught.
#[derive(Clone, Copy, PartialEq, Eq, Variants)]
#[variants(name, setting)]
enum Faults {
    Uffd,
    Mprotect,
}

/// Makes [`Defaults`] of a row for each setting: its field, its variable's name behind `DHOLE_`,
/// its option, what its value is called, and its help.
macro_rules! settings {
    ($(
        $(#[$docs:meta])*
        $field:ident: $type:ty = $variable:ident $option:literal $value:literal $help:literal;
    )*) => {
        /// The settings that a run takes from the environment, for each that the program does not
        /// set with [`Config`](crate::Config).
        ///
        /// `dhole run` and `dhole sim` set them with options, `--races` for the variable
        /// `DHOLE_RACES`. A user may set the variables too; one that is empty counts as one that is
        /// not set.
        #[derive(Clone, PartialEq, Eq, Default, Debug)]
        pub struct Defaults {
            $($(#[$docs])* pub $field: Option<$type>,)*
        }

        impl Defaults {
            $(
                #[doc = concat!("The variable of [`Defaults::", stringify!($field), "`].")]
                pub const $variable: &str = concat!("DHOLE_", stringify!($variable));
            )*

            /// All of them, in the order of the command's help.
            pub const SETTINGS: &[Setting] = &[
                $(Setting::of::<$type>([Self::$variable, $option, $value], $help),)*
            ];

            fn read(look: &Look<'_>) -> Result<Defaults, ConfigError> {
                Ok(Defaults { $($field: one(look, Self::$variable)?,)* })
            }

            /// These, and the others where these are not set.
            pub(crate) fn or(self, others: Defaults) -> Defaults {
                Defaults { $($field: self.$field.or(others.$field),)* }
            }

            /// Where each is set: by the program, which has set these, or by the environment.
            pub(crate) fn set_by(&self, environment: &Defaults) -> SetBy {
                let mut all = SetBy::default();
                $(
                    let program = self.$field.as_ref().and(Some(By::Program(stringify!($field))));
                    let variable = By::Variable(Self::$variable, $option);
                    let variable = environment.$field.as_ref().and(Some(variable));
                    all.add(stringify!($field), program.or(variable));
                )*
                all
            }
        }
    };
}

settings! {
    /// Whether the run goes on when nodes are lost.
    survive: bool = SURVIVE "survive" ""
        "Lets the run go on when nodes are lost, with the replicated objects: the other nodes are \
         not ended, and the exit code is 0 if any node succeeded, unless one failed when its run \
         was over, or node 0 is lost and no node prints in its place. `Config::survive` of the \
         program does the same";

    /// The protocol that keeps objects consistent.
    coherence: Coherence = PROTOCOL "protocol" "NAME"
        "The protocol of shared objects, unless the program sets it: lazy, update, home, \
         directory, treadmarks, or one that the program brings";

    /// Whether races are ignored, reported, or end the run.
    races: Races = RACES "races" "WHAT"
        "Whether races are ignored, reported, or end the run, unless the program sets it";

    /// How nodes learn that all have reached a barrier.
    barriers: Barriers = BARRIER "barrier" "HOW"
        "The kind of barriers, unless the program sets it: central or dissemination";

    /// Whether a node reads objects in the memory of nodes that it sees, without a message.
    one_sided: bool = ONE_SIDED "one-sided" "WHAT"
        "Whether a node reads objects in the memory of nodes that it sees, without a message, \
         unless the program sets it: on, which is the default, or off";

    /// Whether sections run at the home of their lock's object.
    sections: bool = SECTIONS "sections" "WHAT"
        "Whether sections run at the home of their lock's object, in one round trip, unless the \
         program sets it: on, which is the default, or off, at their callers under the lock";

    /// Which nodes have the same raw memory.
    domains: Domains = DOMAINS "domains" "WHICH"
        "Which nodes have the same raw memory, unless the program sets it: those of each machine \
         (host, the default), none (node), or at most so many of a machine together";

    /// How allocations lie in raw memory.
    memory_layout: MemoryLayout = MEMORY "memory" "HOW"
        "How allocations lie in raw memory, unless the program sets it: several on a page (views, \
         the default), or each on pages of its own, with what is behind it checked (isolate)";

    /// Which node manages a minipage of raw memory.
    memory_managers: MemoryManagers = MANAGERS "managers" "WHICH"
        "Which node manages a minipage of raw memory, unless the program sets it: the one that \
         allocates it (allocator, the default), node 0 (one), or those of a list such as 0,3";

    /// When a node sees what others write in raw memory.
    memory_consistency: MemoryConsistency = CONSISTENCY "consistency" "WHEN"
        "When a node sees what others write in raw memory, unless the program sets it: at once \
         (sequential, the default), or when it acquires what they have released (release)";

    /// How the report of each run is written to standard error, if it is.
    report: ReportForm = REPORT "report" "FORM"
        "Write to standard error, when a run is over, which lines of the program its nodes waited \
         at longest, with advice; in a form, `text` if left out";

    /// The file to which each run writes when its nodes waited, if any.
    trace: TraceFile = TRACE "trace" "FILE"
        "Write to this file, when a run is over, when each node waited, for what and at which \
         line, as a timeline for Perfetto, speedscope or chrome://tracing";
}

/// How a report is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
#[variants(name, setting)]
pub enum ReportForm {
    /// In lines for people: the `Display` of [`Report`](crate::Report).
    Text,
    /// As an object for programs: [`Report::json`](crate::Report::json).
    Json,
}

/// The file to which a run writes its timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceFile(pub PathBuf);

impl Value for TraceFile {
    fn find(said: &str) -> Option<TraceFile> {
        (!said.is_empty()).then(|| TraceFile(said.into()))
    }

    fn allowed() -> Vec<&'static str> {
        Vec::new()
    }

    fn expected() -> String {
        "the path of a file".to_owned()
    }
}

/// Looks a variable up.
type Look<'a> = dyn Fn(&'static str) -> Option<String> + 'a;

/// The value of a variable, if it says anything.
fn one<V: Value>(look: &Look<'_>, variable: &'static str) -> Result<Option<V>, ConfigError> {
    let accepted = said(look, variable)
        .map(|value| V::accept(&value))
        .transpose();
    accepted.map_err(|unknown| wrong(variable, unknown))
}

/// What a variable says, if it says anything.
fn said(look: &Look<'_>, variable: &'static str) -> Option<String> {
    look(variable).filter(|said| !said.is_empty())
}

fn wrong(variable: &'static str, UnknownValue { value, expected }: UnknownValue) -> ConfigError {
    ConfigError::Variable {
        variable,
        value,
        expected,
    }
}

/// A setting that has no option.
const fn of_processes<V: Value>(variable: &'static str) -> Setting {
    Setting::of::<V>([variable, "", ""], "")
}

fn from_env(variable: &'static str) -> Option<String> {
    std::env::var_os(variable).map(|said| said.to_string_lossy().into_owned())
}

impl Defaults {
    /// All their variables.
    pub const VARIABLES: [&str; Self::SETTINGS.len()] = {
        let mut all = [""; Self::SETTINGS.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self::SETTINGS[at].variable;
            at += 1;
        }
        all
    };

    /// How threads of processes wait ([`Waiting`](crate::Waiting)): the options of `dhole run` for
    /// what the command overrides.
    pub const WAITING: &[Setting] = &[
        Setting::of::<Bounded<0, LONGEST_SPIN_US>>(
            ["DHOLE_SPIN_US", "spin-us", "US"],
            "Microseconds for which a waiting node spins after a message, if there is a core for \
             each process, and then yields [default: the program's, or 100]",
        ),
        Setting::of::<Bounded<1, LONGEST_BACKOFF_US>>(
            ["DHOLE_BACKOFF_US", "backoff-us", "US"],
            "Microseconds for which the service thread stays away at most from a node that polls \
             by itself [default: the program's, or 800]",
        ),
        Setting::of::<Bounded<1, LONGEST_SLEEP_MS>>(
            ["DHOLE_SLEEP_MS", "sleep-ms", "MS"],
            "Milliseconds after which a sleeping service thread polls for messages that do not \
             wake it [default: the program's, or 4]",
        ),
    ];

    /// Settings of processes, whatever they run: `dhole run` hands the variables on to all nodes.
    pub const OF_PROCESSES: &[Setting] = &[
        of_processes::<Bounded<LEAST_BOUND_MS, LONGEST_BOUND_MS>>("DHOLE_BOUND_MS"),
        of_processes::<Bounded<1, LONGEST_JOIN_MS>>("DHOLE_JOIN_MS"),
        of_processes::<Bounded<1, MOST_LEARNT_RUNS>>("DHOLE_LEARNT_RUNS"),
        of_processes::<Bounded<1, MOST_MESSAGE_MIB>>("DHOLE_MESSAGE_MIB"),
        of_processes::<Transport>("DHOLE_TRANSPORT"),
        of_processes::<Encryption>("DHOLE_TLS"),
        of_processes::<Faults>("DHOLE_FAULTS"),
        of_processes::<Bounded<0, { u64::MAX }>>("DHOLE_MOST_MAPPINGS"),
        of_processes::<bool>("DHOLE_STORE_FENCE"),
    ];

    /// All other variables that dhole reads.
    const OTHERS: &[&str] = &[
        // What a launcher tells a node.
        "DHOLE_HELLO",
        "DHOLE_HOST",
        "DHOLE_INHERITED",
        "DHOLE_LAUNCHER_FD",
        "DHOLE_LISTEN",
        "DHOLE_MEETING",
        "DHOLE_MEETING_FD",
        "DHOLE_NODE",
        "DHOLE_NODES",
        "DHOLE_RUN",
        "DHOLE_SECRET_FD",
        "DHOLE_SECRET_FILE",
        "DHOLE_SIM",
        // Of the command and of scripts for batch systems.
        "DHOLE_C",
        "DHOLE_CC",
        "DHOLE_SECRETS",
        // Of dhole's own tests.
        "DHOLE_DECODER",
        "DHOLE_EXAMPLES",
        "DHOLE_GOLDEN",
        "DHOLE_OPEN_POSIX",
        "DHOLE_SEED",
        "DHOLE_SEEDS",
        "DHOLE_SPLASH",
        "DHOLE_SPLASH_ONLY",
    ];

    /// The settings that a user may make in the environment.
    pub fn all() -> impl Iterator<Item = &'static Setting> {
        let all = [Self::SETTINGS, Self::WAITING, Self::OF_PROCESSES];
        all.into_iter().flatten()
    }

    /// The names of all variables that dhole reads.
    pub fn known() -> Vec<&'static str> {
        let settings = Self::all().map(|setting| setting.variable);
        settings.chain(Self::OTHERS.iter().copied()).collect()
    }

    /// Refuses a variable of this process that is called as dhole's are and is none of them.
    ///
    /// # Errors
    /// It is named, with the nearest that there is.
    pub fn check_names() -> Result<(), UnknownVariable> {
        let variables = std::env::vars_os();
        let variables = variables.map(|(name, value)| {
            let name = name.to_string_lossy().into_owned();
            (name, !value.is_empty())
        });
        UnknownVariable::look(variables, &Self::known())
    }

    /// Reads the settings from the environment of this process.
    ///
    /// # Errors
    /// [`ConfigError::Variable`] names a variable whose value is unknown, and
    /// [`ConfigError::UnknownVariable`] one that dhole does not have.
    pub fn from_env() -> Result<Defaults, ConfigError> {
        Self::check_names()?;
        Defaults::read(&from_env)
    }

    /// Looks at the variables of this process before it starts the nodes of a run: one error says
    /// what is wrong, and not one of each node. Which protocols there are the program knows.
    ///
    /// # Errors
    /// As of [`from_env`](Defaults::from_env), but for the protocol.
    pub fn check_env() -> Result<(), ConfigError> {
        Self::check_names()?;
        let mut all = Self::all().filter(|setting| setting.variable != Self::PROTOCOL);
        all.try_for_each(|setting| {
            let checked =
                said(&from_env, setting.variable).map_or(Ok(()), |it| (setting.check)(&it));
            checked.map_err(|unknown| wrong(setting.variable, unknown))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(all: &[(&'static str, &str)]) -> Result<Defaults, String> {
        let said = |variable| {
            let found = all.iter().find(|(name, _)| *name == variable)?;
            Some(found.1.to_owned())
        };
        Defaults::read(&said).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn a_variable_is_a_default_and_an_empty_one_is_none() {
        let empty = Defaults::VARIABLES.map(|variable| (variable, ""));
        assert_eq!(read(&empty), Ok(Defaults::default()));
        let all = Defaults {
            survive: Some(true),
            coherence: Some(Coherence::Home),
            races: Some(Races::WarnAll),
            barriers: Some(Barriers::Central),
            one_sided: Some(false),
            sections: Some(false),
            domains: Some(Domains::Most(2)),
            memory_layout: Some(MemoryLayout::Isolate),
            memory_managers: Some(MemoryManagers::One),
            memory_consistency: Some(MemoryConsistency::Release),
            report: Some(ReportForm::Json),
            trace: Some(TraceFile("a.json".into())),
        };
        let words = "1 home warn-all central off off 2 isolate one release json a.json";
        let said: Vec<_> = Defaults::VARIABLES
            .into_iter()
            .zip(words.split(' '))
            .collect();
        assert_eq!(read(&said), Ok(all));
        assert_eq!(
            read(&[(Defaults::DOMAINS, "node")]).unwrap().domains,
            Some(Domains::Node)
        );
    }

    #[test]
    fn a_wrong_variable_says_what_it_could_be() {
        let expected = [
            ("SURVIVE", "on, off"),
            ("PROTOCOL", "lazy, update, home, treadmarks, directory"),
            ("RACES", "ignore, warn, warn-all, fail"),
            ("BARRIER", "central, dissemination"),
            ("ONE_SIDED", "on, off"),
            ("SECTIONS", "on, off"),
            ("DOMAINS", "host, node, a number of nodes"),
            ("MEMORY", "views, isolate"),
            (
                "MANAGERS",
                "allocator, one, or from 1 to 16 different nodes such as 0,3",
            ),
            ("CONSISTENCY", "sequential, release"),
            ("REPORT", "text, json"),
        ];
        // Any path is the name of a file.
        let of_few = Defaults::SETTINGS.iter().filter(|it| it.option != "trace");
        assert_eq!(expected.len(), of_few.clone().count());
        for (setting, (name, values)) in of_few.zip(expected) {
            let values = match name {
                "MANAGERS" => values.to_owned(),
                _ => format!("one of {values}"),
            };
            let wanted = format!("DHOLE_{name} is `0x`: {values} is expected");
            assert_eq!(read(&[(setting.variable, "0x")]), Err(wanted));
            let refused = (setting.check)("0x").unwrap_err().to_string();
            assert_eq!(refused, format!("{values} is expected, and not `0x`"));
            let option = setting.option.to_uppercase().replace('-', "_");
            assert_eq!(option, name, "an option is called as its variable");
        }
        for setting in Defaults::OF_PROCESSES {
            let refused = (setting.check)("0x").unwrap_err();
            assert!(!refused.expected.is_empty(), "{}", setting.variable);
        }
        for (setting, (least, most)) in Defaults::WAITING.iter().zip([
            (0, LONGEST_SPIN_US),
            (1, LONGEST_BACKOFF_US),
            (1, LONGEST_SLEEP_MS),
        ]) {
            for fine in [least, most] {
                (setting.check)(&fine.to_string()).expect("it is within the limits");
            }
            let refused = (setting.check)(&(most + 1).to_string()).unwrap_err();
            assert_eq!(refused.expected, format!("a number from {least} to {most}"));
            assert!((setting.check)("-1").is_err());
        }
    }
}
