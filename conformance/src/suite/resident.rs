//! Objects that stay where they are made, of types whose state never becomes bytes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use dhole::{NodeId, Object, ObjectError, Refusal, on, replicated};

use super::succeed;
use crate::Platform;

/// Lines in a file that only its node has open.
struct Journal {
    file: File,
}

#[dhole::object(crate = "dhole", resident)]
impl Journal {
    /// Opens a new file in a folder. It has no name, so it is gone with the object.
    #[new]
    pub fn open(folder: &str) -> io::Result<Self> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(folder);
        let path = folder.join(format!("dhole-journal-{}-{number}", process::id()));
        let file = File::options()
            .create_new(true)
            .read(true)
            .append(true)
            .open(&path)?;
        fs::remove_file(path)?;
        Ok(Journal { file })
    }

    pub fn write(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.file, "{line}").map_err(|error| error.to_string())
    }

    pub fn lines(&mut self) -> Result<Vec<String>, String> {
        let mut text = String::new();
        let file = &mut self.file;
        let read = file.seek(SeekFrom::Start(0));
        let read = read.and_then(|_| file.read_to_string(&mut text));
        read.map_err(|error| error.to_string())?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn cause<R: std::fmt::Debug>(called: Result<R, ObjectError>) -> Refusal {
    match called {
        Err(ObjectError::Refused { cause, .. } | ObjectError::NotMade { cause, .. }) => cause,
        other => panic!("not refused: {other:?}"),
    }
}

/// All nodes write to a file that one of them has open, in whole lines.
pub fn a_resident_object_serves_all_nodes(on_: &dyn Platform) {
    const EACH: usize = 8;
    for at in 0..3 {
        succeed(on_, 3, |w| {
            let journal = w.once(|w| Ok(Journal::open_in(w, on(NodeId(at)), "")?))?;
            for line in 0..EACH {
                journal.write(w, &format!("{} {line}", w.node()))?.unwrap();
            }
            w.barrier()?;
            let mut lines = journal.lines(w)?.unwrap();
            lines.sort();
            let all =
                (0..3).flat_map(|node| (0..EACH).map(move |line| format!("node {node} {line}")));
            assert!(lines.into_iter().eq(all));
            w.barrier()?;
            Ok(())
        });
    }
}

/// It is not copied, moved or compared; and what only a constructor can make nothing else makes.
pub fn a_resident_object_stays_on_its_node(on_: &dyn Platform) {
    succeed(on_, 2, |w| {
        let journal = w.once(|w| Ok(Journal::open_in(w, on(NodeId(1)), "")?))?;
        let me = w.node();
        assert_eq!(
            cause(Object::strategy(&journal, w, on(me))),
            Refusal::Resident
        );
        let copies = Object::strategy(&journal, w, replicated());
        assert_eq!(cause(copies), Refusal::Resident);
        assert_eq!(cause(Object::compare(&journal, w)), Refusal::Resident);
        assert_eq!(
            cause(Journal::open_in(w, replicated(), "")),
            Refusal::Resident
        );
        let value = Journal::open("").map_err(dhole::Error::program)?;
        assert_eq!(cause(w.new_object(on(me), value)), Refusal::Resident);
        let nowhere = cause(Journal::open_in(w, on(NodeId(1)), "no/such/folder"));
        assert!(matches!(nowhere, Refusal::Failed(_)), "{nowhere}");
        journal.write(w, "still here")?.unwrap();
        w.barrier()?;
        assert_eq!(journal.lines(w)?.unwrap().len(), 2);
        w.barrier()?;
        if me == NodeId(0) {
            Object::free(&journal, w)?;
        }
        w.barrier()?;
        assert_eq!(cause(journal.lines(w)), Refusal::Freed(NodeId(0)));
        Ok(())
    });
}
