//! The verbs, one file each: arguments, and what is printed; `output` is what they share.

/// How verbs that measure files end, for their help: goes behind what is particular to a verb.
macro_rules! exit_codes {
    () => {
        "
Exit codes:
    0  done
    1  failed
    2  wrong usage
    3  measured, but some files could not be read
  130  interrupted"
    };
}

pub mod chunk;
pub mod chunk_passes;
pub mod dataset;
pub mod index;
pub mod keys;
mod output;
pub mod paper;
pub mod similar;
