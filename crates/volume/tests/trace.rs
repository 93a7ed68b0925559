//! Traces in both formats, and generated ones: what they say, what is wrong with them, and whether
//! they have the characteristics that were asked for.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use volume::trace::{
    Access, ContentId, ContentSource, FIU_DAYS, TraceError, TraceFormat, TraceKind, TraceReader,
    TraceRecord, TraceWriter, Workload, WorkloadError, content_of, is_compressible,
};

fn read(format: TraceFormat, text: &str) -> Vec<Result<TraceRecord, String>> {
    let reader = TraceReader::new(format, text.as_bytes());
    reader
        .map(|record| record.map_err(|error| error.to_string()))
        .collect()
}

fn write(format: TraceFormat, records: &[TraceRecord]) -> String {
    let mut writer = TraceWriter::new(format, Vec::new());
    for record in records {
        writer.write(record).unwrap();
    }
    let (bytes, count) = writer.finish().unwrap();
    assert_eq!(count, records.len() as u64);
    String::from_utf8(bytes).unwrap()
}

fn id(byte: u8) -> ContentId {
    ContentId([byte; 16])
}

fn digits(byte: u8) -> String {
    format!("{byte:02x}").repeat(16)
}

#[test]
fn requests_of_fiu_are_read() {
    let text = "89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n\
                0 4892 some process 904265560 8 W 6 0 56F11B711D91A065A2B6458ECA924523\r\n\n";
    let records: Vec<_> = read(TraceFormat::Fiu, text)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let content = ContentId([
        0x56, 0xf1, 0x1b, 0x71, 0x1d, 0x91, 0xa0, 0x65, 0xa2, 0xb6, 0x45, 0x8e, 0xca, 0x92, 0x45,
        0x23,
    ]);
    let first = TraceRecord {
        time: Duration::from_nanos(89_968_195_792_462),
        kind: TraceKind::Read,
        offset_bytes: 283_193_184 * 512,
        length_bytes: 4096,
        content: Some(content),
    };
    let second = TraceRecord {
        time: Duration::ZERO,
        kind: TraceKind::Write,
        offset_bytes: 904_265_560 * 512,
        ..first
    };
    assert_eq!(records, [first, second]);
}

