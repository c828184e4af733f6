//! Writes when the nodes of a run waited: the JSON of Chrome's trace viewer, which Perfetto and
//! speedscope read too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use dhole_model::{Timeline, TimelineSpan, Track, unpoisoned};

use crate::cost_report::quote;
use crate::words::{Place, short};

/// How many runs of this process have written to each file.
static WRITTEN: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// The file of the next run that is to write to `path`: for the second run of the process
/// `name.2.json` beside `name.json`, and so on.
fn next(path: &Path) -> PathBuf {
    let mut written = unpoisoned::lock(&WRITTEN);
    let runs = written.entry(path.to_owned()).or_default();
    *runs += 1;
    if *runs == 1 {
        return path.to_owned();
    }
    let extension = path.extension().map(|it| it.to_string_lossy());
    let extension = extension.map_or(runs.to_string(), |it| format!("{runs}.{it}"));
    path.with_extension(extension)
}

/// The file of a run that has begun.
pub(crate) struct TimelineFile {
    path: PathBuf,
    file: File,
}

impl TimelineFile {
    /// Makes the file of a run that begins.
    pub fn begin(path: &Path) -> io::Result<TimelineFile> {
        let path = next(path);
        let file = File::create(&path)?;
        Ok(TimelineFile { path, file })
    }

    /// Ends the file of a run that has failed: with what is known of its nodes, or else without a
    /// file.
    pub fn end_failed(self, of: [&str; 2], timelines: &[Option<Timeline>]) -> io::Result<()> {
        if timelines.iter().any(Option::is_some) {
            return self.write(of, timelines);
        }
        std::fs::remove_file(&self.path)
    }

    /// Writes the timelines of all nodes of a run over a transport, with a protocol.
    pub fn write(
        self,
        [transport, protocol]: [&str; 2],
        timelines: &[Option<Timeline>],
    ) -> io::Result<()> {
        let mut out = BufWriter::new(self.file);
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"transport\":");
        quote(&mut text, transport);
        text += ",\"protocol\":";
        quote(&mut text, protocol);
        text += "},\"traceEvents\":[\n";
        let mut events = Events {
            text,
            out: &mut out,
            is_first: true,
        };
        for (node, timeline) in timelines.iter().enumerate() {
            if let Some(timeline) = timeline {
                events.node(node, timeline)?;
            }
        }
        events.text += "\n]}\n";
        events.flush()?;
        out.flush()
    }
}

struct Events<'a, W> {
    out: &'a mut W,
    text: String,
    is_first: bool,
}

/// The number of a track in the file.
fn number(track: Track) -> u64 {
    match track {
        Track::Process(number) => number.into(),
        Track::Thread(number) => (1 << 32) + u64::from(number),
    }
}

/// Nanoseconds as the microseconds of the format.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// The duration of a slice, a hundredth of a nanosecond short. A viewer adds it to the beginning in
/// floating point. Rounded up, the slice would overlap the next one, which would be drawn in it.
fn duration(ns: u64) -> String {
    let hundredths = (ns * 100).saturating_sub(1);
    format!("{}.{:05}", hundredths / 100_000, hundredths % 100_000)
}

