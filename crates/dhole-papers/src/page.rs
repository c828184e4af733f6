//! Writes an evaluation as Markdown and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::cell::Cell;
use crate::expression::is_true;
use crate::paper::{Case, Claim, Column, Json, Part, Verdicts};
use crate::scope::{Evaluation, Scope};

/// The whole page.
///
/// # Errors
/// In words, if the evaluation's data are wrong.
pub fn page(evaluation: &Evaluation) -> Result<String, String> {
    let mut page = String::new();
    let scope = evaluation.scope();
    for part in &evaluation.paper.part {
        if scope.holds(part.when.as_deref())? {
            for place in scope.along(&part.each, part.r#where.as_deref())? {
                write(&mut page, part, &place)?;
            }
        }
    }
    Ok(page)
}

fn write(page: &mut String, part: &Part, scope: &Scope<'_>) -> Result<(), String> {
    let is_whole = match &part.needs {
        Some(needs) => !scope.eval(needs)?.is_null(),
        None => true,
    };
    let text = if is_whole {
        &part.text
    } else {
        &part.otherwise
    };
    if let Some(text) = text {
        let _ = writeln!(page, "{}\n", scope.fill(text)?);
    }
    if !is_whole {
        return Ok(());
    }
    let mut rows = Vec::new();
    for axes in &part.rows {
        rows.extend(scope.along(axes, part.rows_where.as_deref())?);
    }
    if !part.columns.is_empty() {
        let head = cells(&part.columns, scope, true)?;
        let _ = writeln!(page, "| {} |", head.join(" | "));
        let _ = writeln!(page, "|---|{}", "---:|".repeat(head.len() - 1));
        for row in &rows {
            let _ = writeln!(
                page,
                "| {} |",
                cells(&part.columns, row, false)?.join(" | ")
            );
        }
        page.push('\n');
    }
    if let Some(line) = &part.line {
        let before = page.len();
        for row in &rows {
            if row.holds(part.lines_where.as_deref())? {
                let _ = writeln!(page, "{}", row.fill(line)?);
            }
        }
        page.push_str(if page.len() > before { "\n" } else { "" });
    }
    match part.claims {
        Some(verdicts) => claims(page, scope, verdicts),
        None => Ok(()),
    }
}

/// The cells of a row, or of the head.
fn cells(columns: &[Column], scope: &Scope<'_>, is_head: bool) -> Result<Vec<String>, String> {
    let mut cells = Vec::new();
    for column in columns {
        match column {
            Column::One(head, show) => cells.push(scope.fill(if is_head { head } else { show })?),
            Column::Each {
                each,
                r#where,
                head,
                show,
            } => {
                for place in scope.along(each, r#where.as_deref())? {
                    cells.push(place.fill(if is_head { head } else { show })?);
                }
            }
        }
    }
    Ok(cells)
}

/// The words of a case that holds, or of one that does not.
type Judged = Result<String, String>;

fn claims(page: &mut String, scope: &Scope<'_>, verdicts: Verdicts) -> Result<(), String> {
    page.push_str(match verdicts {
        Verdicts::YesOrNo => "| statement | holds | here |\n|---|---|---|\n",
        Verdicts::ByCase => "| asked | holds | does not hold |\n|---|---|---|\n",
    });
    for claim in &scope.of.paper.claim {
        for place in scope.along(&claim.each, claim.r#where.as_deref())? {
            let (judged, missing) = judge(claim, &place)?;
            let stated = place.fill(&claim.stated)?;
            let of = |holds: Option<bool>| {
                let wanted = judged
                    .iter()
                    .filter(|one| holds.is_none_or(|holds| one.is_ok() == holds));
                let words = wanted.map(|one| one.as_ref().unwrap_or_else(|no| no).as_str());
                words.collect::<Vec<_>>().join(&claim.between)
            };
            let _ = match verdicts {
                Verdicts::YesOrNo => {
                    let holds = !missing && judged.iter().all(Result::is_ok);
                    writeln!(
                        page,
                        "| {stated} | {} | {} |",
                        if holds { "yes" } else { "no" },
                        of(None)
                    )
                }
                Verdicts::ByCase if judged.is_empty() => Ok(()),
                Verdicts::ByCase => writeln!(
                    page,
                    "| {stated} | {} | {} |",
                    of(Some(true)),
                    of(Some(false))
                ),
            };
        }
    }
    page.push('\n');
    Ok(())
}

/// The cases of a claim, and whether some lack a run.
fn judge(claim: &Claim, scope: &Scope<'_>) -> Result<(Vec<Judged>, bool), String> {
    let (mut judged, mut missing) = (Vec::new(), false);
    for Case {
        each,
        r#where,
        needs,
        here,
        holds,
    } in &claim.case
    {
        for place in scope.along(each, r#where.as_deref())? {
            if let Some(needs) = needs
                && place.eval(needs)?.is_null()
            {
                missing = true;
                continue;
            }
            let (words, holds) = (place.fill(here)?, is_true(&place.eval(holds)?));
            judged.push(if holds { Ok(words) } else { Err(words) });
        }
    }
    Ok((judged, missing))
}

/// The evaluation as a JSON object.
///
/// # Errors
/// In words, if the evaluation's data are wrong.
pub fn json(evaluation: &Evaluation) -> Result<Value, String> {
    object(&evaluation.paper.json, &evaluation.scope())
}

fn object(fields: &BTreeMap<String, Json>, scope: &Scope<'_>) -> Result<Value, String> {
    let mut object = Map::new();
    for (name, field) in fields {
        let value = match field {
            Json::Value(text) if text == "command" => {
                let turns = Cell::at(scope)?;
                Value::from(turns.first().map(Cell::shown))
            }
            Json::Value(text) => scope.eval(text)?,
            Json::Object(fields) => self::object(fields, scope)?,
            Json::List {
                each,
                r#where,
                fields,
            } => {
                let places = match each {
                    Some(axes) => scope.along(axes, None)?,
                    None => scope.of.printed.keys().map(|key| scope.at(*key)).collect(),
                };
                let mut list = Vec::new();
                for place in places {
                    if place.holds(r#where.as_deref())? {
                        list.push(self::object(fields, &place)?);
                    }
                }
                Value::Array(list)
            }
        };
        object.insert(name.clone(), value);
    }
    Ok(Value::Object(object))
}
