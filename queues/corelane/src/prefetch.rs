//! Cache hints. A hint changes no value and cannot fault: at worst it costs a load slot.

/// Asks for the cache line that `value` begins in, to be read soon.
///
/// ```
/// let later = Box::new(7);
/// corelane::prefetch_read(&*later);
/// // Something else meanwhile.
/// assert_eq!(*later, 7);
/// ```
#[inline(always)]
pub fn prefetch_read<T>(value: &T) {
    read(core::ptr::from_ref(value).cast());
}

#[inline(always)]
pub(crate) fn read(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(corelane_loom)))]
    // SAFETY: a prefetch of any address is allowed; it never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(corelane_loom)))]
    // SAFETY: PRFM of any address is allowed; it never faults and changes no register.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(corelane_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = line;
}
