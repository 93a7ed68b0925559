//! Asks the system for large pages: memory that is filled at once costs a fault for each page.
//!
//! Not a loop, but `unsafe`: that is why it is here.

use std::mem::MaybeUninit;

/// Every size of small pages divides it.
#[cfg(target_os = "linux")]
const ALIGNMENT: usize = 64 << 10;

/// Memory that is not in use yet had better come in large pages (Linux: 2 MiB). A wish: where the system
/// does not heed it nothing changes.
pub fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(ALIGNMENT);
        let bytes = size_of_val(memory).saturating_sub(skipped) / ALIGNMENT * ALIGNMENT;
        if bytes == 0 {
            return;
        }
        // SAFETY: the range lies within `memory`, which is borrowed here alone; this advice changes how
        // it is mapped, neither what is in it nor whether it may be accessed.
        let advised = unsafe {
            rustix::mm::madvise(
                start.wrapping_add(skipped).cast(),
                bytes,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
        // A kernel without large pages says so; nothing is lost.
        let _ = advised;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_good_as_before() {
        for length in [0, 1, 5000, 64 << 10, 5 << 20] {
            let mut memory: Vec<u8> = Vec::with_capacity(length);
            prefer_huge_pages(memory.spare_capacity_mut());
            memory.resize(length, 7);
            assert!(memory.iter().all(|&byte| byte == 7));
        }
    }
}
