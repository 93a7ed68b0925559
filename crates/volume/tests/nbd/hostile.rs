//! Clients that lie, stop in the middle, or talk nonsense: they are dropped, nothing of a request
//! that did not come whole is done, and others notice nothing.

use std::io::Write;
use std::net::Shutdown;

use proptest::prelude::*;
use volume::nbd::Limits;

use crate::client::*;
use crate::disk::TestDisk;
use crate::{DISK_BYTES, Served, eventually};

/// That the server serves, and that nobody else is connected.
fn is_well(served: &Served) {
    eventually("connections end", || served.server.counts().open == 0);
    let mut client = Client::structured(served);
    assert_eq!(client.write(0, 0, &[1; 512]), Ok(()));
    assert_eq!(client.read(0, 0, 512), Ok(vec![1; 512]));
}

#[test]
fn unknown_client_flags_end_the_connection() {
    let served = Served::new();
    for flags in [4, 7, 1 << 31, u32::MAX] {
        let mut client = Client::greeted(&served, flags);
        assert!(client.is_closed());
    }
    is_well(&served);
    assert_eq!(served.server.counts().violations, 4);
}

#[test]
fn what_does_not_begin_as_it_must_ends_the_connection() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    client.send(b"GET / HTTP/1.1\r\n\r\n");
    assert!(client.is_closed());
    // Options other than EXPORT_NAME need the fixed newstyle.
    let mut client = Client::greeted(&served, 0);
    client.send_option(3, b"");
    assert!(client.is_closed());
    let mut client = Client::simple(&served);
    client.send(&[0x25, 0x60, 0x95, 0x14]);
    client.send(&[0; 24]);
    assert!(client.is_closed());
    // An export name that is longer than any option may be.
    let mut client = Client::greeted(&served, 3);
    client.send(b"IHAVEOPT\0\0\0\x01\xff\xff\xff\xff");
    assert!(client.is_closed());
    is_well(&served);
    assert_eq!(served.server.counts().violations, 4);
}

#[test]
fn endless_options_end() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    let mut answered = 0;
    loop {
        let option = [&b"IHAVEOPT"[..], &[0, 0, 0, 99, 0, 0, 0, 0]].concat();
        if client.stream.write_all(&option).is_err() {
            break;
        }
        let mut reply = [0; 20];
        if std::io::Read::read_exact(&mut client.stream, &mut reply).is_err() {
            break;
        }
        let length = u32::from_be_bytes(reply[16..].try_into().unwrap());
        client.vec(length as usize);
        answered += 1;
        assert!(answered < 10_000, "it bears too much");
    }
    is_well(&served);
}

#[test]
fn a_write_that_breaks_off_leaves_nothing() {
    let served = Served::new();
    let before = vec![0; DISK_BYTES];
    for length in [512_usize, 4096, 65_536, 2 << 20] {
        for missing in [1, length / 2, length] {
            for kind in [Client::simple, Client::structured] {
                let mut client = kind(&served);
                client.request(FUA, WRITE, 0, length as u32);
                client.send(&vec![0xff; length - missing]);
                client.stream.shutdown(Shutdown::Write).unwrap();
                assert!(client.is_closed());
            }
        }
    }
    eventually("connections end", || served.server.counts().open == 0);
    assert!(served.disk.bytes(0, DISK_BYTES) == before);
    assert_eq!(served.disk.flushes(), 0);
    is_well(&served);
}

#[test]
fn handshakes_that_break_off_anywhere_are_dropped() {
    let served = Served::new();
    let mut whole = 3_u32.to_be_bytes().to_vec();
    for (option, data) in [
        (8_u32, vec![]),
        (10, meta_context("", &["base:allocation"])),
        (7, go("disk")),
    ] {
        whole.extend(b"IHAVEOPT");
        whole.extend(option.to_be_bytes());
        whole.extend((data.len() as u32).to_be_bytes());
        whole.extend(data);
    }
    whole.extend(request(0, WRITE, 1, 0, 512));
    whole.extend([0xff; 511]);
    for end in 0..whole.len() {
        let mut client = Client::raw(&served);
        client.send(&whole[..end]);
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert!(client.is_closed(), "after {end} bytes");
    }
    eventually("connections end", || served.server.counts().open == 0);
    assert_eq!(served.disk.bytes(0, 512), vec![0; 512]);
    assert_eq!(served.server.counts().violations, 0, "they only left");
    is_well(&served);
}