#[test]
fn requests_of_fiu_with_many_digests_are_a_record_a_block() {
    let line = |sectors: u32, digests: &str| format!("5 1 nfsd 80 {sectors} W 6 0 {digests}\n");
    let blocks = digits(1) + &digits(2) + &digits(3);
    let records = read(TraceFormat::Fiu, &line(20, &blocks));
    let records: Vec<_> = records.into_iter().map(Result::unwrap).collect();
    let places: Vec<_> = records
        .iter()
        .map(|r| (r.offset_bytes, r.length_bytes))
        .collect();
    assert_eq!(places, [(40960, 4096), (45056, 4096), (49152, 2048)]);
    let contents: Vec<_> = records
        .iter()
        .map(|record| record.content.unwrap())
        .collect();
    assert_eq!(contents, [id(1), id(2), id(3)]);

    // An MD5 for each sector: equal blocks are equal, others are not, also in another order.
    let block = |first: u8| (first..first + 8).map(digits).collect::<String>();
    let turned: String = (0..8).rev().map(digits).collect();
    let all = block(0) + &block(8) + &block(0) + &turned + &digits(9);
    let records = read(TraceFormat::Fiu, &line(33, &all));
    let records: Vec<_> = records.into_iter().map(Result::unwrap).collect();
    assert_eq!(records.len(), 5);
    let contents: Vec<_> = records
        .iter()
        .map(|record| record.content.unwrap())
        .collect();
    assert_eq!(contents[0], contents[2]);
    assert_eq!(contents.iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!((records[4].length_bytes, contents[4]), (512, id(9)));

    let large = read(TraceFormat::Fiu, &line(64, &digits(4)));
    assert_eq!(large[0].as_ref().unwrap().length_bytes, 32768);
}

#[test]
fn requests_of_msr_cambridge_are_read() {
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
                128166372003061629,hm,0,Read,9014083584,24576,41286\n\
                128166372016382155,hm,0,Write,2607947776,1536,65180";
    let records = read(TraceFormat::MsrCambridge, text);
    let records: Vec<_> = records.into_iter().map(Result::unwrap).collect();
    let first = TraceRecord {
        time: Duration::new(12_816_637_200, 306_162_900),
        kind: TraceKind::Read,
        offset_bytes: 9_014_083_584,
        length_bytes: 24576,
        content: None,
    };
    assert_eq!(records[0], first);
    assert_eq!(records[1].kind, TraceKind::Write);
    assert_eq!(records.len(), 2);
    let pause = records[1].time.checked_sub(first.time).unwrap();
    assert_eq!(pause, Duration::from_nanos(1_332_052_600));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let good = format!("5 1 nfsd 80 8 W 6 0 {}\n", digits(1));
    for (line, what) in [
        ("5 1 nfsd 80 8 W 6 0".to_owned(), "8 fields instead of 9"),
        (good.replace("5 1", "-5 1"), "the time is no number: \"-5\""),
        (good.replace("80", "8O"), "the lba is no number: \"8O\""),
        (good.replace(" 8 ", " +8 "), "the size is no number: \"+8\""),
        (
            good.replace('W', "D"),
            "the operation is neither R nor W: \"D\"",
        ),
        (
            good.replace(" 6", " x"),
            "the major number is no number: \"x\"",
        ),
        (
            good.replace("0101", "01"),
            "no MD5s of 32 hexadecimal digits",
        ),
        (
            good.replace("0101", "zz01"),
            "no MD5s of 32 hexadecimal digits",
        ),
        (
            good.replace("80", &u64::MAX.to_string()),
            "are more than there can be",
        ),
        (
            good.replace("80", &(u64::MAX / 512).to_string()),
            "have no end",
        ),
        (
            format!("5 1 nfsd 80 8 W 6 0 {}", digits(1) + &digits(2)),
            "2 MD5s for 8 sectors",
        ),
    ] {
        let records = read(TraceFormat::Fiu, &format!("{good}{}\n{good}", line.trim()));
        let [Ok(_), Err(said), Ok(_)] = &records[..] else {
            panic!("{line}: {records:?}");
        };
        assert!(said.starts_with("line 2 of the trace: "), "{said}");
        assert!(said.contains(what), "{said}");
    }
    for (line, what) in [
        ("1,hm,0,Read,2,3", "6 fields instead of 7"),
        (
            "1,hm,0,Flush,2,3,4",
            "the type is neither Read nor Write: \"Flush\"",
        ),
        ("1,hm,0,Read,,3,4", "the offset is no number: \"\""),
        ("1,hm,0,Read,2,18446744073709551615,4", "have no end"),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "the time",
        ),
    ] {
        let records = read(
            TraceFormat::MsrCambridge,
            &format!("1,hm,0,Read,2,3,4\n{line}"),
        );
        let said = records[1].as_ref().unwrap_err();
        assert!(said.contains(what) && said.contains("line 2"), "{said}");
    }
}

#[test]
fn a_line_without_end_is_given_up() {
    let endless = std::io::BufReader::new(std::io::repeat(b'1'));
    let mut reader = TraceReader::new(TraceFormat::Fiu, endless);
    assert!(matches!(
        reader.next(),
        Some(Err(TraceError::TooLong { line: 1 }))
    ));
    assert!(reader.next().is_none());
    // The longest that may be.
    let line = format!("1 2 p 0 8192 W 0 0 {}\n", digits(7).repeat(8192));
    assert_eq!(read(TraceFormat::Fiu, &line).len(), 1024);
}

#[test]
fn records_that_a_format_can_not_say_are_refused() {
    let record = TraceRecord {
        time: Duration::ZERO,
        kind: TraceKind::Write,
        offset_bytes: 0,
        length_bytes: 4096,
        content: None,
    };
    let mut writer = TraceWriter::new(TraceFormat::Fiu, Vec::new());
    let error = writer.write(&record).unwrap_err();
    assert!(error.to_string().contains("it has no content"), "{error}");
    let content = Some(id(1));
    let odd = TraceRecord {
        content,
        offset_bytes: 100,
        ..record
    };
    let error = writer.write(&odd).unwrap_err();
    assert!(error.to_string().contains("not whole sectors"), "{error}");
    let late = TraceRecord {
        content,
        time: Duration::MAX,
        ..record
    };
    assert!(writer.write(&late).is_err());
    writer.write(&TraceRecord { content, ..record }).unwrap();
    assert_eq!(writer.finish().unwrap().1, 1);
}

