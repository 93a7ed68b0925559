//! Every option, understood and misunderstood.

use volume::nbd::Limits;

use crate::client::*;
use crate::disk::TestDisk;
use crate::{DISK_BYTES, Served};

const HAS_FLAGS: u16 = 1;
const READ_ONLY: u16 = 2;
/// FLUSH, FUA, TRIM, WRITE_ZEROES, CAN_MULTI_CONN, FAST_ZERO.
const ALWAYS: u16 = HAS_FLAGS | 4 | 8 | 32 | 64 | 256 | 2048;
const SEND_DF: u16 = 128;

/// Size and flags of INFO_EXPORT among the replies.
fn export_info(replies: &[(u32, Vec<u8>)]) -> (u64, u16) {
    let infos = replies.iter().filter(|(reply, _)| *reply == REP_INFO);
    let mut exports = infos.filter(|(_, data)| data[..2] == [0, 0]);
    let (_, data) = exports.next().expect("it must be sent");
    assert_eq!(data.len(), 12);
    assert_eq!(exports.next(), None);
    (
        u64::from_be_bytes(data[2..10].try_into().unwrap()),
        u16::from_be_bytes(data[10..].try_into().unwrap()),
    )
}

fn info_of(replies: &[(u32, Vec<u8>)], kind: u8) -> Option<&[u8]> {
    let infos = replies.iter().filter(|(reply, _)| *reply == REP_INFO);
    let mut found = infos.filter(|(_, data)| data[..2] == [0, kind]);
    found.next().map(|(_, data)| &data[2..])
}

#[test]
fn export_name_goes_straight_to_transmission() {
    for (flags, zeroes) in [(0, 124), (1, 124), (3, 0), (2, 0)] {
        let served = Served::new();
        for name in ["disk", ""] {
            let mut client = Client::greeted(&served, flags);
            client.send_option(1, name.as_bytes());
            assert_eq!(client.u64(), DISK_BYTES as u64);
            assert_eq!(client.u16(), ALWAYS);
            assert_eq!(client.vec(zeroes), vec![0; zeroes]);
            assert_eq!(client.write(0, 512, &[7; 512]), Ok(()));
            assert_eq!(client.read(0, 512, 512), Ok(vec![7; 512]));
        }
    }
}

#[test]
fn unknown_export_names_end_the_connection() {
    let served = Served::new();
    for name in [&b"nothing"[..], b"dis\xff", b"disk\0", &[b'x'; 5000]] {
        let mut client = Client::greeted(&served, 3);
        client.send_option(1, name);
        assert!(client.is_closed(), "{} bytes", name.len());
    }
}

#[test]
fn abort_is_acknowledged() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    assert_eq!(client.option(2, b""), [(ACK, vec![])]);
    assert!(client.is_closed());
    assert_eq!(served.server.counts().violations, 0);
}

#[test]
fn list_names_all_exports() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    let expected = [
        (REP_SERVER, b"\0\0\0\x04diskthe disk of a test".to_vec()),
        (REP_SERVER, b"\0\0\0\x05otherthe other of a test".to_vec()),
        (ACK, vec![]),
    ];
    assert_eq!(client.option(3, b""), expected);
    assert_eq!(client.option(3, b"x")[0].0, ERR_INVALID);
    assert_eq!(client.option(3, b""), expected);
}

#[test]
fn info_tells_and_go_goes() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    let replies = client.option(6, &info("other", &[1, 2, 3, 77]));
    assert_eq!(export_info(&replies), (8192, ALWAYS));
    assert_eq!(info_of(&replies, 1), Some(&b"other"[..]));
    assert_eq!(info_of(&replies, 2), Some(&b"the other of a test"[..]));
    let sizes = [0, 0, 0x10, 0, 0, 0, 0x10, 0, 2, 0, 0, 0];
    assert_eq!(info_of(&replies, 3), Some(&sizes[..]));
    assert_eq!(replies.last(), Some(&(ACK, vec![])));
    // After INFO the handshake goes on.
    let replies = client.option(7, &go("disk"));
    assert_eq!(export_info(&replies), (DISK_BYTES as u64, ALWAYS));
    assert_eq!(info_of(&replies, 1), None, "nobody asked for the name");
    assert_eq!(replies.last(), Some(&(ACK, vec![])));
    assert_eq!(client.write(0, 0, &[1; 512]), Ok(()));
    assert_eq!(served.disk.bytes(0, 512), vec![1; 512]);
}

#[test]
fn malformed_requests_for_information_are_refused() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    let mut long = go("disk");
    long.push(0);
    let cases: [&[u8]; 6] = [
        b"",
        b"\0\0\0",
        b"\0\0\0\x05disk\0\0",
        b"\0\0\0\x04disk\0\x02\0\x03",
        b"\xff\xff\xff\xffdisk\0\0",
        &long,
    ];
    for option in [6, 7] {
        for case in cases {
            assert_eq!(client.option(option, case)[0].0, ERR_INVALID, "{case:?}");
        }
        assert_eq!(client.option(option, &go("nothing"))[0].0, ERR_UNKNOWN);
    }
}

