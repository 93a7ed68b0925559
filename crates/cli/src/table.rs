//! Tables for people: columns side by side, without lines between them.
//!
//! On a narrow terminal columns that are *flexible* (names, paths, reasons) break into several
//! lines, while ids, times and sizes stay whole.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table, Width};

/// Width that flexible columns have at least, if they need it.
const FLEXIBLE_COLUMNS_MIN: u16 = 12;
/// Blank space after each column.
const GAP_COLUMNS: u16 = 2;

/// The lines of a table; `flexible` are the numbers of columns that may break.
pub fn lines(headings: &[&str], rows: Vec<Row>, flexible: &[usize]) -> Vec<String> {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(headings)
        .add_rows(rows);
    let widths = table.column_max_content_widths();
    for (column, width) in table.column_iter_mut().zip(widths) {
        column.set_padding((0, GAP_COLUMNS));
        column.set_constraint(if flexible.contains(&column.index) {
            let least = width.min(FLEXIBLE_COLUMNS_MIN) + GAP_COLUMNS;
            ColumnConstraint::LowerBoundary(Width::Fixed(least))
        } else {
            ColumnConstraint::ContentWidth
        });
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}
