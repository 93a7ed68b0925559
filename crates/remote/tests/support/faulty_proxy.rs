//! A connection to a server that keeps failing: closed at once, refused with 503, silent, or cut after some bytes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use testkit::random::Random;

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Closed before a byte went through.
    Closed,
    /// Answered by "503 Slow Down".
    Busy,
    /// Never answered.
    Silent,
    /// Cut after so many bytes, of both directions together.
    CutAfter(u64),
    /// None.
    Fine,
}

/// Draws what happens to the next connection.
type Plan = Box<dyn FnMut(&mut Random) -> Fault + Send>;

/// Listens on this machine and hands connections on to a server, with faults.
pub struct FaultyProxy {
    address: SocketAddr,
    faults: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
}

impl FaultyProxy {
    /// A proxy before `server`.
    pub fn start(server: SocketAddr, seed: u64, mut plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(AtomicU64::new(0));
        let stopped = Arc::new(AtomicBool::new(false));
        let (counted, is_over) = (Arc::clone(&faults), Arc::clone(&stopped));
        thread::spawn(move || {
            let mut random = Random::new(seed);
            let silent = Mutex::new(Vec::new());
            for client in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let fault = plan(&mut random);
                if fault != Fault::Fine {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                match fault {
                    Fault::Closed => {}
                    Fault::Busy => drop(thread::spawn(move || refuse(client))),
                    // Kept open, and never read.
                    Fault::Silent => silent.lock().unwrap().push(client),
                    Fault::CutAfter(bytes) => hand_on(client, server, bytes),
                    Fault::Fine => hand_on(client, server, u64::MAX),
                }
            }
        });
        Self {
            address,
            faults,
            stopped,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections that something was done to.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn refuse(mut client: TcpStream) {
    let mut request = [0; 4096];
    let _ = client.read(&mut request);
    let body =
        "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
    let answer = format!(
        "HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = client.write_all(answer.as_bytes());
    // What the client still sends is read, so that the answer is not lost with the connection.
    let _ = client.shutdown(Shutdown::Write);
    while client.read(&mut request).is_ok_and(|bytes| bytes > 0) {}
}

fn hand_on(client: TcpStream, server: SocketAddr, bytes: u64) {
    let Ok(server) = TcpStream::connect(server) else {
        return;
    };
    let rest = Arc::new(Mutex::new(bytes));
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let rest = Arc::clone(&rest);
        thread::spawn(move || copy(from, to, &rest));
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, rest: &Mutex<u64>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(bytes) = from.read(&mut buffer)
        && bytes > 0
    {
        let allowed = {
            let mut rest = rest.lock().unwrap();
            let allowed = (*rest).min(bytes as u64);
            *rest -= allowed;
            allowed as usize
        };
        if to.write_all(&buffer[..allowed]).is_err() || allowed < bytes {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
