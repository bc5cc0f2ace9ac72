//! Sets of ASCII characters that are looked up, not searched.

/// True at the bytes of the set.
pub(crate) struct Set([bool; 256]);

impl Set {
    /// The set of the bytes that `holds` has.
    pub(crate) fn of(holds: impl Fn(u8) -> bool) -> Self {
        let mut set = [false; 256];
        for (byte, slot) in (0..=u8::MAX).zip(&mut set) {
            *slot = holds(byte);
        }
        Set(set)
    }

    #[inline]
    pub(crate) fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or(false)
    }
}
