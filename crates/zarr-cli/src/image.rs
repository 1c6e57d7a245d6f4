//! Values on a plane, as a picture in a file or in the terminal.

use std::fmt::Write as _;
use std::io::Write;

use crate::colour::ColourMap;
use crate::error::Result;

/// Values in rows; NaN where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Raster {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) values: Vec<f64>,
}

/// From values to colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) map: ColourMap,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Scale {
    /// Where a value stands between the ends; `None` for NaN.
    fn place(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let range = self.high - self.low;
        Some(if range > 0.0 { ((value - self.low) / range).clamp(0.0, 1.0) } else { 0.5 })
    }

    fn colour(&self, value: f64) -> Option<[u8; 3]> {
        self.place(value).map(|place| self.map.colour(place))
    }
}

impl Raster {
    /// The last row becomes the first.
    pub(crate) fn turn_over(&mut self) {
        let rows = self.values.chunks_exact(self.width.max(1)).rev();
        self.values = rows.flatten().copied().collect();
    }

    /// The values below which `percents` of all values lie; `None` when all are NaN.
    pub(crate) fn percentiles(&self, percents: [f64; 2]) -> Option<[f64; 2]> {
        let mut values: Vec<f64> = self.values.iter().copied().filter(|value| value.is_finite()).collect();
        let last = values.len().checked_sub(1)?;
        Some(percents.map(|percent| {
            let index = ((percent / 100.0).clamp(0.0, 1.0) * last as f64).round() as usize;
            *values.select_nth_unstable_by(index, f64::total_cmp).1
        }))
    }

    /// The picture at another size: means of the values that come to lie in one pixel.
    pub(crate) fn resized(&self, width: usize, height: usize) -> Self {
        if (width, height) == (self.width, self.height) {
            return self.clone();
        }
        let span = |index: usize, from: usize, to: usize| {
            let start = index * from / to;
            start..((index + 1) * from).div_ceil(to).max(start + 1).min(from)
        };
        let mut values = Vec::with_capacity(width * height);
        for y in 0..height {
            for x in 0..width {
                let (rows, columns) = (span(y, self.height, height), span(x, self.width, width));
                let cells = rows.flat_map(|row| columns.clone().map(move |column| row * self.width + column));
                let (count, sum) = cells
                    .map(|index| self.values[index])
                    .filter(|value| !value.is_nan())
                    .fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
                values.push(if count == 0 { f64::NAN } else { sum / f64::from(count) });
            }
        }
        Self { width, height, values }
    }

    /// Writes a PNG, each value a square of `zoom` pixels; NaN is transparent.
    pub(crate) fn write_png(&self, scale: &Scale, zoom: usize, out: impl Write) -> Result<()> {
        let (width, height) = (u32::try_from(self.width * zoom)?, u32::try_from(self.height * zoom)?);
        let mut encoder = png::Encoder::new(out, width, height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        let mut stream = writer.stream_writer()?;
        for row in self.values.chunks_exact(self.width.max(1)) {
            let mut line = Vec::with_capacity(self.width * zoom * 4);
            for &value in row {
                let pixel = scale.colour(value).map_or([0; 4], |[red, green, blue]| [red, green, blue, 255]);
                (0..zoom).for_each(|_| line.extend(pixel));
            }
            for _ in 0..zoom {
                stream.write_all(&line)?;
            }
        }
        stream.finish()?;
        Ok(writer.finish()?)
    }

    /// The picture as coloured half blocks, two pixels in each character.
    pub(crate) fn blocks(&self, scale: &Scale) -> String {
        let mut text = String::new();
        let at =
            |x: usize, y: usize| self.values.get(y * self.width + x).filter(|_| y < self.height).and_then(|&value| scale.colour(value));
        let code = |ground: u8, [red, green, blue]: [u8; 3]| format!("\x1b[{ground};2;{red};{green};{blue}m");
        for y in (0..self.height).step_by(2) {
            for x in 0..self.width {
                let _ = match (at(x, y), at(x, y + 1)) {
                    (Some(top), Some(bottom)) => write!(text, "{}{}▀", code(38, top), code(48, bottom)),
                    (Some(top), None) => write!(text, "\x1b[49m{}▀", code(38, top)),
                    (None, Some(bottom)) => write!(text, "\x1b[49m{}▄", code(38, bottom)),
                    (None, None) => write!(text, "\x1b[0m "),
                };
            }
            text.push_str("\x1b[0m\n");
        }
        text
    }

    /// The picture as characters of growing weight, for where there are no colours.
    pub(crate) fn characters(&self, scale: &Scale) -> String {
        const WEIGHTS: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];
        let rows = self.resized(self.width, self.height.div_ceil(2));
        let mut text = String::new();
        for row in rows.values.chunks_exact(rows.width.max(1)) {
            let line: String = row
                .iter()
                .map(|&value| {
                    scale.place(value).map_or(' ', |place| WEIGHTS[((place * WEIGHTS.len() as f64) as usize).min(WEIGHTS.len() - 1)])
                })
                .collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raster() -> Raster {
        Raster { width: 3, height: 2, values: vec![0.0, 5.0, 10.0, f64::NAN, 2.0, 4.0] }
    }

    const SCALE: Scale = Scale { map: ColourMap::Gray, low: 0.0, high: 10.0 };

    #[test]
    fn a_png_reads_back() {
        let mut bytes = Vec::new();
        raster().write_png(&SCALE, 2, &mut bytes).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (6, 4));
        assert_eq!(pixels[..16], [0, 0, 0, 255, 0, 0, 0, 255, 128, 128, 128, 255, 128, 128, 128, 255]);
        assert_eq!(pixels[2 * 6 * 4..][..4], [0; 4]);
    }

    #[test]
    fn percentiles_leave_nan_out() {
        assert_eq!(raster().percentiles([0.0, 100.0]), Some([0.0, 10.0]));
        assert_eq!(raster().percentiles([50.0, 50.0]), Some([4.0, 4.0]));
        assert_eq!(Raster { width: 1, height: 1, values: vec![f64::NAN] }.percentiles([0.0, 1.0]), None);
    }

    #[test]
    fn smaller_pictures_are_means() {
        assert_eq!(raster().resized(1, 2).values, [5.0, 3.0]);
        assert_eq!(raster().resized(3, 1).values[0], 0.0);
        assert_eq!(raster().resized(6, 2).values[..4], [0.0, 0.0, 5.0, 5.0]);
    }

    #[test]
    fn pictures_in_text() {
        assert_eq!(raster().characters(&SCALE), ".=#\n");
        let blocks = raster().blocks(&SCALE);
        assert!(blocks.starts_with("\x1b[49m\x1b[38;2;0;0;0m▀\x1b[38;2;128;128;128m\x1b[48;2;51;51;51m▀"), "{blocks:?}");
    }
}
