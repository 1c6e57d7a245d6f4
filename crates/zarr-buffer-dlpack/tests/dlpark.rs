//! Tensors to and from an independent implementation of DLPack.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlpark::allocation::dynamic;
use dlpark::{DlpackFlags, ManagedTensorBase, ffi};
use proptest::prelude::*;
use zarr_buffer_api::{Buffer, Device, DeviceId, DeviceKind, HostDevice, Layout, Region};
use zarr_buffer_dlpack::{Access, DlpackError, Export, Managed, ManagedTensor, abi};
use zarr_meta::DataType;

/// What owns the bytes of a foreign tensor.
struct Owner {
    bytes: Vec<u8>,
    freed: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Ordering::SeqCst);
    }
}

struct Foreign<'a> {
    bytes: Vec<u8>,
    byte_offset: u64,
    shape: &'a [i64],
    strides: &'a [i64],
    dtype: ffi::DLDataType,
    flags: DlpackFlags,
}

impl Foreign<'_> {
    fn make<M: ManagedTensorBase>(self) -> (*mut M, Arc<AtomicUsize>) {
        let freed = Arc::new(AtomicUsize::new(0));
        let mut owner = Box::new(Owner { bytes: self.bytes, freed: Arc::clone(&freed) });
        let data = owner.bytes.as_mut_ptr().cast();
        let axes = self.shape.len();
        let allocation = dynamic::Allocation::<M>::allocate(2 * axes).unwrap();
        let mut tensor = allocation.initialize(owner, axes).unwrap();
        tensor.extra_mut().copy_from_slice(&[self.shape, self.strides].concat());
        let dims = tensor.extra_mut().as_mut_ptr();
        tensor.tensor_mut().shape = dims;
        tensor.tensor_mut().strides = dims.wrapping_add(axes);
        tensor.set_data(data).set_device(ffi::DLDevice::CPU).set_dtype(self.dtype).set_byte_offset(self.byte_offset);
        // SAFETY: whether the bytes were copied is of no consequence here.
        unsafe { tensor.set_flags_unchecked(self.flags) };
        // SAFETY: data, shape and strides are set, and live until the deleter runs.
        (unsafe { tensor.finish() }.into_raw(), freed)
    }
}

fn dtype(code: u8, bits: u8) -> ffi::DLDataType {
    ffi::DLDataType { code: ffi::DLDataTypeCode(code), bits, lanes: 1 }
}

/// Gives a tensor of ours to the other implementation.
fn hand_over<T: ManagedTensor, M: ManagedTensorBase>(managed: Managed<T>) -> dlpark::Managed<M> {
    assert_eq!((size_of::<T>(), align_of::<T>()), (size_of::<M>(), align_of::<M>()));
    // SAFETY: the same C structure under another name, and ours no more.
    unsafe { dlpark::Managed::from_raw(managed.into_raw().cast()) }.unwrap()
}

/// Takes a tensor of the other implementation.
fn take_over<T: ManagedTensor, M: ManagedTensorBase>(raw: *mut M) -> Managed<T> {
    // SAFETY: the same C structure under another name, and nobody else's.
    unsafe { Managed::from_raw(raw.cast()) }.unwrap()
}

fn numbers(count: usize) -> Vec<u8> {
    (0..count as i32).flat_map(i32::to_ne_bytes).collect()
}

