//! Array to array codecs on a device, beside the CPU's: the same bytes and the same verdicts, both ways, for values of every kind.

use std::ops::Range;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, Layout, Queue, Region};
use zarr_codec_api::{
    ArrayRepresentation, Chain, CodecProvider as _, DeviceContext, DeviceSegment, DeviceSlot, Direction, Encoded, Policy, Scratch, Segment,
    Source, Target,
};
use zarr_meta::{DataType, FillValue};

use super::data::{BIG, CRC, LITTLE, Random, codecs, reference, shuffle, transpose};
use super::{Subject, Test, TestResult};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The types of numbers, and numpy's names for those that it has.
pub(super) const NUMBERS: [(DataType, &str, &str); 12] = [
    (DataType::Int8, "int8", "|i1"),
    (DataType::Int16, "int16", "<i2"),
    (DataType::Int32, "int32", "<i4"),
    (DataType::Int64, "int64", "<i8"),
    (DataType::UInt8, "uint8", "|u1"),
    (DataType::UInt16, "uint16", "<u2"),
    (DataType::UInt32, "uint32", "<u4"),
    (DataType::UInt64, "uint64", "<u8"),
    (DataType::Float16, "float16", "<f2"),
    (DataType::BFloat16, "bfloat16", ""),
    (DataType::Float32, "float32", "<f4"),
    (DataType::Float64, "float64", "<f8"),
];

/// Codecs for the number of a type.
type Configurations = fn(usize) -> Vec<String>;

pub(super) fn tests(subject: &Subject) -> Vec<Test> {
    let all: [(&str, Configurations); 6] = [
        ("scale_offset", scale_offset),
        ("fixedscaleoffset", fixedscaleoffset),
        ("cast_value", cast_value),
        ("astype", astype),
        ("bitround", bitround),
        ("quantize", quantize),
    ];
    let mut tests = Vec::new();
    for (name, configurations) in all {
        for (index, (data_type, type_name, _)) in NUMBERS.into_iter().enumerate() {
            if configurations(index).is_empty() {
                continue;
            }
            let subject = subject.clone();
            tests.push(Test::new(format!("values::{name}::{type_name}"), move || values(&subject, &data_type, &configurations(index))));
        }
    }
    let alone = subject.clone();
    tests.push(Test::new("values::scalar_map", move || scalar_map(&alone)));
    let alone = subject.clone();
    tests.push(Test::new("values::arrangements", move || arrangements(&alone)));
    tests
}

