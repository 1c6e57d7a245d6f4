//! Consumers that misread tensors, or do not give them back as they must.

use std::any::Any;
use std::thread::{self, ThreadId};

use zarr_buffer_dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, FLAG_IS_COPIED, FLAG_READ_ONLY, VERSION};
use zarr_buffer_dlpack::{Access, Managed, ManagedTensor};
use zarr_conformance::dlpack::{ConsumerUnderTest, Seen};
use zarr_meta::DataType;

use super::{Memory, There};
use crate::idle::Wrong;

/// What a consumer does besides what is right.
pub(crate) struct Methods {
    /// Changes a tensor before it is looked at.
    versioned: fn(&mut DLManagedTensorVersioned),
    legacy: fn(&mut DLManagedTensor),
    /// Whether tensors are taken to be in the consumer's memory, whatever they name.
    any_device: bool,
    /// Whether a tensor is refused.
    refuses: fn(&DLManagedTensorVersioned) -> bool,
    /// Changes what was seen.
    seen: fn(&mut Seen),
    /// What keeps a tensor.
    hold: fn(Box<dyn Any + Send>, Again) -> Box<dyn Any + Send>,
}

impl Default for Methods {
    fn default() -> Self {
        Self { versioned: |_| {}, legacy: |_| {}, any_device: false, refuses: |_| false, seen: |_| {}, hold: |hold, _| hold }
    }
}

/// A deleter, to be called once more than it should.
pub(crate) struct Again(*mut DLManagedTensorVersioned);

// SAFETY: deleters may be called on any thread.
unsafe impl Send for Again {}

impl Again {
    fn call(&self) {
        // SAFETY: the laws' tensors live until the case is over, and their deleters count.
        if let Some(deleter) = unsafe { (*self.0).deleter } {
            // SAFETY: as above.
            unsafe { deleter(self.0) };
        }
    }
}

fn import<T: ManagedTensor>(there: &There, pointer: *mut T, write: bool) -> Result<Seen, String> {
    let access = if write { Access::ReadWrite } else { Access::ReadOnly };
    // SAFETY: a managed tensor that is ours from here on.
    let managed = unsafe { Managed::from_raw(pointer) }.map_err(|error| error.to_string())?;
    // SAFETY: nobody else uses the bytes.
    let imported = unsafe { managed.import(access) }.map_err(|error| error.to_string())?;
    let shape = imported.region.layout.shape.iter().map(|&len| len as i64).collect();
    let elements = there.elements(&imported.region);
    let (data_type, read_only, copied) = (imported.data_type.clone(), imported.read_only, imported.copied);
    Ok(Seen { data_type, shape, elements, read_only, copied, hold: Box::new(imported) })
}

pub(crate) fn consumer(memory: Memory, replace: fn(&mut Methods)) -> ConsumerUnderTest {
    let mut methods = Methods::default();
    replace(&mut methods);
    let there = There::new(memory);
    let (memory, again) = (there.memory(), there.clone());
    let device = memory.device();
    let (seen, hold) = (methods.seen, methods.hold);
    let versioned = move |pointer: *mut DLManagedTensorVersioned, write| {
        // SAFETY: a managed tensor that is ours from here on.
        let tensor = unsafe { &mut *pointer };
        if (methods.refuses)(tensor) {
            Again(pointer).call();
            return Err("refused".to_owned());
        }
        (methods.versioned)(tensor);
        if methods.any_device {
            tensor.dl_tensor.device = device;
        }
        let mut imported = import(&there, pointer, write)?;
        seen(&mut imported);
        imported.hold = hold(imported.hold, Again(pointer));
        Ok(imported)
    };
    let legacy = move |pointer: *mut DLManagedTensor, write| {
        // SAFETY: a managed tensor that is ours from here on.
        (methods.legacy)(unsafe { &mut *pointer });
        import(&again, pointer, write)
    };
    ConsumerUnderTest::new("consumer", versioned, legacy).in_memory(memory)
}

/// Does something when it goes, told whether that is where it was made.
struct AtEnd<F: FnMut(bool) + Send>(ThreadId, F);

impl<F: FnMut(bool) + Send> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.1)(thread::current().id() == self.0);
    }
}

/// The numbers of a shape or of strides.
fn numbers(pointer: *mut i64, ndim: i32) -> &'static mut [i64] {
    match pointer.is_null() || ndim <= 0 {
        true => &mut [],
        // SAFETY: `ndim` numbers, which nobody else looks at while they are changed.
        false => unsafe { std::slice::from_raw_parts_mut(pointer, ndim as usize) },
    }
}

