//! The approaches of the paper's experiments, as entries of `--algorithm`.
//!
//! In the paper's names, all with an expected size of 8 KiB and at most 64 KiB:
//! - FIXC: chunks of 10 KiB.
//! - RC-v1, GC, FC-v1: min 2 KiB. RC is Rabin's hash over 48 bytes, GC Gear judged by its low bits,
//!   FC FastCDC without normalized chunking (level 0).
//! - FC-v2, FC-v3: level 2 with min 6 and 8 KiB, the normal size 4 KiB above (§4.4).
//! - RC-v2, RC-v3: the same with Rabin's hash. The paper prints min 4 and 6 KiB, but the means of
//!   its Table 5 are those of 6 and 8 KiB; both are run.
//! - AE-v1, AE-v2: asymmetric extremum. How the paper set its window is not said: here the expected
//!   size is 12 KiB, which gives the mean that its Table 5 has (12.2 KiB on most sets).
//! - All of these run by the loops that papers print, one byte after another; FC' takes two bytes at
//!   a time. FC*, which the paper does not have, is what onefold does: the same cuts by the fastest
//!   loop here.
//!
//! min 0 of the paper is 1 here, or the window where a hash needs one (48).

use crate::chunk::contestant::Contestant;
use crate::chunk::selection;
use crate::failure::Failure;
use crate::units::short_bytes;

/// Something that the paper compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approach {
    /// The paper's name.
    pub name: String,
    /// An entry of `--algorithm`, which is also its label in the measurement.
    pub entry: String,
}

/// How a Gear hash rolls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    /// FC.
    One,
    /// FC'.
    Two,
    /// FC*.
    Fastest,
}

impl Loop {
    /// FC, FC', FC*.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "FC",
            Self::Two => "FC'",
            Self::Fastest => "FC*",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Fastest => "fastest",
        }
    }
}

impl Approach {
    fn new(name: impl Into<String>, entry: String) -> Self {
        let name = name.into();
        Self { name, entry }
    }

    /// What is measured.
    pub fn contestant(&self) -> Result<Contestant, Failure> {
        let mut selection = selection::select(&self.entry, &[])?;
        let mut contestant = selection
            .contestants
            .pop()
            .ok_or_else(|| Failure::usage(format!("{} is nothing to measure", self.entry)))?;
        contestant.label.clone_from(&self.entry);
        Ok(contestant)
    }
}

/// FIXC.
pub fn fixed() -> Approach {
    Approach::new("FIXC", "fixed:min=10K,avg=10K,max=10K".to_owned())
}

/// RC or GC at an expected size, between a quarter and eight times of it.
pub fn plain(name: &str, algorithm: &str, expected: u32) -> Approach {
    Approach::new(
        name,
        format!("{algorithm}:{},rolling=one", thirds(expected)),
    )
}

/// FC at an expected size, between a quarter and eight times of it.
pub fn fast(rolling: Loop, expected: u32) -> Approach {
    let (sizes, option) = (thirds(expected), rolling.option());
    Approach::new(
        rolling.name(),
        format!("fastcdc:{sizes},level=0,rolling={option}"),
    )
}

/// FC of one expected size, 8 KiB, whose least size is given.
pub fn fast_from(name: impl Into<String>, min: u32) -> Approach {
    let min = short_bytes(u64::from(min));
    let entry = format!("fastcdc:min={min},avg=8K,max=64K,level=0,rolling=one");
    Approach::new(name, entry)
}

/// FC with normalized chunking (§4.4).
pub fn normalized(name: impl Into<String>, rolling: Loop, level: u8, min: u32) -> Approach {
    let (sizes, option) = (normalized_sizes(min), rolling.option());
    Approach::new(
        name,
        format!("fastcdc:{sizes},level={level},rolling={option}"),
    )
}

/// FC with normalized chunking around 8 KiB and without a least size (Fig. 9).
pub fn normalized_without_min(name: impl Into<String>, level: u8) -> Approach {
    let entry = format!("fastcdc:min=1,avg=8K,max=64K,level={level},rolling=one");
    Approach::new(name, entry)
}

/// RC with normalized chunking.
fn normalized_rabin(name: &str, min: u32) -> Approach {
    let entry = format!("rabin-nc:{},level=2,rolling=one", normalized_sizes(min));
    Approach::new(name, entry)
}

/// The twelve approaches of §4.5 without FC', and RC-v2 and RC-v3 as the paper prints them.
pub fn nine() -> Vec<Approach> {
    let mut approaches = vec![
        fixed(),
        plain("RC-v1", "rabin", 8 << 10),
        normalized_rabin("RC-v2", 6 << 10),
        normalized_rabin("RC-v3", 8 << 10),
        Approach::new("AE-v1", "ae:min=2K,avg=12K,max=64K,rolling=one".to_owned()),
        Approach::new("AE-v2", "ae2:min=2K,avg=12K,max=64K,rolling=one".to_owned()),
    ];
    approaches.extend(versions(Loop::One));
    approaches
}

/// RC-v2 and RC-v3 with the least sizes that §4.5 prints.
pub fn rabin_as_printed() -> [Approach; 2] {
    [
        normalized_rabin("RC-v2, min 4K", 4 << 10),
        normalized_rabin("RC-v3, min 6K", 6 << 10),
    ]
}

/// FC-v1, FC-v2, FC-v3.
pub fn versions(rolling: Loop) -> [Approach; 3] {
    let name = rolling.name();
    let first = Approach {
        name: format!("{name}-v1"),
        ..fast(rolling, 8 << 10)
    };
    [
        first,
        normalized(format!("{name}-v2"), rolling, 2, 6 << 10),
        normalized(format!("{name}-v3"), rolling, 2, 8 << 10),
    ]
}

/// Rabin and Gear without least and greatest size (Fig. 5). Of ten million
/// random chunks, one would exceed 128 KiB.
pub fn unbounded() -> [Approach; 2] {
    [
        Approach::new("Rabin", "rabin:min=48,avg=8K,max=128K".to_owned()),
        Approach::new("Gear", "gear:min=1,avg=8K,max=128K".to_owned()),
    ]
}

/// min, avg, max as LBFS has them.
fn thirds(expected: u32) -> String {
    let [min, avg, max] = [expected / 4, expected, expected * 8].map(u64::from);
    format!(
        "min={},avg={},max={}",
        short_bytes(min),
        short_bytes(avg),
        short_bytes(max)
    )
}

fn normalized_sizes(min: u32) -> String {
    let normal = u64::from(min + (4 << 10));
    let min = short_bytes(u64::from(min));
    format!("min={min},avg=8K,max=64K,normal={}", short_bytes(normal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_paper() {
        assert_eq!(
            fast(Loop::Two, 16 << 10).entry,
            "fastcdc:min=4K,avg=16K,max=128K,level=0,rolling=two"
        );
        let [_, second, third] = versions(Loop::One);
        assert_eq!(
            (second.name.as_str(), third.name.as_str()),
            ("FC-v2", "FC-v3")
        );
        assert_eq!(
            third.entry,
            "fastcdc:min=8K,avg=8K,max=64K,normal=12K,level=2,rolling=one"
        );
    }
}
