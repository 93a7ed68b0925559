//! Tests of pages: what comes back, where pages end, what a change costs, hostile bytes.

use std::collections::{BTreeMap, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::entry::tests::{any_entry, file, slots};
use super::super::{EntryKind, HardLink, Metadata, Timestamp};
use super::*;
use engine::recipe::{Recipe, Run};

fn fingerprinter() -> Fingerprinter {
    Fingerprinter::new(&[3; 32])
}

fn pages(entries: &[Entry]) -> Vec<Vec<u8>> {
    let fingerprinter = fingerprinter();
    let mut writer = PageWriter::new();
    let mut pages = Vec::new();
    for entry in entries {
        writer.push(&fingerprinter, entry).unwrap();
        while let Some(page) = writer.next_page() {
            pages.push(page);
        }
    }
    pages.extend(writer.finish());
    pages
}

fn entries_of(pages: &[Vec<u8>]) -> Vec<Entry> {
    let mut reader = DirectoryReader::new();
    pages
        .iter()
        .flat_map(|page| reader.page(page).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn directories_come_back(entries in vec(any_entry(), 0..300)) {
        let by_name: BTreeMap<Vec<u8>, Entry> =
            entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        let entries: Vec<Entry> = by_name.into_values().collect();
        let pages = pages(&entries);
        prop_assert_eq!(entries_of(&pages), entries.clone());
        prop_assert_eq!(self::pages(&entries), pages.clone());
        for page in &pages {
            let count = decode_page(page).unwrap().len();
            prop_assert!(page.len() <= PAGE_BYTES_MAX || count == 1);
        }
    }

    #[test]
    fn hostile_pages_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = decode_page(&bytes);
        let mut with_version = vec![1, 0];
        with_version.extend_from_slice(&bytes);
        let _ = decode_page(&with_version);
    }

    #[test]
    fn damaged_pages_never_panic(
        entries in vec(any_entry(), 1..10), place: prop::sample::Index, mask in 1u8..,
    ) {
        let by_name: BTreeMap<Vec<u8>, Entry> =
            entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        let mut page = pages(&by_name.into_values().collect::<Vec<_>>()).remove(0);
        let place = place.index(page.len());
        prop_assert!(decode_page(&page[..place]).is_err());
        page[place] ^= mask;
        let _ = decode_page(&page);
    }
}

#[test]
fn an_empty_directory_has_no_pages() {
    assert!(pages(&[]).is_empty());
    assert!(decode_page(&[1, 0, 0]).is_err(), "a page without entries");
}

fn numbered(count: u32) -> Vec<Entry> {
    (0..count)
        .map(|number| {
            file(
                format!("photo-{number:06}.jpg").as_bytes(),
                1 + u64::from(number),
            )
        })
        .collect()
}

/// How many of the pages of `after` are not pages of `before`.
fn pages_new(before: &[Vec<u8>], after: &[Entry]) -> usize {
    let before: HashSet<&Vec<u8>> = before.iter().collect();
    pages(after)
        .iter()
        .filter(|page| !before.contains(page))
        .count()
}

#[test]
fn one_change_in_ten_thousand_costs_a_page_or_two() {
    let entries = numbered(10_000);
    let before = pages(&entries);
    assert!((40..=130).contains(&before.len()), "{} pages", before.len());
    let (mut worst, mut sum, mut count) = (0, 0, 0);
    for place in (0..entries.len()).step_by(97) {
        let mut changed = entries.clone();
        changed[place].size += 1;
        changed[place].content = Recipe::Runs(vec![slots(200, 3, changed[place].size)]);
        let mut removed = entries.clone();
        removed.remove(place);
        let mut added = entries.clone();
        let name = [entries[place].name.as_slice(), b"~"].concat();
        added.insert(place + 1, file(&name, 12));
        for after in [changed, removed, added] {
            let new = pages_new(&before, &after);
            (worst, sum, count) = (worst.max(new), sum + new, count + 1);
        }
    }
    assert!(worst <= 4, "a change cost {worst} pages");
    assert!(sum * 10 <= count * 13, "{count} changes cost {sum} pages");
}

#[test]
fn entries_and_pages_have_limits() {
    let fingerprinter = fingerprinter();
    let holding = |name: &[u8], bytes: usize| {
        let mut entry = file(name, 0);
        entry.metadata.attributes = vec![(b"user.large".to_vec(), vec![5; bytes])];
        entry
    };
    // Names in the order of letters; none of the large entries shares its page.
    let entries = [
        file(b"a", 1),
        holding(b"b", 300 << 10),
        holding(b"c", 200 << 10),
        holding(b"d", 100 << 10),
        file(b"e", 1),
    ];
    let all = pages(&entries);
    let counts: Vec<usize> = all
        .iter()
        .map(|page| decode_page(page).unwrap().len())
        .collect();
    assert_eq!(counts, [1, 1, 1, 2]);
    assert_eq!(entries_of(&all), entries);

    let mut writer = PageWriter::new();
    writer.push(&fingerprinter, &file(b"a", 1)).unwrap();
    let refused = writer.push(&fingerprinter, &holding(b"b", 1 << 20));
    assert!(matches!(refused, Err(TreeError::TooLarge { bytes, .. }) if bytes > 1 << 20));
    writer.push(&fingerprinter, &file(b"c", 1)).unwrap();
    let without: Vec<Vec<u8>> = writer.finish().into();
    assert_eq!(without, pages(&[file(b"a", 1), file(b"c", 1)]));
    assert!(decode_page(&vec![1; LONE_ENTRY_PAGE_BYTES_MAX + 1]).is_err());
}

#[test]
fn order_is_kept_within_and_across_pages() {
    let fingerprinter = fingerprinter();
    let mut writer = PageWriter::new();
    writer.push(&fingerprinter, &file(b"b", 1)).unwrap();
    for late in [&b"a"[..], b"b"] {
        let refused = writer.push(&fingerprinter, &file(late, 1));
        assert!(matches!(refused, Err(TreeError::OutOfOrder { .. })));
    }
    let invalid = writer.push(&fingerprinter, &file(b"c/d", 1));
    assert!(matches!(invalid, Err(TreeError::Invalid { .. })));

    let entries = numbered(1000);
    let pages = pages(&entries);
    let mut reader = DirectoryReader::new();
    reader.page(&pages[1]).unwrap();
    assert!(reader.page(&pages[0]).is_err());
    assert!(reader.page(&pages[1]).is_err());
    assert!(reader.page(&pages[2]).is_ok());

    let mut swapped = vec![1, 0, 2];
    for name in [b"b", b"a"] {
        let fifo = Entry::new(name.to_vec(), EntryKind::Fifo, Metadata::default());
        fifo.encode(&mut ContainerTable::default(), &mut swapped);
    }
    assert!(
        decode_page(&swapped)
            .unwrap_err()
            .to_string()
            .contains("stands after")
    );
}

#[test]
fn versions_and_counts_are_checked() {
    let mut page = pages(&[file(b"a", 1)]).remove(0);
    page[0] = 2;
    assert!(
        decode_page(&page)
            .unwrap_err()
            .to_string()
            .contains("version 2")
    );
    // Counts far beyond the bytes that follow must not reserve memory.
    let huge = [1, 0xff, 0xff, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(decode_page(&huge).is_err());
    assert!(decode_page(&[1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
}

/// Before compression, which then takes away what the entries of a directory have in common.
#[test]
fn a_file_takes_few_bytes_beside_its_name() {
    let bytes: usize = pages(&numbered(10_000)).iter().map(Vec::len).sum();
    let names = 10_000 * "photo-000000.jpg".len();
    let each = (bytes - names) / 10_000;
    assert!(each < 90, "{each} bytes");
}

fn one_of_each() -> Vec<Entry> {
    let named = |name: &str, kind| {
        let metadata = Metadata {
            mode: 0o755,
            modified: Timestamp {
                seconds: -1,
                nanoseconds: 999_999_999,
            },
            ..Metadata::default()
        };
        Entry::new(name.as_bytes().to_vec(), kind, metadata)
    };
    let mut directory = named("d", EntryKind::Directory);
    directory.content = Recipe::Runs(vec![slots(2, 0, 300)]);
    let mut sparse = file(b"sparse", 10);
    sparse.size = 4106;
    sparse.content = Recipe::Runs(vec![slots(1, 0, 10), Run::Hole { bytes: 4096 }]);
    sparse.hard_link = Some(HardLink {
        device: 66,
        inode: 77,
    });
    sparse.metadata.attributes = vec![(b"user.a".to_vec(), b"1".to_vec())];
    vec![
        named("b", EntryKind::BlockDevice { major: 8, minor: 1 }),
        named(
            "c",
            EntryKind::CharacterDevice {
                major: 1,
                minor: 300,
            },
        ),
        directory,
        file(b"empty", 0),
        named("f", EntryKind::Fifo),
        named(
            "l",
            EntryKind::Symlink {
                target: b"../x".to_vec(),
            },
        ),
        sparse,
    ]
}

/// The stored form itself: a change here is a change of the format.
#[test]
fn golden_page() {
    let pages = pages(&one_of_each());
    let hex: String = pages[0].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN_PAGE);
    assert_eq!(entries_of(&pages), one_of_each());
}

const GOLDEN_PAGE: &str = "\
    01\
    02\
    02020202020202020202020202020202\
    01010101010101010101010101010101\
    07\
    160101620202ed03030106080601ff93ebdc0309020801\
    170101630202ed03030105080601ff93ebdc03090301ac02\
    1b0101640202ed0303010205070001000001ac02080601ff93ebdc03\
    370105656d7074790202a4030301010404e807e80705020000060a04616e6e6104616e6e61080680c49fd50c\
    050a0682c49fd50c060c014d\
    120101660202ed03030104080601ff93ebdc03\
    1801016c0202ed0303010307042e2e2f78080601ff93ebdc03\
    6301067370617273650202a4030301010404e807e807050800020200010a8140060a04616e6e6104616e6e61\
    080680c49fd50c050a0682c49fd50c060b02424d0c014d0e028a201010090909090909090909090909090909\
    09120906757365722e610131";