#[test]
fn layouts_agree() {
    assert_eq!(size_of::<abi::DLTensor>(), size_of::<ffi::DLTensor>());
    macro_rules! same_offsets {
        ($name:ident: $($field:ident),*) => {
            $(assert_eq!(std::mem::offset_of!(abi::$name, $field), std::mem::offset_of!(ffi::$name, $field));)*
            assert_eq!(size_of::<abi::$name>(), size_of::<ffi::$name>());
        };
    }
    same_offsets!(DLPackVersion: major, minor);
    same_offsets!(DLDevice: device_type, device_id);
    same_offsets!(DLDataType: code, bits, lanes);
    same_offsets!(DLTensor: data, device, ndim, dtype, shape, strides, byte_offset);
    same_offsets!(DLManagedTensor: dl_tensor, manager_ctx, deleter);
    same_offsets!(DLManagedTensorVersioned: version, manager_ctx, deleter, flags, dl_tensor);
    assert_eq!(abi::VERSION.major, ffi::DLPACK_MAJOR_VERSION);
    assert_eq!(abi::VERSION.minor, ffi::DLPACK_MINOR_VERSION);
    assert_eq!(abi::FLAG_READ_ONLY, DlpackFlags::READ_ONLY.bits());
    assert_eq!(abi::FLAG_IS_COPIED, DlpackFlags::IS_COPIED.bits());
    assert_eq!(abi::FLAG_IS_SUBBYTE_TYPE_PADDED, DlpackFlags::IS_SUBBYTE_TYPE_PADDED.bits());
}

#[test]
fn numbers_of_types_and_devices_agree() {
    use ffi::DLDataTypeCode as Code;
    let types = [
        (DataType::Bool, Code::BOOL, 8),
        (DataType::Int4, Code::INT, 4),
        (DataType::Int64, Code::INT, 64),
        (DataType::UInt8, Code::UINT, 8),
        (DataType::Float16, Code::FLOAT, 16),
        (DataType::Float64, Code::FLOAT, 64),
        (DataType::BFloat16, Code::BFLOAT, 16),
        (DataType::Complex64, Code::COMPLEX, 64),
        (DataType::ComplexFloat16, Code::COMPLEX, 32),
        (DataType::Float8E3M4, Code::FLOAT8_E3M4, 8),
        (DataType::Float8E4M3, Code::FLOAT8_E4M3, 8),
        (DataType::Float8E4M3B11FNUZ, Code::FLOAT8_E4M3B11FNUZ, 8),
        (DataType::Float8E4M3FN, Code::FLOAT8_E4M3FN, 8),
        (DataType::Float8E4M3FNUZ, Code::FLOAT8_E4M3FNUZ, 8),
        (DataType::Float8E5M2, Code::FLOAT8_E5M2, 8),
        (DataType::Float8E5M2FNUZ, Code::FLOAT8_E5M2FNUZ, 8),
        (DataType::Float8E8M0FNU, Code::FLOAT8_E8M0FNU, 8),
        (DataType::Float6E2M3FN, Code::FLOAT6_E2M3FN, 6),
        (DataType::Float6E3M2FN, Code::FLOAT6_E3M2FN, 6),
        (DataType::Float4E2M1FN, Code::FLOAT4_E2M1FN, 4),
    ];
    for (data_type, code, bits) in types {
        let buffer = Buffer::from_vec(vec![0; data_type.fixed_size().unwrap()]);
        let tensor = Export::new(&buffer, &[1], None, &data_type).unwrap().into_versioned().unwrap();
        let theirs: dlpark::versioned::Dlpack = hand_over(tensor);
        assert_eq!(theirs.flags().contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED), bits < 8);
        // SAFETY: the tensor lives, and nobody changes it.
        let tensor = unsafe { theirs.tensor() };
        assert_eq!((tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes), (code, bits, 1));
    }
    use ffi::DLDeviceType as Kind;
    let kinds = [
        (DeviceKind::Cpu, Kind::CPU),
        (DeviceKind::Cuda, Kind::CUDA),
        (DeviceKind::CudaHost, Kind::CUDAHOST),
        (DeviceKind::OpenCl, Kind::OPENCL),
        (DeviceKind::Vulkan, Kind::VULKAN),
        (DeviceKind::Metal, Kind::METAL),
        (DeviceKind::Rocm, Kind::ROCM),
        (DeviceKind::RocmHost, Kind::ROCMHOST),
        (DeviceKind::ExtDev, Kind::EXTDEV),
        (DeviceKind::CudaManaged, Kind::CUDAMANAGED),
        (DeviceKind::OneApi, Kind::ONEAPI),
    ];
    for (ours, theirs) in kinds {
        assert_eq!(zarr_buffer_dlpack::device_to_raw(DeviceId::new(ours, 2)).device_type as u32, theirs.0);
    }
}

