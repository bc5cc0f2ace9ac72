//! Means and how sure they are.

/// The geometric mean.
pub fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len().max(1) as f64).exp()
}

/// The largest.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The median; the upper one of two.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How often a bootstrap draws.
const DRAWS: usize = 2_000;

/// The range that holds 95 % of the geometric means of samples drawn from these values with replacement. Of ratios of the
/// same sessions this is a paired bootstrap. The same values give the same range.
pub fn bootstrap(values: &[f64]) -> (f64, f64) {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % values.len().max(1) as u64) as usize
    };
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| geometric_mean(&(0..values.len()).map(|_| values[draw()]).collect::<Vec<_>>()))
        .collect();
    means.sort_by(f64::total_cmp);
    (means[DRAWS / 40], means[DRAWS - 1 - DRAWS / 40])
}
