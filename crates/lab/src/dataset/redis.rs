//! A Redis server of our own, and its protocol.
//!
//! Enters: commands. Leaves: replies, and the file `dump.rdb` when `SAVE` is one of them. The
//! server listens on a Unix socket in a private temporary directory only, saves only when told
//! to, without compression, and keeps no log of commands.
//!
//! It ends when this process does, however that ends: a shell starts it, waits for the end of
//! its own input, a pipe from here, and kills it then.
//!
//! Commands are pipelined: sent a MiB at a time, the replies read after each (RESP 2; an error
//! among them fails the whole).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::programs::Program;

const SERVER: Program = Program {
    name: "redis-server",
    purpose: "to make dumps of a real server",
    install: "apt-get install redis-server",
};

const SHELL: Program = Program {
    name: "sh",
    purpose: "to watch over redis-server",
    install: "apt-get install dash",
};

/// Starts a server in the background and kills it when the input ends; interrupts are for us.
const WATCH: &str = "trap '' INT TERM HUP; \"$@\" </dev/null & server=$!; read -r line; \
                     kill -9 \"$server\"; wait \"$server\"";

/// How long a server may take to listen.
const START_SECONDS: u64 = 20;

/// How much is sent before replies are read.
const BATCH_BYTES: usize = 1 << 20;

/// The longest reply that is taken.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// A running server, with one connection to it.
pub struct Server {
    watch: Child,
    connection: Connection,
    dump: PathBuf,
    /// Holds the socket and what the server prints.
    _private: TempDir,
}

impl Server {
    /// Starts one that dumps into `directory`.
    ///
    /// # Errors
    /// When it is not there or does not come up.
    pub fn start(directory: &Path) -> Result<Self> {
        let private = tempfile::Builder::new()
            .prefix("onefold-redis-")
            .tempdir()?;
        let socket = private.path().join("socket");
        let printed = private.path().join("printed");
        let printing = fs::File::create(&printed)?;
        let mut watch = SHELL
            .command()?
            .args(["-c", WATCH, "sh"])
            .arg(SERVER.find()?)
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--rdbcompression", "no", "--dbfilename", "dump.rdb"])
            .args(["--daemonize", "no", "--supervised", "no"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(printing.try_clone()?)
            .stderr(printing)
            .spawn()
            .context("cannot start redis-server")?;
        let Some(connection) = Connection::open(&socket) else {
            end(&mut watch);
            let text = fs::read_to_string(&printed).unwrap_or_default();
            bail!("redis-server does not listen: {}", text.trim());
        };
        Ok(Self {
            watch,
            connection,
            dump: directory.join("dump.rdb"),
            _private: private,
        })
    }

    /// The program's version.
    ///
    /// # Errors
    /// When it is not there.
    pub fn version() -> Result<String> {
        SERVER.version("--version")
    }

    /// Sends a command, now or soon.
    ///
    /// # Errors
    /// When the server is gone, or an earlier command failed.
    pub fn send(&mut self, words: &[&[u8]]) -> Result<()> {
        self.connection.send(words)
    }

    /// Has everything that was sent written to the dump file; returns its path.
    ///
    /// # Errors
    /// When the server is gone, or a command failed.
    pub fn save(&mut self) -> Result<PathBuf> {
        self.connection.send(&[b"SAVE"])?;
        self.connection.flush()?;
        Ok(self.dump.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.watch);
    }
}

/// Ends the input of the shell, which kills the server and then ends.
fn end(watch: &mut Child) {
    drop(watch.stdin.take());
    if let Err(error) = watch.wait() {
        eprintln!("cannot wait for redis-server: {error}");
    }
}

/// Commands out, replies in.
struct Connection {
    stream: BufReader<UnixStream>,
    batch: Vec<u8>,
    replies_due: usize,
}

impl Connection {
    fn open(socket: &Path) -> Option<Self> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(START_SECONDS) {
            if let Ok(stream) = UnixStream::connect(socket) {
                return Some(Self {
                    stream: BufReader::new(stream),
                    batch: Vec::new(),
                    replies_due: 0,
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    fn send(&mut self, words: &[&[u8]]) -> Result<()> {
        encode(&mut self.batch, words);
        self.replies_due += 1;
        if self.batch.len() >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let talking = || "the connection to redis-server broke";
        let stream = self.stream.get_mut();
        stream.write_all(&self.batch).with_context(talking)?;
        self.batch.clear();
        for _ in 0..std::mem::take(&mut self.replies_due) {
            read_reply(&mut self.stream).with_context(talking)?;
        }
        Ok(())
    }
}

/// An array of bulk strings, as all commands are.
fn encode(to: &mut Vec<u8>, words: &[&[u8]]) {
    to.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        to.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}

/// Reads one simple reply; gives its text.
fn read_reply(from: &mut impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    let mut limited = from.take(REPLY_BYTES_MAX as u64);
    limited.read_until(b'\n', &mut line)?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        bail!("a reply ended early");
    };
    let text = String::from_utf8_lossy(line.get(1..).unwrap_or_default()).into_owned();
    match line.first() {
        Some(b'+' | b':') => Ok(text),
        Some(b'-') => bail!("redis-server says: {text}"),
        Some(b'$') => {
            let length: usize = text.parse().context("a length in a reply")?;
            if length > REPLY_BYTES_MAX {
                bail!("a reply of {length} bytes");
            }
            let mut bulk = vec![0; length + 2];
            from.read_exact(&mut bulk)?;
            bulk.truncate(length);
            Ok(String::from_utf8_lossy(&bulk).into_owned())
        }
        _ => bail!("an unknown reply: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_replies() {
        let mut sent = Vec::new();
        encode(&mut sent, &[b"SET", b"a\r\nb", b""]);
        assert_eq!(sent, b"*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");

        let mut replies = &b"+OK\r\n:12\r\n$3\r\na\nb\r\n-ERR no\r\n+O"[..];
        assert_eq!(read_reply(&mut replies).unwrap(), "OK");
        assert_eq!(read_reply(&mut replies).unwrap(), "12");
        assert_eq!(read_reply(&mut replies).unwrap(), "a\nb");
        let error = read_reply(&mut replies).unwrap_err().to_string();
        assert_eq!(error, "redis-server says: ERR no");
        assert!(read_reply(&mut replies).is_err());
        assert!(read_reply(&mut &b"$99999999999\r\n"[..]).is_err());
    }
}