#[test]
fn structured_replies_bring_df() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    assert_eq!(client.option(8, b"x")[0].0, ERR_INVALID);
    assert_eq!(export_info(&client.option(6, &go(""))).1, ALWAYS);
    client.negotiate_structured();
    assert_eq!(export_info(&client.option(6, &go(""))).1, ALWAYS | SEND_DF);
    client.send_option(1, b"");
    assert_eq!(client.u64(), DISK_BYTES as u64);
    assert_eq!(client.u16(), ALWAYS | SEND_DF);
    assert_eq!(client.read(0, 0, 512), Ok(vec![0; 512]));
}

#[test]
fn read_only_disks_say_so() {
    let disk = TestDisk::new(DISK_BYTES, 512).read_only();
    let served = Served::with(disk, Limits::default());
    let mut client = Client::greeted(&served, 3);
    let replies = client.option(7, &go(""));
    assert_eq!(export_info(&replies).1, ALWAYS | READ_ONLY);
    for command in [TRIM, WRITE_ZEROES] {
        assert_eq!(client.change(0, command, 0, 512), Err(EPERM));
    }
    assert_eq!(client.write(0, 0, &[1; 512]), Err(EPERM));
    assert_eq!(client.read(0, 0, 512), Ok(vec![0; 512]));
}

#[test]
fn contexts_are_listed_and_chosen() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    let early = client.option(10, &meta_context("", &["base:allocation"]));
    assert_eq!(early[0].0, ERR_INVALID, "structured replies come first");
    client.negotiate_structured();
    let context = |id: u8| {
        let data = [&[0, 0, 0, id], &b"base:allocation"[..]].concat();
        vec![(REP_META_CONTEXT, data), (ACK, vec![])]
    };
    let none = vec![(ACK, vec![])];
    let queries: [(&[&str], bool, bool); 6] = [
        (&[], true, false),
        (&["base:"], true, false),
        (&["base:allocation"], true, true),
        (&["x-own:thing", "base:allocation"], true, true),
        (&["qemu:dirty-bitmap:a"], false, false),
        (&["base:other"], false, false),
    ];
    for (queries, lists, sets) in queries {
        let data = meta_context("disk", queries);
        let listed = if lists { context(0) } else { none.clone() };
        let set = if sets { context(1) } else { none.clone() };
        assert_eq!(client.option(9, &data), listed, "{queries:?}");
        assert_eq!(client.option(10, &data), set, "{queries:?}");
    }
    for option in [9, 10] {
        let unknown = client.option(option, &meta_context("nothing", &[]));
        assert_eq!(unknown[0].0, ERR_UNKNOWN);
        for case in [
            &b"\0\0\0\0"[..],
            b"\0\0\0\0\0\0\0\x01",
            b"\0\0\0\0\0\0\0\0x",
        ] {
            assert_eq!(client.option(option, case)[0].0, ERR_INVALID, "{case:?}");
        }
    }
}

#[test]
fn a_context_counts_for_the_export_it_was_chosen_for() {
    let served = Served::new();
    let all = "base:allocation";
    for (chosen, gone_to, works) in [
        (vec![("", all)], "disk", true),
        (vec![("disk", all)], "", true),
        (vec![("other", all)], "disk", false),
        (vec![("disk", all), ("other", all)], "disk", false),
        (vec![("disk", all), ("disk", "base:nothing")], "disk", false),
        (vec![], "disk", false),
    ] {
        let mut client = Client::greeted(&served, 3);
        client.negotiate_structured();
        for (name, query) in &chosen {
            client.option(10, &meta_context(name, &[query]));
        }
        client.option(7, &go(gone_to));
        let status = client.status(0, 0, 512);
        assert_eq!(status.is_ok(), works, "{chosen:?}");
        if !works {
            assert_eq!(status, Err(EINVAL));
        }
    }
}

#[test]
fn options_that_are_not_spoken_are_refused_and_the_handshake_goes_on() {
    let served = Served::new();
    let mut client = Client::greeted(&served, 3);
    assert_eq!(client.option(5, b"")[0].0, ERR_POLICY, "TLS");
    for option in [4, 11, 12, 4711, u32::MAX] {
        assert_eq!(client.option(option, b"some data")[0].0, ERR_UNSUP);
    }
    for bytes in [16 * 1024 + 1, 3 << 20] {
        assert_eq!(client.option(6, &vec![0; bytes])[0].0, ERR_TOO_BIG);
    }
    assert_eq!(client.option(7, &go("")).last().unwrap().0, ACK);
    assert_eq!(client.read(0, 0, 512), Ok(vec![0; 512]));
}
