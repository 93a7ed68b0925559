//! What measurements are turned into: tables, JSON, CSV, and pages with plots.
//!
//! A page is one file: style and plots (SVG) stand in it, nothing is loaded from anywhere.

pub mod chunk_page;
pub mod chunk_plots;
pub mod chunk_report;
pub mod chunk_table;
pub mod fastcdc_plots;
pub mod labels;
pub mod machine;
pub mod page;
pub mod paper_page;
pub mod paper_plots;
pub mod paper_report;
pub mod paper_table;
pub mod plot;
pub mod similar_report;
pub mod similar_table;
pub mod ticks;
