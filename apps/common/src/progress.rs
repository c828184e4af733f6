//! A progress bar for the steps of a run, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how many steps of a run are done, unless standard error is no terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `steps` steps, named `what`.
    pub fn new(what: &'static str, steps: usize) -> Progress {
        // At most ten times a second: drawing must not show in what is measured.
        let bar = ProgressBar::with_draw_target(
            Some(steps as u64),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let style = ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len} steps, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(what);
        Progress { bar }
    }

    /// `steps` steps are done.
    pub fn done(&self, steps: usize) {
        self.bar.set_position(steps as u64);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
