//! Caches what runs have printed, so that an interrupted evaluation can go on.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cell::Cell;
use crate::error::PaperError;

/// The cache: a folder with what runs have printed.
pub struct ResultCache {
    folder: PathBuf,
    /// The folder of `dhole` and the programs.
    programs: PathBuf,
    /// Set by Ctrl-C: runs in progress are finished and kept, and no other begins.
    interrupted: &'static AtomicBool,
}

/// A run in the cache.
#[derive(Serialize, Deserialize)]
struct Kept {
    command: String,
    /// Bytes and time of last change of `dhole` and the program. Another build runs again.
    build: [u64; 4],
    printed: Value,
}

impl ResultCache {
    /// Opens the cache in `folder`, which is made if it is missing, for the programs beside this
    /// one.
    ///
    /// # Errors
    /// [`PaperError::Folder`] if it cannot be made, or this program cannot be found.
    pub fn open(
        folder: &Path,
        interrupted: &'static AtomicBool,
    ) -> Result<ResultCache, PaperError> {
        let cells = folder.join("cells");
        let failed = |cause| PaperError::Folder {
            folder: cells.clone(),
            cause,
        };
        fs::create_dir_all(&cells).map_err(failed)?;
        let own = std::env::current_exe().map_err(failed)?;
        let programs = own.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(ResultCache {
            folder: cells,
            programs,
            interrupted,
        })
    }

    /// What `cells` have printed, each from the cache or run now, `at_once` at a time. A run that
    /// fails has none, and the others go on.
    ///
    /// # Errors
    /// [`PaperError::Interrupted`]; [`PaperError::NoProgram`].
    pub fn fetch(
        &self,
        cells: &[Cell],
        at_once: usize,
    ) -> Result<Vec<Result<Value, PaperError>>, PaperError> {
        let found: Vec<_> = cells.iter().map(|_| Mutex::new(None)).collect();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for cell in cells {
            self.build(cell)?;
        }
        std::thread::scope(|scope| {
            for _ in 0..at_once.clamp(1, cells.len().max(1)) {
                scope.spawn(|| {
                    while !self.interrupted.load(Ordering::Relaxed) {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = cells.get(place) else {
                            return;
                        };
                        let outcome = self.one(cell);
                        let failed = outcome.as_ref().err().map(PaperError::to_string);
                        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                        let said = failed.unwrap_or_else(|| cell.name.clone());
                        let all = cells.len();
                        // Nobody need be there to read how far it is.
                        let _ = writeln!(io::stderr(), "{count}/{all}: {said}");
                        *found[place].lock().expect("nobody panics with it") = Some(outcome);
                    }
                });
            }
        });
        let found = found.into_iter().map(|one| one.into_inner().ok().flatten());
        let found: Option<Vec<_>> = found.collect();
        found
            .filter(|_| !self.interrupted.load(Ordering::Relaxed))
            .ok_or(PaperError::Interrupted {
                kept: self.folder.clone(),
            })
    }

    fn one(&self, cell: &Cell) -> Result<Value, PaperError> {
        let (command, build) = (cell.shown(), self.build(cell)?);
        let path = self.folder.join(format!("{}.json", cell.name));
        let kept = fs::read_to_string(&path).ok();
        let kept = kept.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        if let Some(kept) = kept.filter(|kept| kept.command == command && kept.build == build) {
            return Ok(kept.printed);
        }
        let printed = cell.run(&self.programs)?;
        let kept = Kept {
            command,
            build,
            printed,
        };
        let text = serde_json::to_string_pretty(&kept).expect("numbers and words");
        // Written beside and moved, so that no half of a run is ever found.
        let beside = path.with_extension("part");
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(|cause| PaperError::Folder {
                folder: path,
                cause,
            })?;
        Ok(kept.printed)
    }

    fn build(&self, cell: &Cell) -> Result<[u64; 4], PaperError> {
        let (dhole, program) = (self.stamp("dhole")?, self.stamp(&cell.program)?);
        Ok([dhole[0], dhole[1], program[0], program[1]])
    }

    fn stamp(&self, program: &str) -> Result<[u64; 2], PaperError> {
        let path = self.programs.join(program);
        let known = fs::metadata(&path).and_then(|m| Ok((m.len(), m.modified()?)));
        let (bytes, changed) = known.map_err(|cause| PaperError::NoProgram { path, cause })?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok([bytes, changed.as_nanos() as u64])
    }
}
