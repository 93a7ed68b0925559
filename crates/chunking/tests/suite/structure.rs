//! Sections of tars: golden ones of real tars, the same whatever the reads, and bytes that lie.

use crate::random::{Splitmix64, random_bytes};
use crate::tars::{TAR_BLOCK_BYTES, TAR_FORMATS, TarBuilder, TarFormat, with_checksum};
use crate::{fastcdc, lengths, sized, unkeyed};
use chunking::structure::{Sections, Structure};
use chunking::two_stage::TwoStage;
use chunking::{Algorithm, Chunker};
use std::path::PathBuf;

const BLOCK: usize = TAR_BLOCK_BYTES;

impl Splitmix64 {
    fn bits(&mut self) -> u64 {
        self.next().expect("endless")
    }

    /// A number below `limit`, near enough to uniform.
    fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }
}

fn small_chunker() -> Chunker {
    unkeyed(&sized(Algorithm::Fold, 256, 1024, 4096))
}

/// The lengths of the chunks of a stream that comes in pieces of the sizes that `piece` says.
fn lengths_of_pieces(
    chunker: &Chunker,
    data: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Vec<usize> {
    let mut sections = Sections::new(Structure::Tar, chunker);
    let (mut start, mut end) = (0, 0);
    let mut lengths = Vec::new();
    loop {
        end = data.len().min(end + piece());
        while let Some(section) = sections.next(&data[start..end], end == data.len()) {
            let length = chunker.cut(section);
            sections.pass(length);
            start += length;
            lengths.push(length);
        }
        if end == data.len() {
            assert_eq!(start, data.len(), "chunks laid end to end are the data");
            return lengths;
        }
    }
}

/// The same by [`Sections::cut`], in pieces of equal size.
fn cut_lengths(chunker: &Chunker, data: &[u8], piece: usize) -> Vec<usize> {
    let mut sections = Sections::new(Structure::Tar, chunker);
    let (mut start, mut end) = (0, 0);
    let mut lengths = Vec::new();
    while end < data.len() || lengths.is_empty() && !data.is_empty() {
        end = data.len().min(end + piece);
        while let Some(length) = sections.cut(chunker, &data[start..end], end == data.len()) {
            start += length;
            lengths.push(length);
        }
    }
    lengths
}

fn whole(chunker: &Chunker, data: &[u8]) -> Vec<usize> {
    lengths_of_pieces(chunker, data, || data.len())
}

/// Where sections end: a chunker that never cuts shows them.
fn boundaries(data: &[u8]) -> Vec<usize> {
    let uncut = unkeyed(&sized(Algorithm::Fixed, 1 << 20, 64 << 20, 64 << 20));
    let lengths = whole(&uncut, data);
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += length;
        end
    });
    ends.filter(|&end| end < data.len()).collect()
}

fn golden_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/sections")
}

/// What testdata/golden/chunkers/reference/sections.py found in tars of GNU tar.
#[test]
fn sections_are_the_golden_ones() {
    let directory = golden_directory();
    let expected = std::fs::read_to_string(directory.join("expected.txt")).expect("it is there");
    let lines: Vec<&str> = expected.lines().collect();
    let tars = std::fs::read_dir(&directory).expect("it is there").count() - 1;
    assert_eq!(lines.len(), 3 * tars, "every tar has its lines");
    for lines in lines.chunks(3) {
        let name = lines[0].strip_prefix("tar ").expect("a name");
        let numbers = |line: &str| -> Vec<usize> {
            let numbers = line.split(' ').skip(1);
            numbers.map(|it| it.parse().expect("a number")).collect()
        };
        let data = std::fs::read(directory.join(name)).expect("it is there");
        assert_eq!(boundaries(&data), numbers(lines[1]), "{name}");
        assert_eq!(whole(&small_chunker(), &data), numbers(lines[2]), "{name}");
    }
}

