use dhole_model::{Barriers, Coherence, Variants};
use dhole_node::{ConfigError, Domains, MemoryConsistency, MemoryLayout, MemoryManagers, Races};

/// The settings that a run takes from the environment, for each that the program does not set with
/// [`Config`](crate::Config).
///
/// `dhole run` and `dhole sim` set them with `--protocol`, `--races`, `--barrier`, `--one-sided`,
/// `--domains`, `--memory`, `--managers`, `--consistency` and `--report`, through the variables
/// `DHOLE_PROTOCOL`, `DHOLE_RACES`, `DHOLE_BARRIER`, `DHOLE_ONE_SIDED`, `DHOLE_DOMAINS`,
/// `DHOLE_MEMORY`, `DHOLE_MANAGERS`, `DHOLE_CONSISTENCY` and `DHOLE_REPORT`. A user may set the
/// variables too; one that is empty counts as one that is not set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Defaults {
    /// The protocol that keeps objects consistent.
    pub coherence: Option<Coherence>,
    /// Whether races are ignored, reported, or end the run.
    pub races: Option<Races>,
    /// How nodes learn that all have reached a barrier.
    pub barriers: Option<Barriers>,
    /// Whether a node reads objects in the memory of nodes that it sees, without a message.
    pub one_sided: Option<bool>,
    /// Which nodes have the same raw memory.
    pub domains: Option<Domains>,
    /// How allocations lie in raw memory.
    pub layout: Option<MemoryLayout>,
    /// Which node manages a minipage of raw memory.
    pub managers: Option<MemoryManagers>,
    /// When a node sees what others write in raw memory.
    pub consistency: Option<MemoryConsistency>,
    /// How the report of each run is written to standard error, if it is.
    pub report: Option<ReportForm>,
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

impl Defaults {
    /// The variable that names a protocol.
    pub const PROTOCOL: &str = "DHOLE_PROTOCOL";
    /// The variable that says whether races are ignored, reported, or end the run.
    pub const RACES: &str = "DHOLE_RACES";
    /// The variable that names the kind of barriers.
    pub const BARRIER: &str = "DHOLE_BARRIER";
    /// The variable that says whether objects are read in the memory of other nodes: `on` or
    /// `off`.
    pub const ONE_SIDED: &str = "DHOLE_ONE_SIDED";
    /// The variable that says which nodes have the same raw memory: `host`, `node`, or how many at
    /// most.
    pub const DOMAINS: &str = "DHOLE_DOMAINS";
    /// The variable that says how allocations lie in raw memory: `views` or `isolate`.
    pub const MEMORY: &str = "DHOLE_MEMORY";
    /// The variable that says which node manages a minipage of raw memory: `allocator` or `one`.
    pub const MANAGERS: &str = "DHOLE_MANAGERS";
    /// The variable that says when a node sees what others write in raw memory: `sequential` or
    /// `release`.
    pub const CONSISTENCY: &str = "DHOLE_CONSISTENCY";
    /// The variable that says how reports are written.
    pub const REPORT: &str = "DHOLE_REPORT";
    /// All of them.
    pub const VARIABLES: [&str; 9] = [
        Self::PROTOCOL,
        Self::RACES,
        Self::BARRIER,
        Self::ONE_SIDED,
        Self::DOMAINS,
        Self::MEMORY,
        Self::MANAGERS,
        Self::CONSISTENCY,
        Self::REPORT,
    ];

    /// Reads the settings from the environment of this process.
    ///
    /// # Errors
    /// [`ConfigError::Variable`] names a variable whose value is unknown.
    pub fn from_env() -> Result<Defaults, ConfigError> {
        Defaults::read(|variable| {
            let said = std::env::var_os(variable)?;
            Some(said.to_string_lossy().into_owned())
        })
    }

    /// Looks at the variables of this process before it starts the nodes of a run: one error says
    /// what is wrong, and not one of each node. Which protocols there are the program knows.
    ///
    /// # Errors
    /// As of [`from_env`](Defaults::from_env), but for the protocol.
    pub fn check_env() -> Result<(), ConfigError> {
        let but_protocol = |variable| match variable {
            Self::PROTOCOL => None,
            _ => std::env::var_os(variable).map(|said| said.to_string_lossy().into_owned()),
        };
        Defaults::read(but_protocol).map(|_| ())
    }

