//! Every command, with simple and with structured replies, and its errors.

use std::sync::atomic::Ordering;

use volume::BlockDevice;
use volume::nbd::{Limits, REQUEST_BYTES_MAX};

use crate::client::*;
use crate::disk::TestDisk;
use crate::{DISK_BYTES, Served};

/// Bytes that differ from sector to sector.
fn pattern(seed: u8, length_bytes: usize) -> Vec<u8> {
    let bytes = (0..length_bytes).map(|index| (index / 512 * 7 + index) as u8 | 1);
    bytes.map(|byte| byte ^ (seed << 1)).collect()
}

/// Runs a test with a client of either kind.
fn both(test: impl Fn(&Served, &mut Client)) {
    for kind in [Client::simple, Client::structured] {
        let served = Served::new();
        let mut client = kind(&served);
        test(&served, &mut client);
    }
}

#[test]
fn what_was_written_is_read() {
    both(|served, client| {
        for (index, length) in [512, 4096, 65_536, 300_000 / 512 * 512, 1 << 20, 3 << 20]
            .into_iter()
            .enumerate()
        {
            let data = pattern(index as u8, length);
            let offset = 512 * (index as u64 + 1);
            assert_eq!(client.write(0, offset, &data), Ok(()));
            assert!(served.disk.bytes(offset, length) == data, "{length}");
            assert!(
                client.read(0, offset, length as u32) == Ok(data),
                "{length}"
            );
        }
        assert_eq!(served.disk.flushes(), 0);
    });
}

#[test]
fn trimmed_and_zeroed_ranges_read_as_zeros() {
    both(|served, client| {
        assert_eq!(client.write(0, 0, &[9; 8192]), Ok(()));
        assert_eq!(client.change(0, TRIM, 512, 1024), Ok(()));
        assert_eq!(client.change(NO_HOLE, WRITE_ZEROES, 2048, 512), Ok(()));
        assert_eq!(client.change(FAST_ZERO, WRITE_ZEROES, 3072, 512), Ok(()));
        let mut expected = vec![9; 8192];
        for range in [512..1536, 2048..2560, 3072..3584] {
            expected[range].fill(0);
        }
        assert_eq!(client.read(0, 0, 8192), Ok(expected.clone()));
        assert_eq!(served.disk.bytes(0, 8192), expected);
        // The whole disk at once, longer than any READ may be.
        assert_eq!(client.change(0, WRITE_ZEROES, 0, DISK_BYTES as u32), Ok(()));
        assert_eq!(client.read(0, 0, 8192), Ok(vec![0; 8192]));
    });
}

#[test]
fn fua_and_flush_reach_the_disk() {
    both(|served, client| {
        assert_eq!(client.write(0, 0, &[1; 512]), Ok(()));
        assert_eq!(client.change(0, TRIM, 0, 512), Ok(()));
        assert_eq!(client.change(0, WRITE_ZEROES, 0, 512), Ok(()));
        assert_eq!(served.disk.flushes(), 0);
        assert_eq!(client.flush(), Ok(()));
        assert_eq!(served.disk.flushes(), 1);
        assert_eq!(client.write(FUA, 0, &[1; 512]), Ok(()));
        assert_eq!(client.change(FUA, TRIM, 0, 512), Ok(()));
        assert_eq!(client.change(FUA, WRITE_ZEROES, 0, 512), Ok(()));
        assert_eq!(served.disk.flushes(), 4);
        // Of what writes nothing, the flag is borne.
        assert_eq!(client.read(FUA, 0, 512), Ok(vec![0; 512]));
        assert_eq!(client.change(FUA, FLUSH, 0, 0), Ok(()));
        assert_eq!(served.disk.flushes(), 5);
        // A large payload takes another way.
        assert_eq!(client.write(FUA, 0, &vec![5; 2 << 20]), Ok(()));
        assert_eq!(served.disk.flushes(), 6);
        // What could not be written is not flushed.
        assert_eq!(client.write(FUA, 1, &[1; 512]), Err(EINVAL));
        assert_eq!(served.disk.flushes(), 6);
    });
}

