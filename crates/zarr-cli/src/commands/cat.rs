//! `zarr cat`

use std::io::Write;
use std::path::PathBuf;

use zarr::codec_api::VariableData;
use zarr::meta::Json;
use zarr::{Array, DataType, Elements, Selection};

use crate::context::Context;
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::slabs::{Slabs, read_fixed};
use crate::{npy, progress, units, values};

/// Write the elements of an array: as JSON, as a NumPy file, or as raw bytes
///
/// Arrays larger than memory are written piece by piece. JSON has nested arrays, NaN and infinities as strings, complex numbers as pairs, and everything else as
/// fill values stand in Zarr metadata. `npy` and `raw` are little endian, in C order, on every machine.
#[derive(Debug, clap::Args)]
pub(crate) struct CatArgs {
    /// The array
    pub(crate) path: String,
    /// What of it, as NumPy has it: `0, 10:20, ::-2, [1,5,3], ...`
    #[arg(long, short, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    select: String,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Json,
    Npy,
    Raw,
}

/// Bytes of elements that are in memory at a time, roughly.
const PIECE: u64 = 64 << 20;

pub(crate) fn run(args: &CatArgs, context: &Context) -> Result<()> {
    let (array, _) = context.open_array(&args.path, &context.options())?;
    let selection = Selection::parse(&args.select, array.shape().len())?;
    let slabs = Slabs::new(&array, &selection, PIECE)?;
    // What cannot be written is refused before the file is touched.
    let header = match args.format {
        Format::Npy => npy::header(array.data_type(), &slabs.shape)?,
        Format::Raw if array.item_size().is_none() => {
            return Err(Failure::new(format!(
                "elements of {} differ in length, so raw bytes do not tell where one ends",
                array.data_type()
            ))
            .hint("--format json writes them"));
        }
        Format::Raw | Format::Json => Vec::new(),
    };
    let progress = progress::items(slabs.elements(), context.quiet || args.output.is_none()).with_message("writing");
    let mut out = Output::open(args.output.as_deref())?;
    out.write_all(&header)?;
    match args.format {
        Format::Json => {
            let is_json = array.metadata().codecs.iter().any(|codec| codec.name == "numcodecs.json2");
            let mut writer = JsonWriter { shape: &slabs.shape, at: 0, text: String::new(), is_json };
            for piece in slabs.pieces() {
                writer.piece(&array, &piece)?;
                out.write_all(writer.text.as_bytes())?;
                writer.text.clear();
                progress.set_position(writer.at);
            }
            if slabs.elements() == 0 {
                out.write_all(empty_json(&slabs.shape).as_bytes())?;
            }
            out.write_all(b"\n")?;
        }
        Format::Npy | Format::Raw => {
            let mut buffer = Vec::new();
            for piece in slabs.pieces() {
                buffer = read_fixed(&array, &piece, buffer)?;
                to_little_endian(array.data_type(), &mut buffer);
                out.write_all(&buffer)?;
                progress.inc(buffer.len() as u64 / array.item_size().unwrap_or(1).max(1) as u64);
            }
        }
    }
    progress.finish_and_clear();
    out.finish()
}

/// Writes elements, which come in C order, with the brackets around them.
struct JsonWriter<'a> {
    shape: &'a [u64],
    /// Elements written.
    at: u64,
    text: String,
    /// Whether elements are JSON text, and written as the values they are.
    is_json: bool,
}

impl JsonWriter<'_> {
    fn piece(&mut self, array: &Array, selection: &Selection) -> Result<()> {
        let data_type = array.data_type();
        let data = array.read(selection)?;
        match &data.elements {
            Elements::Fixed(bytes) => {
                let size = array.item_size().unwrap_or(1);
                if size == 0 {
                    let count = units::product(&data.shape);
                    (0..count).for_each(|_| self.element(|text| values::write_json(text, data_type, &[])));
                } else {
                    bytes.chunks_exact(size).for_each(|element| self.element(|text| values::write_json(text, data_type, element)));
                }
            }
            Elements::Variable(elements) => self.variable(data_type, elements),
        }
        Ok(())
    }

    fn variable(&mut self, data_type: &DataType, elements: &VariableData) {
        for element in elements.iter() {
            let value = self.is_json.then(|| Json::parse(element).ok()).flatten();
            self.element(|text| match value {
                Some(value) => text.push_str(&value.to_text()),
                None => values::write_variable_json(text, data_type, element),
            });
        }
    }

    fn element(&mut self, write: impl FnOnce(&mut String)) {
        let edges = |position: u64| {
            let mut elements = 1;
            let at_edge = self.shape.iter().rev().take_while(|&&len| {
                elements *= len;
                position.is_multiple_of(elements)
            });
            at_edge.count()
        };
        let (opened, closed) = (edges(self.at), edges(self.at + 1));
        if self.at > 0 {
            // A line for each row, so that an array of two axes can be read.
            self.text.push_str(if opened > 0 { ",\n" } else { ", " });
            self.text.extend(std::iter::repeat_n(' ', if opened > 0 { self.shape.len() - opened } else { 0 }));
        }
        self.text.extend(std::iter::repeat_n('[', opened));
        write(&mut self.text);
        self.text.extend(std::iter::repeat_n(']', closed));
        self.at += 1;
    }
}

/// An array without elements: the axes before the first of length 0 still show.
fn empty_json(shape: &[u64]) -> String {
    match shape.split_first() {
        None | Some((0, _)) => "[]".to_owned(),
        Some((&len, rest)) => format!("[{}]", vec![empty_json(rest); usize::try_from(len).unwrap_or(0)].join(", ")),
    }
}

/// Elements that are in the byte order of this machine become little endian.
fn to_little_endian(data_type: &DataType, bytes: &mut [u8]) {
    if cfg!(target_endian = "little") {
        return;
    }
    let size = data_type.fixed_size().unwrap_or(1).max(1);
    let runs = data_type.swap_units();
    for element in bytes.chunks_exact_mut(size) {
        for run in &runs {
            let end = run.offset + run.width * run.count;
            element[run.offset..end].chunks_exact_mut(run.width).for_each(<[u8]>::reverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shape: &[u64]) -> String {
        let mut writer = JsonWriter { shape, at: 0, text: String::new(), is_json: false };
        for index in 0..shape.iter().product::<u64>() {
            writer.element(|text| text.push_str(&index.to_string()));
        }
        writer.text
    }

    #[test]
    fn brackets() {
        assert_eq!(text(&[]), "0");
        assert_eq!(text(&[3]), "[0, 1, 2]");
        assert_eq!(text(&[2, 2]), "[[0, 1],\n [2, 3]]");
        assert_eq!(text(&[2, 1, 2]), "[[[0, 1]],\n [[2, 3]]]");
        assert_eq!(empty_json(&[2, 0, 3]), "[[], []]");
        assert_eq!(empty_json(&[0]), "[]");
    }
}
