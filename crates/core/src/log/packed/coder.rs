//! Bits in fewer bits: each is told by how likely it is, which is learned from the bits before it. The same for whoever writes
//! and whoever reads, in integers alone, so that the same text is the same bytes everywhere.

/// How likely it is that a bit is set, in parts of 2^16.
pub(super) type Chance = u16;

/// As likely as not.
pub(super) const EVEN: Chance = 1 << 15;
/// A chance moves by a sixteenth towards each bit that is seen.
const RATE: u32 = 4;

/// Who writes bits, or reads them.
pub(super) trait Bits {
    /// The next bit: whoever writes is given it, whoever reads returns it.
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;
}

/// The part of what is left that a set bit gets, and what of its chance was learned.
fn split(low: u32, high: u32, chance: Chance) -> u32 {
    let part = (u64::from(high - low) * u64::from(chance)) >> 16;
    low + part as u32
}

fn learn(chance: &mut Chance, bit: bool) {
    if bit {
        *chance += (Chance::MAX - *chance) >> RATE;
    } else {
        *chance -= *chance >> RATE;
    }
}

/// Both ends of what is left begin with the same byte.
fn is_settled(low: u32, high: u32) -> bool {
    (low ^ high) >> 24 == 0
}

/// Writes bits.
#[derive(Debug)]
pub(super) struct BitWriter {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl BitWriter {
    /// Writes behind what `out` has.
    pub(super) fn behind(out: Vec<u8>) -> Self {
        BitWriter { low: 0, high: u32::MAX, out }
    }

    /// All that was written. Zeros at the end are read as if they were there.
    pub(super) fn end(mut self, from: usize) -> Vec<u8> {
        // The shortest that is between both ends, which begin with different bytes.
        if self.low > 0 {
            self.out.push(((self.low >> 24) + 1) as u8);
        }
        while self.out.len() > from && self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

impl Bits for BitWriter {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let middle = split(self.low, self.high, *chance);
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        learn(chance, bit);
        while is_settled(self.low, self.high) {
            self.out.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
        bit
    }
}

/// Reads bits.
#[derive(Debug)]
pub(super) struct BitReader<'b> {
    low: u32,
    high: u32,
    at: u32,
    rest: &'b [u8],
}

impl<'b> BitReader<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Self {
        let mut reader = BitReader { low: 0, high: u32::MAX, at: 0, rest: bytes };
        (0..4).for_each(|_| reader.shift());
        reader
    }

    fn shift(&mut self) {
        let (byte, rest) = self.rest.split_first().map_or((0, self.rest), |(byte, rest)| (*byte, rest));
        (self.at, self.rest) = (self.at << 8 | u32::from(byte), rest);
    }
}

impl Bits for BitReader<'_> {
    fn bit(&mut self, chance: &mut Chance, _: bool) -> bool {
        let middle = split(self.low, self.high, *chance);
        let bit = self.at <= middle;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        learn(chance, bit);
        while is_settled(self.low, self.high) {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn p4_bits_are_read_as_they_were_written(bits in prop::collection::vec((any::<bool>(), 0..4_usize), 0..2_000)) {
            let mut chances = [EVEN; 4];
            let mut writer = BitWriter::behind(vec![7]);
            for (bit, of) in &bits {
                writer.bit(&mut chances[*of], *bit);
            }
            let bytes = writer.end(1);
            let mut chances = [EVEN; 4];
            let mut reader = BitReader::of(&bytes[1..]);
            for (bit, of) in &bits {
                prop_assert_eq!(reader.bit(&mut chances[*of], false), *bit);
            }
        }
    }

    #[test]
    fn p4_what_is_always_the_same_takes_nearly_nothing() {
        let (mut chance, mut writer) = (EVEN, BitWriter::behind(Vec::new()));
        (0..10_000).for_each(|_| {
            writer.bit(&mut chance, true);
        });
        assert!(writer.end(0).len() < 40);
    }
}
