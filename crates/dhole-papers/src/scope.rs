//! What names mean at a place of an evaluation.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::expression::{self, Names};
use crate::paper::{Axes, Paper};

/// A run: the places of its program and its variant in their lists, around its number of nodes.
pub type Key = (usize, u64, usize);

/// An evaluation and what its runs have printed.
pub struct Evaluation {
    pub paper: Paper,
    /// The command's options, and what was measured on this machine without a program.
    pub given: Map<String, Value>,
    /// What each run has printed, in each of its turns.
    pub printed: BTreeMap<Key, Vec<Value>>,
}

impl Evaluation {
    /// The place that no axis has narrowed.
    pub fn scope(&self) -> Scope<'_> {
        let bound = BTreeMap::new();
        Scope { of: self, bound }
    }

    fn list(&self, name: &str) -> &[Value] {
        self.paper.list.get(name).map_or(&[], Vec::as_slice)
    }

    /// The entry of a list by its `id`, or its `name`.
    fn entry(&self, list: &str, name: &str) -> Option<&Value> {
        let mut entries = self.list(list).iter();
        entries.find(|one| one["id"] == name || one["name"] == name)
    }
}

/// A place of an evaluation: an entry of some lists, a number of nodes, and words.
#[derive(Clone)]
pub struct Scope<'a> {
    pub of: &'a Evaluation,
    bound: BTreeMap<String, Value>,
}

impl<'a> Scope<'a> {
    /// The places of axes, from this one on, where a condition holds.
    pub fn along(&self, axes: &Axes, condition: Option<&str>) -> Result<Vec<Scope<'a>>, String> {
        let mut scopes = vec![self.clone()];
        for axis in axes {
            let places = scopes.iter().map(|scope| scope.axis(axis));
            scopes = places.collect::<Result<Vec<_>, _>>()?.concat();
        }
        filtered(scopes, condition)
    }

    fn axis(&self, name: &str) -> Result<Vec<Scope<'a>>, String> {
        let axis = self
            .of
            .paper
            .axis
            .get(name)
            .ok_or_else(|| format!("there is no axis `{name}`"))?;
        let mut all = Vec::new();
        for group in axis {
            let mut scopes = vec![self.clone()];
            let rank = |key: &str| ["program", "nodes"].iter().position(|one| *one == key);
            let mut keys: Vec<&String> = group.keys().filter(|key| *key != "where").collect();
            // A variant's name may use all others.
            keys.sort_by_key(|key| (*key == "variant", rank(key).unwrap_or(usize::MAX)));
            for key in keys {
                let choices = scopes.iter().map(|scope| scope.choices(key, &group[key]));
                scopes = choices.collect::<Result<Vec<_>, _>>()?.concat();
            }
            all.extend(filtered(
                scopes,
                group.get("where").and_then(Value::as_str),
            )?);
        }
        Ok(all)
    }

    /// This place with each value that an axis has for a key.
    fn choices(&self, key: &str, values: &Value) -> Result<Vec<Scope<'a>>, String> {
        let list = self.of.list(key);
        let values = match values {
            Value::String(all) if all == "*" => {
                return Ok(list.iter().map(|one| self.with(key, one)).collect());
            }
            Value::String(nodes) if key == "nodes" => self.eval(nodes)?,
            values => values.clone(),
        };
        let values = match values {
            Value::Array(values) => values,
            value => vec![value],
        };
        let choices = values.iter().map(|value| match value.as_str() {
            Some(words) => {
                let name = self.fill(words)?;
                if list.is_empty() {
                    return Ok(self.with(key, &json!(name)));
                }
                let entry = self.of.entry(key, &name);
                let entry = entry.ok_or_else(|| format!("there is no {key} `{name}`"))?;
                Ok(self.with(key, entry))
            }
            _ => Ok(self.with(key, value)),
        });
        choices.collect()
    }

    fn with(&self, key: &str, value: &Value) -> Scope<'a> {
        let mut scope = self.clone();
        scope.bound.insert(key.to_owned(), value.clone());
        scope
    }

    /// The place of a run.
    pub fn at(&self, (program, nodes, variant): Key) -> Scope<'a> {
        let program = self.with("program", &self.of.list("program")[program]);
        let nodes = program.with("nodes", &json!(nodes));
        nodes.with("variant", &self.of.list("variant")[variant])
    }

    /// The run at this place, if program, nodes and variant are known here.
    pub fn key(&self) -> Option<Key> {
        let place = |list| {
            let entry = self.bound.get(list)?;
            self.of.list(list).iter().position(|one| one == entry)
        };
        let nodes = match self.bound.get("variant")?.get("turns") {
            Some(_) => 1,
            None => self.bound.get("nodes")?.as_f64()? as u64,
        };
        Some((place("program")?, nodes, place("variant")?))
    }

    /// An entry of a list at this place.
    ///
    /// # Errors
    /// In words, if there is none, or it lacks something.
    pub fn entry<T: Deserialize<'a>>(&'a self, list: &str) -> Result<T, String> {
        let entry = self
            .bound
            .get(list)
            .ok_or_else(|| format!("no {list} here"))?;
        T::deserialize(entry).map_err(|cause| format!("{entry}: {cause}"))
    }

    /// The value of an expression.
    pub fn eval(&self, text: &str) -> Result<Value, String> {
        expression::evaluate(text, self)
    }

    /// Whether a condition holds; one that is left out does.
    pub fn holds(&self, condition: Option<&str>) -> Result<bool, String> {
        let value = condition.map(|text| self.eval(text)).transpose()?;
        Ok(value.is_none_or(|value| expression::is_true(&value)))
    }

    /// A template, filled in.
    pub fn fill(&self, template: &str) -> Result<String, String> {
        expression::fill(template, self)
    }

    /// What the run here has printed. What it has not counted is 0.
    fn printed(&self, path: &[&str]) -> Value {
        let turns = self.key().and_then(|key| self.of.printed.get(&key));
        let Some(turns) = turns else {
            return Value::Null;
        };
        let mut found = turns.iter().map(|turn| field(turn, path));
        match turns.len() {
            1 if path.first() == Some(&"measured") => {
                found.next().filter(|it| !it.is_null()).unwrap_or(json!(0))
            }
            1 => found.next().unwrap_or_default(),
            _ => found
                .map(|one| expression::number(&one))
                .reduce(f64::min)
                .map_or(Value::Null, |one| json!(one)),
        }
    }

    /// Why a measure of a program differs from the paper's, by the list `remark`.
    fn remark(&self) -> Value {
        let name = |list: &str| self.bound.get(list).and_then(|one| one["name"].as_str());
        let (program, measure) = (name("program").unwrap_or_default(), name("measure"));
        let mut remarks = self.of.list("remark").iter();
        let found = remarks.find(|one| {
            let start = one["program_name"].as_str();
            one["measure_name"].as_str() == measure
                && start.is_some_and(|it| program.starts_with(it))
        });
        found.map_or(Value::Null, |one| one["text"].clone())
    }

    /// A number that was published: of a program under the variant here, or of the program.
    fn published(&self, path: &[&str]) -> Option<Value> {
        let is_record = |program: &Value| program.get(path[0]).is_some();
        if !self.of.list("program").iter().any(is_record) {
            return None;
        }
        let record = self.bound.get("program")?.get(path[0]);
        let record = record.unwrap_or(&Value::Null);
        let variant = self
            .bound
            .get("variant")
            .and_then(|variant| variant["id"].as_str());
        let under = variant.map_or(Value::Null, |id| field(&record[id], &path[1..]));
        Some(if under.is_null() {
            field(record, &path[1..])
        } else {
            under
        })
    }
}

