//! Changes of the schema: each has a number, and those that a store lacks are applied in the order of their numbers.

/// A change of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    /// Its number, as in the name of its file: the schema's version once it was applied.
    pub(super) number: i64,
    /// What it does.
    pub(super) sql: &'static str,
}

/// The version that these migrations lead to.
pub(super) fn last(migrations: &[Migration]) -> i64 {
    migrations.iter().map(|migration| migration.number).max().unwrap_or_default()
}

/// What a store of this version lacks, in order; none when it is of a later version than these lead to.
pub(super) fn missing(migrations: &[Migration], found: i64) -> Option<Vec<Migration>> {
    if !(0..=last(migrations)).contains(&found) {
        return None;
    }
    let mut missing: Vec<_> = migrations.iter().filter(|migration| migration.number > found).copied().collect();
    missing.sort_by_key(|migration| migration.number);
    Some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Migration; 3] =
        [Migration { number: 4, sql: "d" }, Migration { number: 1, sql: "a" }, Migration { number: 2, sql: "b" }];

    fn numbers(found: i64) -> Option<Vec<i64>> {
        missing(&KNOWN, found).map(|missing| missing.iter().map(|migration| migration.number).collect())
    }

    #[test]
    fn what_is_missing_is_applied_in_the_order_of_numbers_whatever_lies_between() {
        assert_eq!(numbers(0), Some(vec![1, 2, 4]));
        assert_eq!(numbers(1), Some(vec![2, 4]));
        assert_eq!(numbers(3), Some(vec![4]));
        assert_eq!(numbers(4), Some(vec![]));
    }

    #[test]
    fn a_version_that_is_none_of_this_program_is_refused() {
        assert_eq!((numbers(5), numbers(-1)), (None, None));
    }
}