type Row = (&'static str, &'static str, fn(&mut Methods));

fn wrong(law: &'static str, what: &'static str, replace: fn(&mut Methods)) -> Row {
    (law, what, replace)
}

pub(crate) fn table(memory: Memory) -> Vec<Wrong> {
    rows().into_iter().map(|(law, what, replace)| Wrong::new(what, &[law], move || consumer(memory, replace))).collect()
}

fn rows() -> Vec<Row> {
    vec![
        wrong("dlpack-consumer/contents", "of three axes, elements begin at the second", |consumer| {
            consumer.seen = |seen| {
                if seen.shape.len() == 3 && !seen.elements.is_empty() {
                    seen.elements.rotate_left(4);
                }
            };
        }),
        wrong("dlpack-consumer/strides", "strides have no sign", |consumer| {
            consumer.versioned = |tensor| {
                let tensor = &tensor.dl_tensor;
                numbers(tensor.strides, tensor.ndim).iter_mut().for_each(|stride| *stride = stride.abs());
            };
        }),
        wrong("dlpack-consumer/null-strides", "tensors without strides are refused", |consumer| {
            consumer.refuses = |tensor| tensor.dl_tensor.ndim > 0 && tensor.dl_tensor.strides.is_null();
        }),
        wrong("dlpack-consumer/byte-offset", "the byte offset is ignored", |consumer| {
            consumer.versioned = |tensor| tensor.dl_tensor.byte_offset = 0;
        }),
        wrong("dlpack-consumer/scalar", "tensors without axes are refused", |consumer| {
            consumer.refuses = |tensor| tensor.dl_tensor.ndim == 0;
        }),
        wrong("dlpack-consumer/zero-size", "tensors without data are refused", |consumer| {
            consumer.refuses = |tensor| tensor.dl_tensor.data.is_null();
        }),
        wrong("dlpack-consumer/data-types", "all floats of two bytes are one type", |consumer| {
            consumer.seen = |seen| {
                if seen.data_type == DataType::BFloat16 {
                    seen.data_type = DataType::Float16;
                }
            };
        }),
        wrong("dlpack-consumer/read-only", "read-only tensors are written", |consumer| {
            consumer.versioned = |tensor| tensor.flags &= !FLAG_READ_ONLY;
        }),
        wrong("dlpack-consumer/copied", "copies are not known as such", |consumer| {
            consumer.versioned = |tensor| tensor.flags &= !FLAG_IS_COPIED;
        }),
        wrong("dlpack-consumer/newer-minor", "newer minor versions are refused", |consumer| {
            consumer.refuses = |tensor| tensor.version.minor > VERSION.minor;
        }),
        wrong("dlpack-consumer/refuses-version", "the version is not looked at", |consumer| {
            consumer.versioned = |tensor| tensor.version = VERSION;
        }),
        wrong("dlpack-consumer/refuses-types", "lanes are not looked at", |consumer| {
            consumer.versioned = |tensor| tensor.dl_tensor.dtype.lanes = 1;
        }),
        wrong("dlpack-consumer/refuses-devices", "the device is not looked at", |consumer| {
            consumer.any_device = true;
        }),
        wrong("dlpack-consumer/refuses-shapes", "lengths have no sign", |consumer| {
            consumer.versioned = |tensor| {
                let tensor = &tensor.dl_tensor;
                numbers(tensor.shape, tensor.ndim).iter_mut().for_each(|len| *len = len.abs());
            };
        }),
        wrong("dlpack-consumer/gives-back", "tensors are given back twice", |consumer| {
            consumer.hold = |hold, again| {
                let mut hold = Some(hold);
                Box::new(AtEnd(thread::current().id(), move |here| {
                    hold.take();
                    if here {
                        again.call();
                    }
                }))
            };
        }),
        wrong("dlpack-consumer/any-thread", "tensors are given back only where they were taken", |consumer| {
            consumer.hold = |hold, _| {
                let mut hold = Some(hold);
                Box::new(AtEnd(thread::current().id(), move |here| match here {
                    true => drop(hold.take()),
                    false => std::mem::forget(hold.take()),
                }))
            };
        }),
        wrong("dlpack-consumer/null-deleter", "tensors without a deleter are refused", |consumer| {
            consumer.refuses = |tensor| tensor.deleter.is_none();
        }),
        wrong("dlpack-consumer/legacy", "the byte offset of legacy tensors is ignored", |consumer| {
            consumer.legacy = |tensor| tensor.dl_tensor.byte_offset = 0;
        }),
    ]
}
