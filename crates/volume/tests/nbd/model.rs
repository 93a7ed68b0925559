//! Any sequence of commands, over several connections, does what it would do to an array.

use proptest::prelude::*;
use volume::nbd::Limits;

use crate::Served;
use crate::client::*;
use crate::disk::TestDisk;

const SECTORS: u64 = 512;
const SECTOR: u64 = 512;

#[derive(Debug, Clone)]
struct Step {
    connection: usize,
    flags: u16,
    kind: Kind,
    /// In sectors; may lie beyond the end.
    start: u64,
    sectors: u64,
    seed: u8,
    /// Bytes by which the offset is off.
    skew: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Read,
    ReadWhole,
    Write,
    Trim,
    Zero,
    Flush,
    Status,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        3 => Just(Kind::Read),
        1 => Just(Kind::ReadWhole),
        4 => Just(Kind::Write),
        1 => Just(Kind::Trim),
        1 => Just(Kind::Zero),
        1 => Just(Kind::Flush),
        1 => Just(Kind::Status),
    ];
    let sectors = prop_oneof![0..4_u64, 0..40_u64, 120..300_u64];
    let skew = prop_oneof![20 => Just(0_u64), 1 => 1..512_u64];
    let fua = prop_oneof![3 => Just(0), 1 => Just(FUA)];
    let step = (
        0..3_usize,
        fua,
        kind,
        0..SECTORS + 8,
        sectors,
        any::<u8>(),
        skew,
    );
    let step = step.prop_map(
        |(connection, flags, kind, start, sectors, seed, skew)| Step {
            connection,
            flags,
            kind,
            start,
            sectors,
            seed,
            skew,
        },
    );
    prop::collection::vec(step, 1..60)
}

fn run(steps: &[Step]) {
    let disk = TestDisk::new((SECTORS * SECTOR) as usize, SECTOR as u32);
    let served = Served::with(disk, Limits::default());
    let mut clients = [
        Client::simple(&served),
        Client::structured(&served),
        Client::structured(&served),
    ];
    let mut model = vec![0_u8; (SECTORS * SECTOR) as usize];
    let mut flushes = 0;
    for step in steps {
        let client = &mut clients[step.connection];
        let (offset, length) = (step.start * SECTOR + step.skew, step.sectors * SECTOR);
        let end = offset + length;
        let fits = end <= model.len() as u64;
        let aligned = step.skew == 0;
        // Alignment is looked at first.
        let error = |beyond| if aligned { beyond } else { EINVAL };
        let range = offset as usize..end as usize;
        let flags = step.flags;
        let changes = fits && aligned;
        match step.kind {
            Kind::Read | Kind::ReadWhole => {
                let whole = step.kind == Kind::ReadWhole && client.is_structured;
                let flags = if whole { DF } else { flags };
                let read = client.read(flags, offset, length as u32);
                // An empty range is nothing, wherever it is, to a reader of chunks.
                if client.is_structured && length == 0 {
                    assert_eq!(read, Ok(vec![]));
                } else if changes {
                    assert!(read.is_ok_and(|data| data == model[range]), "{step:?}");
                } else {
                    assert_eq!(read, Err(EINVAL), "{step:?}");
                }
                continue;
            }
            Kind::Write => {
                let data: Vec<u8> = (0..length).map(|i| (i / 512) as u8 ^ step.seed).collect();
                let written = client.write(flags, offset, &data);
                let expected = if changes { Ok(()) } else { Err(error(ENOSPC)) };
                assert_eq!(written, expected, "{step:?}");
                if changes {
                    model[range].copy_from_slice(&data);
                }
            }
            Kind::Trim | Kind::Zero => {
                let command = if step.kind == Kind::Trim {
                    TRIM
                } else {
                    WRITE_ZEROES
                };
                let beyond = if step.kind == Kind::Trim {
                    EINVAL
                } else {
                    ENOSPC
                };
                let changed = client.change(flags, command, offset, length as u32);
                let expected = if changes { Ok(()) } else { Err(error(beyond)) };
                assert_eq!(changed, expected, "{step:?}");
                if changes {
                    model[range].fill(0);
                }
            }
            Kind::Flush => {
                client.flush().unwrap();
                flushes += 1;
                continue;
            }
            Kind::Status => {
                if client.is_structured {
                    let status = client.status(0, offset, length as u32);
                    check_status(status, changes && length > 0, &model, range);
                }
                continue;
            }
        }
        if changes && flags == FUA {
            flushes += 1;
        }
    }
    assert!(served.disk.bytes(0, model.len()) == model);
    assert_eq!(served.disk.flushes(), flushes);
}

fn check_status(
    status: Result<Vec<Status>, u32>,
    is_valid: bool,
    model: &[u8],
    range: std::ops::Range<usize>,
) {
    if !is_valid {
        assert_eq!(status, Err(EINVAL));
        return;
    }
    let mut at = range.start;
    for (length, is_hole) in status.expect("the range is valid") {
        let bytes = &model[at..at + length as usize];
        let all_zero = |sector: &[u8]| sector.iter().all(|&byte| byte == 0);
        assert!(bytes.chunks(512).all(|sector| all_zero(sector) == is_hole));
        at += length as usize;
    }
    assert_eq!(at, range.end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn commands_do_what_they_do_to_an_array(steps in steps()) {
        run(&steps);
    }
}
