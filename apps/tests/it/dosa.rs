//! Cells of DOSA's evaluation at 32 nodes: they count just what they counted when their page was
//! made. The command lines are those of `dhole paper dosa`, and print what `dosa-cells.json` keeps.

use std::process::Command;

use dhole::Defaults;
use dhole::sim::{Computation, Description, ENVIRONMENT_VARIABLE, Settings};
use serde_json::{Value, json};

const NODES: usize = 32;

/// The settings that `dhole sim --nodes=32 --network=dosa-1999 --fixed-cost=unit_ns
/// --barrier=central` makes, but for the barriers.
fn settings(unit_ns: f64) -> Settings {
    let mut settings = Settings::new(NODES);
    settings.set_network(Description::find("dosa-1999").unwrap());
    settings.computation = Computation::FixedCost { unit_ns };
    settings
}

/// What a cell counts in its measured steps, under the names that are kept.
fn counted(cell: &Value) -> Value {
    let program = match cell["program"].as_str().unwrap() {
        "sor" => env!("CARGO_BIN_EXE_sor"),
        "water-spatial" => env!("CARGO_BIN_EXE_water-spatial"),
        other => panic!("{other} is no program of these cells"),
    };
    let arguments = cell["arguments"].as_str().unwrap();
    let settings = settings(cell["unit_ns"].as_f64().unwrap());
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .env(ENVIRONMENT_VARIABLE, settings.to_string())
        .env(Defaults::BARRIER, "central")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let printed: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let kept = cell["counts"].as_object().unwrap().keys();
    let found = kept.map(|name| match name.as_str() {
        "seconds" => (name.clone(), printed["seconds"].clone()),
        name => (name.to_owned(), printed["measured"][name].clone()),
    });
    Value::Object(found.collect())
}

fn count_as_kept(size: &str) {
    let kept: Value = serde_json::from_str(include_str!("dosa-cells.json")).unwrap();
    let cells = kept[size].as_array().unwrap();
    let found: Vec<Value> = std::thread::scope(|scope| {
        let runs: Vec<_> = cells
            .iter()
            .map(|cell| scope.spawn(|| counted(cell)))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (cell, found) in cells.iter().zip(found) {
        let (program, arguments) = (&cell["program"], &cell["arguments"]);
        let cell = json!({"unit_ns": cell["unit_ns"], "counts": &cell["counts"]});
        let found = json!({"unit_ns": cell["unit_ns"], "counts": found});
        assert_eq!(found, cell, "{program} {arguments}");
    }
}

#[test]
fn small_cells_of_dosas_evaluation_count_what_they_counted() {
    count_as_kept("small");
}

#[test]
#[ignore = "ten seconds of a core: cargo test --release -p apps --test it dosa -- --ignored"]
fn cells_of_dosas_evaluation_count_what_they_counted() {
    count_as_kept("full");
}