#[test]
fn clients_that_say_nothing_hold_up_nobody() {
    let served = Served::new();
    // Silent before the flags, in an option, in a request, in payloads small and large.
    let silent = Client::raw(&served);
    let mut in_option = Client::greeted(&served, 3);
    in_option.send(b"IHAVE");
    let mut in_request = Client::simple(&served);
    in_request.send(&[0x25, 0x60]);
    let mut in_payload = Client::simple(&served);
    in_payload.request(0, WRITE, 0, 4096);
    let mut in_large = Client::simple(&served);
    in_large.request(0, WRITE, 0, 3 << 20);
    // And one that does not read what it asked for.
    let mut deaf = Client::simple(&served);
    for _ in 0..8 {
        deaf.request(0, READ, 0, 3 << 20);
    }
    let mut client = Client::structured(&served);
    assert_eq!(client.write(0, 0, &vec![5; 2 << 20]), Ok(()));
    assert!(client.read(DF, 0, 2 << 20) == Ok(vec![5; 2 << 20]));
    drop((silent, in_option, in_request, in_payload, in_large, deaf));
    drop(client);
    is_well(&served);
}

#[test]
fn who_does_not_choose_in_time_is_dropped() {
    let limits = Limits {
        handshake_ms: 50,
        ..Limits::default()
    };
    let served = Served::with(TestDisk::new(DISK_BYTES, 512), limits);
    let mut silent = Client::raw(&served);
    assert!(silent.is_closed());
    // One that keeps talking does not get more.
    let mut slow = Client::raw(&served);
    while slow.stream.write_all(b"\0\0\0\x03").is_ok() {
        let option = [&b"IHAVEOPT"[..], &[0, 0, 0, 99, 0xff, 0xff, 0, 0]].concat();
        if slow.stream.write_all(&option).is_err() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(slow.is_closed());
    eventually("both are counted", || {
        served.server.counts().violations == 2
    });
}

#[test]
fn who_holds_large_buffers_and_stands_still_is_dropped() {
    let limits = Limits {
        large_bytes_max: 32 << 20,
        stall_ms: 1000,
        ..Limits::default()
    };
    let served = Served::with(TestDisk::new(DISK_BYTES, 512), limits);
    let mut greedy = Client::simple(&served);
    greedy.request(0, WRITE, 0, 32 << 20);
    // The next one waits until the first is dropped.
    let mut client = Client::simple(&served);
    assert_eq!(client.write(0, 0, &vec![1; 2 << 20]), Ok(()));
    assert!(client.read(0, 0, 2 << 20) == Ok(vec![1; 2 << 20]));
    // One that takes nothing is dropped, too.
    let mut deaf = Client::simple(&served);
    deaf.request(0, READ, 0, 3 << 20);
    eventually("both are counted", || {
        served.server.counts().violations == 2
    });
    // Small requests have all the time in the world.
    let mut slow = Client::simple(&served);
    let cookie = slow.request(0, WRITE, 0, 4);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    slow.send(&[0; 4]);
    assert_eq!(slow.done(cookie), Err(EINVAL), "not a sector");
    assert!(greedy.is_closed());
}

#[test]
fn too_many_connections_are_closed_at_once() {
    let limits = Limits {
        connections_max: 3,
        ..Limits::default()
    };
    let served = Served::with(TestDisk::new(DISK_BYTES, 512), limits);
    let clients: Vec<Client> = (0..3).map(|_| Client::simple(&served)).collect();
    for _ in 0..5 {
        assert!(Client::raw(&served).is_closed());
    }
    let counts = served.server.counts();
    assert_eq!((counts.accepted, counts.rejected), (3, 5));
    drop(clients);
    eventually("connections end", || served.server.counts().open == 0);
    is_well(&served);
}

/// Bytes that begin like something and go wrong.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let option = (
        0..13_u32,
        0..64_u32,
        prop::collection::vec(any::<u8>(), 0..64),
    );
    let option = option.prop_map(|(option, length, data)| {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(data);
        bytes
    });
    let request = (0..32_u16, 0..9_u16, any::<u64>(), 0..70_000_u32);
    let request = request.prop_map(|(flags, command, offset, length)| {
        crate::client::request(flags, command, 1, offset & 0x3f_ffff, length)
    });
    let part = prop_oneof![option, request, prop::collection::vec(any::<u8>(), 0..64),];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nonsense_harms_nobody(
        before in any::<bool>(),
        structured in any::<bool>(),
        bytes in nonsense(),
    ) {
        thread_local! {
            static SERVED: Served = Served::new();
        }
        SERVED.with(|served| {
            let mut client = match (before, structured) {
                (true, _) => Client::greeted(served, 3),
                (false, true) => Client::structured(served),
                (false, false) => Client::simple(served),
            };
            // The server may have closed it before it has read everything.
            let _ = client.stream.write_all(&bytes);
            let _ = client.stream.shutdown(Shutdown::Write);
            assert!(client.is_closed());
            is_well(served);
        });
    }
}
