//! Pictures, and the tiles that they are made of.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

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

    /// Writes a PNG.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, path: &Path) -> Result<(), png::EncodingError> {
        let mut file = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut picture = encoder.write_header()?;
        picture.write_image_data(&self.pixels)?;
        picture.finish()?;
        // A value that is dropped cannot say that the disk is full.
        Ok(file.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
