//! Addresses, sockets, and the end of a server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use volume::nbd::{Endpoint, Limits, NbdError, Server, Settings};

use crate::client::*;
use crate::disk::TestDisk;
use crate::{DISK_BYTES, Served, eventually, export};

fn start(endpoint: Endpoint) -> Result<Server, NbdError> {
    let disk = Arc::new(TestDisk::new(8192, 512));
    Server::start(vec![export("disk", disk)], &Settings::new(vec![endpoint]))
}

#[test]
fn sockets_are_for_their_owner_and_go_with_the_server() {
    let served = Served::new();
    let mode = served.socket().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let socket = served.socket();
    served.server.shutdown().unwrap();
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_nobody_listens_on_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = start(Endpoint::Unix(path.clone())).unwrap();
    assert!(matches!(
        start(Endpoint::Unix(path.clone())),
        Err(NbdError::InUse(used)) if used == path
    ));
    // The attempt took nothing from the first one.
    assert!(path.exists());
    drop(server);
    assert!(!path.exists());
}

#[test]
fn other_files_are_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(
        start(Endpoint::Unix(path.clone())),
        Err(NbdError::NotSocket(_))
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let missing = directory.path().join("no/such/directory");
    assert!(matches!(
        start(Endpoint::Unix(missing)),
        Err(NbdError::Io { .. })
    ));
}

#[test]
fn a_socket_that_was_replaced_by_others_stays() {
    let served = Served::new();
    let socket = served.socket();
    std::fs::rename(&socket, served.directory.path().join("moved")).unwrap();
    std::fs::write(&socket, "somebody else's").unwrap();
    served.server.shutdown().unwrap();
    assert!(socket.exists());
}

#[test]
fn other_machines_are_let_in_only_when_that_is_said() {
    for address in [
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        SocketAddr::from(([192, 0, 2, 1], 0)),
    ] {
        assert!(matches!(
            start(Endpoint::Tcp(address)),
            Err(NbdError::NotLoopback(refused)) if refused == address
        ));
    }
    let anywhere = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let settings = Settings {
        allow_remote: true,
        ..Settings::new(vec![anywhere])
    };
    let disk = Arc::new(TestDisk::new(8192, 512));
    assert!(Server::start(vec![export("disk", disk)], &settings).is_ok());
}

#[test]
fn several_addresses_serve_the_same_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings = Settings::new(vec![Endpoint::Unix(path.clone()), Endpoint::Tcp(loopback)]);
    let disk = Arc::new(TestDisk::new(8192, 512));
    let server = Server::start(vec![export("disk", disk)], &settings).unwrap();
    let [Endpoint::Unix(unix), Endpoint::Tcp(address)] = server.endpoints() else {
        panic!("in the order of the settings")
    };
    assert_eq!(*unix, path);
    assert_ne!(address.port(), 0);
    let mut stream = TcpStream::connect(address).unwrap();
    let mut hello = [0; 18];
    std::io::Read::read_exact(&mut stream, &mut hello).unwrap();
    assert_eq!(&hello, b"NBDMAGICIHAVEOPT\0\x03");
    // The port is taken now.
    assert!(matches!(
        start(Endpoint::Tcp(*address)),
        Err(NbdError::Io { .. })
    ));
    server.shutdown().unwrap();
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let disk = Arc::new(TestDisk::new(8192, 512));
    let loopback = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let settings = Settings::new(vec![loopback]);
    let one = || export("disk", disk.clone());
    let start = Server::start;
    assert!(matches!(
        start(vec![], &settings),
        Err(NbdError::Nothing(_))
    ));
    let nowhere = Settings::new(vec![]);
    assert!(matches!(
        start(vec![one()], &nowhere),
        Err(NbdError::Nothing(_))
    ));
    let twice = vec![one(), one()];
    assert!(matches!(
        start(twice, &settings),
        Err(NbdError::SameName(_))
    ));
    let long = export(&"x".repeat(4097), disk.clone());
    assert!(matches!(
        start(vec![long], &settings),
        Err(NbdError::TooLong(_))
    ));
    for limits in [
        Limits {
            connections_max: 0,
            ..Limits::default()
        },
        Limits {
            large_bytes_max: (32 << 20) - 1,
            ..Limits::default()
        },
    ] {
        let settings = Settings {
            limits,
            ..settings.clone()
        };
        assert!(matches!(
            start(vec![one()], &settings),
            Err(NbdError::Limit { .. })
        ));
    }
}

#[test]
fn the_end_flushes_and_says_when_that_failed() {
    let served = Served::new();
    let disk = served.disk.clone();
    served.server.shutdown().unwrap();
    assert_eq!(disk.flushes(), 1);
    let served = Served::new();
    served.disk.is_damaged.store(true, Ordering::SeqCst);
    let failed = served.server.shutdown();
    assert!(matches!(failed, Err(NbdError::Flush { export, .. }) if export == "disk"));
}

#[test]
fn the_end_lets_requests_finish() {
    let served = Served::new();
    let disk = served.disk.clone();
    let mut idle = Client::simple(&served);
    let mut busy = Client::simple(&served);
    disk.hold();
    let first = busy.request(0, WRITE, 0, 512);
    busy.send(&[1; 512]);
    eventually("the disk has it", || {
        disk.waiting.load(Ordering::SeqCst) == 1
    });
    // It has arrived as well, behind the first.
    let second = busy.request(0, WRITE, 512, 512);
    busy.send(&[2; 512]);
    let socket = served.socket();
    let end = std::thread::spawn(move || served.server.shutdown());
    assert!(idle.is_closed());
    assert!(!socket.exists(), "nobody is let in");
    assert!(!end.is_finished());
    disk.release();
    assert_eq!(busy.done(first), Ok(()));
    assert_eq!(busy.done(second), Ok(()));
    assert!(busy.is_closed());
    end.join().unwrap().unwrap();
    assert_eq!(disk.bytes(0, 1024), [[1; 512], [2; 512]].concat());
    assert_eq!(disk.flushes(), 1);
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let limits = Limits {
        drain_ms: 50,
        ..Limits::default()
    };
    let served = Served::with(TestDisk::new(DISK_BYTES, 512), limits);
    // Clients that ask for much and read nothing, and one in the middle of a large write.
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = Client::simple(&served);
        for _ in 0..4 {
            client.request(0, READ, 0, 4 << 20);
        }
        clients.push(client);
    }
    let mut writer = Client::simple(&served);
    writer.request(0, WRITE, 0, 4 << 20);
    let disk = served.disk.clone();
    served.server.shutdown().unwrap();
    assert_eq!(disk.flushes(), 1);
    assert_eq!(disk.writes.load(Ordering::SeqCst), 0);
    assert!(writer.is_closed());
}

#[test]
fn dropping_a_server_ends_it() {
    let served = Served::new();
    let disk = served.disk.clone();
    let mut client = Client::simple(&served);
    drop(served);
    assert!(client.is_closed());
    assert_eq!(disk.flushes(), 1);
}
