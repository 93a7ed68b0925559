//! Which duplicates are stored again: a part of the configuration, as numbers.
//!
//! It changes nothing in how what is stored is read, so a reader that does not know the field, or a
//! policy in it, goes on without: nothing is rewritten then.

use std::ops::RangeInclusive;

use engine::rewriting::{Capping, LookBackWindow, Rewriting};

/// The numbers of kinds, as stored.
mod kind {
    pub const LOOK_BACK_WINDOW: u64 = 1;
    pub const CAPPING: u64 = 2;
}

/// Most numbers of any kind.
pub(super) const NUMBERS_MAX: usize = 6;

/// Windows that are allowed, in containers.
const WINDOW_CONTAINERS: RangeInclusive<u64> = 1..=64;
/// Segments of capping that are allowed, in bytes.
const SEGMENT_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 30;
/// Greatest count of chunks or containers.
const COUNT_MAX: u64 = u16::MAX as u64;

/// Its kind, and the numbers that belong to it; none when nothing is rewritten.
pub(super) fn numbers(rewriting: &Rewriting) -> Vec<u64> {
    match *rewriting {
        Rewriting::Off => Vec::new(),
        Rewriting::LookBackWindow(window) => [
            window.window_containers,
            window.step_containers,
            window.threshold_min,
            window.threshold_max,
            window.rewritten_permille_max,
        ]
        .into_iter()
        .fold(vec![kind::LOOK_BACK_WINDOW], |mut numbers, number| {
            numbers.push(u64::from(number));
            numbers
        }),
        Rewriting::Capping(capping) => vec![
            kind::CAPPING,
            capping.segment_bytes,
            u64::from(capping.containers_max),
        ],
    }
}

/// The policy of these numbers; nothing when its kind is not known.
///
/// # Errors
/// When its numbers are not possible.
pub(super) fn from_numbers(numbers: &[u64]) -> Result<Option<Rewriting>, String> {
    let rewriting = match *numbers {
        [
            kind::LOOK_BACK_WINDOW,
            window_containers,
            step_containers,
            threshold_min,
            threshold_max,
            permille,
        ] => {
            let is_possible = WINDOW_CONTAINERS.contains(&window_containers)
                && (1..=window_containers).contains(&step_containers)
                && threshold_min <= threshold_max
                && threshold_max <= COUNT_MAX
                && permille <= 1000;
            is_possible.then_some(Rewriting::LookBackWindow(LookBackWindow {
                window_containers: window_containers as u32,
                step_containers: step_containers as u32,
                threshold_min: threshold_min as u32,
                threshold_max: threshold_max as u32,
                rewritten_permille_max: permille as u32,
            }))
        }
        [kind::CAPPING, segment_bytes, containers_max] => {
            let is_possible =
                SEGMENT_BYTES.contains(&segment_bytes) && (1..=COUNT_MAX).contains(&containers_max);
            is_possible.then_some(Rewriting::Capping(Capping {
                segment_bytes,
                containers_max: containers_max as u32,
            }))
        }
        [kind::LOOK_BACK_WINDOW | kind::CAPPING, ..] | [] => None,
        [_, ..] => return Ok(None),
    };
    let text = || format!("rewriting by {numbers:?} is not possible");
    rewriting.map(Some).ok_or_else(text)
}

/// Checks the parameters against their bounds.
///
/// # Errors
/// What is not possible.
pub(super) fn validate(rewriting: &Rewriting) -> Result<(), String> {
    match numbers(rewriting).as_slice() {
        [] => Ok(()),
        numbers => from_numbers(numbers).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (_, rewriting) in Rewriting::NAMES {
            let numbers = numbers(&rewriting);
            assert!(numbers.len() <= NUMBERS_MAX);
            if rewriting != Rewriting::Off {
                assert_eq!(from_numbers(&numbers), Ok(Some(rewriting)));
            }
            assert_eq!(validate(&rewriting), Ok(()));
        }
    }

    #[test]
    fn what_is_not_possible_is_refused_and_what_is_not_known_is_not() {
        for bad in [
            &[][..],
            &[1],
            &[1, 0, 1, 5, 60, 50],
            &[1, 65, 1, 5, 60, 50],
            &[1, 8, 9, 5, 60, 50],
            &[1, 8, 0, 5, 60, 50],
            &[1, 8, 1, 61, 60, 50],
            &[1, 8, 1, 5, 65_536, 50],
            &[1, 8, 1, 5, 60, 1001],
            &[2, 20 << 20],
            &[2, 1000, 10],
            &[2, 2 << 30, 10],
            &[2, 20 << 20, 0],
        ] {
            assert!(from_numbers(bad).is_err(), "{bad:?}");
        }
        assert_eq!(from_numbers(&[3, 1]), Ok(None));
    }
}
