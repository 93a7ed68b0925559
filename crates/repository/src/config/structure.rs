//! Formats whose parts are cut apart: a part of the configuration, as a number.
//!
//! It changes nothing in how what is stored is read, so a reader that does not know the field, or a
//! format in it, goes on without: streams are just bytes then.

use chunking::structure::Structure;

/// The number of tar, as stored; none stands for no field.
const TAR: u64 = 1;

/// Its number; none when no format is looked for.
pub(super) fn number(structure: Structure) -> Option<u64> {
    match structure {
        Structure::Tar => Some(TAR),
        _ => None,
    }
}

/// The formats of a number; nothing when it is not known.
pub(super) fn from_number(number: u64) -> Option<Structure> {
    (number == TAR).then_some(Structure::Tar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (structure, name, _) in Structure::NAMES {
            let stored = number(structure);
            assert_eq!(stored.is_none(), structure == Structure::None, "{name}");
            assert_eq!(stored.and_then(from_number).unwrap_or_default(), structure);
        }
        assert_eq!([0, 2, u64::MAX].map(from_number), [None; 3]);
    }
}
