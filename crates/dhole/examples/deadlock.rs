//! The program of the README with a mistake: every node takes two locks, in an order of its own. It
//! ends with an error that names who waits for what, and where in the program.

use dhole::{Config, Lock, Ref, Share};

#[derive(Share, Clone, Copy)]
struct Account {
    balance: i64,
    next: Option<Ref<Account>>,
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(2).run(|w| {
        let account = w.once(|w| {
            let other = w.alloc(Account {
                balance: 0,
                next: None,
            });
            Ok(w.alloc(Account {
                balance: 100,
                next: Some(other),
            }))
        })?;
        let locks = [Lock::numbered(1), Lock::numbered(2)];
        let me = w.node().index();
        let mine = locks[me].acquire(w)?;
        w.barrier()?; // now each has one
        let others = locks[1 - me].acquire(w)?; // ... and waits for the other's
        if let Some(to) = account.read(w).next {
            account.get_mut(w).balance -= 10;
            to.get_mut(w).balance += 10;
        }
        others.release(w)?;
        mine.release(w)?;
        Ok(account.read(w).balance)
    })?;
    println!(
        "{} after {} messages",
        run.value,
        run.report.total().messages
    );
    Ok(())
}
