//! Other processes ask the one that has a volume.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

use std::sync::Arc;

use volume::backing::FileBacking;
use volume::control::{Client, ControlError, Server, socket_path};
use volume::{BlockDevice, ExtentKind, OpenOptions, OwnerId, Volume, VolumeError, VolumeSettings};

struct Served {
    directory: tempfile::TempDir,
    volume: Arc<Volume>,
    server: Option<Server>,
}

impl Served {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.1fv");
        let settings = VolumeSettings::new(64 << 20);
        let bytes = Volume::backing_bytes_for(&settings);
        let backing = Arc::new(FileBacking::create(&path, bytes).unwrap());
        Volume::create(&*backing, &settings, None).unwrap();
        let volume = Arc::new(Volume::open(backing, &OpenOptions::default()).unwrap());
        let server = Some(Server::start(&volume, &path).unwrap());
        Self {
            directory,
            volume,
            server,
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("disk.1fv")
    }

    fn client(&self) -> Client {
        Client::connect(&self.path()).unwrap().unwrap()
    }

    fn wait_until_generations_are(&self, count: usize) {
        for _ in 0..2000 {
            if self.volume.generations().len() == count {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{:?}", self.volume.generations());
    }
}

fn block(number: u8) -> Vec<u8> {
    (0..4096u32)
        .map(|at| (at as u8).wrapping_mul(3) ^ number)
        .collect()
}

#[test]
fn what_is_told_is_what_the_volume_says() {
    let served = Served::new();
    served.volume.write(40_960, &block(1)).unwrap();
    let mut client = served.client();
    assert_eq!(client.status().unwrap(), served.volume.status());
    let pinned = client.pin(OwnerId([5; 16])).unwrap();
    assert_eq!(pinned.owner, OwnerId([5; 16]));
    served.volume.write(40_960, &block(2)).unwrap();
    served.volume.write(8 << 20, &block(3)).unwrap();
    let generations = client.generations().unwrap();
    assert_eq!(generations.len(), 1);
    assert_eq!(
        (generations[0].number, generations[0].id),
        (pinned.number, pinned.id)
    );
    let mut read = vec![9; 3 * 4096];
    client.read(pinned.number, 36_864, &mut read).unwrap();
    assert_eq!(read, [vec![0; 4096], block(1), vec![0; 4096]].concat());
    let mut whole = vec![9; 9 << 20];
    client.read(pinned.number, 0, &mut whole).unwrap();
    assert_eq!(&whole[40_960..45_056], block(1));
    assert_eq!(whole[8 << 20..], vec![0; 1 << 20]);
    let extents = client.extents(pinned.number, 0, 64 << 20, 10).unwrap();
    let kinds: Vec<_> = extents
        .iter()
        .map(|it| (it.kind, it.length_bytes))
        .collect();
    let hole = ExtentKind::Hole;
    let expected = [
        (hole, 40_960),
        (ExtentKind::Data, 4096),
        (hole, (64 << 20) - 45_056),
    ];
    assert_eq!(kinds, expected);
    let second = client.pin(OwnerId::NOBODY).unwrap();
    let changed = client
        .changed_ranges(pinned.number, Some(second.number))
        .unwrap();
    assert_eq!(changed, [40_960..45_056, 8 << 20..(8 << 20) + 4096]);
    assert_eq!(client.changed_ranges(second.number, None).unwrap(), []);
    assert!(client.check(true).unwrap().is_fine());
    client.compact().unwrap();
    client
        .read(pinned.number, 40_960, &mut read[..4096])
        .unwrap();
    assert_eq!(read[..4096], block(1));
}

#[test]
fn what_a_client_pinned_goes_with_it_unless_kept() {
    let served = Served::new();
    served.volume.write(0, &block(1)).unwrap();
    let mut client = served.client();
    let (one, two) = (
        client.pin(OwnerId::NOBODY).unwrap(),
        client.pin(OwnerId::NOBODY).unwrap(),
    );
    client.keep(two.number).unwrap();
    drop(client);
    served.wait_until_generations_are(1);
    let mut client = served.client();
    assert_eq!(client.generations().unwrap()[0].id, two.id);
    assert!(two.number > one.number);
    client.unpin(two.number).unwrap();
    assert_eq!(client.generations().unwrap(), []);
    let refused = client.unpin(two.number);
    let number = two.number;
    assert!(
        matches!(refused, Err(ControlError::Volume(VolumeError::NoGeneration(it))) if it == number)
    );
    // A refusal is not the end.
    assert!(client.read(number, 0, &mut [0; 512]).is_err());
    client.status().unwrap();
}

#[test]
fn a_generation_that_somebody_reads_stays() {
    let served = Served::new();
    served.volume.write(0, &block(1)).unwrap();
    let (mut reader, mut other) = (served.client(), served.client());
    let pinned = reader.pin(OwnerId::NOBODY).unwrap();
    assert!(other.unpin(pinned.number).is_err());
    let mut read = vec![0; 4096];
    reader.read(pinned.number, 0, &mut read).unwrap();
    assert_eq!(read, block(1));
    reader.keep(pinned.number).unwrap();
    drop(reader);
    for _ in 0..2000 {
        if other.unpin(pinned.number).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    served.wait_until_generations_are(0);
}

#[test]
fn the_socket_is_the_owners_and_goes() {
    use std::os::unix::fs::PermissionsExt;
    let mut served = Served::new();
    let socket = socket_path(&served.path()).unwrap();
    assert_eq!(
        socket,
        served
            .path()
            .canonicalize()
            .unwrap()
            .with_extension("1fv.control")
    );
    let mode = socket.symlink_metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = served.client();
    drop(served.server.take());
    assert!(client.status().is_err());
    assert!(!socket.exists());
    assert!(Client::connect(&served.path()).unwrap().is_none());
    // What a killed process leaves is in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(Client::connect(&served.path()).unwrap().is_none());
    let server = Server::start(&served.volume, &served.path()).unwrap();
    served.client().status().unwrap();
    drop(server);
    served.volume.close().unwrap();
}

#[test]
fn who_speaks_otherwise_is_cut_off() {
    use std::io::{Read, Write};
    let served = Served::new();
    let socket = socket_path(&served.path()).unwrap();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 64],
        &[1, 0, 0, 0, 2],
        &[1, 0, 0, 0, 99],
        &[0, 0, 0, 0],
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // Cut off, with or without bytes of ours unread.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, [], "{bytes:?}");
    }
    // Another version is told so.
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    stream
        .write_all(&[9, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0])
        .unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4], 1);
    served.client().status().unwrap();
}

