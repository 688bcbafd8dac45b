//! Timestamps as TiKV's oracle makes them: milliseconds of wall time, then a counter. Hands on the two parts.

/// Low bits of a timestamp that count within one millisecond.
pub const LOGICAL_BITS: u32 = 18;

/// The timestamp with this time in milliseconds and this count.
///
/// A count that needs more than [`LOGICAL_BITS`] runs over into the milliseconds, so later counts stay later.
///
/// ```
/// use storage_pipeline::txn::timestamp::{compose, logical, physical_ms};
/// let ts = compose(1_700_000_000_000, 3);
/// assert_eq!((physical_ms(ts), logical(ts)), (1_700_000_000_000, 3));
/// ```
#[must_use]
pub const fn compose(physical_ms: u64, logical: u64) -> u64 {
    (physical_ms << LOGICAL_BITS).saturating_add(logical)
}

/// The milliseconds in a timestamp.
#[must_use]
pub const fn physical_ms(ts: u64) -> u64 {
    ts >> LOGICAL_BITS
}

/// The count within the millisecond.
#[must_use]
pub const fn logical(ts: u64) -> u64 {
    ts & ((1 << LOGICAL_BITS) - 1)
}

/// Whether a lock with this start timestamp and time to live has expired by `current_ts`.
#[must_use]
pub const fn is_expired(start_ts: u64, ttl_ms: u64, current_ts: u64) -> bool {
    physical_ms(start_ts).saturating_add(ttl_ms) < physical_ms(current_ts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lives_through_its_last_millisecond() {
        let start = compose(1000, 7);
        assert!(!is_expired(start, 50, compose(1050, logical(u64::MAX))));
        assert!(is_expired(start, 50, compose(1051, 0)));
        assert!(!is_expired(start, u64::MAX, u64::MAX), "an endless lock never overflows into the past");
        assert!(!is_expired(start, 0, start));
    }

    #[test]
    fn a_count_that_runs_over_stays_later() {
        assert_eq!(compose(5, 1 << LOGICAL_BITS), compose(6, 0));
    }
}
