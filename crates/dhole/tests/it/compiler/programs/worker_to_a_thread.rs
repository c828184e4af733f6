//! A thread that writes.

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let shared = w.alloc(7_u64);
        std::thread::scope(|scope| {
            scope.spawn(|| *shared.get_mut(w) = 8);
        });
        Ok(())
    })?;
    Ok(())
}
