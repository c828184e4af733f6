//! Several objects at once: `cargo run --example borrow`.

use dhole::{Config, Read, RunError, Write};

fn main() -> Result<(), RunError> {
    let run = Config::nodes(2).run(|w| {
        let rows = w.once(|w| Ok(w.alloc_rows::<f64>(3, 4)))?;
        if w.node().index() == 1 {
            rows.row(0).get_mut(w).fill(1.0);
            rows.row(1).get_mut(w).fill(2.0);
        }
        w.barrier()?;
        let (sum, a, b) = w.borrow((Write(rows.row(2)), Read(rows.row(0)), Read(rows.row(1))))?;
        for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
            *sum = a + b;
        }
        w.barrier()?;
        let same = rows.row(2);
        let overlap = w.borrow((Write(same), Read(same))).map(drop).unwrap_err();
        println!("{}: {:?}, and {overlap}", w.node(), same.get(w));
        Ok(same.get(w)[0])
    })?;
    assert_eq!(run.value, 3.0);
    Ok(())
}
