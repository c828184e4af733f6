//! A paper's evaluation as data: what is run, what is read from the runs, and how it is shown.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Expressions by name.
pub type Expressions = BTreeMap<String, String>;
/// Names of axes. All places of the first with each of those of the next, and so on.
pub type Axes = Vec<String>;

/// An evaluation. Names of tables are those of the file; their fields may use expressions
/// ([`expression`](crate::expression)) and templates with expressions in braces.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Its name in the command, and that of its files.
    pub name: String,
    /// Environment variables of all programs.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How programs are simulated.
    pub simulated: Simulated,
    /// The numbers that a run must print, as fields of its JSON object.
    pub prints: Vec<String>,
    /// Whether operations of raw memory are measured on this machine too.
    #[serde(default)]
    pub raw_memory: bool,
    /// Networks that are like others.
    #[serde(default)]
    pub network: Vec<Network>,
    /// What is calculated from runs and published numbers.
    pub value: Expressions,
    /// The tables of rows that axes name, `program` and `variant` among them.
    pub list: BTreeMap<String, Vec<Value>>,
    /// Axes of tables and figures.
    pub axis: BTreeMap<String, Vec<Map<String, Value>>>,
    /// What is run, one batch after the other.
    pub runs: Vec<Batch>,
    /// What the paper states, judged by the runs.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// The page, from top to bottom.
    pub part: Vec<Part>,
    /// The figures.
    pub figure: Vec<Figure>,
    /// The JSON object: an expression a field, or a list of objects.
    pub json: BTreeMap<String, Json>,
}

impl Paper {
    /// Reads the evaluation in a file of this crate.
    ///
    /// # Panics
    /// If the file is no evaluation.
    pub fn read(text: &str) -> Paper {
        toml::from_str(text).unwrap_or_else(|wrong| panic!("a file of this crate: {wrong}"))
    }
}

/// How programs are simulated.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    /// The paper's own network.
    pub network: String,
    /// Further options of `dhole sim`.
    pub options: Vec<String>,
    /// Nanoseconds of a unit of work: an expression.
    pub unit_ns: String,
}

/// A program with its input: an entry of the list `program`, which may have more fields.
#[derive(Deserialize, Debug)]
pub struct Program {
    /// Its name in the paper.
    pub name: String,
    /// The program of dhole.
    pub program: String,
    /// Its arguments for the paper's input.
    pub size: Vec<String>,
    /// Its arguments for an input that takes less.
    pub small: Vec<String>,
    /// Further arguments, to do as the paper's program did.
    #[serde(default)]
    pub options: Vec<String>,
    /// Further arguments under variants with these words.
    #[serde(default)]
    pub options_with: BTreeMap<String, Vec<String>>,
}

/// How a program is run: an entry of the list `variant`, which may have more fields.
#[derive(Deserialize, Debug)]
pub struct Variant {
    /// Its name in expressions.
    pub id: String,
    /// Its part of the name of a run's file, if that is not `id`.
    pub file: Option<String>,
    /// Arguments of the program. They replace the program's own of the same names.
    #[serde(default)]
    pub options: Vec<String>,
    /// Options of the program that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// The word of [`Program::options_with`].
    pub with: Option<String>,
    /// The network, if that is not the paper's.
    pub network: Option<String>,
    /// Nanoseconds of a unit of work, if they are not as usual: an expression.
    pub unit_ns: Option<String>,
    /// Timed on one node of this machine, so many times; the least number counts.
    pub turns: Option<usize>,
    /// Environment variables, which are part of the command that is shown.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A network like another without some keys, in a file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// The file in the folder of the results.
    pub file: String,
    /// The other network.
    pub like: String,
    /// The keys that are left out.
    pub without: Vec<String>,
}

/// Runs that are started together.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The places of the runs, in groups.
    pub each: Vec<Axes>,
    pub when: Option<String>,
}

/// A statement of the paper. It holds if all its cases do.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub stated: String,
    /// One claim for each place.
    #[serde(default)]
    pub each: Axes,
    pub r#where: Option<String>,
    pub case: Vec<Case>,
    /// What stands between the cases' words.
    #[serde(default = "comma")]
    pub between: String,
}

fn comma() -> String {
    ", ".to_owned()
}

/// A case of a claim.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// One case for each place.
    #[serde(default)]
    pub each: Axes,
    pub r#where: Option<String>,
    /// Without this value, of a run that failed, the case is left out and the claim does not hold.
    pub needs: Option<String>,
    /// The numbers by which it is judged, in words.
    pub here: String,
    /// Whether it holds.
    pub holds: String,
}

/// A part of the page: a text, and a table, a list or the claims behind it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub when: Option<String>,
    /// The part once for each place.
    #[serde(default)]
    pub each: Axes,
    pub r#where: Option<String>,
    /// Without this value there is `otherwise` instead of the part.
    pub needs: Option<String>,
    pub otherwise: Option<String>,
    pub text: Option<String>,
    /// The table's rows, in groups.
    #[serde(default)]
    pub rows: Vec<Axes>,
    /// Which rows.
    pub rows_where: Option<String>,
    /// The table's columns.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// A line for each row, behind the table.
    pub line: Option<String>,
    /// For which rows.
    pub lines_where: Option<String>,
    /// The claims, as a table.
    pub claims: Option<Verdicts>,
}

/// A column of a table.
#[derive(Deserialize, Debug)]
#[serde(untagged, deny_unknown_fields)]
pub enum Column {
    /// The head, and what is in a row.
    One(String, String),
    /// The same for each place where a condition holds.
    Each {
        #[serde(default)]
        each: Axes,
        r#where: Option<String>,
        head: String,
        show: String,
    },
}

/// How claims are shown.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Verdicts {
    /// Yes or no, and all cases.
    YesOrNo,
    /// The cases that hold, and those that do not.
    ByCase,
}

/// A figure: groups of bars.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub file: String,
    pub title: String,
    /// What the bars measure.
    pub unit: String,
    pub when: Option<String>,
    /// The places of the groups.
    pub each: Axes,
    pub r#where: Option<String>,
    /// A group's name.
    pub group: String,
    /// The bars of a group.
    pub bars: Vec<Series>,
}

/// Bars of one colour.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// One series for each place.
    #[serde(default)]
    pub each: Axes,
    pub when: Option<String>,
    pub name: String,
    pub value: String,
}

/// A value of the JSON object.
#[derive(Deserialize, Debug)]
#[serde(untagged, deny_unknown_fields)]
pub enum Json {
    /// An expression.
    Value(String),
    /// A list of objects, one for each place, or for each run.
    List {
        each: Option<Axes>,
        r#where: Option<String>,
        fields: BTreeMap<String, Json>,
    },
    /// An object.
    Object(BTreeMap<String, Json>),
}
