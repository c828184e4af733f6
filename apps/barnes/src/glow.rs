//! Points of light on a dark plate: each glows a little, and their density is seen over several
//! powers of ten.

use apps_common::picture::Picture;

/// How bright a point is where it lies, and how bright is what its two halos spread.
const POINT: f32 = 0.3;
const HALOS: [(usize, f32); 2] = [(2, 0.7), (16, 0.35)];

/// The part of the pixels with points that is not quite white.
const BELOW_WHITE: f64 = 0.98;

/// So many times darker than white, equal steps of the scale begin to be equal factors of light.
const DEPTH: f32 = 60.0;

/// From this part of the scale on, colours fade to white.
const FADING: f32 = 0.7;

/// Bits of a colour that are left out. No eye sees them, and the file is a third smaller.
const UNSEEN_BITS: u8 = 0b11;

/// Red, green and blue.
type Light = [f32; 3];

/// The light that has fallen on each pixel, row by row.
#[derive(Clone, Debug)]
pub struct Plate {
    width: usize,
    height: usize,
    light: Vec<Light>,
}

impl Plate {
    /// A plate without light.
    pub fn new((width, height): (u32, u32)) -> Plate {
        let (width, height) = (width as usize, height as usize);
        Plate {
            width,
            height,
            light: vec![[0.0; 3]; width * height],
        }
    }

    /// Adds light to a pixel. One outside is left out.
    pub fn add(&mut self, (column, row): (usize, usize), light: Light) {
        if column < self.width && row < self.height {
            let pixel = &mut self.light[row * self.width + column];
            *pixel = mix(*pixel, light, 1.0);
        }
    }

    /// The picture: every point with its halos, on a scale on which the brightest is white.
    pub fn develop(&self) -> Picture {
        let mut light: Vec<Light> = self.light.iter().map(|at| at.map(|c| POINT * c)).collect();
        for (reach, share) in HALOS {
            for (sum, halo) in light.iter_mut().zip(self.blurred(reach)) {
                *sum = mix(*sum, halo, share);
            }
        }
        let has_point = |(own, _): &(&Light, &Light)| own.iter().any(|colour| *colour > 0.0);
        let points = self.light.iter().zip(&light).filter(has_point);
        let mut points: Vec<f32> = points.map(|(_, light)| brightness(light)).collect();
        points.sort_unstable_by(f32::total_cmp);
        let white = points.get((points.len() as f64 * BELOW_WHITE) as usize);
        let white = white.copied().unwrap_or(1.0);
        let scale = |bright: f32| (DEPTH * bright / white).asinh() / DEPTH.asinh();

        let mut picture = Picture::black((self.width as u32, self.height as u32));
        for (place, light) in (0..).zip(&light) {
            let bright = brightness(light);
            if bright > 0.0 {
                let seen = scale(bright);
                let fade = (1.5 * (seen - FADING)).clamp(0.0, 1.0);
                let colour = light.map(|colour| {
                    let colour = colour * seen / bright;
                    let faded = colour + fade * (1.0 - colour).max(0.0);
                    (255.0 * faded.clamp(0.0, 1.0)) as u8 & !UNSEEN_BITS
                });
                let width = self.width as u32;
                picture.paint((place % width, place / width), colour);
            }
        }
        picture
    }

    /// The light, spread over a bell of about this reach: thrice over a square.
    fn blurred(&self, reach: usize) -> Vec<Light> {
        let (width, height) = (self.width, self.height);
        let mut light = self.light.clone();
        for _ in 0..3 {
            let mut across = vec![[0.0; 3]; light.len()];
            for row in 0..height {
                smear(&light, &mut across, (row * width, 1, width), reach);
            }
            for column in 0..width {
                smear(&across, &mut light, (column, width, height), reach);
            }
        }
        light
    }
}

/// Makes each pixel of a line the mean of those within `reach`. The line begins at the pixel
/// `first`, goes in strides of `stride`, and has `length` pixels.
fn smear(
    from: &[Light],
    to: &mut [Light],
    (first, stride, length): (usize, usize, usize),
    reach: usize,
) {
    let at = |i: usize| first + i * stride;
    let share = 1.0 / (2 * reach + 1) as f64;
    let mut sum = [0.0_f64; 3];
    let mut count = |light: Light, sign: f64| {
        sum = std::array::from_fn(|c| sum[c] + sign * f64::from(light[c]));
        sum.map(|c| (c * share).max(0.0) as f32)
    };
    for i in 0..reach.min(length) {
        count(from[at(i)], 1.0);
    }
    for i in 0..length {
        let next = i + reach;
        let coming = if next < length {
            from[at(next)]
        } else {
            [0.0; 3]
        };
        to[at(i)] = count(coming, 1.0);
        if i >= reach {
            count(from[at(i - reach)], -1.0);
        }
    }
}

fn mix(sum: Light, more: Light, share: f32) -> Light {
    std::array::from_fn(|c| sum[c] + share * more[c])
}

/// How bright the eye finds it.
fn brightness([red, green, blue]: &Light) -> f32 {
    0.3 * red + 0.5 * green + 0.2 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blurred_plate_has_the_same_light_elsewhere() {
        let mut plate = Plate::new((40, 40));
        plate.add((20, 20), [1.0, 0.5, 0.0]);
        let blurred = plate.blurred(2);
        let sum: f32 = blurred.iter().map(|light| light[0]).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        let at = |column: usize, row: usize| blurred[row * 40 + column][0];
        assert!(at(20, 20) > at(21, 20) && at(21, 20) > at(23, 20));
        assert_eq!(at(18, 21), at(22, 19), "it is as wide on both sides");
        assert_eq!(at(27, 20), 0.0, "it ends");
    }

    #[test]
    fn a_plate_without_light_is_black() {
        let picture = Plate::new((3, 2)).develop();
        assert_eq!(picture.pixels(), [0; 18]);
    }

    #[test]
    fn what_has_a_hundred_times_the_light_is_brighter_and_both_are_seen() {
        let mut plate = Plate::new((200, 100));
        for _ in 0..100 {
            plate.add((50, 50), [0.2, 0.3, 1.0]);
        }
        plate.add((150, 50), [0.2, 0.3, 1.0]);
        let picture = plate.develop();
        let blue = |column: usize| picture.pixels()[3 * (50 * 200 + column) + 2];
        assert!(
            blue(50) > blue(150) && blue(150) > 40,
            "{}, {}",
            blue(50),
            blue(150)
        );
        let red = picture.pixels()[3 * (50 * 200 + 150)];
        assert!(red < blue(150) / 2, "a faint point keeps its colour");
    }
}
