//! Directory pages (docs/format/v1.md, §9).

use engine::fingerprint::CheckValue;
use engine::recipe::{Recipe, Run};
use repository::tree::{
    DirectoryReader, Entry, EntryKind, HardLink, Metadata, PageWriter, Timestamp, check_name,
    decode_page,
};

use super::{paged_recipe, secrets, slots};

/// Longer pages are decoded, not encoded: other numbers of containers may make them too long.
const PAGE_BYTES_AGAIN: usize = 128 << 10;

/// A page: its entries keep the rules and come back from pages of our own.
pub fn page(bytes: &[u8]) {
    let Ok(entries) = decode_page(bytes) else {
        return;
    };
    assert!(!entries.is_empty());
    for entry in &entries {
        assert_eq!(check_name(&entry.name), Ok(()));
        assert_eq!(entry.check(), Ok(()));
    }
    if bytes.len() > PAGE_BYTES_AGAIN {
        return;
    }
    let mut reader = DirectoryReader::new();
    let mut again = Vec::new();
    for page in encode(&entries) {
        again.extend(reader.page(&page).expect("our own page is read"));
    }
    assert_eq!(again, entries);
}

fn encode(entries: &[Entry]) -> Vec<Vec<u8>> {
    let mut writer = PageWriter::new();
    let fingerprinter = secrets().fingerprinter();
    for entry in entries {
        writer
            .push(&fingerprinter, entry)
            .expect("it was stored before");
    }
    let mut pages = Vec::new();
    while let Some(page) = writer.next_page() {
        pages.push(page);
    }
    pages.extend(writer.finish());
    pages
}

pub fn page_samples() -> Vec<Vec<u8>> {
    let mut samples = encode(&entries());
    samples.extend(encode(&entries()[..1]));
    samples.extend(encode(&many_files()));
    samples
}

fn metadata() -> Metadata {
    let time = |seconds| Timestamp {
        seconds,
        nanoseconds: 123_456_789,
    };
    Metadata {
        mode: 0o4755,
        uid: 1000,
        gid: u32::MAX,
        user: b"anna".to_vec(),
        group: b"users".to_vec(),
        modified: time(1_700_000_000),
        changed: time(-5),
        inode: 1 << 40,
        attributes: vec![
            (b"system.posix_acl_access".to_vec(), vec![2, 0, 0, 0, 1, 0]),
            (b"user.empty".to_vec(), Vec::new()),
        ],
    }
}

fn file(name: &str, content: Recipe) -> Entry {
    let mut entry = Entry::new(name.into(), EntryKind::File, metadata());
    entry.size = content.stream_bytes();
    entry.content = content;
    entry.check = (entry.size > 0).then_some(CheckValue([9; 16]));
    entry
}

/// One entry of every type.
fn entries() -> Vec<Entry> {
    let plain = |name: &str, kind| Entry::new(name.into(), kind, Metadata::default());
    let target = b"../elsewhere".to_vec();
    let (major, minor) = (8, u32::MAX);
    let sparse = vec![slots(1, 3, 5000), Run::Hole { bytes: 1 << 50 }];
    let mut linked = file("c linked", Recipe::Runs(vec![slots(2, 1, 77)]));
    linked.hard_link = Some(HardLink {
        device: 65_024,
        inode: 12,
    });
    let mut directory = plain("e directory", EntryKind::Directory);
    directory.content = Recipe::Runs(vec![slots(3, 1, 9000)]);
    vec![
        file("a sparse", Recipe::Runs(sparse)),
        file("b long", paged_recipe()),
        linked,
        file("d empty", Recipe::default()),
        directory,
        plain("f symlink", EntryKind::Symlink { target }),
        plain("g fifo", EntryKind::Fifo),
        plain("h character", EntryKind::CharacterDevice { major, minor }),
        plain("i block", EntryKind::BlockDevice { major, minor }),
    ]
}

fn many_files() -> Vec<Entry> {
    let names = (0..40).map(|number| format!("file {number:03}"));
    names
        .map(|name| file(&name, Recipe::Runs(vec![slots(name.len() as u8, 1, 4000)])))
        .collect()
}
