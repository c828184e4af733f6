//! One run of a program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::PaperError;
use crate::expression;
use crate::paper::{Program, Variant};
use crate::scope::Scope;

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Its name, and that of its file.
    pub name: String,
    /// The program.
    pub program: String,
    /// The arguments of `dhole` before the program, if it is simulated.
    cluster: Option<Vec<String>>,
    /// The program's arguments.
    arguments: Vec<String>,
    /// Environment variables that the command shows.
    environment: BTreeMap<String, String>,
    /// Environment variables of all runs.
    usual: BTreeMap<String, String>,
    /// What it must print.
    prints: Vec<String>,
}

impl Cell {
    /// The run at a place, in each of its turns.
    ///
    /// # Errors
    /// In words, if the evaluation's data are wrong.
    pub fn at(scope: &Scope<'_>) -> Result<Vec<Cell>, String> {
        let (program, variant): (Program, Variant) =
            (scope.entry("program")?, scope.entry("variant")?);
        let paper = &scope.of.paper;
        let base = match scope.holds(Some("small"))? && variant.turns.is_none() {
            true => &program.small,
            false => &program.size,
        };
        let with = variant
            .with
            .as_ref()
            .and_then(|with| program.options_with.get(with));
        let mut arguments = replaced(base, &variant);
        arguments.extend(
            program
                .options
                .iter()
                .chain(with.into_iter().flatten())
                .cloned(),
        );
        arguments.push("--json".to_owned());
        let cluster = match variant.turns {
            Some(_) => None,
            None => {
                let network = match &variant.network {
                    Some(network) => network.as_str(),
                    None => "{network}",
                };
                let unit_ns = variant.unit_ns.as_ref().unwrap_or(&paper.simulated.unit_ns);
                let unit_ns = expression::number(&scope.eval(unit_ns)?);
                let mut words = vec![
                    "sim".to_owned(),
                    scope.fill("--nodes={nodes:.0}")?,
                    format!("--network={}", scope.fill(network)?),
                    format!("--fixed-cost={unit_ns}"),
                ];
                words.extend(paper.simulated.options.iter().cloned());
                words.push("--".to_owned());
                Some(words)
            }
        };
        let file = variant.file.as_ref().unwrap_or(&variant.id);
        let nodes = match variant.turns {
            Some(_) => "here".to_owned(),
            None => scope.fill("{nodes:.0}")?,
        };
        let name = format!(
            "{}.{nodes}.{file}",
            program.name.to_lowercase().replace('/', "-")
        );
        let named = |name| Cell {
            name,
            program: program.program.clone(),
            cluster: cluster.clone(),
            arguments: arguments.clone(),
            environment: variant.environment.clone(),
            usual: paper.environment.clone(),
            prints: paper.prints.clone(),
        };
        Ok(match variant.turns {
            Some(turns) => (0..turns)
                .map(|turn| named(format!("{name}.{turn}")))
                .collect(),
            None => vec![named(name)],
        })
    }

    /// The command line that a user would type.
    pub fn shown(&self) -> String {
        let variables = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let mut words: Vec<String> = variables.collect();
        if let Some(cluster) = &self.cluster {
            words.push("dhole".to_owned());
            words.extend(cluster.iter().cloned());
        }
        words.push(self.program.clone());
        words.extend(self.arguments.iter().cloned());
        words.join(" ")
    }

    /// Runs the program, which is in `folder` beside `dhole`.
    ///
    /// # Errors
    /// [`PaperError::Cell`] with the program's words if it fails.
    pub fn run(&self, folder: &Path) -> Result<Value, PaperError> {
        let failed = |why: String| PaperError::Cell {
            command: self.shown(),
            why,
        };
        let program = folder.join(&self.program);
        let mut command = match &self.cluster {
            None => Command::new(program),
            Some(words) => {
                let mut command = Command::new(folder.join("dhole"));
                command.args(words).arg(program);
                command
            }
        };
        command.args(&self.arguments).stdin(Stdio::null());
        // The paper's runs are what their words say, whatever this user's other runs have.
        for variable in dhole::Defaults::VARIABLES {
            command.env_remove(variable);
        }
        command.envs(&self.usual).envs(&self.environment);
        let output = command
            .output()
            .map_err(|cause| failed(cause.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it said nothing");
            return Err(failed(format!("{}: {last}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().unwrap_or_default();
        let printed: Value =
            serde_json::from_str(line).map_err(|cause| failed(cause.to_string()))?;
        for path in &self.prints {
            let mut names = path.split('.');
            let number = names.try_fold(&printed, |value, name| value.get(name));
            if number.and_then(Value::as_f64).is_none() {
                let name = path.rsplit('.').next().unwrap_or(path);
                return Err(failed(format!("it printed no `{name}`")));
            }
        }
        Ok(printed)
    }
}

/// A program's arguments with those of a variant. An option that the program has already is
/// replaced, together with its value.
fn replaced(base: &[String], variant: &Variant) -> Vec<String> {
    let mut arguments = base.to_vec();
    for option in variant.without.iter().chain(&variant.options) {
        let is_option = option.starts_with("--");
        if let Some(at) = arguments
            .iter()
            .position(|word| is_option && word == option)
        {
            arguments.drain(at..at + 2);
        }
    }
    arguments.extend(variant.options.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_replaced_and_not_given_twice() {
        let base = ["--share", "memory", "--prefetch", "on", "--size", "4"].map(str::to_owned);
        let of = |variant: &str| replaced(&base, &toml::from_str(variant).unwrap()).join(" ");
        assert_eq!(of("id = ''"), "--share memory --prefetch on --size 4");
        assert_eq!(
            of("id = ''\noptions = ['--prefetch', 'off']"),
            "--share memory --size 4 --prefetch off"
        );
        assert_eq!(
            of("id = ''\nwithout = ['--share', '--element']\noptions = ['--protocol', 'home']"),
            "--prefetch on --size 4 --protocol home"
        );
    }
}
