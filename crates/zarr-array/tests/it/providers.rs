//! Several providers of codecs.

use zarr_array::{ArrayBuilder, Options, Selection};
use zarr_codec_api::{Bound, CodecError, CodecProvider, Direction, Limits, Placement, Registry, Representation, Stage};
use zarr_meta::{DataType, Extension};

use crate::common::{codecs, memory};

/// Knows every codec, and takes none.
#[derive(Debug)]
struct Refusing;

impl CodecProvider for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn placement(&self) -> Placement {
        Placement::Host
    }

    fn codecs(&self) -> Vec<String> {
        Vec::new()
    }

    fn encoded_representation(&self, codec: &Extension, _: &Representation, _: &Limits) -> Result<Option<Representation>, CodecError> {
        Err(CodecError::unsupported(&codec.name, "refused"))
    }

    fn bind(&self, stages: &[Stage], _: Direction) -> Result<Option<Bound>, CodecError> {
        Err(CodecError::unsupported(stages.first().map_or("", |stage| &stage.codec.name), "refused"))
    }
}

#[test]
fn the_next_provider_is_asked_where_the_first_one_refuses() {
    let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()).with_preferred(Refusing));
    let values: Vec<f64> = (0..64).map(f64::from).collect();
    let scale = r#"{"name":"scale_offset","configuration":{"offset":2,"scale":0.5}}"#;
    let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let transpose = r#"{"name":"transpose","configuration":{"order":[1,0]}}"#;
    let shard = format!(
        r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":[2,4],"codecs":[{scale},{transpose},{bytes}],"index_codecs":[{bytes}]}}}}"#
    );
    for chain in [format!("{scale},{bytes}"), format!("{scale},{transpose},{bytes}"), format!("{scale},{shard}")] {
        let builder = ArrayBuilder::new([8, 8], DataType::Float64).chunks([4, 8]).codecs(codecs(&format!("[{chain}]")));
        let array = builder.create(memory(), "/", &options).unwrap_or_else(|error| panic!("{chain}: {error}"));
        array.write_elements(&Selection::all(), &values).unwrap();
        assert_eq!(array.read_elements::<f64>(&Selection::all()).unwrap(), values, "{chain}");
    }
    let unknown = ArrayBuilder::new([8], DataType::Float64).codecs(codecs(&format!(r#"[{{"name":"nobody_knows"}},{bytes}]"#)));
    let error = unknown.create(memory(), "/", &Options::new(Registry::new().with(Refusing))).unwrap_err();
    assert!(format!("{error:?}").contains("refused"), "{error:?}");
}
