//! What reports say of a paper beside numbers: names, titles, words.

use crate::report::ticks::Unit;

/// A paper.
pub struct About {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it is called above the tables: `FastCDC (Xia et al., TPDS 2020)`.
    pub title: &'static str,
    /// What it is called on a page, in full.
    pub citation: &'static str,
    /// Its experiments, in its order.
    pub experiments: &'static [ExperimentInfo],
    /// Its data sets and what they were.
    pub data_sets: &'static [(&'static str, &'static str)],
    /// How many threads ran.
    pub threads: &'static str,
    /// Why levels differ from the paper's.
    pub stand_ins: &'static str,
    /// What "about" and "nearly" mean.
    pub tolerances: &'static str,
    /// What is compared with what.
    pub comparison: &'static str,
    /// So many bytes are made up where the paper does that, unless told otherwise.
    pub synthetic_bytes: u64,
}

/// A table or figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentInfo {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What figures lie on, where the paper draws them over something.
    pub axis: Option<AxisInfo>,
}

/// What figures lie on.
#[derive(Debug, Clone, Copy)]
pub struct AxisInfo {
    /// What stands above a column of it.
    pub heading: &'static str,
    /// What stands below an axis of it.
    pub words: &'static str,
    /// What it is.
    pub unit: Unit,
    /// Equal factors are equally long.
    pub is_logarithmic: bool,
}

impl About {
    /// The experiment of that name.
    pub fn experiment(&self, name: &str) -> Option<&'static ExperimentInfo> {
        self.experiments.iter().find(|info| info.name == name)
    }

    /// What the paper's data set of that name was.
    pub fn data_set(&self, name: &str) -> Option<&'static str> {
        let found = self.data_sets.iter().find(|(other, _)| *other == name);
        found.map(|(_, what)| *what)
    }
}

/// An experiment without an axis.
pub const fn experiment(name: &'static str, title: &'static str) -> ExperimentInfo {
    ExperimentInfo {
        name,
        title,
        axis: None,
    }
}

impl ExperimentInfo {
    /// The same over something.
    pub const fn over(
        self,
        heading: &'static str,
        words: &'static str,
        unit: Unit,
        is_logarithmic: bool,
    ) -> Self {
        Self {
            axis: Some(AxisInfo {
                heading,
                words,
                unit,
                is_logarithmic,
            }),
            ..self
        }
    }
}
