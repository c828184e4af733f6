//! Readers and writers: one node changes a table now and then, the others look things up in it,
//! many at once. A read-write lock lets them.

use dhole::{Config, RwLock, Share};

/// The entries add up to zero, whenever somebody may look.
#[derive(Share, Clone, Copy)]
struct Table {
    entries: [i64; 16],
    changes: u64,
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(4).run(|w| {
        let empty = Table {
            entries: [0; 16],
            changes: 0,
        };
        let table = w.once(|w| Ok(w.alloc(empty)))?;
        let lock = RwLock::numbered(0);
        if w.node().index() == 0 {
            for change in 0..20 {
                lock.with_write(w, |w| {
                    let table = table.get_mut(w);
                    table.entries[change % 16] += 1;
                    table.entries[(change + 5) % 16] -= 1; // nobody sees it without this
                    table.changes += 1;
                    Ok(())
                })?;
            }
        } else {
            let mut seen = 0;
            while seen < 20 {
                // Other readers may be here at the same time; the writer is not.
                let held = lock.read(w)?;
                let Table { entries, changes } = table.get(w);
                assert_eq!(
                    entries.iter().sum::<i64>(),
                    0,
                    "no half of a change is seen"
                );
                assert!(*changes >= seen, "and none is taken back");
                seen = *changes;
                held.release(w)?;
            }
        }
        w.barrier()?;
        Ok(table.get(w).changes)
    })?;
    assert_eq!(run.value, 20);
    if run.report.is_first() {
        let messages = run.report.total().messages;
        println!("{} changes, {messages} messages", run.value);
    }
    Ok(())
}
