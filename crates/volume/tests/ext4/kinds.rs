//! Kinds of file systems on kinds of volumes: what was written is there after everything was closed, `e2fsck`
//! finds nothing, and neither does the volume's own check.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use volume::backing::FileBacking;
use volume::{BlockDevice, Counters, OpenOptions, Persistence, Policy, Volume, VolumeSettings};

use crate::common::{Random, assert_fine};
use crate::programs::check_clean;
use crate::stack::{EXTERNAL_JOURNAL_BYTES, Ext4, Layout, Stack, dump};
use crate::workload::Files;

const DISK_BYTES: u64 = 128 << 20;

const JOURNAL: Layout = Layout {
    block_bytes: 4096,
    sector_bytes: 4096,
    options: "data=journal",
    external_journal: false,
};

const ORDERED: Layout = Layout {
    options: "data=ordered",
    ..JOURNAL
};

/// Parts of the disk's blocks are written; `sector_bytes` is 1024 or 512.
const fn small_blocks(layout: Layout, sector_bytes: u32) -> Layout {
    Layout {
        block_bytes: 1024,
        sector_bytes,
        ..layout
    }
}

/// First half: a tree, little things made durable, a database, jobs.
fn first_half(files: &mut Files, root: &Path, random: &mut Random) {
    files.write_tree(root, random, 60).unwrap();
    files.append(root, random, 10).unwrap();
    files.use_database(root, random, 4);
    files.change(root, random, 30).unwrap();
}

/// Second half: more of it, when caches are empty. The jobs take long to start.
fn second_half(files: &mut Files, root: &Path, random: &mut Random, has_jobs: bool) {
    files.change(root, random, 30).unwrap();
    files.use_database(root, random, 4);
    if has_jobs {
        files.run_jobs(root);
    }
    files.append(root, random, 10).unwrap();
    files.write_tree(root, random, 10).unwrap();
}

/// What a workload did to a volume since its file system was made.
fn live(layout: Layout, settings: &VolumeSettings, seed: u64) -> Counters {
    let directory = tempfile::tempdir().unwrap();
    let bytes = Volume::backing_bytes_for(settings);
    let backing = FileBacking::create(&directory.path().join("volume"), bytes).unwrap();
    let backing = Arc::new(backing);
    Volume::create(&*backing, settings, None).unwrap();
    let open = || Arc::new(Volume::open(backing.clone(), &OpenOptions::default()).unwrap());

    let (mut files, mut random) = (Files::default(), Random(seed));
    let volume = open();
    let mut stack = Stack::new(volume.clone(), layout);
    stack.make();
    let journal = volume.journal();
    let is_known = settings.policy.has_journal();
    assert_eq!(!journal.0.is_empty(), is_known, "{journal:?} after mkfs");
    let before = volume.counters();
    first_half(&mut files, &stack.mount(), &mut random);
    // Caches are empty after this, the disk stays; or everything is opened again.
    let root = stack.mount_again();
    files.compare(&root).unwrap();
    stack.end();
    volume.close().unwrap();
    drop(volume);
    let volume = open();
    let mut stack = Stack::new(volume.clone(), layout);
    let has_jobs = settings.policy == Policy::FullAndJournal;
    second_half(&mut files, &stack.mount(), &mut random, has_jobs);
    stack.end();
    let done = volume.counters().since(&before);
    volume.close().unwrap();
    drop(volume);

    let volume = open();
    assert_fine(&volume, "after everything");
    let image = directory.path().join("image");
    let journal = directory.path().join("journal");
    let start = u64::from(layout.external_journal) * EXTERNAL_JOURNAL_BYTES;
    dump(&*volume, start..volume.geometry().size_bytes, &image);
    if start > 0 {
        dump(&*volume, 0..start, &journal);
    }
    check_clean(&image, (start > 0).then_some(&*journal)).unwrap();
    let ext4 = Ext4::of_image(&image, if start > 0 { "noload" } else { "defaults" }).unwrap();
    files.compare(ext4.path()).unwrap();
    files.check_database(directory.path());
    ext4.unmount();
    done
}

/// Lives on a volume, tells what that took, and gives the share of home writes that were found in the journal.
fn live_and_tell(layout: Layout, policy: Policy, persistence: Persistence) -> f64 {
    let start = Instant::now();
    let settings = VolumeSettings {
        policy,
        persistence,
        sector_bytes: layout.sector_bytes,
        journal: match layout.external_journal {
            true => format!("0-{}", EXTERNAL_JOURNAL_BYTES / 4096 - 1),
            false => "auto".to_owned(),
        },
        ..VolumeSettings::new(DISK_BYTES)
    };
    let done = live(layout, &settings, 1);
    let home = done.user_blocks_written - done.journal_blocks_written;
    let share = done.journal_hits as f64 / home as f64;
    println!(
        "{:12} {:4} B, {:12} {:7} external {:5}: {:4.1} s, {:6} blocks in, {:.3} out/in, \
         {:5} journal, {:5} home, {:.3} of them found in it, {} duplicates",
        layout.options,
        layout.block_bytes,
        policy.name(),
        persistence.name(),
        layout.external_journal,
        start.elapsed().as_secs_f64(),
        done.user_blocks_written,
        done.blocks_written() as f64 / done.user_blocks_written as f64,
        done.journal_blocks_written,
        home,
        share,
        done.duplicate_hits,
    );
    share
}

#[test]
fn data_in_the_journal() {
    if !crate::can_run() {
        return;
    }
    for policy in Policy::ALL {
        let share = live_and_tell(JOURNAL, policy, Persistence::Thin);
        assert!(!policy.has_journal() || share > 0.3, "{share}");
    }
    for persistence in [Persistence::Ordered, Persistence::Cow] {
        let share = live_and_tell(JOURNAL, Policy::FullAndJournal, persistence);
        assert!(share > 0.3, "{share}");
    }
}

#[test]
fn data_in_an_external_journal() {
    if !crate::can_run() {
        return;
    }
    let layout = Layout {
        external_journal: true,
        ..JOURNAL
    };
    let share = live_and_tell(layout, Policy::Journal, Persistence::Thin);
    assert!(share > 0.3, "{share}");
}

#[test]
fn data_in_the_journal_in_small_blocks() {
    if !crate::can_run() {
        return;
    }
    for (policy, sector_bytes) in Policy::ALL.into_iter().zip([512, 1024, 512, 1024]) {
        live_and_tell(
            small_blocks(JOURNAL, sector_bytes),
            policy,
            Persistence::Thin,
        );
    }
}

#[test]
fn data_beside_the_journal() {
    if !crate::can_run() {
        return;
    }
    for policy in Policy::ALL {
        live_and_tell(ORDERED, policy, Persistence::Thin);
    }
}

#[test]
fn data_beside_the_journal_in_small_blocks() {
    if !crate::can_run() {
        return;
    }
    for (policy, sector_bytes) in Policy::ALL.into_iter().zip([1024, 512, 1024, 512]) {
        live_and_tell(
            small_blocks(ORDERED, sector_bytes),
            policy,
            Persistence::Thin,
        );
    }
}
