//! Fresh memory that is about to be written from end to end.

use std::alloc;
use std::mem::MaybeUninit;

use bytemuck::AnyBitPattern;

use crate::{BufferError, BufferErrorKind, advise_huge_pages};

/// From so many bytes on allocators get their memory from the system, which gives zeros, and only when they are touched.
const FROM_SYSTEM: usize = 128 << 20;

/// Bytes of huge pages, each of which one thread is to touch first.
const PART: usize = 2 << 20;

/// `len` elements that hold anything, for who writes every one of them: unlike zeros, they are not written twice. They are initialised: reading
/// them before is no error, but gives what the memory held before.
///
/// In debug builds every byte is `0xA5`, so that tests find elements that nobody wrote. Large memory is zeros that the system provides when they
/// are touched, in huge pages where it has those.
///
/// # Errors
/// [`BufferErrorKind::OutOfMemory`] when there is no room.
pub fn unwritten<T: AnyBitPattern>(len: usize) -> Result<Vec<T>, BufferError> {
    let no_room = || BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} elements of {} bytes", size_of::<T>()));
    let layout = alloc::Layout::array::<T>(len).map_err(|error| no_room().with_source(error))?;
    if layout.size() >= FROM_SYSTEM || !CAN_SETTLE {
        let mut memory = zeroed(len, layout).ok_or_else(no_room)?;
        advise_huge_pages(&mut memory);
        if cfg!(debug_assertions) {
            // SAFETY: any bytes are valid elements, and those of the vector are ours alone.
            unsafe { std::ptr::write_bytes(memory.as_mut_ptr(), 0xA5, len) };
        }
        return Ok(memory);
    }
    let mut memory: Vec<T> = Vec::new();
    memory.try_reserve_exact(len).map_err(|error| no_room().with_source(error))?;
    advise_huge_pages(memory.spare_capacity_mut());
    // SAFETY: room for `len` elements was reserved.
    unsafe { make_bytes(memory.as_mut_ptr().cast(), layout.size()) };
    // SAFETY: room was reserved, every byte is initialised now, and `T` takes any bytes.
    unsafe { memory.set_len(len) };
    Ok(memory)
}

/// As [`unwritten`], for memory large enough that several threads should be the first to touch it: the system clears each page for the one that is. `share`
/// is handed the parts of the memory, and calls [`FreshPart::touch`] on each, on any thread. Those that it leaves out are touched behind it, unless
/// they come as zeros: [`FreshPart::is_zeroed`].
///
/// # Errors
/// As [`unwritten`].
pub fn unwritten_shared<T: AnyBitPattern>(len: usize, share: impl FnOnce(&mut [FreshPart<'_>])) -> Result<Vec<T>, BufferError> {
    let size = len.saturating_mul(size_of::<T>());
    if size == 0 || !CAN_SETTLE {
        return unwritten(len);
    }
    let no_room = || BufferError::new(BufferErrorKind::OutOfMemory, format!("no room for {len} elements of {} bytes", size_of::<T>()));
    let mut memory: Vec<T> = Vec::new();
    let is_zeroed = size >= FROM_SYSTEM;
    if is_zeroed {
        let layout = alloc::Layout::array::<T>(len).map_err(|error| no_room().with_source(error))?;
        memory = zeroed(len, layout).ok_or_else(no_room)?;
        // Its elements stay initialised, whatever becomes of the parts.
        memory.clear();
    } else {
        memory.try_reserve_exact(len).map_err(|error| no_room().with_source(error))?;
    }
    advise_huge_pages(memory.spare_capacity_mut());
    let start = memory.as_mut_ptr().cast();
    // SAFETY: room for so many bytes was reserved, which nobody else uses until the vector is used again, and they need not hold anything.
    let reserved: &mut [MaybeUninit<u8>] = unsafe { std::slice::from_raw_parts_mut(start, size) };
    let (first, rest) = reserved.split_at_mut((PART - start as usize % PART).min(size));
    let parts = std::iter::once(first).chain(rest.chunks_mut(PART));
    let mut parts: Vec<FreshPart<'_>> = parts.map(|memory| FreshPart { memory, is_zeroed, touched: false }).collect();
    share(&mut parts);
    parts.iter_mut().filter(|part| !part.is_zeroed || cfg!(debug_assertions)).for_each(FreshPart::touch);
    // SAFETY: there is room, every part of it holds bytes now, and `T` takes any bytes.
    unsafe { memory.set_len(len) };
    Ok(memory)
}

/// A part of the memory of [`unwritten_shared`]: a huge page, or what there is of one.
#[derive(Debug)]
pub struct FreshPart<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    is_zeroed: bool,
    touched: bool,
}

impl FreshPart<'_> {
    /// Whether the part is zeros that the system provides when they are touched, which may as well be later.
    pub fn is_zeroed(&self) -> bool {
        self.is_zeroed
    }

    /// Touches every page of the part, unless that was done.
    pub fn touch(&mut self) {
        if !self.touched {
            // SAFETY: the part is a slice that may be written to.
            unsafe { make_bytes(self.memory.as_mut_ptr().cast(), self.memory.len()) };
            self.touched = true;
        }
    }
}

