//! Two nodes write one object and nothing orders their writes; the report names the line that
//! allocated it and the lines of both writers: `cargo run --example race`.

use dhole::{Config, RunError};

fn main() -> Result<(), RunError> {
    let run = Config::nodes(2).run(|w| {
        let account = w.once(|w| {
            Ok(w.alloc(100_i64)) // allocated here
        })?;
        // A lock would order them: Lock::numbered(0).with(w, |w| ..).
        if w.node().index() == 0 {
            *account.get_mut(w) += 20; // one writer
        } else {
            *account.get_mut(w) -= 30; // the other writer
        }
        w.barrier()?;
        Ok(account.read(w))
    })?;
    if run.report.is_first() {
        println!("100 + 20 - 30 came to {}", run.value);
    }
    for race in &run.report.races {
        println!("{race}");
    }
    assert_eq!(run.report.races.len(), 1);
    Ok(())
}
