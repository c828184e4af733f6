//! As a closure for rayon: it is called from several threads at once.

fn for_each(numbers: &[u32], f: impl Fn(u32) + Sync + Send) {
    numbers.iter().for_each(|number| f(*number));
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let shared = w.alloc(7_u64);
        for_each(&[1, 2, 3], |_| assert_eq!(shared.read(w), 7));
        Ok(())
    })?;
    Ok(())
}