/// Makes memory that the allocator gave hold bytes: those that it holds, or `0xA5` in debug builds.
///
/// # Safety
/// `start` is valid for writes of `len` bytes.
unsafe fn make_bytes(start: *mut u8, len: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::write_bytes(start, 0xA5, len) };
    } else {
        // SAFETY: as above.
        unsafe { settle(start, len) };
    }
}

fn zeroed<T: AnyBitPattern>(len: usize, layout: alloc::Layout) -> Option<Vec<T>> {
    if layout.size() == 0 {
        // No elements, or elements without size.
        return Some(vec![T::zeroed(); len]);
    }
    // SAFETY: the size is not 0.
    let pointer = unsafe { alloc::alloc_zeroed(layout) };
    if pointer.is_null() {
        return None;
    }
    // SAFETY: allocated by the global allocator just now, with the layout of a vector of this capacity, and zeros are valid elements.
    Some(unsafe { Vec::from_raw_parts(pointer.cast(), len, len) })
}

/// Whether there is an [`settle`] for this target. Miri knows what was initialised, whatever the processor does.
const CAN_SETTLE: bool = cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// Makes memory that the allocator gave hold bytes, without writing all of them.
///
/// To the language, memory fresh from an allocator holds no bytes, not even unknown ones. To the machine it does, but for one case: a page that
/// was handed back to the system may lose what it holds until it is written again (`MADV_FREE`). So one byte of each page is written; from then on
/// the memory holds what it holds. Then it is shown to a piece of assembly that the compiler cannot look into, and that might have written it:
/// behind it, the compiler has to take the bytes that are there.
///
/// # Safety
/// `start` is valid for writes of `len` bytes.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
unsafe fn settle(start: *mut u8, len: usize) {
    /// Of the smallest pages of these processors.
    const PAGE: usize = 4096;
    /// Bytes of these processors' cache lines.
    const LINE: usize = 64;
    // In the middle of the first page, then at the start of each.
    let to_next_page = PAGE - start as usize % PAGE;
    for (page, at) in std::iter::once(0).chain((to_next_page..).step_by(PAGE)).take_while(|&at| at < len).enumerate() {
        // Another line in each page: the first lines of all pages compete for the same place in caches.
        let line = if page == 0 { 0 } else { page * LINE % PAGE };
        let byte = start.wrapping_add((at + line).min(len - 1));
        // SAFETY: one of the `len` bytes.
        unsafe { byte.write_volatile(0) };
    }
    // SAFETY: no instructions. What the block may do to the bytes, for all the compiler knows, is the caller's promise; that the bytes stay as they
    // are found was seen to above.
    unsafe { std::arch::asm!("/* {start} {len} */", start = in(reg) start, len = in(reg) len, options(nostack, preserves_flags)) };
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
unsafe fn settle(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_many_elements_as_asked_for() {
        for len in [0, 1, 7, 4096, 1 << 20] {
            let mut memory = unwritten::<u16>(len).unwrap();
            assert_eq!(memory.len(), len);
            memory.fill(3);
            assert!(memory.iter().all(|&element| element == 3));
        }
        assert_eq!(unwritten::<[u64; 0]>(5).unwrap().len(), 5);
        assert_eq!(unwritten::<u64>(usize::MAX).unwrap_err().kind, BufferErrorKind::OutOfMemory);
        assert_eq!(unwritten::<u64>(usize::MAX / 16).unwrap_err().kind, BufferErrorKind::OutOfMemory);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn unwritten_elements_are_found_in_tests() {
        assert_eq!(unwritten::<u32>(3).unwrap(), [0xA5A5_A5A5; 3]);
    }

    #[test]
    fn parts_are_touched_by_whoever_gets_them_or_behind_them() {
        for len in [0, 1, (9 << 20) + 7, FROM_SYSTEM + 1] {
            let mut most = 0;
            let memory = unwritten_shared::<u8>(len, |parts| {
                most = parts.len();
                assert!(parts.iter().all(|part| part.is_zeroed() == (len >= FROM_SYSTEM)));
                std::thread::scope(|scope| {
                    parts.iter_mut().step_by(2).for_each(|part| drop(scope.spawn(|| part.touch())));
                });
            });
            let memory = memory.unwrap();
            assert_eq!(memory.len(), len);
            assert!(!CAN_SETTLE || most >= len / (2 << 20), "{most} parts of {len} bytes");
            assert!(memory.iter().all(|&byte| byte == 0xA5 || !cfg!(debug_assertions)));
        }
        assert_eq!(unwritten_shared::<u8>(usize::MAX, |_| {}).unwrap_err().kind, BufferErrorKind::OutOfMemory);
    }

    #[test]
    fn settled_memory_keeps_its_bytes() {
        // Sizes around pages, at every place in them; what lies outside stays.
        let mut memory = vec![7u8; 3 * 4096 + 10];
        for start in [0, 1, 4095, 4096] {
            for len in [0, 1, 4096, 4097, 8192] {
                memory.fill(7);
                // SAFETY: inside the vector.
                unsafe { settle(memory.as_mut_ptr().wrapping_add(start), len) };
                assert!(memory.iter().enumerate().all(|(at, &byte)| byte == 7 || (start..start + len).contains(&at)));
            }
        }
    }
}
