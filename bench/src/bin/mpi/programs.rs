//! Whole programs: those of dhole under `dhole run`, and the same written with MPI, in turn.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use bench::Outcome;
use bench::table::{head, ratio, row};

const ROUNDS: usize = 11;

/// Starts what is to be measured.
pub fn measure(what: &str) -> Outcome<()> {
    println!(
        "two processes; of Open MPI bound to a core each (mpirun --bind-to core), which polls"
    );
    println!(
        "without pause; dhole's not bound, unless under mpirun, spinning 100 us, then yielding"
    );
    head();
    let all = what == "all";
    if all || what == "floors" {
        print!("{}", started(mpirun(2, &["as-floors", "floors"])?)?);
    }
    if what == "barrier" {
        print!("{}", started(mpirun(2, &["as-floors", "barrier"])?)?);
    }
    if all || what == "sor" {
        let size = ["--rows", "2048", "--columns", "2048", "--steps", "20"];
        let by_hand = ["as-sor", "2048", "2048", "20"];
        compare("SOR 2048x2048, 20 steps", "sor", &size, &by_hand, "<= 1.10")?;
        let ignoring = [&size[..], &["--races", "ignore"]].concat();
        let name = "SOR, races not looked for";
        compare(name, "sor", &ignoring, &by_hand, "<= 1.10")?;
        let size = [&size[..], &["--edges-first"]].concat();
        compare("SOR, edges first", "sor", &size, &by_hand, "<= 1.10")?;
        let ignoring = [&size[..], &["--races", "ignore"]].concat();
        let name = "SOR, edges first, races not looked for";
        compare(name, "sor", &ignoring, &by_hand, "<= 1.10")?;
    }
    if all || what == "sor" || what == "update" {
        let size = "--rows 2048 --columns 2048 --steps 20 --protocol update";
        let size: Vec<&str> = size.split(' ').collect();
        let by_hand = ["as-sor", "2048", "2048", "20"];
        compare("SOR, pushed (update)", "sor", &size, &by_hand, "<= 1.10")?;
    }
    if all || what == "asp" {
        let size = ["--vertices", "2048"];
        compare(
            "ASP, 2,048 vertices",
            "asp",
            &size,
            &["as-asp", "2048"],
            "<= 1.10",
        )?;
    }
    if all || what == "tsp" {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/gr17.tsp");
        let by_hand = ["as-tsp", file];
        compare("TSP, gr17", "tsp", &["--input", file], &by_hand, "<= 1.05")?;
    }
    if all || what == "barnes" {
        barnes_after(0)?;
    }
    if all || what == "crowd" {
        crowd()?;
    }
    Ok(())
}

/// Barnes-Hut alone, after so many untimed steps: cold starts are not measured then.
pub fn barnes(untimed: usize) -> Outcome<()> {
    head();
    barnes_after(untimed)
}

fn barnes_after(untimed: usize) -> Outcome<()> {
    let name = match untimed {
        0 => "Barnes-Hut, 131,072 bodies, 2 steps".to_owned(),
        untimed => format!("Barnes-Hut, 131,072 bodies, 2 steps after {untimed}"),
    };
    let untimed = untimed.to_string();
    let size = ["--bodies", "131072", "--steps", "2", "--untimed", &untimed];
    let by_hand = ["as-barnes", "131072", "2", &untimed];
    compare(&name, "barnes", &size, &by_hand, "<= 1.10")
}

fn started(mut command: Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?}: {}: {said}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// This program on processes of MPI's.
fn mpirun(nodes: usize, arguments: &[&str]) -> Outcome<Command> {
    let mut command = Command::new("mpirun");
    let nodes = nodes.to_string();
    command.args(["--allow-run-as-root", "--bind-to", "core", "-n", &nodes]);
    command.arg(std::env::current_exe()?).args(arguments);
    Ok(command)
}

/// One of dhole's programs, beside this one.
fn dhole_run(nodes: usize, program: &str, arguments: &[&str]) -> Outcome<f64> {
    let beside =
        |name: &str| Ok::<PathBuf, std::io::Error>(std::env::current_exe()?.with_file_name(name));
    let mut command = Command::new(beside("dhole")?);
    command.args(["run", "-n", &nodes.to_string(), "--"]);
    command.arg(beside(program)?).args(arguments).arg("--json");
    let said = started(command)?;
    let last: Value = serde_json::from_str(said.lines().last().unwrap_or_default())?;
    let seconds = last.get("seconds").and_then(Value::as_f64);
    Ok(seconds.ok_or("a report without seconds")?)
}

fn by_hand(arguments: &[&str]) -> Outcome<f64> {
    let said = started(mpirun(2, arguments)?)?;
    let mut words = said
        .split_whitespace()
        .skip_while(|word| *word != "seconds");
    let seconds = words.nth(1).ok_or("no seconds")?;
    Ok(seconds.parse()?)
}

fn compare(
    name: &str,
    program: &str,
    size: &[&str],
    hand_written: &[&str],
    asked: &str,
) -> Outcome<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(by_hand(hand_written)?);
        ours.push(dhole_run(2, program, size)?);
    }
    let theirs = row(&format!("{name}: written with MPI"), "s", theirs);
    let ours = row(&format!("{name}: dhole run -n 2"), "s", ours);
    ratio("to MPI", ours, theirs, asked);
    Ok(())
}

/// More processes than cores.
fn crowd() -> Outcome<()> {
    let size = ["--rows", "2048", "--columns", "2048", "--steps", "20"];
    let (mut two, mut four) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        two.push(dhole_run(2, "sor", &size)?);
        four.push(dhole_run(4, "sor", &size)?);
    }
    let two = row("SOR 2048x2048, 20 steps: dhole run -n 2", "s", two);
    let four = row("SOR 2048x2048, 20 steps: dhole run -n 4", "s", four);
    ratio("four to two", four, two, "<= 3 on two cores");
    Ok(())
}
