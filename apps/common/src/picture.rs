//! Pictures, the tiles that they are made of, and the files that they become.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use dhole::NodeId;
use serde::{Deserialize, Serialize};

use crate::input::BadFile;

/// Pixels along the side of a tile.
const SIDE: u32 = 16;

/// A part of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tile {
    /// Its first column.
    pub left: u32,
    /// Its first row.
    pub top: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Tile {
    /// The tiles of a picture of this size.
    pub fn all((width, height): (u32, u32)) -> Vec<Tile> {
        let rows = (0..height).step_by(SIDE as usize);
        let row = |top: u32| {
            let columns = (0..width).step_by(SIDE as usize);
            columns.map(move |left| Tile {
                left,
                top,
                width: SIDE.min(width - left),
                height: SIDE.min(height - top),
            })
        };
        rows.flat_map(row).collect()
    }

    /// How many pixels it has.
    pub fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }
}

/// A picture of 8 bits each of red, green and blue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Picture {
    /// A black one.
    pub fn black((width, height): (u32, u32)) -> Picture {
        Picture {
            width,
            height,
            pixels: vec![0; 3 * width as usize * height as usize],
        }
    }

    /// The bytes, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Copies a tile to its place. Pixels outside the picture are left out.
    pub fn put(&mut self, tile: Tile, pixels: &[u8]) {
        let line = 3 * tile.width as usize;
        for (row, bytes) in pixels.chunks_exact(line.max(1)).enumerate() {
            let first = (tile.top as usize + row) * self.width as usize + tile.left as usize;
            if let Some(place) = self.pixels.get_mut(3 * first..3 * first + line) {
                place.copy_from_slice(bytes);
            }
        }
    }

    /// Paints a pixel. One outside is left out.
    pub fn paint(&mut self, (column, row): (u32, u32), colour: [u8; 3]) {
        if column < self.width && row < self.height {
            let pixel = row as usize * self.width as usize + column as usize;
            self.pixels[3 * pixel..3 * pixel + 3].copy_from_slice(&colour);
        }
    }

    /// Writes a PNG.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, path: &Path) -> Result<(), Unwritten> {
        write_animation([self].into_iter(), 0, path)
    }
}

/// Why a picture is not written.
pub type Unwritten = png::EncodingError;

/// Writes an animated PNG, which begins anew for ever, or a plain one if there is one frame. Each
/// frame is shown for `shown_ms` milliseconds.
///
/// # Errors
/// Those of the file; that of the format if the frames differ in size.
///
/// # Panics
/// If there is no frame.
pub fn write_animation<P: Borrow<Picture>>(
    mut frames: impl ExactSizeIterator<Item = P>,
    shown_ms: u16,
    path: &Path,
) -> Result<(), Unwritten> {
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let first = frames.next().expect("a picture has a frame");
    let first = first.borrow();
    let mut file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(&mut file, first.width, first.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    if count > 1 {
        encoder.set_animated(count, 0)?;
        encoder.set_frame_delay(shown_ms, 1000)?;
    }
    let mut picture = encoder.write_header()?;
    picture.write_image_data(&first.pixels)?;
    for frame in frames {
        picture.write_image_data(&frame.borrow().pixels)?;
    }
    picture.finish()?;
    // A value that is dropped cannot say that the disk is full.
    Ok(file.flush()?)
}

/// Tests on node 0, which writes the picture, that its file can be written, before a long run makes
/// it. What is in the file stays there; one that was not there is not there afterwards.
///
/// # Errors
/// [`BadFile::Unwritable`], as where there is no such folder, or it is a folder itself.
pub fn check_writable(path: &Path) -> Result<(), BadFile> {
    // Whatever is wrong with the cluster is said where the program joins it.
    let process = dhole::process().ok().flatten();
    if process.is_some_and(|process| process.node != NodeId(0)) {
        return Ok(());
    }
    opens(path).map_err(|cause| BadFile::Unwritable {
        path: path.display().to_string(),
        cause: cause.to_string(),
    })
}

fn opens(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        // Opening a pipe may wait for its reader, and opening a device may do something.
        Ok(it) if !it.is_file() && !it.is_dir() => Ok(()),
        Ok(_) => File::options().write(true).open(path).map(drop),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            drop(File::create_new(path)?);
            fs::remove_file(path)
        }
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pixel_is_painted_where_it_is_and_none_outside() {
        let mut picture = Picture::black((3, 2));
        picture.paint((1, 1), [7, 8, 9]);
        let mut expected = picture.pixels().to_vec();
        assert_eq!(expected[12..15], [7, 8, 9]);
        expected[12..15].fill(0);
        assert_eq!(expected, [0; 18]);
        let before = picture.clone();
        picture.paint((3, 0), [1; 3]);
        picture.paint((0, 2), [1; 3]);
        assert_eq!(picture, before);
    }

    #[test]
    fn a_file_is_tested_and_left_as_it_is() {
        let folder = std::env::temp_dir().join(format!("dhole-picture-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("a.png");
        assert_eq!(check_writable(&file), Ok(()));
        assert!(!file.exists());
        fs::write(&file, "kept").unwrap();
        assert_eq!(check_writable(&file), Ok(()));
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        for wrong in [&folder, &folder.join("none/a.png"), &file.join("a.png")] {
            let words = check_writable(wrong).unwrap_err().to_string();
            let begin = format!("writing {}: ", wrong.display());
            assert!(words.starts_with(&begin), "{words}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tiles_cover_a_picture_once() {
        let size = (35, 18);
        let mut picture = Picture::black(size);
        for tile in Tile::all(size) {
            picture.put(tile, &vec![1; 3 * tile.pixels()]);
        }
        assert!(picture.pixels().iter().all(|byte| *byte == 1));
        let pixels: usize = Tile::all(size).into_iter().map(Tile::pixels).sum();
        assert_eq!(pixels, 35 * 18);
    }
}
