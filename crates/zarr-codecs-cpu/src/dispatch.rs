//! One function, compiled for the target's baseline and for wider vectors, chosen at run time.

/// Defines safe functions over slices. On x86-64 each is also compiled with AVX2, and that version runs where the processor has it.
macro_rules! multiversion {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block)*) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) $(-> $output)? {
            #[inline(always)]
            fn generic($($arg: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2")]
                fn wide($($arg: $type),*) $(-> $output)? {
                    generic($($arg),*)
                }
                if crate::dispatch::has_avx2() {
                    // SAFETY: the processor has the features that the function was compiled for.
                    return unsafe { wide($($arg),*) };
                }
            }
            generic($($arg),*)
        }
    )*};
}

pub(crate) use multiversion;

/// Whether the processor has AVX2, and the bit manipulation that came with it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("bmi1") && std::is_x86_feature_detected!("bmi2")
}
