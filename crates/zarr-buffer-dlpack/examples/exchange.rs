//! Hands a buffer to a consumer as a capsule would carry it, and takes it back: `cargo run -p zarr-buffer-dlpack --example exchange`.

use std::error::Error;

use zarr_buffer_api::{Buffer, DeviceId};
use zarr_buffer_dlpack::abi::DLManagedTensorVersioned;
use zarr_buffer_dlpack::{Access, Export, Format, Managed, Request, Synchronize};
use zarr_meta::DataType;

fn main() -> Result<(), Box<dyn Error>> {
    let values: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let buffer = Buffer::from_vec(values.iter().flat_map(|value| value.to_ne_bytes()).collect());

    // What `__dlpack__(max_version=(1, 1))` asks of us.
    let answer = Request { max_version: Some((1, 1)), ..Request::default() }.answer(buffer.device(), buffer.is_host_visible())?;
    assert_eq!((answer.format, answer.device, answer.copy), (Format::Versioned, DeviceId::CPU, false));
    if answer.synchronize == Synchronize::Host {
        buffer.wait()?;
    }

    // The second and third column of two rows of three.
    let columns = buffer.slice(4..24)?;
    let tensor = Export::new(&columns, &[2, 2], Some(&[3, 1]), &DataType::Float32)?.into_versioned()?;
    println!("handed out: shape {:?}, strides {:?}, {:?}", tensor.shape(), tensor.strides(), tensor.tensor().device);
    let pointer: *mut DLManagedTensorVersioned = tensor.into_raw();
    drop((buffer, columns)); // the tensor keeps the bytes alive

    // SAFETY: the tensor made above, which nobody else gives back.
    let tensor = unsafe { Managed::from_raw(pointer) }?;
    // SAFETY: nobody else uses the bytes any more.
    let taken = unsafe { tensor.import(Access::ReadWrite) }?;
    println!("taken in: {} at {:?}", taken.data_type, taken.region.layout);
    let bytes = taken.region.buffer.host_read()?;
    let first: Vec<f32> = bytes.chunks_exact(4).take(2).map(|bytes| bytes.try_into().map(f32::from_ne_bytes)).collect::<Result<_, _>>()?;
    println!("the first row: {first:?}");
    assert_eq!(first, [2.0, 3.0]);
    Ok(())
}
