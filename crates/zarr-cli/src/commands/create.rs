//! `zarr create`

use zarr::meta::{Json, JsonObject, NodePath};
use zarr::{Array, ArrayBuilder, DataType, FillValue, Group, GroupBuilder, Version};

use crate::codecs::{self, CodecSpec, Kind};
use crate::commands::copy::parse_version;
use crate::commands::info::path_first;
use crate::context::{Context, Destination};
use crate::copy::Marker;
use crate::describe::{ArrayFacts, group_line};
use crate::error::{Context as _, Failure, Result};
use crate::hierarchy::Hierarchy;
use crate::layout::{Lengths, Shards, parse_data_type, parse_lengths, parse_shards};
use crate::{json, units};

/// Create an array, or with --group a group
///
/// In a hierarchy, groups between it and the group above it are created where they are missing, and consolidated metadata of the root take it in.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Where: a directory, `archive.zip/path`, or a URL
    pub(crate) path: String,
    /// Create a group, of a version and with attributes
    #[arg(long, conflicts_with_all = ["shape", "dtype", "chunks", "shards", "codec", "fill", "dimension_names"])]
    group: bool,
    /// Elements along each axis: `240,721,1440`; empty for a scalar
    #[arg(long, value_parser = parse_shape, value_name = "N,..", required_unless_present = "group")]
    shape: Option<Shape>,
    /// The data type: float32, int16, bool, complex64, `datetime64[ns]`, U10, S4, string, .., or JSON as the metadata has it
    #[arg(long, value_parser = parse_data_type, value_name = "TYPE", required_unless_present = "group")]
    dtype: Option<DataType>,
    /// Elements of a chunk along each axis: `24,721,all`, or by name: `time=24,latitude=all` [default: up to 4 MiB, the last axes whole]
    #[arg(long, value_parser = parse_lengths, value_name = "N,..")]
    chunks: Option<Lengths>,
    /// Elements of a shard along each axis, multiples of the chunk's [default: no shards]
    #[arg(long, value_parser = parse_shards, value_name = "N,..")]
    shards: Option<Shards>,
    /// Codecs: zstd:5, blosc:lz4:5:shuffle, gzip:6, none, .., several joined with `+`, or JSON [default: zstd:3]
    #[arg(long, visible_alias = "compressor", value_parser = codecs::parse)]
    codec: Option<CodecSpec>,
    /// What absent elements are: a number, NaN, true, or JSON [default: zero, false or empty]
    #[arg(long, allow_hyphen_values = true, value_name = "VALUE")]
    fill: Option<String>,
    /// The version of the format [default: that of the hierarchy around it, else 3]
    #[arg(long, value_parser = parse_version, value_name = "2|3")]
    version: Option<Version>,
    /// The names of the axes: `time,latitude,longitude`
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    dimension_names: Option<Vec<String>>,
    /// Attributes: a JSON object, or @FILE
    #[arg(long, value_name = "JSON")]
    attributes: Option<String>,
    /// Remove what is there
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Clone)]
struct Shape(Vec<u64>);

fn parse_shape(text: &str) -> Result<Shape, String> {
    let lengths = text.split([',', '×']).map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.parse().map_err(|_| format!("`{length}` is not a number of elements"))).collect::<Result<_, _>>().map(Shape)
}

pub(crate) fn run(args: &CreateArgs, context: &Context) -> Result<()> {
    let attributes = args.attributes.as_deref().map(parse_attributes).transpose()?;
    let new = match (&args.shape, &args.dtype) {
        (Some(Shape(shape)), Some(data_type)) => {
            let builder = builder(args, shape, data_type)?;
            New::Array(Box::new(attributes.into_iter().fold(builder, ArrayBuilder::attributes)))
        }
        _ => New::Group(attributes.unwrap_or_default()),
    };
    let destination = context.destination(&args.path)?;
    match create(args, new, &destination, context) {
        Ok(Created::Array(array)) => {
            let facts = ArrayFacts::of_metadata(&array);
            if context.json {
                return context.print_json(path_first(&args.path, facts.to_json(&array)));
            }
            context.note(&format!(
                "created {}: {} {}, chunks of {}, {}",
                args.path,
                units::shape(&facts.shape),
                facts.data_type,
                facts.chunks_text(),
                facts.codecs
            ));
            Ok(())
        }
        Ok(Created::Group(group)) => {
            if context.json {
                let format = if group.version() == Version::V2 { 2 } else { 3 };
                return context
                    .print_json(json::object().with("path", args.path.as_str()).with("kind", "group").with("zarr_format", format));
            }
            context.note(&format!("created {}: {}", args.path, group_line(&group)));
            Ok(())
        }
        Err(failure) => {
            destination.abandon();
            Err(failure.context(format!("cannot create {}", args.path)))
        }
    }
}

