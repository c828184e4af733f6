//! As one of `anyhow`: it is no error of the standard library, and becomes a boxed one.

struct Report;

impl From<Report> for Box<dyn std::error::Error + Send + Sync> {
    fn from(_: Report) -> Self {
        "a report".into()
    }
}

fn report() -> Result<u64, Report> {
    Err(Report)
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|_w| Ok(report()?))?;
    Ok(())
}