fn filtered<'a>(scopes: Vec<Scope<'a>>, condition: Option<&str>) -> Result<Vec<Scope<'a>>, String> {
    let mut kept = Vec::new();
    for scope in scopes {
        if scope.holds(condition)? {
            kept.push(scope);
        }
    }
    Ok(kept)
}

fn field(value: &Value, path: &[&str]) -> Value {
    let found = path.iter().try_fold(value, |value, name| value.get(*name));
    found.cloned().unwrap_or_default()
}

impl Names for Scope<'_> {
    fn value(&self, path: &[&str]) -> Result<Value, String> {
        // The value that the list `measure` names.
        let measure = self
            .bound
            .get("measure")
            .and_then(|it| it["value"].as_str());
        let path = path.iter().map(|name| match (*name, measure) {
            ("it", Some(measure)) => measure,
            (name, _) => name,
        });
        let path: Vec<&str> = path.collect();
        let name = path[0];
        if let Some(value) = self.bound.get(name).or(self.of.given.get(name)) {
            return Ok(field(value, &path[1..]));
        }
        if let Some(text) = self.of.paper.value.get(name) {
            let value = self.eval(text)?;
            return Ok(value.as_f64().map_or(value, |number| json!(number)));
        }
        match name {
            "printed" => Ok(self.printed(&path[1..])),
            "measured" => Ok(self.printed(&path)),
            "remark" => Ok(self.remark()),
            _ => self
                .published(&path)
                .ok_or_else(|| format!("nothing is called `{}`", path.join("."))),
        }
    }

    fn places(&self, words: &[&str]) -> Result<(Vec<Self>, bool), String> {
        let (mut scopes, mut is_axis) = (vec![self.clone()], false);
        for word in words {
            if self.of.paper.axis.contains_key(*word) {
                is_axis = true;
                let places = scopes.iter().map(|scope| scope.axis(word));
                scopes = places.collect::<Result<Vec<_>, _>>()?.concat();
                continue;
            }
            let is_name = |name: &str| {
                ["program", "variant"]
                    .into_iter()
                    .find(|list| self.of.entry(list, name).is_some())
            };
            let value = match word.parse::<u64>() {
                Ok(nodes) => json!(nodes),
                Err(_) if is_name(word).is_some() => json!(word),
                Err(_) => self.eval(word)?,
            };
            let name = value.as_str().unwrap_or_default();
            let (list, value) = match is_name(name) {
                Some(list) => (list, self.of.entry(list, name).unwrap_or(&value)),
                None if value.is_number() => ("nodes", &value),
                None => return Err(format!("there is no program or variant `{word}`")),
            };
            scopes = scopes.iter().map(|scope| scope.with(list, value)).collect();
        }
        Ok((scopes, is_axis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DOSA, MULTIVIEW};

    fn with_nothing_run(text: &str) -> Evaluation {
        let given = json!({ "network": "dosa-1999", "nodes_wanted": [16, 32], "nodes_most": 32 });
        Evaluation {
            paper: Paper::read(text),
            given: given.as_object().cloned().unwrap(),
            printed: BTreeMap::new(),
        }
    }

    #[test]
    fn the_ratios_of_dosa_are_those_of_its_text() {
        let evaluation = with_nothing_run(DOSA);
        assert_eq!(evaluation.list("program").len(), 8);
        let ratio = |program: &str, of: &str| {
            let text = format!("paper.{of}[treadmarks] / paper.{of}[dosa]");
            let program = evaluation.entry("program", program).unwrap();
            let scope = evaluation.scope().with("program", program);
            expression::number(&scope.eval(&text).unwrap())
        };
        // Section 8.1: "a factor of 11 for Barnes-Hut/lg and 3 for Water-Spatial/lg", "1.3 ...
        // and 4.9".
        assert_eq!(ratio("Barnes-Hut/lg", "messages").round(), 11.0);
        assert_eq!(ratio("Water-Spatial/lg", "messages").round(), 3.0);
        assert!((ratio("Barnes-Hut/lg", "requests") - 1.3).abs() < 0.05);
        assert!((ratio("Water-Spatial/lg", "requests") - 4.9).abs() < 0.05);
        // Section 8.3: coarse programs are within 6%.
        for name in ["SOR/sm", "SOR/lg", "Water-Nsquared/sm", "Water-Nsquared/lg"] {
            assert!((ratio(name, "seconds") - 1.0).abs() < 0.06, "{name}");
        }
    }

    #[test]
    fn a_time_that_is_near_the_papers_holds_and_one_without_its_gain_does_not() {
        let holds = |measure: &str, ours: f64, papers: f64| {
            let mut evaluation = with_nothing_run(DOSA);
            let values = [("factor", ours), ("paper_factor", papers)];
            let values = values.map(|(name, value)| (name.to_owned(), value.to_string()));
            evaluation.paper.value.extend(values);
            let measure = evaluation.entry("measure", measure).unwrap();
            let scope = evaluation.scope().with("measure", measure);
            scope.holds(Some("factor_is_close")).unwrap()
        };
        assert!(holds("time (s)", 1.07, 1.10) && holds("time (s)", 2.77, 3.10));
        let what = "a fifth of 1.13 is more than its gain";
        assert!(!holds("time (s)", 1.03, 1.13), "{what}");
        assert!(!holds("time (s)", 1.21, 1.02));
        assert!(holds("messages", 1.29, 1.57) && !holds("messages", 1.2, 1.57));
    }

    #[test]
    fn a_name_in_brackets_stands_for_one_thing() {
        for text in [DOSA, MULTIVIEW] {
            let evaluation = with_nothing_run(text);
            for axis in evaluation.paper.axis.keys() {
                let also = ["program", "variant"].map(|list| evaluation.entry(list, axis));
                assert_eq!(also, [None, None], "{axis}");
            }
        }
    }

    #[test]
    fn the_numbers_of_multiview_agree_with_each_other() {
        let evaluation = with_nothing_run(MULTIVIEW);
        let scope = evaluation.scope();
        let views = scope.eval("paper.views[programs]").unwrap();
        assert_eq!(views, json!([16, 8, 11, 1, 27]));
        // 512 molecules of 672 bytes, and 785 KB of tours.
        let bytes = ["WATER", "TSP"].map(|name| scope.eval(&format!("paper.shared_bytes[{name}]")));
        assert_eq!(bytes, [Ok(json!(512 * 672)), Ok(json!(785 * 1024))]);
    }
}