#[test]
fn they_read_ours() {
    let buffer = Buffer::from_vec(numbers(24));
    let slice = buffer.slice(16..96).unwrap();
    let address = slice.address();
    let export = Export::new(&slice, &[2, 3], Some(&[10, 2]), &DataType::Int32).unwrap();
    let theirs: dlpark::versioned::Dlpack = hand_over(export.read_only(true).copied(true).into_versioned().unwrap());
    assert_eq!(theirs.flags(), DlpackFlags::READ_ONLY | DlpackFlags::IS_COPIED);
    let view = theirs.validate_export().unwrap();
    assert_eq!((view.shape(), view.strides()), (&[2, 3][..], Some(&[10, 2][..])));
    assert_eq!((view.data_ptr().addr() as u64, view.byte_offset()), (address, 0));

    let whole = Export::new(&slice, &[4, 5], None, &DataType::Int32).unwrap();
    let theirs: dlpark::legacy::Dlpack = hand_over(whole.into_legacy().unwrap());
    drop((buffer, slice));
    let view = theirs.validate_export().unwrap();
    assert!(view.is_compact().unwrap());
    // SAFETY: initialised, and kept alive by the tensor.
    let bytes = unsafe { view.cpu_bytes() }.unwrap();
    assert_eq!(bytes, &numbers(24)[16..96]);
}

#[test]
fn the_old_structure_refuses_what_it_cannot_say() {
    let buffer = Buffer::from_vec(vec![0; 8]);
    let export = |data_type| Export::new(&buffer, &[8], None, &data_type).unwrap();
    assert!(matches!(export(DataType::Int8).read_only(true).into_legacy(), Err(DlpackError::NeedsVersioned { .. })));
    assert!(matches!(export(DataType::Int4).into_legacy(), Err(DlpackError::NeedsVersioned { .. })));
    assert!(export(DataType::Int8).into_legacy().is_ok());
}

#[test]
fn no_axes_and_no_elements() {
    // Aligned, unlike bytes of a vector.
    let buffer = HostDevice.allocate_staging(4).unwrap();
    buffer.host_write().unwrap().copy_from_slice(&7i32.to_ne_bytes());
    let scalar: dlpark::versioned::Dlpack = hand_over(Export::new(&buffer, &[], None, &DataType::Int32).unwrap().into_versioned().unwrap());
    let view = scalar.validate_export().unwrap();
    assert_eq!((view.ndim(), view.num_elements()), (0, 1));
    // SAFETY: one element, initialised and kept alive.
    assert_eq!(unsafe { view.cpu_slice::<i32>() }.unwrap(), [7]);

    let nothing = Export::new(&buffer, &[3, 0, 2], None, &DataType::Int32).unwrap().into_versioned().unwrap();
    assert!(nothing.tensor().data.is_null());
    assert_eq!(nothing.strides().unwrap().len(), 3);
    let theirs: dlpark::versioned::Dlpack = hand_over(nothing);
    assert_eq!(theirs.validate_export().unwrap().num_elements(), 0);
}

