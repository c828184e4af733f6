//! An operation is started that gives something back in its arguments.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Numbers(Vec<f64>);

#[dhole::object(client = u64)]
impl Numbers {
    pub fn read(&self, #[out] into: &mut [f64]) {
        into.copy_from_slice(&self.0);
    }
    pub fn next(&self, place: &mut u64) -> f64 {
        *place += 1;
        self.0[*place as usize]
    }
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.new_object(dhole::replicated(), Numbers::default())?))?;
        let mut into = [];
        numbers.start_read(w, &mut into)?.wait(w)?;
        dhole::Client::of(numbers, 0).start_next(w)?.wait(w)?;
        Ok(())
    })?;
    Ok(())
}