#[test]
fn ranges_must_be_sectors_of_the_disk() {
    both(|served, client| {
        let end = DISK_BYTES as u64;
        for offset in [end, end - 512, 1 << 40, u64::MAX - 511] {
            assert_eq!(client.read(0, offset, 1024), Err(EINVAL));
            assert_eq!(client.read(0, offset, 65_536), Err(EINVAL));
            assert_eq!(client.read(0, offset, 1 << 20), Err(EINVAL));
            assert_eq!(client.change(0, TRIM, offset, 1024), Err(EINVAL));
            assert_eq!(client.change(0, WRITE_ZEROES, offset, 1024), Err(ENOSPC));
            assert_eq!(client.write(0, offset, &[1; 1024]), Err(ENOSPC));
            assert_eq!(client.write(0, offset, &vec![1; 1 << 20]), Err(ENOSPC));
        }
        for (offset, length) in [(1, 512), (0, 511), (256, 256)] {
            assert_eq!(client.read(0, offset, length), Err(EINVAL));
            assert_eq!(client.change(0, TRIM, offset, length), Err(EINVAL));
            assert_eq!(client.change(0, WRITE_ZEROES, offset, length), Err(EINVAL));
            assert_eq!(
                client.write(0, offset, &vec![1; length as usize]),
                Err(EINVAL)
            );
        }
        // The connection is as good as before.
        assert_eq!(client.write(0, end - 512, &[3; 512]), Ok(()));
        assert_eq!(client.read(0, end - 512, 512), Ok(vec![3; 512]));
        assert_eq!(served.disk.bytes(end - 512, 512), vec![3; 512]);
    });
}

#[test]
fn empty_ranges_are_nothing() {
    both(|_, client| {
        assert_eq!(client.read(0, 512, 0), Ok(vec![]));
        assert_eq!(client.write(0, 512, &[]), Ok(()));
        assert_eq!(client.change(0, TRIM, 512, 0), Ok(()));
        assert_eq!(client.change(0, WRITE_ZEROES, 512, 0), Ok(()));
    });
}