#[test]
fn we_read_theirs() {
    fn check<T: ManagedTensor, M: ManagedTensorBase>() {
        // Two rows backwards, every second column: the first element is number 17.
        let (shape, strides) = ([2, 3], [-8, 2]);
        let foreign = Foreign {
            bytes: numbers(24),
            byte_offset: 17 * 4,
            shape: &shape,
            strides: &strides,
            dtype: dtype(abi::code::INT, 32),
            flags: DlpackFlags::IS_COPIED,
        };
        let (raw, freed) = foreign.make::<M>();
        // SAFETY: nobody else uses the bytes until the deleter runs.
        let imported = unsafe { take_over::<T, M>(raw).import(Access::ReadWrite) }.unwrap();
        assert_eq!((imported.data_type, imported.read_only), (DataType::Int32, false));
        assert_eq!(imported.copied, imported.version.is_some());
        let region = imported.region;
        assert_eq!(region.buffer.device(), DeviceId::CPU);
        assert_eq!(region.layout, Layout { offset: 32, shape: vec![2, 3], strides: vec![-32, 8], item_size: 4 });
        assert_eq!(region.buffer.len(), 4 * (8 + 4 + 1));
        let bytes = region.buffer.host_read().unwrap();
        let at = |index: usize| i32::from_ne_bytes(bytes[index..index + 4].try_into().unwrap());
        assert_eq!([at(32), at(40), at(48), at(0), at(8), at(16)], [17, 19, 21, 9, 11, 13]);
        drop(bytes);
        let part = region.buffer.slice(4..8).unwrap();
        drop(region);
        assert_eq!(freed.load(Ordering::SeqCst), 0);
        std::thread::spawn(move || drop(part)).join().unwrap();
        assert_eq!(freed.load(Ordering::SeqCst), 1);
    }
    check::<abi::DLManagedTensor, ffi::DLManagedTensor>();
    check::<abi::DLManagedTensorVersioned, ffi::DLManagedTensorVersioned>();
}