/// A tar with what can be in one: small and large contents, long names, records, tars, and
/// lies if wanted.
fn any_tar(chance: &mut Splitmix64, depth: usize, may_lie: bool) -> Vec<u8> {
    let mut tar = TarBuilder::new(TAR_FORMATS[chance.below(3)]);
    for number in 0..chance.below(12) {
        let name = format!("{number}/{}", chance.below(1000));
        let size = match chance.below(4) {
            0 => chance.below(3) * BLOCK,
            1 => chance.below(2000),
            _ => chance.below(20_000),
        };
        let content = random_bytes(chance.bits(), size);
        match chance.below(if may_lie { 16 } else { 9 }) {
            0 => tar.empty(&name, b'5'),
            1 => {
                tar.header("././@LongLink", b'L', 300);
                tar.content(
                    name.repeat(60)
                        .as_bytes()
                        .first_chunk::<300>()
                        .unwrap_or(&[b'n'; 300]),
                );
                tar.file(&name, &content);
            }
            2 => {
                let size = content.len().to_string();
                tar.records(b'x', &[("path", &name), ("size", &size)]);
                tar.header(&name, b'0', 0);
                tar.content(&content);
            }
            3 if depth > 0 => {
                let inner = any_tar(chance, depth - 1, may_lie);
                tar.file("inner.tar", &inner);
            }
            4 => tar.records(b'g', &[("comment", &name)]),
            9 => tar.header(&name, b'0', 1 << 60),
            10 => tar.header(
                &name,
                b"0xgLKS"[chance.below(6)],
                u64::MAX >> chance.below(64),
            ),
            11 => tar.bytes.extend_from_slice(&content),
            12 => tar.records(
                b'x',
                &[("size", &(chance.bits() >> chance.below(64)).to_string())],
            ),
            13 => {
                let length = tar.bytes.len();
                tar.bytes
                    .truncate(length - length.min(chance.below(2 * BLOCK)));
            }
            14 => tar
                .bytes
                .resize(tar.bytes.len() + chance.below(3) * BLOCK, 0),
            15 => {
                let mut block = [0; BLOCK];
                block.copy_from_slice(&random_bytes(chance.bits(), BLOCK));
                tar.bytes.extend_from_slice(&with_checksum(block));
            }
            _ => tar.file(&name, &content),
        }
    }
    tar.finish()
}

/// The definition of docs/format/chunkers.md, of a stream in memory: sections.py, in Rust.
mod naive {
    use super::BLOCK;

    pub fn boundaries(data: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        scan(data, 0, data.len(), 0, &mut found);
        found.sort_unstable();
        found.dedup();
        found.retain(|&it| it > 0 && it < data.len());
        found
    }

    fn octal(field: &[u8]) -> Option<u128> {
        let text = std::str::from_utf8(field).ok()?.trim_start_matches(' ');
        let digits = text.trim_end_matches([' ', '\0']);
        let is_octal = !digits.is_empty() && digits.bytes().all(|it| (b'0'..=b'7').contains(&it));
        is_octal.then(|| u128::from_str_radix(digits, 8).ok())?
    }

    fn size(field: &[u8]) -> Option<u128> {
        if field[0] < 0x80 {
            return octal(field);
        }
        let start = u128::from(field[0] & 0x3f);
        let value = field[1..]
            .iter()
            .fold(start, |value, &it| value << 8 | u128::from(it));
        (field[0] < 0xc0 && value <= u128::from(u64::MAX)).then_some(value)
    }

    fn header(block: &[u8]) -> Option<(u8, u128)> {
        let said = i64::try_from(octal(&block[148..156])?).ok()?;
        let mut block = block.to_vec();
        block[148..156].fill(b' ');
        let sum: i64 = block.iter().map(|&it| i64::from(it)).sum();
        let signed: i64 = block.iter().map(|&it| i64::from(it as i8)).sum();
        let is_right = said == sum || said == signed;
        is_right.then(|| Some((block[156], size(&block[124..136])?)))?
    }

    fn pax_size(records: &[u8]) -> Option<u128> {
        let text: String = records.iter().map(|&it| char::from(it)).collect();
        let value = text
            .split('\n')
            .filter_map(|it| it.split_once(" size="))
            .next_back()?
            .1;
        value.parse::<u64>().ok().map(u128::from)
    }

    fn scan(data: &[u8], start: usize, end: usize, depth: usize, found: &mut Vec<usize>) {
        let (mut at, mut in_archive, mut is_first) = (start, false, true);
        let (mut of_next, mut of_all) = (None, None);
        while end.saturating_sub(at) >= BLOCK {
            let block = &data[at..at + BLOCK];
            let may_be = in_archive || is_first || &block[257..262] == b"ustar";
            let Some((kind, mut size)) = may_be.then(|| header(block)).flatten() else {
                if in_archive && block.iter().any(|&it| it != 0) {
                    found.push(at);
                }
                (in_archive, is_first) = (false, false);
                at += BLOCK;
                continue;
            };
            if !in_archive && !is_first {
                found.push(at);
                (of_next, of_all) = (None, None);
            }
            (in_archive, is_first) = (true, false);
            at += BLOCK;
            let padded =
                |size: u128| (size.div_ceil(BLOCK as u128) * BLOCK as u128).min(1 << 60) as usize;
            match kind {
                b'L' | b'K' | b'x' | b'X' | b'g' if size <= 1 << 20 => {
                    if at + padded(size) > end {
                        return;
                    }
                    let said = match kind {
                        b'L' | b'K' => None,
                        _ => pax_size(&data[at..at + (size as usize).min(64 << 10)]),
                    };
                    let place = if kind == b'g' {
                        &mut of_all
                    } else {
                        &mut of_next
                    };
                    *place = said.or(*place);
                    at += padded(size);
                    continue;
                }
                b'1'..=b'6' => {
                    of_next = None;
                    continue;
                }
                b'L' | b'K' | b'x' | b'X' | b'g' => {}
                _ => size = of_next.take().or(of_all).unwrap_or(size),
            }
            if kind == b'S' && block[482] != 0 {
                loop {
                    if end.saturating_sub(at) < BLOCK {
                        return;
                    }
                    at += BLOCK;
                    if data[at - BLOCK + 504] == 0 {
                        break;
                    }
                }
            }
            if size > 512 {
                let content_end = end.min(at + padded(size).min(size as usize));
                found.extend([at, content_end]);
                if depth < 8 {
                    scan(data, at, content_end, depth + 1, found);
                }
            }
            at += padded(size);
        }
    }
}