fn records() -> impl Strategy<Value = Vec<TraceRecord>> {
    let record = (
        any::<u64>(),
        any::<bool>(),
        0..1_u64 << 40,
        1_u64..64,
        any::<[u8; 16]>(),
    );
    let record = record.prop_map(|(time, is_read, sector, sectors, content)| TraceRecord {
        time: Duration::from_nanos(time - time % 100),
        kind: if is_read {
            TraceKind::Read
        } else {
            TraceKind::Write
        },
        offset_bytes: sector * 512,
        length_bytes: sectors * 512,
        content: Some(ContentId(content)),
    });
    prop::collection::vec(record, 0..30)
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in records()) {
        let text = write(TraceFormat::Fiu, &records);
        let found: Result<Vec<_>, _> = TraceReader::new(TraceFormat::Fiu, text.as_bytes()).collect();
        prop_assert_eq!(&found.unwrap(), &records);
        let text = write(TraceFormat::MsrCambridge, &records);
        let reader = TraceReader::new(TraceFormat::MsrCambridge, text.as_bytes());
        let found: Result<Vec<_>, _> = reader.collect();
        let without = records.iter().map(|record| TraceRecord { content: None, ..*record });
        prop_assert_eq!(found.unwrap(), without.collect::<Vec<_>>());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-fRW, \n]{0,400}", bytes in any::<Vec<u8>>()) {
        for (_, format) in TraceFormat::ALL {
            TraceReader::new(format, text.as_bytes()).for_each(drop);
            TraceReader::new(format, bytes.as_slice()).for_each(drop);
        }
    }
}

#[test]
fn generated_writes_have_the_characteristics_asked_for() {
    const WRITES: u64 = 200_000;
    let mut workloads: Vec<_> = FIU_DAYS
        .iter()
        .map(|day| Workload::like(day, WRITES, u64::from(day.day)))
        .collect();
    workloads.push(Workload::synthetic(Access::Sequential, WRITES, 3));
    workloads.push(Workload {
        deduplication_ratio: 1.0,
        ..workloads[9]
    });
    for workload in workloads {
        let records: Vec<_> = workload.records().unwrap().collect();
        assert_eq!(records.len() as u64, WRITES);
        let contents: HashSet<_> = records
            .iter()
            .map(|record| record.content.unwrap())
            .collect();
        let ratio = WRITES as f64 / contents.len() as f64;
        let wanted = workload.deduplication_ratio;
        println!("deduplication ratio {ratio:.3}, {wanted} asked for");
        assert!(
            (ratio / wanted - 1.0).abs() < 0.03,
            "{ratio} instead of {wanted}"
        );
        let compress = contents
            .iter()
            .filter(|content| workload.compresses(**content))
            .count();
        let share = compress as f64 / contents.len() as f64;
        assert!((share - 0.8).abs() < 0.02, "{share} of {wanted}");
        let blocks = workload.span_bytes / 4096;
        assert!(
            records
                .iter()
                .all(|record| record.offset_bytes / 4096 < blocks)
        );
        assert!(records.windows(2).all(|pair| pair[0].time < pair[1].time));
        let again: Vec<_> = workload.records().unwrap().collect();
        assert_eq!(records, again);
    }
}

#[test]
fn sequential_writes_go_round_and_random_ones_go_everywhere() {
    let small = Workload {
        span_bytes: 100 * 4096 + 4095,
        ..Workload::synthetic(Access::Sequential, 250, 1)
    };
    let offsets: Vec<_> = small
        .records()
        .unwrap()
        .map(|record| record.offset_bytes)
        .collect();
    assert!(
        offsets
            .iter()
            .zip(0..)
            .all(|(offset, index)| *offset == index % 100 * 4096)
    );
    let random = Workload {
        access: Access::Random,
        writes: 5000,
        ..small
    };
    let places: HashSet<_> = random
        .records()
        .unwrap()
        .map(|record| record.offset_bytes)
        .collect();
    assert_eq!(places.len(), 100);
}

#[test]
fn what_is_generated_stays_the_same() {
    let workload = Workload::synthetic(Access::Random, 3, 42);
    let records: Vec<_> = workload.records().unwrap().collect();
    assert_eq!(write(TraceFormat::Fiu, &records), GENERATED);
    let block = content_of(records[0].content.unwrap(), true);
    let start: Vec<_> = block[..4]
        .iter()
        .chain(&block[3226..3234])
        .copied()
        .collect();
    assert_eq!(start, CONTENT);
}

