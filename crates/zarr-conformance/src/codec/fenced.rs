//! Bytes with nothing behind them.

pub(super) use imp::Fenced;

/// In an allocation of just their size: a sanitizer sees who reads on.
#[cfg(not(all(unix, feature = "guard-pages")))]
mod imp {
    use crate::suite::Trial;

    pub(in crate::codec) struct Fenced(Box<[u8]>);

    impl Fenced {
        pub(in crate::codec) fn new(bytes: &[u8], _: &Trial) -> Self {
            Self(bytes.into())
        }
    }

    impl std::ops::Deref for Fenced {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            &self.0
        }
    }
}

/// If asked for at the end of a page, with one behind it that cannot be read: who reads on takes the process down.
#[cfg(all(unix, feature = "guard-pages"))]
#[expect(unsafe_code, reason = "memory maps")]
mod imp {
    use std::ffi::c_void;
    use std::ptr::{self, NonNull};

    use crate::suite::Trial;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    pub(in crate::codec) enum Fenced {
        Mapped {
            start: NonNull<c_void>,
            /// Bytes mapped.
            room: usize,
            /// Where the bytes begin.
            offset: usize,
            len: usize,
        },
        /// Where nobody asked for it, or the system has no map left: in an allocation of just their size.
        Heap(Box<[u8]>),
    }

    // SAFETY: it owns its map, which nobody writes once it is made.
    unsafe impl Send for Fenced {}
    // SAFETY: it is only read.
    unsafe impl Sync for Fenced {}

    impl Fenced {
        pub(in crate::codec) fn new(bytes: &[u8], trial: &Trial) -> Self {
            let mapped = if trial.guard_pages() { Self::map(bytes) } else { None };
            mapped.unwrap_or_else(|| Self::Heap(bytes.into()))
        }

        fn map(bytes: &[u8]) -> Option<Self> {
            let page = rustix::param::page_size();
            let used = bytes.len().checked_next_multiple_of(page)?;
            let room = used.checked_add(page)?;
            // SAFETY: a new map, placed where the system likes.
            let start = unsafe { mmap_anonymous(ptr::null_mut(), room, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }.ok()?;
            let start = NonNull::new(start)?;
            let offset = used - bytes.len();
            let fenced = Self::Mapped { start, room, offset, len: bytes.len() };
            // SAFETY: `offset` and the length together are `used`, less than `room`; the map is new and so apart from `bytes`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr().cast::<u8>().wrapping_add(offset), bytes.len()) };
            // SAFETY: the last page of the map, of which there is no reference.
            unsafe { mprotect(start.as_ptr().wrapping_byte_add(used), page, MprotectFlags::empty()) }.ok()?;
            Some(fenced)
        }
    }

    impl std::ops::Deref for Fenced {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            match self {
                // SAFETY: mapped until the drop, initialised by the system and then by `map`, and not written again.
                Self::Mapped { start, offset, len, .. } => unsafe {
                    std::slice::from_raw_parts(start.as_ptr().cast::<u8>().wrapping_add(*offset), *len)
                },
                Self::Heap(bytes) => bytes,
            }
        }
    }

    impl Drop for Fenced {
        fn drop(&mut self) {
            if let Self::Mapped { start, room, .. } = self {
                // SAFETY: the map made in `map`, all of it; the last reference to it goes with `self`.
                let _ = unsafe { munmap(start.as_ptr(), *room) };
            }
        }
    }
}
