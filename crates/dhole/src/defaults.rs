use dhole_model::{Barriers, Coherence};
use dhole_node::{ConfigError, Races};

/// What runs have where the program does not say it: `dhole run` and `dhole sim` set it with
/// `--protocol`, `--races` and `--barrier`, through the variables `DHOLE_PROTOCOL`, `DHOLE_RACES`
/// and `DHOLE_BARRIER`, which anybody else may set too. What a program sets with
/// [`Config`](crate::Config) goes before it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Defaults {
    /// How objects are kept consistent.
    pub coherence: Option<Coherence>,
    /// What becomes of races.
    pub races: Option<Races>,
    /// How nodes learn that all have reached a barrier.
    pub barriers: Option<Barriers>,
}

impl Defaults {
    /// The variable that names a protocol.
    pub const PROTOCOL: &str = "DHOLE_PROTOCOL";
    /// The variable that says what becomes of races.
    pub const RACES: &str = "DHOLE_RACES";
    /// The variable that says how barriers are.
    pub const BARRIER: &str = "DHOLE_BARRIER";

    /// What the environment of this process says.
    ///
    /// # Errors
    /// [`ConfigError::Variable`] names a variable that asks for what there is not.
    pub fn from_env() -> Result<Defaults, ConfigError> {
        Defaults::read(|variable| {
            let said = std::env::var_os(variable)?;
            Some(said.to_string_lossy().into_owned())
        })
    }

    fn read(look: impl Fn(&'static str) -> Option<String>) -> Result<Defaults, ConfigError> {
        let one = |variable: &'static str| {
            let said = look(variable).filter(|said| !said.is_empty());
            said.map(|said| (variable, said))
        };
        let coherence = one(Self::PROTOCOL).map(|(variable, said)| {
            let names = Coherence::ALL.map(Coherence::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        let races = one(Self::RACES).map(|(variable, said)| {
            let names = Races::ALL.map(Races::name);
            Races::named(&said).ok_or_else(|| wrong(variable, said, &names))
        });
        let barriers = one(Self::BARRIER).map(|(variable, said)| {
            let names = Barriers::ALL.map(Barriers::name);
            said.parse().map_err(|_| wrong(variable, said, &names))
        });
        Ok(Defaults {
            coherence: coherence.transpose()?,
            races: races.transpose()?,
            barriers: barriers.transpose()?,
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
            Defaults::read(|variable| {
                let said = match variable {
                    Defaults::PROTOCOL => protocol,
                    Defaults::RACES => races,
                    _ => barrier,
                };
                Some(said.to_owned())
            })
        };
        assert_eq!(with("", "", ""), Ok(Defaults::default()));
        let all = Defaults {
            coherence: Some(Coherence::Home),
            races: Some(Races::WarnAll),
            barriers: Some(Barriers::Central),
        };
        assert_eq!(with("home", "warn-all", "central"), Ok(all));
        let barrier = with("", "", "centre").unwrap_err().to_string();
        let expected = "DHOLE_BARRIER is `centre`: one of central, dissemination is expected";
        assert_eq!(barrier, expected);
        let protocol = with("hoem", "", "").unwrap_err().to_string();
        let expected =
            "DHOLE_PROTOCOL is `hoem`: one of lazy, update, home, treadmarks is expected";
        assert_eq!(protocol, expected);
        assert!(with("", "always", "").is_err());
    }
}
