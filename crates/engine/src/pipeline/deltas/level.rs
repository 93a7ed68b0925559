//! The ways to store similar chunks that users choose from.

use super::DeltaSettings;

/// How much is done to store similar chunks as deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeltaLevel {
    /// Nothing: every chunk is stored whole.
    Off,
    /// Bases are stored whole: at most one more chunk is read for each that is restored.
    Fast,
    /// Bases may be deltas themselves: the smallest repositories.
    #[default]
    Best,
}

impl DeltaLevel {
    /// Every level, by its name.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("off", Self::Off),
        ("fast", Self::Fast),
        ("best", Self::Best),
    ];

    /// Its name in commands and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fast => "fast",
            Self::Best => "best",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, level)| *level)
    }

    /// What the pipeline is told.
    #[must_use]
    pub fn settings(self) -> Option<DeltaSettings> {
        match self {
            Self::Off => None,
            Self::Fast => Some(DeltaSettings::fast()),
            Self::Best => Some(DeltaSettings::best()),
        }
    }
}
