//! `zarr view`

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anstream::ColorChoice;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use zarr::meta::Json;
use zarr::{Array, AxisSelection, Selection};

use crate::colour::ColourMap;
use crate::context::Context;
use crate::describe::short_name;
use crate::error::{Failure, Result};
use crate::image::{Raster, Scale};
use crate::output::Output;
use crate::slabs::read_fixed;
use crate::table::{BOLD, DIM};
use crate::{json, units, values};

/// Draw a 2-D slice of an array: in the terminal, or as a PNG
///
/// Rows run down the first of the two axes, but up where that is a latitude that grows (its coordinate lies beside the array, by its name). Without a selection of two
/// axes, the first position of the axes before the last two is taken. NaN is transparent, and so are elements equal to the fill value (where that is not zero) or to the attributes `_FillValue` and
/// `missing_value`.
#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// The array
    pub(crate) path: String,
    /// Which slice, as NumPy has it: `0, ::-1`
    #[arg(long, short, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    select: String,
    /// Write a PNG instead of drawing in the terminal
    #[arg(long, short, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(png_name))]
    output: Option<PathBuf>,
    /// The colours
    #[arg(long, value_enum, default_value_t = ColourMap::Viridis)]
    map: ColourMap,
    /// The value of the first colour [default: by --clip]
    #[arg(long, allow_hyphen_values = true)]
    min: Option<f64>,
    /// The value of the last colour [default: by --clip]
    #[arg(long, allow_hyphen_values = true)]
    max: Option<f64>,
    /// The percentiles that the colours run between
    #[arg(long, value_name = "LOW,HIGH", default_value = "2,98", value_parser = parse_clip)]
    clip: [f64; 2],
    /// Pixels along each side of an element in the PNG [default: as many as make it 512 pixels large]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    zoom: Option<u16>,
    /// Rows run down, whatever the first axis is
    #[arg(long)]
    as_stored: bool,
    /// The most elements along an axis; of more, every second, third, .. is drawn
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=32768))]
    limit: u64,
}

/// A name of another kind of picture would be untrue.
fn png_name(file: PathBuf) -> Result<PathBuf, &'static str> {
    match file.extension() {
        Some(extension) if !extension.eq_ignore_ascii_case("png") => Err("the picture is a PNG, so that its name ends with .png"),
        _ => Ok(file),
    }
}

fn parse_clip(text: &str) -> Result<[f64; 2], String> {
    let wrong = || format!("`{text}` is not two percentiles, such as 2,98");
    let (low, high) = text.split_once(',').ok_or_else(wrong)?;
    let clip = [low.trim().parse().map_err(|_| wrong())?, high.trim().parse().map_err(|_| wrong())?];
    if (0.0..=100.0).contains(&clip[0]) && clip[0] < clip[1] && clip[1] <= 100.0 { Ok(clip) } else { Err(wrong()) }
}

