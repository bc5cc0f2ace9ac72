//! Sorting in little code: each instance of the standard sort is 5 KB of the module, and so is each `BTreeMap` that is
//! collected, which sorts first.

use std::collections::BTreeMap;

/// The items in ascending order of `key`; equal ones stay in the order they had.
pub fn by_key<T>(items: Vec<T>, key: impl Fn(&T) -> u64) -> Vec<T> {
    let mut order: Vec<(u64, usize)> = items.iter().enumerate().map(|(at, item)| (key(item), at)).collect();
    if order.is_sorted() {
        return items;
    }
    pairs(&mut order);
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|(_, at)| items.get_mut(at).and_then(Option::take)).collect()
}

/// Sorts pairs in ascending order.
pub fn pairs(pairs: &mut [(u64, usize)]) {
    pairs.sort_unstable();
}

/// Sorts in place; items of which neither is less may change places. A heap, in 300 bytes.
pub fn sort<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    // The item at `at` sinks below greater ones, until those below it are less.
    let sink = |items: &mut [T], mut at: usize| {
        loop {
            let below = 2 * at + 1;
            let (Some(left), right) = (items.get(below), items.get(below + 1)) else { return };
            let greatest = below + usize::from(right.is_some_and(|right| less(left, right)));
            if !items.get(at).zip(items.get(greatest)).is_some_and(|(this, other)| less(this, other)) {
                return;
            }
            items.swap(at, greatest);
            at = greatest;
        }
    };
    for at in (0..items.len() / 2).rev() {
        sink(items, at);
    }
    for end in (1..items.len()).rev() {
        items.swap(0, end);
        if let Some(rest) = items.get_mut(..end) {
            sink(rest, 0);
        }
    }
}

/// Sorts in ascending order, and leaves each value once.
pub fn unique<T: Ord>(items: &mut Vec<T>) {
    sort(items, T::lt);
    items.dedup();
}

/// The numbers `0..length` in the order that `less` says; of two of which neither is less, the smaller first. One instance
/// serves every type.
pub fn indices(length: usize, less: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    sort(&mut order, |&a, &b| less(a, b) || (a < b && !less(b, a)));
    order
}

/// The entries as a map; of two with one key the later.
pub fn map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    entries.into_iter().for_each(|(key, value)| {
        map.insert(key, value);
    });
    map
}

#[cfg(test)]
mod tests {
    /// Z9: the small sorts put everything where the standard ones do.
    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut state = 7_u32;
        for length in 0..70 {
            let mut random = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) % (length + 1)
            };
            let items: Vec<u32> = (0..length).map(|_| random()).collect();
            let (mut expected, mut sorted, mut each) = (items.clone(), items.clone(), items.clone());
            expected.sort_unstable();
            super::sort(&mut sorted, u32::lt);
            assert_eq!(sorted, expected);
            super::unique(&mut each);
            expected.dedup();
            assert_eq!(each, expected);
            // Stable, and in descending order as well.
            let mut at: Vec<usize> = (0..items.len()).collect();
            at.sort_by(|a, b| items[*b].cmp(&items[*a]));
            assert_eq!(super::indices(items.len(), &|a, b| items[a] > items[b]), at);
            let entries = || items.iter().copied().zip(0..);
            assert_eq!(super::map(entries()), entries().collect());
        }
    }

    #[test]
    fn sorts_and_keeps_the_order_of_equals() {
        let sorted = super::by_key(vec![(2, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (1, 'e')], |item| item.0);
        assert_eq!(sorted, [(0, 'd'), (1, 'b'), (1, 'e'), (2, 'a'), (2, 'c')]);
    }
}
