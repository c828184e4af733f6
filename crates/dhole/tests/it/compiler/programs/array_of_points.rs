//! An array of zeros, whose elements are no numbers.

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let points = w.alloc_array::<[f64; 3]>(100);
        Ok(points.len())
    })?;
    Ok(())
}