#[test]
fn who_does_not_take_an_answer_holds_nobody_up() {
    use std::io::Write;
    let mut served = Served::new();
    served.volume.write(0, &vec![3; 8 << 20]).unwrap();
    let pinned = served.volume.pin().unwrap();
    let frame = |verb: u8, numbers: &[u64]| {
        let mut frame = (numbers.len() as u32 * 8 + 1).to_le_bytes().to_vec();
        frame.push(verb);
        for number in numbers {
            frame.extend_from_slice(&number.to_le_bytes());
        }
        frame
    };
    let socket = socket_path(&served.path()).unwrap();
    let mut stalled = Vec::new();
    for _ in 0..10 {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.write_all(&frame(1, &[1])).unwrap();
        let reading = frame(9, &[u64::from(pinned), 0, 4 << 20]);
        stream.write_all(&reading).unwrap();
        // Half a request.
        stream.write_all(&reading[..7]).unwrap();
        stalled.push(stream);
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    served.client().status().unwrap();
    served.volume.write(0, &block(1)).unwrap();
    let server = served.server.take();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(server);
        done.send(()).unwrap();
    });
    is_done
        .recv_timeout(std::time::Duration::from_secs(20))
        .expect("the server ends");
}

#[test]
fn requests_that_can_not_be_are_refused() {
    use std::io::{Read, Write};
    let served = Served::new();
    served.volume.write(0, &vec![3; 1 << 20]).unwrap();
    let pinned = u64::from(served.volume.pin().unwrap());
    let socket = socket_path(&served.path()).unwrap();
    let numbers = [
        0,
        1,
        pinned,
        511,
        4096,
        64 << 20,
        (64 << 20) - 512,
        u64::MAX,
        u64::MAX - 4095,
    ];
    for verb in [7u8, 8, 9] {
        for first in [pinned, 99, u64::MAX] {
            for second in numbers {
                for third in numbers {
                    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
                    let mut bytes = vec![9, 0, 0, 0, 1];
                    bytes.extend_from_slice(&1u64.to_le_bytes());
                    bytes.extend_from_slice(&33u32.to_le_bytes());
                    bytes.push(verb);
                    for number in [first, second, third, 3] {
                        bytes.extend_from_slice(&number.to_le_bytes());
                    }
                    stream.write_all(&bytes).unwrap();
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            }
        }
    }
    // No thread died of it: all places are free again.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let clients: Vec<Client> = (0..16).map(|_| served.client()).collect();
    assert_eq!(clients.len(), 16);
}