#[test]
fn sections_are_those_of_the_definition_whatever_the_reads() {
    let chunker = small_chunker();
    for seed in 0..400 {
        let mut chance = Splitmix64(seed);
        let mut data = any_tar(&mut chance, 2, seed % 2 == 1);
        if seed % 5 == 0 {
            // In a stream that is something else, at a block's border or not.
            let mut stream = random_bytes(seed, chance.below(4) * BLOCK + chance.below(2) * 100);
            stream.append(&mut data);
            data = stream;
        }
        if seed % 7 == 0 {
            data.truncate(chance.below(data.len() + 1));
        }
        let found = boundaries(&data);
        assert_eq!(found, naive::boundaries(&data), "seed {seed}");
        let expected = whole(&chunker, &data);
        // Each section is cut as a stream of its own.
        let mut start = 0;
        let mut apart = Vec::new();
        for end in found.iter().copied().chain([data.len()]) {
            apart.extend(lengths(&chunker, &data[start..end]));
            start = end;
        }
        assert_eq!(expected, apart, "seed {seed}");
        assert_eq!(cut_lengths(&chunker, &data, data.len()), apart);
        for most in [1, 7, 600, 5000, 100_000] {
            let mut sizes = Splitmix64(seed + most as u64);
            let pieces = lengths_of_pieces(&chunker, &data, || 1 + sizes.below(most));
            assert_eq!(pieces, expected, "seed {seed}, pieces of {most} at most");
            assert_eq!(cut_lengths(&chunker, &data, most), expected, "seed {seed}");
        }
    }
}

/// Those that look behind their cuts, or not: the same whether bytes are looked at before they are
/// cut or behind.
#[test]
fn every_chunker_cuts_sections_apart() {
    for info in chunking::ALGORITHMS {
        let parameters = match info.algorithm {
            Algorithm::SeqCdc | Algorithm::Fixed => sized(info.algorithm, 256, 1024, 4096),
            Algorithm::Ram => sized(info.algorithm, 512, 1024, 4096),
            _ => sized(info.algorithm, 256, 1024, 16384),
        };
        let chunker = unkeyed(&parameters);
        for seed in 0..20 {
            let mut chance = Splitmix64(seed);
            let mut data = random_bytes(seed, 40 * BLOCK * chance.below(4));
            for _ in 0..4 {
                data.extend(any_tar(&mut chance, 1, false));
                data.extend(random_bytes(seed, 100 * BLOCK));
            }
            let mut start = 0;
            let mut apart = Vec::new();
            for end in boundaries(&data).into_iter().chain([data.len()]) {
                apart.extend(lengths(&chunker, &data[start..end]));
                start = end;
            }
            assert_eq!(
                cut_lengths(&chunker, &data, data.len()),
                apart,
                "{}",
                info.name
            );
            assert_eq!(cut_lengths(&chunker, &data, 30_000), apart, "{}", info.name);
        }
    }
}

#[test]
fn marks_of_all_positions_serve_sections() {
    for chunker in [
        small_chunker(),
        unkeyed(&fastcdc(256, 1024, 4096, 2)),
        unkeyed(&sized(Algorithm::GearHash, 256, 1024, 4096)),
        unkeyed(&sized(Algorithm::Tttd, 256, 1024, 4096)),
        unkeyed(&sized(Algorithm::Rabin, 256, 1024, 4096)),
    ] {
        let two_stage = TwoStage::new(chunker.clone(), 10_000).expect("it judges windows");
        for seed in 0..20 {
            let data = any_tar(&mut Splitmix64(seed), 1, false);
            let marked: Vec<_> = two_stage.jobs(&data, 1).flat_map(|job| job.run()).collect();
            let mut sections = Sections::new(Structure::Tar, &chunker);
            let (mut start, mut lengths) = (0, Vec::new());
            while let Some(section) = sections.next(&data[start..], true) {
                let within = start..start + section.len();
                let length = two_stage.cut_marked(&data, within, &marked);
                sections.pass(length);
                start += length;
                lengths.push(length);
            }
            assert_eq!(lengths, whole(&chunker, &data), "{:?}", chunker);
        }
    }
}

