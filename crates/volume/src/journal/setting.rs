//! What an operator says about the journal.
//!
//! | text | meaning |
//! |---|---|
//! | `auto` | look for the journal of ext3, ext4, or for a journal device |
//! | `external` | the whole disk is a journal |
//! | `A-B,C-D,…` | these blocks: numbers of 4 KiB blocks of the disk, counted from 0, both ends inside; in any order, without overlap |
//! | `off` | there is none |
//!
//! Blocks are the disk's, whatever the file system's block is: they are what a volume deduplicates.

use std::fmt;
use std::str::FromStr;

use super::{BLOCK_BYTES, BlockRange, JournalError, JournalRanges};

/// Most ranges in a setting.
const RANGES_MAX: usize = 1024;

/// Highest number of a block: all its bytes have an offset.
const BLOCK_MAX: u64 = u64::MAX / BLOCK_BYTES - 1;

/// Where the journal is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum JournalSetting {
    /// Look for it.
    #[default]
    Auto,
    /// The whole disk is a journal.
    External,
    /// At these blocks.
    At(JournalRanges),
    /// There is none.
    Off,
}

/// What is wrong with the text of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Neither a word nor ranges.
    #[error("{part:?} is neither auto, external, off nor blocks FIRST-LAST")]
    NoRange {
        /// The part of the text.
        part: String,
    },
    /// The last block is before the first.
    #[error("{part:?} ends before it begins")]
    Reversed {
        /// The part of the text.
        part: String,
    },
    /// No disk has these blocks.
    #[error("{part:?}: blocks are numbered up to {BLOCK_MAX}")]
    TooLarge {
        /// The part of the text.
        part: String,
    },
    /// Two ranges share blocks.
    #[error("{part:?} overlaps {other:?}")]
    Overlap {
        /// One of them.
        part: String,
        /// The other.
        other: String,
    },
    /// More ranges than are taken.
    #[error("more than {RANGES_MAX} ranges")]
    TooMany,
}

impl JournalSetting {
    /// The ranges that the setting itself says for a disk of this size; none to `auto`.
    ///
    /// # Errors
    /// When they are not on the disk.
    pub fn ranges(&self, size_bytes: u64) -> Result<JournalRanges, JournalError> {
        let blocks = size_bytes / BLOCK_BYTES;
        match self {
            Self::Auto | Self::Off => Ok(JournalRanges::default()),
            Self::External => Ok(JournalRanges::whole_disk(size_bytes)),
            Self::At(ranges) => match ranges.iter().find(|range| range.end > blocks) {
                None => Ok(ranges.clone()),
                Some(range) => Err(JournalError::OutsideDisk {
                    first: range.first,
                    last: range.end - 1,
                    blocks,
                }),
            },
        }
    }
}

impl FromStr for JournalSetting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text {
            "auto" => Ok(Self::Auto),
            "external" => Ok(Self::External),
            "off" => Ok(Self::Off),
            _ => ranges(text).map(Self::At),
        }
    }
}

fn ranges(text: &str) -> Result<JournalRanges, SettingError> {
    if text.split(',').nth(RANGES_MAX).is_some() {
        return Err(SettingError::TooMany);
    }
    let mut parts = Vec::new();
    for part in text.split(',') {
        parts.push((range(part)?, part));
    }
    parts.sort_unstable();
    for pair in parts.windows(2) {
        if pair[1].0.first < pair[0].0.end {
            return Err(SettingError::Overlap {
                part: pair[1].1.to_owned(),
                other: pair[0].1.to_owned(),
            });
        }
    }
    let blocks = parts.into_iter().map(|(range, _)| range);
    Ok(JournalRanges::of_blocks(blocks.collect()))
}

fn range(part: &str) -> Result<BlockRange, SettingError> {
    let part_owned = || part.to_owned();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ends = part.trim().split_once('-');
    let Some((first, last)) = ends.filter(|(first, last)| digits(first) && digits(last)) else {
        return Err(SettingError::NoRange { part: part_owned() });
    };
    // Digits that are no number are too many.
    let number = |digits: &str| digits.parse().ok().filter(|block| *block <= BLOCK_MAX);
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(SettingError::TooLarge { part: part_owned() });
    };
    if last < first {
        return Err(SettingError::Reversed { part: part_owned() });
    }
    let end = last + 1;
    Ok(BlockRange { first, end })
}

impl fmt::Display for JournalSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => out.write_str("auto"),
            Self::External => out.write_str("external"),
            Self::Off => out.write_str("off"),
            // No blocks have no text of their own, and mean the same.
            Self::At(ranges) if ranges.is_empty() => out.write_str("off"),
            Self::At(ranges) => ranges.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_they_say() {
        for text in [
            "auto",
            "external",
            "off",
            "0-0",
            "7-90,100-4503599627370494",
        ] {
            let setting: JournalSetting = text.parse().unwrap();
            assert_eq!(setting.to_string(), text);
        }
        let setting: JournalSetting = "30-39, 1-9,10-19".parse().unwrap();
        assert_eq!(setting.to_string(), "1-19,30-39");
        assert_eq!(JournalSetting::default(), JournalSetting::Auto);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = "1-2,".repeat(RANGES_MAX) + "1-2";
        for (text, message) in [
            (
                "",
                "\"\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            (
                "on",
                "\"on\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            (
                "1-2,",
                "\"\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            (
                "1-2,7",
                "\"7\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            (
                "1-2,+3-4",
                "\"+3-4\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            (
                "1--2",
                "\"1--2\" is neither auto, external, off nor blocks FIRST-LAST",
            ),
            ("9-8", "\"9-8\" ends before it begins"),
            ("1-4,9-12,4-5", "\"4-5\" overlaps \"1-4\""),
            (
                "1-4503599627370495",
                "\"1-4503599627370495\": blocks are numbered up to 4503599627370494",
            ),
            (
                "1-99999999999999999999",
                "\"1-99999999999999999999\": blocks are numbered up to 4503599627370494",
            ),
            (many.as_str(), "more than 1024 ranges"),
        ] {
            let error = text.parse::<JournalSetting>().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn ranges_must_be_on_the_disk() {
        let setting: JournalSetting = "1-2,8-9".parse().unwrap();
        assert_eq!(setting.ranges(10 * BLOCK_BYTES).unwrap().blocks(), 4);
        let error = setting.ranges(10 * BLOCK_BYTES - 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "journal blocks 8-9 are not within the disk of 9 blocks"
        );
        let whole = JournalSetting::External.ranges(10 * BLOCK_BYTES).unwrap();
        assert_eq!(whole.to_string(), "0-9");
        assert!(JournalSetting::Off.ranges(1 << 40).unwrap().is_empty());
    }
}