pub(super) fn codec(name: &str, configuration: &str) -> String {
    format!(r#"{{"name":"{name}","configuration":{{{configuration}}}}}"#)
}

pub(super) fn is_float(index: usize) -> bool {
    index >= 8
}

fn scale_offset(index: usize) -> Vec<String> {
    let pairs: &[(&str, &str)] = match index {
        0..4 => &[("5", "3"), ("-7", "2"), ("0", "-1"), ("-128", "1"), ("127", "-128")],
        4..8 => &[("0", "3"), ("0", "200")],
        _ => &[("2", "4"), ("0.1", "0.3"), ("-1e-3", "1e-4"), ("\"Infinity\"", "1"), ("1", "\"-Infinity\""), ("6e4", "1e-7")],
    };
    pairs.iter().map(|(offset, scale)| codec("scale_offset", &format!(r#""offset":{offset},"scale":{scale}"#))).collect()
}

fn fixedscaleoffset(index: usize) -> Vec<String> {
    let mut all = Vec::new();
    let dtype = NUMBERS[index].2;
    for (turn, (_, _, astype)) in NUMBERS.into_iter().chain([(DataType::Bool, "bool", "|b1")]).enumerate() {
        if astype.is_empty() || dtype.is_empty() {
            continue;
        }
        let pairs = [("3", "10"), ("0.5", "10"), ("3", "0.1"), ("-1e300", "1e8"), ("2.5", "1e-300"), ("1", "0"), ("100", "-7")];
        for (offset, scale) in pairs.into_iter().cycle().skip(turn).take(4) {
            all.push(codec(
                "numcodecs.fixedscaleoffset",
                &format!(r#""offset":{offset},"scale":{scale},"dtype":"{dtype}","astype":"{astype}""#),
            ));
        }
    }
    all
}

fn cast_value(index: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (turn, (_, to, _)) in NUMBERS.into_iter().enumerate() {
        let roundings = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"];
        for (number, rounding) in roundings.into_iter().cycle().skip(turn + index).take(3).enumerate() {
            let beyond = match number {
                0 => "",
                1 => r#","out_of_range":"clamp""#,
                _ if is_float(turn) || is_float(index) => r#","out_of_range":"clamp""#,
                _ => r#","out_of_range":"wrap""#,
            };
            all.push(codec("cast_value", &format!(r#""data_type":"{to}","rounding":"{rounding}"{beyond}"#)));
        }
        if is_float(index) && !is_float(turn) {
            all.push(codec("cast_value", &format!(r#""data_type":"{to}","out_of_range":"wrap""#)));
        }
        all.push(codec("cast_value", &format!(r#""data_type":"{to}""#)));
    }
    all
}

fn astype(index: usize) -> Vec<String> {
    let dtype = NUMBERS[index].2;
    let others = NUMBERS.into_iter().map(|(_, _, name)| name).chain(["|b1"]).filter(|name| !name.is_empty() && !dtype.is_empty());
    others.map(|other| codec("numcodecs.astype", &format!(r#""encode_dtype":"{other}","decode_dtype":"{dtype}""#))).collect()
}

fn bitround(_: usize) -> Vec<String> {
    [0, 1, 2, 5, 7, 9, 10, 22, 23, 31, 40, 51, 52, 64].map(|keepbits| codec("bitround", &format!(r#""keepbits":{keepbits}"#))).to_vec()
}

fn quantize(index: usize) -> Vec<String> {
    let dtype = NUMBERS[index].2;
    let others = ["<f2", "<f4", "<f8"].into_iter().filter(|_| is_float(index) && !dtype.is_empty());
    let of_type = |astype| {
        [-3, 0, 1, 5, 12, 200]
            .map(|digits| codec("numcodecs.quantize", &format!(r#""digits":{digits},"dtype":"{dtype}","astype":"{astype}""#)))
    };
    others.flat_map(of_type).collect()
}

/// One number a chunk, so that each has a verdict of its own, and chunks of many.
fn values(subject: &Subject, data_type: &DataType, configurations: &[String]) -> TestResult {
    let count = if subject.small { 40 } else { 400 };
    let mut taken = 0;
    for (seed, configuration) in configurations.iter().enumerate() {
        let chain = format!("[{configuration},{LITTLE}]");
        for (shape, chunks) in [(vec![1], count), (vec![3, 67], 2)] {
            let Ok(case) = Case::new(subject, &chain, data_type, &shape) else { continue };
            let encoded_type = case.chain.stages()[0].encoded.as_array().map_or(data_type.clone(), |array| array.data_type.clone());
            let elements = shape.iter().product::<u64>() as usize;
            let of = |data_type: &DataType| (0..chunks).map(|chunk| numbers(data_type, chunk * elements, elements, seed as u64)).collect();
            case.encode(of(data_type)).map_err(|error| format!("{configuration} to {shape:?}: {error}"))?;
            case.decode(of(&encoded_type)).map_err(|error| format!("{configuration} from {shape:?}: {error}"))?;
            taken += 1;
        }
    }
    // Some configurations are not for all types.
    if taken * 2 < configurations.len() { Err(format!("only {taken} cases were taken").into()) } else { Ok(()) }
}

fn scalar_map(subject: &Subject) -> TestResult {
    let map = r#""scalar_map":{"encode":[["NaN",-99],["Infinity",7],[0,3]],"decode":[[-99,"NaN"],[3,-0.0],[7,1.5]]}"#;
    for out_of_range in ["clamp", "wrap"] {
        let chain = format!("[{},{LITTLE}]", codec("cast_value", &format!(r#""data_type":"int16","out_of_range":"{out_of_range}",{map}"#)));
        for data_type in [DataType::Float16, DataType::Float32, DataType::Float64] {
            let case = Case::new(subject, &chain, &data_type, &[1])?;
            case.encode((0..60).map(|chunk| numbers(&data_type, chunk, 1, 5)).collect())?;
            case.decode([-99i16, 3, 7, 0, -1].iter().map(|value| value.to_le_bytes().to_vec()).collect())?;
        }
    }
    let integers =
        codec("cast_value", r#""data_type":"uint8","scalar_map":{"encode":[[-1,255],[1000,254]],"decode":[[255,-1],[254,1000]]}"#);
    let case = Case::new(subject, &format!("[{integers},{LITTLE}]"), &DataType::Int64, &[1])?;
    case.encode([-1i64, 1000, 7, 254, 256, i64::MIN].iter().map(|value| value.to_le_bytes().to_vec()).collect())?;
    case.decode((0..=255u8).step_by(5).map(|value| vec![value]).chain([vec![254]]).collect())
}

/// Everything at once, and things in unusual places.
fn arrangements(subject: &Subject) -> TestResult {
    let fixed = codec("numcodecs.fixedscaleoffset", r#""offset":250,"scale":100,"dtype":"<f8","astype":"<i4""#);
    let round = codec("bitround", r#""keepbits":9"#);
    let cast = codec("cast_value", r#""data_type":"int16","out_of_range":"clamp""#);
    let moved = codec("scale_offset", r#""offset":3,"scale":-1"#);
    let to_half = codec("numcodecs.astype", r#""encode_dtype":"<f2""#);
    let (first, second) = (transpose("[2,0,1]"), transpose("[1,0,2]"));
    let start = codec("numcodecs.crc32c", r#""location":"start""#);
    let chains = [
        (DataType::Float64, format!("{round},{first},{fixed},{second},{cast},{moved},{BIG},{},{CRC}", shuffle(2))),
        (DataType::Float64, format!("{fixed},{first},{LITTLE},{},{start},{CRC}", shuffle(3))),
        (DataType::Float64, format!("{to_half},{BIG},{},{start}", shuffle(8))),
        (DataType::Float32, format!("{LITTLE},{},{CRC},{CRC}", shuffle(16))),
        (DataType::Complex64, format!("{round},{first},{BIG},{},{CRC}", shuffle(8))),
        (DataType::Complex128, format!("{round},{second},{BIG}")),
        (DataType::Raw { bits: 24 }, format!("{first},{LITTLE},{},{CRC}", shuffle(3))),
        (DataType::Bool, format!("{first},{second},{LITTLE},{},{CRC}", shuffle(5))),
        (DataType::Int64, format!("{},{},{LITTLE}", transpose("\"F\""), transpose("\"C\""))),
    ];
    for (data_type, chain) in chains {
        for shape in [[1, 1, 60], [4, 6, 10], [12, 5, 30]] {
            let case = Case::new(subject, &format!("[{chain}]"), &data_type, &shape).map_err(|error| format!("{chain}: {error}"))?;
            let elements = shape.iter().product::<u64>() as usize;
            let chunks: Vec<Vec<u8>> = (0..5).map(|chunk| numbers(&data_type, chunk * elements, elements, 3)).collect();
            let what = |error| format!("{data_type}, {shape:?}, {chain}: {error}");
            let encoded = case.encode(chunks).map_err(what)?;
            case.decode(encoded.into_iter().flatten().collect()).map_err(what)?;
        }
    }
    // More axes than kernels have, none of which continues another.
    let shape = [2, 3, 2, 1, 2, 3, 2, 2, 2, 2];
    let case = Case::new(subject, &format!("[{moved},{BIG}]"), &DataType::Int16, &shape)?;
    let chunks: Vec<Vec<u8>> = (0..2).map(|chunk| numbers(&DataType::Int8, chunk * 1152, 1152, 9)).map(widened).collect();
    let encoded = case.encode(chunks)?;
    case.decode(encoded.into_iter().flatten().collect())
}

fn widened(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().flat_map(|byte| i16::from(byte.cast_signed()).to_le_bytes()).collect()
}

/// What is between the pieces of a buffer.
const GAP: u8 = 0x5E;

/// Parts of one buffer.
struct Pieces {
    buffer: Buffer,
    ranges: Vec<Range<usize>>,
}

fn slots(encoded: &Pieces, decoded: &Pieces, layout: &Layout) -> Result<Vec<DeviceSlot>> {
    let slot = |(encoded_range, range): (&Range<usize>, &Range<usize>)| {
        let decoded = Region::new(decoded.buffer.slice(range.clone())?, layout.clone())?;
        Ok(DeviceSlot { encoded: encoded.buffer.slice(encoded_range.clone())?, decoded })
    };
    encoded.ranges.iter().zip(&decoded.ranges).map(slot).collect()
}

/// A chain on the device and on the CPU.
pub(super) struct Case<'a> {
    subject: &'a Subject,
    chain: Chain,
    decode: Arc<dyn DeviceSegment>,
    /// An error where the host must do part of it.
    encode: Result<Arc<dyn DeviceSegment>>,
}

impl<'a> Case<'a> {
    /// A chain on the CPU.
    pub(super) fn chain(chain: &str, data_type: &DataType, shape: &[u64]) -> Result<Chain> {
        let fill_value = FillValue::default_for(data_type);
        let decoded = ArrayRepresentation { data_type: data_type.clone(), shape: shape.to_vec(), fill_value };
        Ok(Chain::bind(&codecs(chain)?, decoded, &reference(), &Policy::Host)?)
    }

    pub(super) fn new(subject: &'a Subject, chain: &str, data_type: &DataType, shape: &[u64]) -> Result<Self> {
        let chain = Self::chain(chain, data_type, shape)?;
        let segment = |direction| -> Result<Arc<dyn DeviceSegment>> {
            match subject.provider.bind(chain.stages(), direction)? {
                Some(bound) if bound.consumed == chain.stages().len() => match bound.segment {
                    Segment::Device(segment) => Ok(segment),
                    Segment::Host(_) => Err("a segment on the host".into()),
                },
                bound => Err(format!("the device took {:?} of the stages", bound.map(|bound| bound.consumed)).into()),
            }
        };
        let decode = segment(Direction::Decode)?;
        let encode = segment(Direction::Encode);
        Ok(Self { subject, chain, decode, encode })
    }

    fn len(&self) -> usize {
        self.chain.representation().byte_len().ok().flatten().unwrap_or(0)
    }

    /// A box for a chunk: axes turned around, gaps behind each, nothing aligned.
    fn strided(&self) -> Layout {
        let item_size = self.chain.representation().data_type.fixed_size().unwrap_or(1);
        let shape: Vec<usize> = self.chain.representation().shape.iter().map(|&len| len as usize).collect();
        let mut strides = vec![0; shape.len()];
        let mut step = item_size as isize + 1;
        for (stride, &len) in strides.iter_mut().zip(&shape) {
            *stride = step;
            step *= len as isize + 1;
        }
        Layout { offset: 5, shape, strides, item_size }
    }

    fn context(&self, queue: &'a dyn Queue, scratch_budget: u64) -> DeviceContext<'a> {
        DeviceContext { device: &*self.subject.device, queue, scratch_budget }
    }

    /// Pieces in one buffer, which starts with a gap and has one behind each.
    fn upload(&self, queue: &dyn Queue, pieces: &[Vec<u8>]) -> Result<Pieces> {
        let (mut bytes, mut ranges) = (vec![GAP; 3], Vec::with_capacity(pieces.len()));
        for piece in pieces {
            ranges.push(bytes.len()..bytes.len() + piece.len());
            bytes.extend_from_slice(piece);
            bytes.extend([GAP; 3]);
        }
        let buffer = self.subject.device.allocate(bytes.len(), queue)?;
        queue.copy(&Buffer::from_vec(bytes), &buffer)?;
        Ok(Pieces { buffer, ranges })
    }

    /// What the pieces hold now. Fails where a gap was written.
    fn download(&self, queue: &dyn Queue, pieces: &Pieces) -> Result<Vec<Vec<u8>>> {
        let staging = self.subject.device.allocate_staging(pieces.buffer.len())?;
        queue.copy(&pieces.buffer, &staging)?;
        staging.wait()?;
        let bytes = staging.host_read()?;
        let starts = pieces.ranges.iter().map(|range| range.start).chain([bytes.len()]);
        let ends = [0].into_iter().chain(pieces.ranges.iter().map(|range| range.end));
        match ends.zip(starts).find(|&(end, start)| bytes[end..start].iter().any(|&byte| byte != GAP)) {
            Some((end, start)) => Err(format!("bytes {end} to {start} are {:02x?}, and nobody's", &bytes[end..start]).into()),
            None => Ok(pieces.ranges.iter().map(|range| bytes[range.clone()].to_vec()).collect()),
        }
    }

    /// What the CPU encodes decoded chunks to.
    pub(super) fn encoded(&self, chunks: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
        let encode = |chunk: &Vec<u8>| {
            let mut encoded = Vec::new();
            let good = self.chain.encode(Source::Bytes(chunk), &mut encoded, &mut Scratch::new()).is_ok();
            good.then_some(encoded)
        };
        chunks.iter().map(encode).collect()
    }

    /// Encodes chunks on both sides; gives what came out of the good ones.
    fn encode(&self, chunks: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>> {
        let segment = self.encode.as_ref().map_err(ToString::to_string)?;
        let expected = self.encoded(&chunks);
        self.chain.encoded().byte_len()?.and_then(|len| len.exact()).ok_or("an encoded size that is known")?;
        let layout = self.strided();
        let queue = self.subject.device.create_queue()?;
        for strided in [false, true] {
            let layout = if strided { layout.clone() } else { Layout::contiguous(&layout.shape, layout.item_size)? };
            let spread = chunks.iter().map(|chunk| -> Result<Vec<u8>> {
                let mut spread = vec![0xA7; layout.span()?.end];
                for (at, element) in places(&layout).into_iter().zip(chunk.chunks_exact(layout.item_size)) {
                    spread[at..at + layout.item_size].copy_from_slice(element);
                }
                Ok(spread)
            });
            let decoded = self.upload(&*queue, &spread.collect::<Result<Vec<_>>>()?)?;
            let source =
                |range: &Range<usize>| -> Result<Region> { Ok(Region::new(decoded.buffer.slice(range.clone())?, layout.clone())?) };
            let sources = decoded.ranges.iter().map(source).collect::<Result<Vec<_>>>()?;
            let context = self.context(&*queue, segment.scratch_len(sources.len()));
            let Encoded { bytes, ticket } = segment.encode(&sources, &context)?;
            let verdicts = ticket.wait()?;
            // One behind the other: only chunks that failed may leave gaps.
            let (mut end, mut is_gap_allowed) = (0, false);
            for verdict in &verdicts {
                match verdict {
                    Ok(range) if range.start < end || (range.start > end && !is_gap_allowed) => {
                        return Err(format!("a chunk at {range:?}, behind one that ends at {end}").into());
                    }
                    Ok(range) => (end, is_gap_allowed) = (range.end, false),
                    Err(_) => is_gap_allowed = true,
                }
            }
            let all = Pieces { buffer: bytes.slice(0..end)?, ranges: std::iter::once(0..end).collect() };
            let found = self.download(&*queue, &all)?.concat();
            let bytes = |verdict: &std::result::Result<Range<usize>, _>| verdict.as_ref().map_or(&[][..], |range| &found[range.clone()]);
            let found: Vec<&[u8]> = verdicts.iter().map(bytes).collect();
            for (index, ((found, verdict), expected)) in found.iter().zip(&verdicts).zip(&expected).enumerate() {
                agree(index, &chunks[index], verdict.as_ref().err().map(ToString::to_string), found, expected.as_deref())?;
            }
        }
        Ok(expected)
    }

    /// Decodes chunks on both sides.
    fn decode(&self, chunks: Vec<Vec<u8>>) -> TestResult {
        self.decode_on(&*self.subject.device.create_queue()?, &chunks, &self.decoded(&chunks))
    }

    /// What the CPU makes of encoded chunks.
    pub(super) fn decoded(&self, chunks: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
        let decode = |chunk: &Vec<u8>| {
            let mut decoded = vec![0; self.len()];
            let good = self.chain.decode(chunk, Target::Exact(&mut decoded), &mut Scratch::new()).is_ok();
            good.then_some(decoded)
        };
        chunks.iter().map(decode).collect()
    }

    /// Decodes chunks on the device, on a queue, to what is expected: one behind the other, and to boxes with gaps.
    pub(super) fn decode_on(&self, queue: &dyn Queue, chunks: &[Vec<u8>], expected: &[Option<Vec<u8>>]) -> TestResult {
        let layout = self.strided();
        for strided in [false, true] {
            let layout = if strided { layout.clone() } else { Layout::contiguous(&layout.shape, layout.item_size)? };
            let encoded = self.upload(queue, chunks)?;
            let decoded = self.upload(queue, &vec![vec![0xC3; layout.span()?.end]; chunks.len()])?;
            let slots = slots(&encoded, &decoded, &layout)?;
            let context = self.context(queue, self.decode.scratch_len(slots.len()));
            let verdicts = self.decode.decode(&slots, &context)?.wait()?;
            let written = self.download(queue, &decoded)?;
            let places = places(&layout);
            for (index, ((written, verdict), expected)) in written.iter().zip(&verdicts).zip(expected).enumerate() {
                let found: Vec<u8> = places.iter().flat_map(|&at| &written[at..at + layout.item_size]).copied().collect();
                agree(index, &chunks[index], verdict.as_ref().err().map(ToString::to_string), &found, expected.as_deref())?;
            }
        }
        Ok(())
    }
}

fn agree(index: usize, input: &[u8], error: Option<String>, found: &[u8], expected: Option<&[u8]>) -> TestResult {
    let head = &input[..input.len().min(16)];
    match (error, expected) {
        (None, Some(expected)) => match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            None if found.len() == expected.len() => Ok(()),
            at => {
                let at = at.unwrap_or(0) / 16 * 16;
                let part = |bytes: &[u8]| format!("{:02x?}", &bytes[at.min(bytes.len())..(at + 16).min(bytes.len())]);
                Err(format!("chunk {index} ({head:02x?}..): at byte {at} {} and not {}", part(found), part(expected)).into())
            }
        },
        (Some(_), None) if found.iter().all(|&byte| byte == 0) => Ok(()),
        (Some(error), None) => Err(format!("chunk {index} failed ({error}) and is not zeroed").into()),
        (error, expected) => Err(format!("chunk {index} ({head:02x?}..): {error:?}, and on the CPU good: {}", expected.is_some()).into()),
    }
}

/// The byte where each element starts, in C order.
fn places(layout: &Layout) -> Vec<usize> {
    let mut places = vec![layout.offset as isize];
    for (&len, &stride) in layout.shape.iter().zip(&layout.strides) {
        places = places.iter().flat_map(|&place| (0..len as isize).map(move |index| place + index * stride)).collect();
    }
    places.into_iter().map(|place| place as usize).collect()
}

/// Elements `first`, `first + 1`, ..: first those that are special in some type, then any bits, and among them small numbers.
fn numbers(data_type: &DataType, first: usize, count: usize, seed: u64) -> Vec<u8> {
    let specials: [f64; 26] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        127.0,
        128.0,
        -128.5,
        255.5,
        256.0,
        65504.0,
        65520.0,
        2147483647.5,
        4294967296.0,
        9.3e18,
        1.9e19,
        -1e300,
        1e-310,
        3.5e38,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        6e-8,
    ];
    let mut out = Vec::new();
    for index in first..first + count {
        let mut random = Random(seed * 1_000_003 + index as u64);
        let bits = random.next();
        let special = specials.get(index).copied();
        let small = (index % 3 == 0).then(|| (bits % 2000) as f64 / 8.0 - 100.0);
        match (data_type, special.or(small)) {
            (DataType::Float32, Some(value)) => out.extend((value as f32).to_le_bytes()),
            (DataType::Float64, Some(value)) => out.extend(value.to_le_bytes()),
            (DataType::Float16 | DataType::BFloat16, Some(value)) => {
                let single = (value as f32).to_bits();
                let bits = if *data_type == DataType::BFloat16 { single >> 16 } else { (single >> 13 & 0x3fff) | (single >> 16 & 0xc000) };
                out.extend((bits as u16).to_le_bytes());
            }
            (DataType::Bool, _) => out.push(bits as u8 & 1),
            (other, value) => {
                let size = other.fixed_size().unwrap_or(1);
                let number = match value {
                    Some(value) if value.abs() < 1e19 => (value as i128).to_le_bytes(),
                    _ => (u128::from(bits) | u128::from(random.next()) << 64).to_le_bytes(),
                };
                out.extend(&number[..size]);
            }
        }
    }
    out
}
