//! Times as texts. The engine has no clock: the host passes the time in ms since 1970.

/// A time in UTC as ISO 8601, to the second: `2025-11-09T10:35:22Z`.
pub(crate) fn iso8601(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that the leap day is the last of its year (Howard Hinnant's
    // `civil_from_days`).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same to the millisecond, as JavaScript writes it: `2025-11-09T10:35:22.000Z`.
pub(crate) fn iso8601_ms(ms: u64) -> String {
    let seconds = iso8601(ms);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), ms % 1_000)
}

/// The time in ms since 1970 that a text in UTC as ISO 8601 says, with a fraction of a second or without; `None` for
/// any other text.
pub(crate) fn from_iso8601(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = whole_numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = whole_numbers(time, ':')?;
    let in_bounds = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_bounds || hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let thousandths = format!("{fraction:0<3}");
    // `days_from_civil`, the inverse of the above.
    let shifted = year - u64::from(month <= 2);
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = (era * 146_097 + of_era).checked_sub(719_468)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000 + thousandths.get(..3)?.parse::<u64>().ok()?)
}

fn whole_numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{from_iso8601, iso8601, iso8601_ms};

    #[test]
    fn times_with_leap_days_and_turns_of_centuries() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_000, "2023-11-14T22:13:20Z"),
            (1_762_684_522_000, "2025-11-09T10:35:22Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso8601(ms), text);
            let seconds = ms / 1_000 * 1_000;
            assert_eq!((from_iso8601(text), from_iso8601(&iso8601_ms(ms))), (Some(seconds), Some(ms)));
        }
        assert_eq!(iso8601_ms(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
        assert_eq!(from_iso8601("2023-11-14T22:13:20.0071234Z"), Some(1_700_000_000_007));
        let wrong = ["", "Z", "yesterday", "2023-11-14", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20+02:00"];
        for text in wrong.into_iter().chain(["2023-11-14T22:13:20.é5Z", "1969-12-31T23:59:59Z"]) {
            assert_eq!(from_iso8601(text), None, "{text}");
        }
    }
}