#[test]
fn read_only_is_taken_only_to_read() {
    let make = || {
        let foreign = Foreign {
            bytes: numbers(4),
            byte_offset: 0,
            shape: &[4],
            strides: &[1],
            dtype: dtype(abi::code::INT, 32),
            flags: DlpackFlags::READ_ONLY,
        };
        foreign.make::<ffi::DLManagedTensorVersioned>()
    };
    let (raw, freed) = make();
    // SAFETY: nobody else uses the bytes.
    let refused = unsafe { take_over::<abi::DLManagedTensorVersioned, _>(raw).import(Access::ReadWrite) };
    assert!(matches!(refused, Err(DlpackError::ReadOnly)));
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    let (raw, freed) = make();
    // SAFETY: nobody else uses the bytes, and we do not write them.
    let taken = unsafe { take_over::<abi::DLManagedTensorVersioned, _>(raw).import(Access::ReadOnly) }.unwrap();
    assert!(taken.read_only);
    assert_eq!(&*taken.region.buffer.host_read().unwrap(), numbers(4));
    drop(taken);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn another_major_version_is_given_back_unread() {
    let foreign = Foreign {
        bytes: numbers(4),
        byte_offset: 0,
        shape: &[4],
        strides: &[1],
        dtype: dtype(abi::code::INT, 32),
        flags: DlpackFlags::empty(),
    };
    let (raw, freed) = foreign.make::<ffi::DLManagedTensorVersioned>();
    // SAFETY: a live structure of ours alone.
    unsafe { (*raw).version.major = 2 };
    // SAFETY: as above.
    let refused = unsafe { Managed::from_raw(raw.cast::<abi::DLManagedTensorVersioned>()) };
    assert!(matches!(refused, Err(DlpackError::Version { major: 2, .. })));
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

fn layouts() -> impl Strategy<Value = (Vec<usize>, Vec<isize>, usize, usize)> {
    let axes = prop::collection::vec((0usize..5, -7isize..8), 0..5);
    (axes, prop::sample::select(vec![1usize, 2, 4, 8, 16]), 0usize..40).prop_map(|(axes, item_size, before)| {
        let (shape, strides): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
        (shape, strides, item_size, before)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 20 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every box of a buffer comes back as the box it was: the same bytes, at the same address.
    #[test]
    fn boxes_come_back((shape, strides, item_size, before) in layouts()) {
        let data_type = match item_size {
            1 => DataType::Float8E5M2,
            2 => DataType::BFloat16,
            4 => DataType::UInt32,
            8 => DataType::Complex64,
            _ => DataType::Complex128,
        };
        let bytes: Vec<isize> = strides.iter().map(|stride| stride * item_size as isize).collect();
        let empty = shape.contains(&0);
        let reach = |down: bool| -> usize {
            let axes = shape.iter().zip(&bytes).filter(|(_, stride)| !empty && (**stride < 0) == down);
            axes.map(|(len, stride)| (len - 1) * stride.unsigned_abs()).sum()
        };
        let offset = before + reach(true);
        let layout = Layout { offset, shape: shape.clone(), strides: bytes.clone(), item_size };
        let buffer = Buffer::from_vec((0..offset + reach(false) + item_size + 3).map(|i| i as u8).collect());
        let region = Region::new(buffer.clone(), layout.clone()).unwrap();

        let managed = Export::from_region(&region, &data_type).unwrap().into_versioned().unwrap();
        let theirs: dlpark::versioned::Dlpack = hand_over(managed);
        {
            let view = theirs.validate_export().unwrap();
            prop_assert_eq!(view.shape(), shape.iter().map(|&len| len as i64).collect::<Vec<_>>());
            prop_assert_eq!(view.strides().unwrap_or_default(), strides.iter().map(|&stride| stride as i64).collect::<Vec<_>>());
            prop_assert_eq!(view.num_elements(), shape.iter().product::<usize>());
        }
        // SAFETY: the bytes are the buffer's, which is only read meanwhile.
        let back = unsafe { take_over::<abi::DLManagedTensorVersioned, _>(theirs.into_raw()).import(Access::ReadOnly) }.unwrap();
        prop_assert_eq!(back.data_type, data_type);
        let (ours, theirs) = (region.layout.span().unwrap(), back.region.layout.span().unwrap());
        prop_assert_eq!(ours.len(), theirs.len());
        prop_assert_eq!(&buffer.host_read().unwrap()[ours.clone()], &back.region.buffer.host_read().unwrap()[theirs]);
        if !empty {
            prop_assert_eq!(back.region.buffer.address(), buffer.address() + ours.start as u64);
            prop_assert_eq!(back.region.layout.offset, layout.offset - ours.start);
        }
    }

    /// Whatever numbers a tensor holds, it is taken in whole or given back with an error, once.
    #[test]
    fn any_numbers_are_an_answer(
        dims in prop::collection::vec((any_dim(), any_dim()), 0..4),
        byte_offset in prop_oneof![0u64..64, any::<u64>()],
        code in 0u8..20,
        bits in prop::sample::select(vec![0u8, 1, 4, 6, 8, 16, 32, 64, 128, 255]),
        lanes in prop::sample::select(vec![0u16, 1, 1, 1, 4]),
        null_data: bool,
    ) {
        let (shape, strides): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        let dtype = ffi::DLDataType { code: ffi::DLDataTypeCode(code), bits, lanes };
        let foreign = Foreign { bytes: vec![0; 64], byte_offset, shape: &shape, strides: &strides, dtype, flags: DlpackFlags::empty() };
        let (raw, freed) = foreign.make::<ffi::DLManagedTensor>();
        if null_data {
            // SAFETY: a live structure of ours alone.
            unsafe { (*raw).dl_tensor.data = std::ptr::null_mut() };
        }
        // SAFETY: nobody touches the bytes, which may not be there.
        let result = unsafe { take_over::<abi::DLManagedTensor, _>(raw).import(Access::ReadWrite) };
        if let Ok(imported) = result {
            prop_assert!(imported.region.layout.check_within(imported.region.buffer.len()).is_ok());
            prop_assert!(!null_data || imported.region.buffer.is_empty());
            prop_assert_eq!(freed.load(Ordering::SeqCst), 0);
        }
        prop_assert_eq!(freed.load(Ordering::SeqCst), 1);
    }
}

fn any_dim() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0i64..5, 1 => -5i64..0, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => Just(1i64 << 31)]
}