#[test]
fn workloads_that_can_not_be_are_refused() {
    let workload = Workload::synthetic(Access::Random, 3, 42);
    let refused = |workload: Workload| workload.records().err();
    let ratio = |deduplication_ratio| Workload {
        deduplication_ratio,
        ..workload
    };
    assert_eq!(
        refused(ratio(0.9)),
        Some(WorkloadError::DeduplicationRatio(0.9))
    );
    assert!(refused(ratio(f64::NAN)).is_some() && refused(ratio(f64::INFINITY)).is_some());
    let compressibility_ratio = 1.1;
    assert!(
        refused(Workload {
            compressibility_ratio,
            ..workload
        })
        .is_some()
    );
    assert_eq!(
        refused(Workload {
            span_bytes: 4095,
            ..workload
        }),
        Some(WorkloadError::Span(4095))
    );
}

#[test]
fn writes_without_content_are_given_some_block_by_block() {
    let mut source = ContentSource::new(2.0, 7).unwrap();
    let write = TraceRecord {
        time: Duration::from_secs(1),
        kind: TraceKind::Write,
        offset_bytes: 1536,
        length_bytes: 10240,
        content: None,
    };
    let pieces: Vec<_> = source.fill(write).collect();
    let places: Vec<_> = pieces
        .iter()
        .map(|p| (p.offset_bytes, p.length_bytes))
        .collect();
    assert_eq!(places, [(1536, 2560), (4096, 4096), (8192, 3584)]);
    assert!(
        pieces
            .iter()
            .all(|piece| piece.content.is_some() && piece.time == write.time)
    );
    for other in [
        TraceRecord {
            kind: TraceKind::Read,
            ..write
        },
        TraceRecord {
            content: Some(id(3)),
            ..write
        },
    ] {
        assert_eq!(source.fill(other).collect::<Vec<_>>(), [other]);
    }
    // Nothing is made before it is asked for.
    let huge = TraceRecord {
        length_bytes: u64::MAX - 1536,
        ..write
    };
    assert_eq!(source.fill(huge).take(2).count(), 2);
    let mut many = ContentSource::new(4.0, 7).unwrap();
    let length_bytes = 4096 * 100_000;
    let aligned = TraceRecord {
        offset_bytes: 0,
        length_bytes,
        ..write
    };
    assert_eq!(many.fill(aligned).count(), 100_000);
    let ratio = 100_000.0 / many.contents() as f64;
    assert!((ratio / 4.0 - 1.0).abs() < 0.03, "{ratio}");
}

#[test]
fn blocks_compress_as_they_are_asked_to() {
    let mut source = ContentSource::new(1.0, 11).unwrap();
    let odd = [id(0), id(0xFF), ContentId((1_u128 << 64).to_le_bytes())];
    let contents: Vec<_> = odd
        .into_iter()
        .chain((0..3000).map(|_| source.next_content()))
        .collect();
    let mut smallest = usize::MAX;
    let mut largest = 0;
    let mut seen = HashSet::new();
    for content in contents {
        let compressible = content_of(content, true);
        let bytes = lz4_flex::block::compress(&compressible).len();
        (smallest, largest) = (smallest.min(bytes), largest.max(bytes));
        let other = content_of(content, false);
        assert!(lz4_flex::block::compress(&other).len() >= 4096);
        assert!(
            seen.insert(compressible[..16].to_vec()),
            "contents begin alike"
        );
        assert_eq!(compressible[..16], other[..16]);
        assert_ne!(compressible, other);
        assert_eq!(compressible, content_of(content, true));
    }
    println!("compressible blocks of 4096 bytes are {smallest} to {largest} under LZ4");
    assert!(
        largest * 5 <= 4096 * 4,
        "{largest} is more than 4096 / 1.25"
    );
    assert!(smallest >= 3260, "{smallest} is far less than 4096 / 1.25");
    let all = (0..1000).map(|_| source.next_content());
    let none = all.filter(|content| is_compressible(*content, 0.0)).count();
    assert_eq!(none, 0);
    assert!((0..1000).all(|_| is_compressible(source.next_content(), 1.0)));
}

const GENERATED: &str = "\
1000 0 onefold 125764200 8 W 0 0 c7962cba02b029b9528c6d3cc5a8e4f7
2000 0 onefold 168877072 8 W 0 0 65a5fff93c38642bba894373b67ffcb1
3000 0 onefold 129543496 8 W 0 0 361c28970b778e77f19e4b20a709b5cb
";
const CONTENT: [u8; 12] = [50, 26, 151, 182, 99, 51, 74, 16, 44, 75, 30, 30];
