//! A process whose argument is borrowed.

use dhole::{Worker, op};

fn greet(_w: &mut Worker<'_>, name: &str) -> dhole::Result<usize> {
    Ok(name.len())
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let length = w.spawn(dhole::anywhere(), "a name", op!(greet))?;
        Ok(length.join(w)?)
    })?;
    Ok(())
}
