//! Sorting by a number. One sort serves every type: each instance of the standard sort is 5 to 10 KB of the module.

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

#[cfg(test)]
mod tests {
    #[test]
    fn sorts_and_keeps_the_order_of_equals() {
        let sorted = super::by_key(vec![(2, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (1, 'e')], |item| item.0);
        assert_eq!(sorted, [(0, 'd'), (1, 'b'), (1, 'e'), (2, 'a'), (2, 'c')]);
    }
}