/// What is to be created.
enum New {
    Array(Box<ArrayBuilder>),
    Group(JsonObject),
}

enum Created {
    Array(Box<Array>),
    Group(Box<Group>),
}

fn builder(args: &CreateArgs, shape: &[u64], data_type: &DataType) -> Result<ArrayBuilder> {
    let names: Option<Vec<Option<String>>> =
        args.dimension_names.as_ref().map(|names| names.iter().map(|name| Some(name.clone()).filter(|name| !name.is_empty())).collect());
    let mut builder = ArrayBuilder::new(shape, data_type.clone()).optional_dimension_names(names.clone()).overwrite(args.overwrite);
    let lengths = |lengths: &Lengths, option: &str| {
        lengths
            .resolve(shape, names.as_deref(), &shape.iter().map(|&length| length.max(1)).collect::<Vec<_>>())
            .ok_or_else(|| Failure::usage(format!("--{option} does not fit an array of {}", units::count(shape.len() as u64, "dimension"))))
    };
    if let Some(chunks) = &args.chunks {
        builder = builder.chunks(lengths(chunks, "chunks")?);
    }
    if let Some(Shards::Of(shards)) = &args.shards {
        builder = builder.shards(lengths(shards, "shards")?);
    }
    if let Some(codec) = &args.codec {
        let chain = codec.chain(data_type, shape.len(), None);
        let of = |kind| chain.iter().filter(|codec| codecs::kind(codec) == kind).cloned().collect::<Vec<_>>();
        builder = builder.filters(of(Kind::ArrayToArray)).compressors(of(Kind::BytesToBytes));
        if let Some(codec) = of(Kind::ArrayToBytes).into_iter().next() {
            builder = builder.array_to_bytes(codec);
        }
    }
    if let Some(fill) = &args.fill {
        builder = builder.fill_value(parse_fill(fill, data_type)?);
    }
    Ok(builder)
}

fn create(args: &CreateArgs, new: New, destination: &Destination, context: &Context) -> Result<Created> {
    let (store, options) = (&destination.store, context.options());
    let hierarchy = Hierarchy::around(&args.path, destination, context)?;
    let version = args.version.or(hierarchy.as_ref().map(Hierarchy::version)).unwrap_or_default();
    let new = match new {
        New::Array(_) if version == Version::V2 && matches!(args.shards, Some(Shards::Of(_))) => {
            return Err(Failure::usage("version 2 of the format has no shards"));
        }
        New::Array(builder) => {
            let builder = builder.version(version);
            // What does not hold together is told before anything is made for it.
            Array::from_metadata(store.clone(), &destination.path, builder.metadata()?, &options)?;
            New::Array(Box::new(builder))
        }
        group => group,
    };
    if !args.overwrite {
        if let Some(copy) = Marker::load(store, &NodePath::new_v2(&destination.path)?)? {
            return Err(copy.in_the_way(&args.path).hint("`zarr copy --resume` goes on with it, --overwrite removes it"));
        }
        destination.check_vacant(&args.path)?;
    }
    if let Some(hierarchy) = &hierarchy {
        hierarchy.make_groups()?;
    }
    let created = match new {
        New::Array(builder) => Created::Array(Box::new(builder.create(store.clone(), &destination.path, &options)?)),
        New::Group(attributes) => {
            let builder = GroupBuilder::new().attributes(attributes).version(version).overwrite(args.overwrite);
            Created::Group(Box::new(builder.create(store.clone(), &destination.path, &options)?))
        }
    };
    if let Some(hierarchy) = hierarchy {
        hierarchy.consolidate(context);
    }
    destination.finish()?;
    Ok(created)
}

fn parse_fill(text: &str, data_type: &DataType) -> Result<FillValue> {
    let json = match Json::parse(text.as_bytes()) {
        Ok(Json::Number(number)) if !number.is_finite() => Json::String(number.as_str().to_owned()),
        Ok(json) => json,
        Err(_) => Json::String(text.to_owned()),
    };
    FillValue::parse(&json, data_type).context(|| format!("--fill: `{text}` is no element of {}", crate::values::type_name(data_type)))
}

fn parse_attributes(text: &str) -> Result<JsonObject> {
    let text = match text.strip_prefix('@') {
        Some(file) => std::fs::read(file).context(|| format!("--attributes: cannot read {file}"))?,
        None => text.as_bytes().to_vec(),
    };
    match Json::parse(&text).context(|| "--attributes".to_owned())? {
        Json::Object(attributes) => Ok(attributes),
        _ => Err(Failure::usage("--attributes is not a JSON object")),
    }
}