    fn read(look: impl Fn(&'static str) -> Option<String>) -> Result<Defaults, ConfigError> {
        let one = |variable: &'static str| {
            let said = look(variable).filter(|said| !said.is_empty());
            said.map(|said| (variable, said))
        };
        let coherence = one(Self::PROTOCOL).map(|(variable, said)| {
            let names: Vec<&str> = Coherence::all().map(Coherence::name).collect();
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let races = one(Self::RACES).map(|(variable, said)| {
            let names = Races::ALL.map(Races::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let barriers = one(Self::BARRIER).map(|(variable, said)| {
            let names = Barriers::ALL.map(Barriers::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let one_sided = one(Self::ONE_SIDED).map(|(variable, said)| match said.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(wrong(variable, said, &["on", "off"])),
        });
        let domains = one(Self::DOMAINS).map(|(variable, said)| {
            let names = ["host", "node", "a number of nodes"];
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let layout = one(Self::MEMORY).map(|(variable, said)| {
            let names = MemoryLayout::ALL.map(MemoryLayout::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let managers = one(Self::MANAGERS).map(|(variable, said)| {
            let names = MemoryManagers::ALL.map(MemoryManagers::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let consistency = one(Self::CONSISTENCY).map(|(variable, said)| {
            let names = MemoryConsistency::ALL.map(MemoryConsistency::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let report = one(Self::REPORT).map(|(variable, said)| {
            let names = ReportForm::ALL.map(ReportForm::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        Ok(Defaults {
            coherence: coherence.transpose()?,
            races: races.transpose()?,
            barriers: barriers.transpose()?,
            one_sided: one_sided.transpose()?,
            domains: domains.transpose()?,
            layout: layout.transpose()?,
            managers: managers.transpose()?,
            consistency: consistency.transpose()?,
            report: report.transpose()?,
        })
    }
}

fn wrong(variable: &'static str, value: String, names: &[&str]) -> ConfigError {
    ConfigError::Variable {
        variable,
        value,
        expected: format!("one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_default_and_a_wrong_one_says_what_it_could_be() {
        let with = |protocol: &'static str, races: &'static str, barrier: &'static str| {
            Defaults::read(|variable| match variable {
                Defaults::PROTOCOL => Some(protocol.to_owned()),
                Defaults::RACES => Some(races.to_owned()),
                Defaults::BARRIER => Some(barrier.to_owned()),
                _ => None,
            })
        };
        let report = |form: &'static str| {
            let read = Defaults::read(|it| (it == Defaults::REPORT).then(|| form.to_owned()));
            read.map(|defaults| defaults.report)
        };
        assert_eq!(report("text"), Ok(Some(ReportForm::Text)));
        assert_eq!(report("json"), Ok(Some(ReportForm::Json)));
        let expected = "DHOLE_REPORT is `xml`: one of text, json is expected";
        assert_eq!(report("xml").unwrap_err().to_string(), expected);
        let one_sided = |said: &'static str| {
            let read = Defaults::read(|it| (it == Defaults::ONE_SIDED).then(|| said.to_owned()));
            read.map(|defaults| defaults.one_sided)
        };
        assert_eq!(one_sided("off"), Ok(Some(false)));
        let expected = "DHOLE_ONE_SIDED is `no`: one of on, off is expected";
        assert_eq!(one_sided("no").unwrap_err().to_string(), expected);
        let domains = |said: &'static str| {
            let read = Defaults::read(|it| (it == Defaults::DOMAINS).then(|| said.to_owned()));
            read.map(|defaults| defaults.domains)
        };
        assert_eq!(domains("node"), Ok(Some(Domains::Node)));
        assert_eq!(domains("2"), Ok(Some(Domains::Most(2))));
        let expected = "DHOLE_DOMAINS is `0`: one of host, node, a number of nodes is expected";
        assert_eq!(domains("0").unwrap_err().to_string(), expected);
        let memory = Defaults::read(|it| (it == Defaults::MEMORY).then(|| "isolated".to_owned()));
        let expected = "DHOLE_MEMORY is `isolated`: one of views, isolate is expected";
        assert_eq!(memory.unwrap_err().to_string(), expected);
        let managers = |said: &'static str| {
            let read = Defaults::read(|it| (it == Defaults::MANAGERS).then(|| said.to_owned()));
            read.map(|defaults| defaults.managers)
        };
        assert_eq!(managers("one"), Ok(Some(MemoryManagers::One)));
        let expected = "DHOLE_MANAGERS is `two`: one of allocator, one is expected";
        assert_eq!(managers("two").unwrap_err().to_string(), expected);
        let consistency = |said: &'static str| {
            let read = Defaults::read(|it| (it == Defaults::CONSISTENCY).then(|| said.to_owned()));
            read.map(|defaults| defaults.consistency)
        };
        assert_eq!(consistency("release"), Ok(Some(MemoryConsistency::Release)));
        let expected = "DHOLE_CONSISTENCY is `lazy`: one of sequential, release is expected";
        assert_eq!(consistency("lazy").unwrap_err().to_string(), expected);
        assert_eq!(with("", "", ""), Ok(Defaults::default()));
        let all = Defaults {
            coherence: Some(Coherence::Home),
            races: Some(Races::WarnAll),
            barriers: Some(Barriers::Central),
            one_sided: None,
            domains: None,
            layout: None,
            managers: None,
            consistency: None,
            report: None,
        };
        assert_eq!(with("home", "warn-all", "central"), Ok(all));
        let barrier = with("", "", "centre").unwrap_err().to_string();
        let expected = "DHOLE_BARRIER is `centre`: one of central, dissemination is expected";
        assert_eq!(barrier, expected);
        let protocol = with("hoem", "", "").unwrap_err().to_string();
        let expected = "DHOLE_PROTOCOL is `hoem`: one of lazy, update, home, treadmarks, \
                        directory is expected";
        assert_eq!(protocol, expected);
        assert!(with("", "always", "").is_err());
    }
}
