//! Programs to be measured: one that uses its memory, and one that asks the kernel for it all the time.

/// A program that goes through memory that fits: core time goes to accesses alone.
pub fn fits(accesses: u64) -> u64 {
    const WORDS: usize = 8 << 20;
    let mut words = vec![1u64; WORDS];
    let (mut state, mut sum) = (1u64, 0u64);
    for _ in 0..accesses {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = &mut words[(state >> 33) as usize % WORDS];
        *word = word.wrapping_add(state);
        sum = sum.wrapping_add(*word);
    }
    sum
}

/// A program that maps, fills, drops and unmaps memory all the time.
pub fn churns(rounds: u64) -> u64 {
    const BYTES: usize = 1 << 20;
    let mut sum = 0;
    for round in 0..rounds {
        // SAFETY: new pages wherever there is room.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return 0;
        }
        for page in (0..BYTES).step_by(4096) {
            // SAFETY: within what was just mapped.
            let byte = unsafe { start.cast::<u8>().add(page) };
            // SAFETY: as above.
            unsafe { byte.write_volatile(round as u8) };
            sum += 1;
        }
        // SAFETY: the second half of it.
        let half = unsafe { start.cast::<u8>().add(BYTES / 2) };
        // SAFETY: memory that nothing refers to.
        unsafe { libc::madvise(half.cast(), BYTES / 2, libc::MADV_DONTNEED) };
        // SAFETY: as above.
        unsafe { libc::munmap(start, BYTES) };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_return_their_results() {
        assert_ne!(fits(1000), 0);
        assert_eq!(churns(3), 3 * 256);
    }
}
