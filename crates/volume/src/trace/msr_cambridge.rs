//! The format of Microsoft Research Cambridge: a request a line, seven fields between commas.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: the time in Windows' file time
//! (100 ns since 1601), `Read` or `Write`, bytes, and the response time in 100 ns; host, disk and
//! response time are not kept. A line of these names is skipped where it is the first.
//!
//! Source: the README beside the traces in SNIA's IOTTA repository.

use std::time::Duration;

use super::{TraceKind, TraceRecord, check_range, number};

/// The names of the fields.
pub const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

const TICKS_PER_SECOND: u64 = 10_000_000;
const TICK_NS: u32 = 100;

/// The record of a line.
pub fn parse(line: &str) -> Result<TraceRecord, String> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [ticks, _host, disk, kind, offset, size, _response] = fields[..] else {
        return Err(format!("{} fields instead of 7", fields.len()));
    };
    let ticks = number(ticks, "the time")?;
    number(disk, "the disk")?;
    let kind = match kind {
        kind if kind.eq_ignore_ascii_case("read") => TraceKind::Read,
        kind if kind.eq_ignore_ascii_case("write") => TraceKind::Write,
        _ => return Err(format!("the type is neither Read nor Write: {kind:?}")),
    };
    let offset_bytes = number(offset, "the offset")?;
    let length_bytes = number(size, "the size")?;
    check_range(offset_bytes, length_bytes)?;
    let fraction_ns = (ticks % TICKS_PER_SECOND) as u32 * TICK_NS;
    Ok(TraceRecord {
        time: Duration::new(ticks / TICKS_PER_SECOND, fraction_ns),
        kind,
        offset_bytes,
        length_bytes,
        content: None,
    })
}

/// The line of a record, with its end. The host is "onefold", its disk 0. What is less than 100 ns
/// and what the block holds is lost.
pub fn line(record: &TraceRecord) -> Result<String, &'static str> {
    let ticks = record.time.as_nanos() / u128::from(TICK_NS);
    let Ok(ticks) = u64::try_from(ticks) else {
        return Err("its time is later than the format can say");
    };
    let kind = match record.kind {
        TraceKind::Read => "Read",
        TraceKind::Write => "Write",
    };
    let (offset, length) = (record.offset_bytes, record.length_bytes);
    Ok(format!("{ticks},onefold,0,{kind},{offset},{length},0\n"))
}
