//! The C layout of DLPack 1.3, field by field as in `dlpack.h`.

use std::ffi::c_void;

/// The version of the structures here, and of the numbers in them.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 3 };

/// The consumer must not write. In [`DLManagedTensorVersioned::flags`].
pub const FLAG_READ_ONLY: u64 = 1;
/// The producer made a copy: nobody but the consumer has these bytes.
pub const FLAG_IS_COPIED: u64 = 1 << 1;
/// Elements narrower than a byte take a byte each; without the flag they are packed.
pub const FLAG_IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

/// The name of a Python capsule around a [`DLManagedTensor`]; [`LEGACY_CAPSULE_USED`] once it is consumed.
pub const LEGACY_CAPSULE: &std::ffi::CStr = c"dltensor";
/// The name of a consumed capsule, which no longer owns its tensor.
pub const LEGACY_CAPSULE_USED: &std::ffi::CStr = c"used_dltensor";
/// The name of a Python capsule around a [`DLManagedTensorVersioned`]; [`VERSIONED_CAPSULE_USED`] once it is consumed.
pub const VERSIONED_CAPSULE: &std::ffi::CStr = c"dltensor_versioned";
/// The name of a consumed capsule, which no longer owns its tensor.
pub const VERSIONED_CAPSULE_USED: &std::ffi::CStr = c"used_dltensor_versioned";

/// Type codes of [`DLDataType::code`].
pub mod code {
    /// Signed integers.
    pub const INT: u8 = 0;
    /// Unsigned integers.
    pub const UINT: u8 = 1;
    /// IEEE floats of 16, 32 and 64 bits.
    pub const FLOAT: u8 = 2;
    /// Handles that the parties agree on.
    pub const OPAQUE_HANDLE: u8 = 3;
    /// `bfloat16`
    pub const BFLOAT: u8 = 4;
    /// Complex numbers of two IEEE floats.
    pub const COMPLEX: u8 = 5;
    /// Booleans of one byte.
    pub const BOOL: u8 = 6;
    /// `float8_e3m4`
    pub const FLOAT8_E3M4: u8 = 7;
    /// `float8_e4m3`
    pub const FLOAT8_E4M3: u8 = 8;
    /// `float8_e4m3b11fnuz`
    pub const FLOAT8_E4M3B11FNUZ: u8 = 9;
    /// `float8_e4m3fn`
    pub const FLOAT8_E4M3FN: u8 = 10;
    /// `float8_e4m3fnuz`
    pub const FLOAT8_E4M3FNUZ: u8 = 11;
    /// `float8_e5m2`
    pub const FLOAT8_E5M2: u8 = 12;
    /// `float8_e5m2fnuz`
    pub const FLOAT8_E5M2FNUZ: u8 = 13;
    /// `float8_e8m0fnu`
    pub const FLOAT8_E8M0FNU: u8 = 14;
    /// `float6_e2m3fn`
    pub const FLOAT6_E2M3FN: u8 = 15;
    /// `float6_e3m2fn`
    pub const FLOAT6_E3M2FN: u8 = 16;
    /// `float4_e2m1fn`
    pub const FLOAT4_E2M1FN: u8 = 17;
}

/// A version: the layout changes with `major`, numbers are added with `minor`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DLPackVersion {
    /// Of the layout.
    pub major: u32,
    /// Of the numbers.
    pub minor: u32,
}

/// A device. The kind is a plain number here, since a foreign one may be any.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// `DLDeviceType`.
    pub device_type: i32,
    /// Which of that kind; 0 for host memory.
    pub device_id: i32,
}

/// The type of elements.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// One of [`code`].
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// 1, or more for vectors.
    pub lanes: u16,
}

/// Where elements lie; owns nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLTensor {
    /// An address on the device, or a handle where the device has handles. May be null when there are no elements.
    pub data: *mut c_void,
    /// Where the data are.
    pub device: DLDevice,
    /// Axes.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DLDataType,
    /// `ndim` lengths; may be null when `ndim` is 0.
    pub shape: *mut i64,
    /// `ndim` distances in elements. Null meant C order before version 1.2.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor and how to give it back: the structure before version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees everything, the structure too; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// A tensor and how to give it back, with a version. The fields before `dl_tensor` stay where they are in every version.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// Of this structure.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees everything, the structure too; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// [`FLAG_READ_ONLY`] and the others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// Offsets and sizes as a C compiler has them, for pointers of 8 and of 4 bytes.
const _: () = {
    use std::mem::{align_of, offset_of, size_of};
    const P: usize = size_of::<*mut c_void>();

    assert!(size_of::<DLPackVersion>() == 8 && align_of::<DLPackVersion>() == 4);
    assert!(offset_of!(DLPackVersion, major) == 0 && offset_of!(DLPackVersion, minor) == 4);

    assert!(size_of::<DLDevice>() == 8 && align_of::<DLDevice>() == 4);
    assert!(offset_of!(DLDevice, device_type) == 0 && offset_of!(DLDevice, device_id) == 4);

    assert!(size_of::<DLDataType>() == 4 && align_of::<DLDataType>() == 2);
    assert!(offset_of!(DLDataType, code) == 0 && offset_of!(DLDataType, bits) == 1 && offset_of!(DLDataType, lanes) == 2);

    assert!(offset_of!(DLTensor, data) == 0 && offset_of!(DLTensor, device) == P);
    assert!(offset_of!(DLTensor, ndim) == P + 8 && offset_of!(DLTensor, dtype) == P + 12);
    assert!(offset_of!(DLTensor, shape) == P + 16 && offset_of!(DLTensor, strides) == 2 * P + 16);
    assert!(offset_of!(DLTensor, byte_offset) == 3 * P + 16 + (3 * P + 16) % align_of::<u64>());
    assert!(P != 8 || (size_of::<DLTensor>() == 48 && align_of::<DLTensor>() == 8));

    assert!(offset_of!(DLManagedTensor, dl_tensor) == 0);
    assert!(offset_of!(DLManagedTensor, manager_ctx) == size_of::<DLTensor>());
    assert!(offset_of!(DLManagedTensor, deleter) == size_of::<DLTensor>() + P);
    assert!(P != 8 || size_of::<DLManagedTensor>() == 64);

    assert!(offset_of!(DLManagedTensorVersioned, version) == 0);
    assert!(offset_of!(DLManagedTensorVersioned, manager_ctx) == 8);
    assert!(offset_of!(DLManagedTensorVersioned, deleter) == 8 + P);
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 8 + 2 * P);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 16 + 2 * P);
    assert!(P != 8 || size_of::<DLManagedTensorVersioned>() == 80);
};