/// The contents that differ between two tars: chunks of one that the other has not.
#[test]
fn other_times_leave_contents_as_they_are() {
    let chunker = small_chunker();
    for format in TAR_FORMATS {
        let tar_of = |modified| {
            let mut tar = TarBuilder::new(format);
            tar.modified = modified;
            for number in 0..40 {
                let content = random_bytes(number, 600 + 321 * number as usize);
                tar.file(&format!("file-{number}"), &content);
            }
            tar.finish()
        };
        let (old, new) = (tar_of(1_000_000_000), tar_of(1_234_567_890));
        let chunks = |data: &[u8]| -> Vec<Vec<u8>> {
            let mut rest = data;
            let lengths = whole(&chunker, data);
            let chunks = lengths.iter().map(|&length| {
                let (chunk, behind) = rest.split_at(length);
                rest = behind;
                chunk.to_vec()
            });
            chunks.collect()
        };
        let known = chunks(&old);
        let fresh: usize = chunks(&new)
            .iter()
            .filter(|chunk| !known.contains(chunk))
            .map(Vec::len)
            .sum();
        // Headers, and what fills the blocks in front of them.
        assert!((40 * BLOCK..80 * BLOCK).contains(&fresh), "{fresh}");
        // A content is cut as the file itself.
        let file = random_bytes(39, 600 + 321 * 39);
        let own = lengths(&chunker, &file);
        let all = whole(&chunker, &old);
        assert!(all.windows(own.len()).any(|lengths| lengths == own));
    }
}

#[test]
fn an_archive_is_found_in_other_data_and_after_damage() {
    let mut tar = TarBuilder::new(TarFormat::Ustar);
    tar.file("a", &random_bytes(1, 5000));
    let second = tar.bytes.len();
    tar.file("b", &random_bytes(2, 5000));
    let third = tar.bytes.len();
    tar.file("c", &random_bytes(3, 5000));
    let tar = tar.finish();
    let all = [
        512,
        5512,
        second + 512,
        second + 5512,
        third + 512,
        third + 5512,
    ];
    assert_eq!(boundaries(&tar), all);
    // A flipped bit in a header: its content is just bytes, up to the next header.
    let mut damaged = tar.clone();
    damaged[second + 3] ^= 1;
    let expected = [512, 5512, second, third, third + 512, third + 5512];
    assert_eq!(boundaries(&damaged), expected);
    // Behind other data, at a block's border and not.
    let behind = |lead: usize| {
        let mut stream = random_bytes(9, lead);
        stream.extend_from_slice(&tar);
        boundaries(&stream)
    };
    let moved: Vec<usize> = [0].iter().chain(&all).map(|at| at + 4096).collect();
    assert_eq!(behind(4096), moved);
    assert_eq!(behind(4097), [0; 0]);
    // A size of 2^60 takes all that follows, in which the next header is found.
    let mut lying = TarBuilder::new(TarFormat::Gnu);
    lying.header("huge", b'0', 1 << 60);
    lying.bytes.extend_from_slice(&random_bytes(5, 10 * BLOCK));
    let start = lying.bytes.len();
    lying.bytes.extend_from_slice(&tar);
    let moved = [0].iter().chain(&all).map(|at| at + start);
    let expected: Vec<usize> = [512].into_iter().chain(moved).collect();
    assert_eq!(boundaries(&lying.bytes), expected);
}

#[test]
fn what_is_no_tar_is_cut_as_ever() {
    let chunker = small_chunker();
    for seed in 0..50 {
        let data = random_bytes(seed, 100_000 + seed as usize);
        assert_eq!(whole(&chunker, &data), lengths(&chunker, &data));
        let mut none = Sections::new(Structure::None, &chunker);
        assert_eq!(none.next(&data, false), Some(&data[..]));
        assert_eq!(none.next(&data[..4095], false), None);
    }
    assert_eq!(whole(&chunker, &[]), [0; 0]);
}

/// Every header a member of the one before: levels are bounded.
#[test]
fn archives_without_end_in_archives() {
    let mut tar = TarBuilder::new(TarFormat::Gnu);
    for number in 0..100 {
        tar.header(&number.to_string(), b'0', 1 << 40);
    }
    tar.bytes.extend_from_slice(&[0; 100_000]);
    let expected: Vec<usize> = (1..=9).map(|number| number * BLOCK).collect();
    assert_eq!(boundaries(&tar.bytes), expected);
    assert_eq!(naive::boundaries(&tar.bytes), expected);
}
