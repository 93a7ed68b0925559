//! Super-features: groups of features, hashed (Odess §2.2 to §2.4).
//!
//! Enters: the features of a chunk. Leave: super-features, tier after tier. Features that one
//! transform each made are grouped in their order, for feature i of one chunk means feature i of
//! another. Those of Finesse are not so: the groups are columns of lists that were sorted first.
//!
//! The number of the super-feature, counted through all tiers, is hashed with it: the same features
//! at two places make different super-features, so that one index may hold all.

/// Appends the super-features of one tier of groups of `group` features to `out`.
pub(super) fn push_in_order(features: &[u32], group: usize, out: &mut Vec<u32>) {
    for features in features.chunks_exact(group) {
        out.push(super_feature(out.len(), features.iter().copied()));
    }
}

/// The same for Finesse: `group` lists of consecutive features are sorted, the least first; the k-th
/// of each list make super-feature k.
pub(super) fn push_sorted(features: &[u32], group: usize, out: &mut Vec<u32>) {
    let count = features.len() / group;
    let mut lists = features.to_vec();
    lists
        .chunks_exact_mut(count)
        .for_each(<[u32]>::sort_unstable);
    for k in 0..count {
        let column = lists.iter().skip(k).step_by(count).copied();
        out.push(super_feature(out.len(), column));
    }
}

/// The hash of a group's features, `number` being that of the super-feature.
///
/// Stored data depends on it: it is frozen.
fn super_feature(number: usize, features: impl Iterator<Item = u32>) -> u32 {
    let hash = features.fold(mix(number as u64 + 1), |hash, feature| {
        mix(hash ^ u64::from(feature))
    });
    hash as u32
}

/// What a step of splitmix64 adds to its state.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64 (Steele et al., OOPSLA 2014): what it gives from the state `state`.
pub(super) const fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(GOLDEN);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::{mix, push_in_order, push_sorted, super_feature};

    #[test]
    fn mixing_gives_the_published_numbers() {
        // The first output for the seed 1234567, as reference implementations give it.
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn groups_are_in_order_and_numbered_through_the_tiers() {
        let features = [5, 5, 5, 5, 7, 8];
        let mut out = Vec::new();
        push_in_order(&features, 3, &mut out);
        push_in_order(&features, 2, &mut out);
        let expected = [
            (0, vec![5, 5, 5]),
            (1, vec![5, 7, 8]),
            (2, vec![5, 5]),
            (3, vec![5, 5]),
            (4, vec![7, 8]),
        ];
        let expected = expected.map(|(number, group)| super_feature(number, group.into_iter()));
        assert_eq!(out, expected);
        assert_ne!(out[2], out[3]);
    }

    /// The example of §2.4: f2 < f1 < f3 and f6 < f4 < f5 make (f2, f6), (f1, f4), (f3, f5).
    #[test]
    fn finesse_groups_columns_of_sorted_lists() {
        let features = [20, 10, 30, 50, 60, 40];
        let mut out = Vec::new();
        push_sorted(&features, 2, &mut out);
        let expected = [[10, 40], [20, 50], [30, 60]];
        let expected: Vec<u32> = expected
            .into_iter()
            .enumerate()
            .map(|(number, group)| super_feature(number, group.into_iter()))
            .collect();
        assert_eq!(out, expected);
    }
}