impl<W: Write> Events<'_, W> {
    /// Begins an event of a kind.
    fn event(&mut self, kind: char, node: usize, track: u64, name: &str) -> io::Result<()> {
        const FULL: usize = 1 << 16;
        if self.text.len() >= FULL {
            self.flush()?;
        }
        if !std::mem::take(&mut self.is_first) {
            self.text += ",\n";
        }
        self.text += &format!("{{\"ph\":\"{kind}\",\"pid\":{node},\"tid\":{track},\"name\":");
        quote(&mut self.text, name);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
        let text = crate::memory::with_names(std::mem::take(&mut self.text));
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
        let text = std::mem::take(&mut self.text);
        self.out.write_all(text.as_bytes())
    }

    /// Names a node, or one of its tracks.
    fn named(&mut self, what: &str, node: usize, track: u64, name: &str) -> io::Result<()> {
        self.event('M', node, track, what)?;
        self.text += ",\"args\":{\"name\":";
        quote(&mut self.text, name);
        self.text += "}}";
        Ok(())
    }

    fn node(&mut self, node: usize, timeline: &Timeline) -> io::Result<()> {
        self.named("process_name", node, 0, &format!("node {node}"))?;
        let mut tracks: BTreeSet<Track> = timeline.spans.iter().map(|span| span.track).collect();
        tracks.insert(Track::Process(0));
        for track in tracks {
            let name = match track {
                Track::Process(0) => "program".to_owned(),
                Track::Process(number) => format!("process {number}"),
                Track::Thread(number) => format!("thread {number}"),
            };
            self.named("thread_name", node, number(track), &name)?;
            let mut spans: Vec<&TimelineSpan> = timeline
                .spans
                .iter()
                .filter(|it| it.track == track)
                .collect();
            spans.sort_by_key(|span| span.began_ns);
            if track == Track::Process(0) {
                self.program(node, timeline, &spans)?;
            } else {
                for span in spans {
                    self.wait(node, timeline, span)?;
                }
            }
        }
        Ok(())
    }

    /// The program's track: its waits, and between them what it computed.
    fn program(
        &mut self,
        node: usize,
        timeline: &Timeline,
        spans: &[&TimelineSpan],
    ) -> io::Result<()> {
        let mut from_ns = 0;
        for span in spans {
            self.computed(node, timeline, [from_ns, span.began_ns])?;
            self.wait(node, timeline, span)?;
            from_ns = span.began_ns + span.took_ns;
        }
        self.computed(node, timeline, [from_ns, timeline.took_ns])?;
        // An instant at the end says what no slice can.
        self.event('i', node, 0, "the program is over")?;
        let Timeline {
            took_ns,
            processor_ns,
            left_out,
            left_out_ns,
            ..
        } = *timeline;
        let at = micros(timeline.began_ns + took_ns);
        self.text += &format!(
            ",\"s\":\"t\",\"ts\":{at},\"args\":{{\"took_ns\":{took_ns},\
             \"processor_ns\":{processor_ns},\"short_waits_left_out\":{left_out},\
             \"left_out_ns\":{left_out_ns}}}}}"
        );
        Ok(())
    }

    fn computed(&mut self, node: usize, timeline: &Timeline, times: [u64; 2]) -> io::Result<()> {
        let [from_ns, to_ns] = times;
        if to_ns <= from_ns {
            return Ok(());
        }
        self.event('X', node, 0, "computing")?;
        let (at, took) = (
            micros(timeline.began_ns + from_ns),
            duration(to_ns - from_ns),
        );
        self.text += &format!(",\"cat\":\"computing\",\"ts\":{at},\"dur\":{took}}}");
        Ok(())
    }

    fn wait(&mut self, node: usize, timeline: &Timeline, span: &TimelineSpan) -> io::Result<()> {
        let place = &timeline.places[span.place as usize];
        let phase = singular(place.phase);
        let name = format!("{phase} {}", Place(&place.site));
        self.event('X', node, number(span.track), &name)?;
        let (at, took) = (
            micros(timeline.began_ns + span.began_ns),
            duration(span.took_ns),
        );
        self.text += &format!(",\"cat\":\"{phase}\",\"ts\":{at},\"dur\":{took}");
        if let Some(processor_ns) = span.processor_ns {
            self.text += &format!(",\"tdur\":{}", micros(processor_ns));
        }
        self.text += ",\"args\":{\"at\":";
        quote(&mut self.text, &place.site.to_string());
        if !place.what.is_empty() {
            self.text += ",\"what\":";
            quote(&mut self.text, &short(&place.what));
        }
        if span.stands_for > 1 {
            self.text += &format!(",\"stands_for\":{}", span.stands_for);
        }
        self.text += "}}";
        Ok(())
    }
}

/// What a slice of a phase is called.
fn singular(phase: dhole_model::Phase) -> &'static str {
    use dhole_model::Phase;
    match phase {
        Phase::Computing => "computing",
        Phase::Miss => "miss",
        Phase::OneSided => "one-sided read",
        Phase::Lock => "lock",
        Phase::Barrier => "barrier",
        Phase::Operation => "operation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_runs_of_a_process_write_to_files_of_their_own() {
        let path = Path::new("a.b/runs.json");
        let names: Vec<PathBuf> = (0..3).map(|_| next(path)).collect();
        assert_eq!(names[0], path);
        assert_eq!(names[1], Path::new("a.b/runs.2.json"));
        assert_eq!(names[2], Path::new("a.b/runs.3.json"));
        assert_eq!(next(Path::new("a.b/runs")), Path::new("a.b/runs"));
        assert_eq!(next(Path::new("a.b/runs")), Path::new("a.b/runs.2"));
    }

    #[test]
    fn a_run_without_a_timeline_leaves_no_file_if_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let file = TimelineFile::begin(&path).unwrap();
        assert!(path.exists());
        file.end_failed(["threads", "lazy"], &[None, None]).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn times_are_microseconds_to_the_nanosecond() {
        assert_eq!(micros(1_234_005), "1234.005");
        assert_eq!(micros(7), "0.007");
        assert_eq!(duration(1_234_005), "1234.00499");
        assert_eq!(duration(1), "0.00099");
        assert_eq!(duration(0), "0.00000");
    }

    #[test]
    fn no_slice_overlaps_the_next_one_in_the_numbers_of_a_viewer() {
        let number = |text: String| -> f64 { text.parse().unwrap() };
        let mut from_ns = 1;
        for took_ns in (1..30_000).map(|it| it * it) {
            let to_ns = from_ns + took_ns;
            assert!(number(micros(from_ns)) + number(duration(took_ns)) < number(micros(to_ns)));
            from_ns = to_ns;
        }
        assert!(from_ns > 8_000_000_000_000, "hours");
    }
}