#[test]
fn commands_and_flags_that_are_unknown_are_refused() {
    both(|served, client| {
        for command in [5, 8, 9, 0x7fff, u16::MAX] {
            assert_eq!(client.change(0, command, 0, 512), Err(EINVAL));
        }
        let df = if client.is_structured { DF } else { 0 };
        for bit in 0..16 {
            let flag = 1 << bit;
            if flag & (FUA | df) == 0 {
                assert_eq!(client.read(flag, 0, 512), Err(EINVAL), "read {flag}");
            }
            if flag & FUA == 0 {
                assert_eq!(client.write(flag, 0, &[1; 512]), Err(EINVAL));
                assert_eq!(client.write(flag, 0, &vec![1; 1 << 20]), Err(EINVAL));
                assert_eq!(client.change(flag, TRIM, 0, 512), Err(EINVAL));
                assert_eq!(client.change(flag, FLUSH, 0, 0), Err(EINVAL));
            }
            if flag & (FUA | NO_HOLE | FAST_ZERO) == 0 {
                assert_eq!(client.change(flag, WRITE_ZEROES, 0, 512), Err(EINVAL));
            }
        }
        assert_eq!(client.change(0, FLUSH, 512, 0), Err(EINVAL));
        assert_eq!(client.change(0, FLUSH, 0, 512), Err(EINVAL));
        assert_eq!(served.disk.writes.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn what_is_too_long_is_refused_and_the_connection_goes_on() {
    both(|served, client| {
        let long = REQUEST_BYTES_MAX + 512;
        for length in [long, u32::MAX, u32::MAX - 511] {
            assert_eq!(client.read(0, 0, length), Err(EINVAL));
        }
        assert_eq!(client.write(0, 0, &vec![1; long as usize]), Err(EINVAL));
        assert_eq!(client.write(0, 0, &[2; 512]), Ok(()));
        assert_eq!(served.disk.bytes(0, 1024), [[2; 512], [0; 512]].concat());
    });
}

#[test]
fn the_longest_request_is_served() {
    let disk = TestDisk::new(REQUEST_BYTES_MAX as usize, 4096);
    let served = Served::with(disk, Limits::default());
    let data = pattern(1, REQUEST_BYTES_MAX as usize);
    for kind in [Client::simple, Client::structured] {
        let mut client = kind(&served);
        assert_eq!(client.write(0, 0, &data), Ok(()));
        assert!(client.read(0, 0, REQUEST_BYTES_MAX) == Ok(data.clone()));
        if client.is_structured {
            assert!(client.read(DF, 0, REQUEST_BYTES_MAX) == Ok(data.clone()));
        }
    }
}

#[test]
fn a_disk_that_fails_is_reported() {
    both(|served, client| {
        served.disk.is_full.store(true, Ordering::SeqCst);
        assert_eq!(client.write(0, 0, &[1; 512]), Err(ENOSPC));
        assert_eq!(client.change(0, WRITE_ZEROES, 0, 512), Err(ENOSPC));
        assert_eq!(client.change(0, TRIM, 0, 512), Err(ENOSPC));
        served.disk.is_full.store(false, Ordering::SeqCst);
        served.disk.is_damaged.store(true, Ordering::SeqCst);
        assert_eq!(client.write(0, 0, &[1; 512]), Err(EIO));
        assert_eq!(client.flush(), Err(EIO));
        for length in [512, 65_536, 1 << 20] {
            assert_eq!(client.read(0, 0, length), Err(EIO));
        }
        served.disk.is_damaged.store(false, Ordering::SeqCst);
        assert_eq!(client.read(0, 0, 512), Ok(vec![0; 512]));
    });
}

#[test]
fn holes_take_no_bytes_unless_data_must_be_whole() {
    let served = Served::new();
    let mut client = Client::structured(&served);
    // 64 KiB of data in every 256 KiB.
    for start in (0..1 << 20).step_by(1 << 18) {
        assert_eq!(client.write(0, start, &pattern(3, 65_536)), Ok(()));
    }
    let expected = served.disk.bytes(0, 1 << 20);
    let cookie = client.request(0, READ, 0, 1 << 20);
    let (data, counts) = client.chunks(cookie, 0, 1 << 20).unwrap();
    assert!(data == expected);
    assert_eq!(counts, (4, 4));
    let cookie = client.request(DF, READ, 0, 1 << 20);
    let (data, counts) = client.chunks(cookie, 0, 1 << 20).unwrap();
    assert!(data == expected);
    assert_eq!(counts, (1, 0));
    // A hole only.
    let cookie = client.request(0, READ, 2 << 20, 1 << 20);
    let (data, counts) = client.chunks(cookie, 2 << 20, 1 << 20).unwrap();
    assert!(data == vec![0; 1 << 20]);
    assert_eq!(counts, (0, 1));
}

#[test]
fn status_says_where_holes_are() {
    let served = Served::new();
    let mut client = Client::structured(&served);
    assert_eq!(client.status(0, 0, 65_536), Ok(vec![(65_536, true)]));
    assert_eq!(client.write(0, 4096, &[1; 4096]), Ok(()));
    assert_eq!(client.write(0, 12_288, &[1; 512]), Ok(()));
    let all = [(4096, true), (4096, false), (4096, true), (512, false)];
    let mut expected = all.to_vec();
    expected.push((65_536 - 12_800, true));
    assert_eq!(client.status(0, 0, 65_536), Ok(expected));
    assert_eq!(client.status(REQ_ONE, 0, 65_536), Ok(vec![(4096, true)]));
    assert_eq!(client.status(REQ_ONE, 4608, 512), Ok(vec![(512, false)]));
    assert_eq!(client.status(FUA, 4096, 8192).unwrap().len(), 2);
    let end = DISK_BYTES as u64;
    for (flags, offset, length) in [
        (0, end, 512),
        (0, end - 512, 1024),
        (0, 1, 512),
        (0, 0, 100),
        (0, 0, 0),
        (DF, 0, 512),
        (0, u64::MAX - 511, 512),
    ] {
        assert_eq!(client.status(flags, offset, length), Err(EINVAL));
    }
}

#[test]
fn very_many_extents_are_answered_in_part() {
    let served = Served::new();
    let mut client = Client::structured(&served);
    for offset in (0..DISK_BYTES as u64).step_by(1024) {
        served.disk.write(offset, &[1; 512]).unwrap();
    }
    let extents = client.status(0, 0, DISK_BYTES as u32).unwrap();
    assert!(extents.len() >= 16);
    assert!(extents.iter().all(|extent| extent.0 == 512));
    // A READ has to be whole all the same.
    let data = client.read(0, 0, DISK_BYTES as u32).unwrap();
    assert!(data == served.disk.bytes(0, DISK_BYTES));
}

#[test]
fn status_needs_a_context() {
    let served = Served::new();
    let mut client = Client::simple(&served);
    assert_eq!(client.change(0, BLOCK_STATUS, 0, 512), Err(EINVAL));
}

#[test]
fn many_requests_in_one_message_are_answered_in_order() {
    both(|_, client| {
        let mut bytes = Vec::new();
        for cookie in 0..200 {
            bytes.extend(request(0, WRITE, cookie, cookie * 4096, 4096));
            bytes.extend(pattern(cookie as u8, 4096));
        }
        bytes.extend(request(0, FLUSH, 200, 0, 0));
        client.send(&bytes);
        for cookie in 0..=200 {
            assert_eq!(client.done(cookie), Ok(()));
        }
        for cookie in 0..200 {
            let expected = pattern(cookie as u8, 4096);
            assert_eq!(client.read(0, cookie * 4096, 4096), Ok(expected));
        }
    });
}

#[test]
fn replies_come_while_the_next_request_is_half_sent() {
    both(|_, client| {
        let mut bytes = request(0, WRITE, 1, 0, 512);
        bytes.extend([7; 512]);
        let next = request(0, READ, 2, 0, 512);
        bytes.extend(&next[..10]);
        client.send(&bytes);
        assert_eq!(client.done(1), Ok(()));
        // Neither header nor payload of the next one keeps it back.
        client.send(&next[10..]);
        if client.is_structured {
            assert!(client.chunks(2, 0, 512).is_ok());
        } else {
            assert_eq!(client.done(2), Ok(()));
            assert_eq!(client.vec(512), vec![7; 512]);
        }
        let mut bytes = request(0, FLUSH, 3, 0, 0);
        bytes.extend(request(0, WRITE, 4, 0, 1 << 20));
        bytes.extend([8; 1000]);
        client.send(&bytes);
        assert_eq!(client.done(3), Ok(()));
        client.send(&vec![8; (1 << 20) - 1000]);
        assert_eq!(client.done(4), Ok(()));
    });
}

#[test]
fn goodbye_is_said_after_what_was_asked() {
    both(|served, client| {
        let mut bytes = request(0, WRITE, 1, 0, 512);
        bytes.extend([7; 512]);
        bytes.extend(request(0, DISC, 2, 0, 0));
        client.send(&bytes);
        assert_eq!(client.done(1), Ok(()));
        assert!(client.is_closed());
        assert_eq!(served.server.counts().violations, 0);
    });
}

#[test]
fn connections_see_each_other() {
    let served = Served::new();
    let mut first = Client::simple(&served);
    let mut second = Client::structured(&served);
    for round in 0..50_u8 {
        let data = pattern(round, 4096);
        assert_eq!(first.write(0, 8192, &data), Ok(()));
        assert_eq!(second.read(0, 8192, 4096), Ok(data));
        assert_eq!(second.change(0, TRIM, 8192, 4096), Ok(()));
        assert_eq!(first.read(0, 8192, 4096), Ok(vec![0; 4096]));
        assert_eq!(second.flush(), Ok(()));
    }
    assert_eq!(served.disk.flushes(), 50);
}

#[test]
fn many_connections_write_at_the_same_time() {
    let served = Served::new();
    std::thread::scope(|scope| {
        for index in 0..16_u8 {
            let served = &served;
            scope.spawn(move || {
                let mut client = Client::structured(served);
                let start = u64::from(index) * 65_536;
                for sector in 0..128 {
                    let data = pattern(index, 512);
                    assert_eq!(client.write(0, start + sector * 512, &data), Ok(()));
                }
                client.flush().unwrap();
            });
        }
    });
    for index in 0..16_u8 {
        let bytes = served.disk.bytes(u64::from(index) * 65_536, 65_536);
        assert!(
            bytes
                .chunks(512)
                .all(|sector| sector == pattern(index, 512))
        );
    }
}
