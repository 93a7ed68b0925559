//! Experiments of the papers, run on data that is given, beside the papers' own figures.

pub mod fastcdc;