pub(crate) fn run(args: &ViewArgs, context: &Context) -> Result<()> {
    let (array, _) = context.open_array(&args.path, &context.options())?;
    let selection = plane(&array, &args.select, args.limit)?;
    let shape = array.selection_shape(&selection)?;
    let &[height, width] = shape.as_slice() else {
        return Err(Failure::usage(format!("the selection has {}, and a picture two", units::shape(&shape)))
            .hint("select one position along the others: --select \"0, ...\""));
    };
    if height == 0 || width == 0 {
        return Err(Failure::new("the selection has no elements"));
    }
    let no_picture = || Failure::new(format!("elements of {} are no numbers that can be drawn", values::type_name(array.data_type())));
    if array.item_size().is_none() {
        return Err(no_picture());
    }
    let bytes = read_fixed(&array, &selection, Vec::new())?;
    let mut all = values::to_f64(array.data_type(), &bytes).ok_or_else(no_picture)?;
    let missing = missing_values(&array);
    all.iter_mut().filter(|value| missing.contains(value)).for_each(|value| *value = f64::NAN);
    let mut raster = Raster { width: width as usize, height: height as usize, values: all };
    let north_up = !args.as_stored && runs_north(args, &array, &selection, context);
    if north_up {
        raster.turn_over();
    }
    let [low, high] = match (raster.percentiles(args.clip), args.min, args.max) {
        (_, Some(min), Some(max)) => [min, max],
        (Some([low, high]), min, max) => [min.unwrap_or(low), max.unwrap_or(high)],
        (None, _, _) => return Err(Failure::new("every element of the slice is missing")),
    };
    let scale = Scale { map: args.map, low, high };
    let about = About { args, array: &array, width, height, scale, north_up };
    match &args.output {
        Some(file) => {
            let zoom = args.zoom.map_or_else(|| 512u64.div_ceil(width.max(height)) as usize, usize::from);
            let mut out = Output::open(Some(file))?;
            raster.write_png(&scale, zoom, &mut out)?;
            out.finish()?;
            about.print(context, Some((file, zoom)))
        }
        None => {
            if !context.json {
                context.print(&in_terminal(&raster, &scale))?;
            }
            about.print(context, None)
        }
    }
}

/// The selection, brought down to two axes and to at most `limit` elements along each.
fn plane(array: &Array, select: &str, limit: u64) -> Result<Selection> {
    let rank = array.shape().len();
    if rank < 2 {
        return Err(Failure::usage(format!("an array of {} is no picture", units::count(rank as u64, "dimension"))));
    }
    let Selection::Axes(mut axes) = Selection::parse(select, rank)? else { return Err(Failure::new("not a selection of axes")) };
    axes.resize(rank, AxisSelection::from(..));
    let mut kept = axes.iter().filter(|axis| !matches!(axis, AxisSelection::Index(_))).count();
    for (axis, &len) in axes.iter_mut().zip(array.shape()) {
        let whole = matches!(axis, AxisSelection::Slice { start: None, stop: None, .. });
        if kept > 2 && whole && len > 0 {
            *axis = AxisSelection::Index(0);
            kept -= 1;
        }
    }
    // Checks the selection before it is thinned out.
    array.selection_shape(&Selection::axes(axes.iter().cloned()))?;
    let lengths: Vec<u64> = (0..rank)
        .map(|axis| {
            array.selection_shape(&Selection::axes(
                (0..rank).map(|other| if other == axis { axes[axis].clone() } else { AxisSelection::from(0..1) }),
            ))
        })
        .map(|shape| Ok(units::product(&shape?)))
        .collect::<Result<_>>()?;
    for (axis, len) in axes.iter_mut().zip(lengths) {
        let every = len.div_ceil(limit).max(1) as i64;
        match axis {
            AxisSelection::Slice { step, .. } => *step = step.saturating_mul(every),
            AxisSelection::List(list) => *list = list.iter().copied().step_by(every as usize).collect(),
            _ => {}
        }
    }
    Ok(Selection::Axes(axes))
}

/// Whether the rows of the picture go from south to north: their coordinate is a latitude that grows, and the selection does not turn it round.
fn runs_north(args: &ViewArgs, array: &Array, selection: &Selection, context: &Context) -> bool {
    let (Selection::Axes(axes), Some(names)) = (selection, array.dimension_names()) else { return false };
    let Some(axis) = axes.iter().position(|axis| !matches!(axis, AxisSelection::Index(_))) else { return false };
    let whole = matches!(axes.get(axis), Some(AxisSelection::Slice { start: None, stop: None, step: 1.. }));
    let (Some(Some(name)), Some((parent, _)), true) = (names.get(axis), args.path.trim_end_matches('/').rsplit_once('/'), whole) else {
        return false;
    };
    // There need not be a coordinate, and no error in it is an error of the picture.
    let Ok((coordinate, _)) = context.open_array(&format!("{parent}/{name}"), &context.options()) else { return false };
    let attribute = |name: &str| coordinate.attributes().get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let latitude = attribute("standard_name") == "latitude" || attribute("units").starts_with("degrees_north");
    if !latitude || coordinate.shape().len() != 1 || coordinate.shape().first() != array.shape().get(axis) {
        return false;
    }
    let ends = [0, -1].map(|end| {
        let bytes = read_fixed(&coordinate, &Selection::axes([AxisSelection::Index(end)]), Vec::new()).ok()?;
        values::to_f64(coordinate.data_type(), &bytes)?.first().copied()
    });
    matches!(ends, [Some(first), Some(last)] if first < last)
}

/// The values that stand for "nothing here".
fn missing_values(array: &Array) -> Vec<f64> {
    let fill = values::to_f64(array.data_type(), array.fill_value().as_bytes()).unwrap_or_default();
    let mut missing: Vec<f64> = fill.into_iter().filter(|&value| value != 0.0 && !value.is_nan()).collect();
    let named = ["_FillValue", "missing_value"].iter().filter_map(|name| array.attributes().get(name)?.as_f64());
    // Attributes hold more digits than the elements do.
    let single = matches!(array.data_type(), zarr::DataType::Float32);
    missing.extend(named.map(|value| if single { f64::from(value as f32) } else { value }));
    missing
}

fn in_terminal(raster: &Raster, scale: &Scale) -> String {
    let stdout = std::io::stdout();
    let (columns, rows) = terminal_size::terminal_size().map_or((80, 50), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    let rows = if stdout.is_terminal() { rows.saturating_sub(3).max(4) } else { 50 };
    // As large as there is room for: whole multiples of small pictures, means of large ones.
    let (columns, lines) = (columns.max(1), rows * 2);
    let grow = (columns / raster.width).min(lines / raster.height);
    let (width, height) = if grow >= 1 {
        (raster.width * grow, raster.height * grow)
    } else {
        let shrink = (raster.width as f64 / columns as f64).max(raster.height as f64 / lines as f64);
        let to = |length: usize| ((length as f64 / shrink).round() as usize).max(1);
        (to(raster.width), to(raster.height))
    };
    let sized = raster.resized(width, height);
    match anstream::AutoStream::choice(&stdout) {
        ColorChoice::Never => sized.characters(scale),
        _ => sized.blocks(scale),
    }
}

struct About<'a> {
    args: &'a ViewArgs,
    array: &'a Array,
    width: u64,
    height: u64,
    scale: Scale,
    north_up: bool,
}

impl About<'_> {
    fn print(&self, context: &Context, file: Option<(&PathBuf, usize)>) -> Result<()> {
        let Scale { low, high, .. } = self.scale;
        if context.json {
            let object = json::object()
                .with("path", self.args.path.as_str())
                .with("width", self.width)
                .with("height", self.height)
                .with("low", json::float(low))
                .with("high", json::float(high))
                .with("file", json::optional(file.map(|(file, _)| file.display().to_string())));
            return context.print_json(object);
        }
        let select = match self.args.select.trim() {
            // The first position along all axes but two.
            "" => match self.array.shape().len() - 2 {
                0 => String::new(),
                others => format!("[{}]", vec!["0"; others].join(", ")),
            },
            select => format!("[{select}]"),
        };
        let units = self.array.attributes().get("units").and_then(Json::as_str).map(|units| format!(" {}", units.escape_debug()));
        let to =
            file.map(|(file, zoom)| format!(" → {} ({}×{} pixels)", file.display(), self.width * zoom as u64, self.height * zoom as u64));
        context.print(&format!(
            "{BOLD}{}{select}{BOLD:#}  {}×{}, colours from {} to {}{}{}{DIM}{}{DIM:#}\n",
            short_name(&self.args.path),
            self.height,
            self.width,
            units::significant(low, 6),
            units::significant(high, 6),
            units.unwrap_or_default(),
            if self.north_up { ", north up" } else { "" },
            to.unwrap_or_default(),
        ))
    }
}
