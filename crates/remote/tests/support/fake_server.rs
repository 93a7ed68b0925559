//! A server of HTTP that a test makes up: a function from requests to answers; and one of WebDAV, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a client asks.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// With what follows a `?`.
    pub path: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A status and a body.
pub type Answer = (u16, Vec<u8>);

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// Listens on this machine until the process ends.
pub fn start(handler: Box<Handler>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handler: Arc<Handler> = handler.into();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let handler = Arc::clone(&handler);
            thread::spawn(move || converse(client, &*handler));
        }
    });
    address
}

fn converse(mut client: TcpStream, handler: &Handler) {
    let mut reader = BufReader::new(client.try_clone().unwrap());
    while let Some(request) = request(&mut reader) {
        let (status, body) = handler(&request);
        let kind = "Content-Type: application/xml\r\n";
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{kind}Content-Length: {length}\r\n\r\n");
        let is_head = request.method == "HEAD";
        let mut answer = head.into_bytes();
        if !is_head {
            answer.extend(body);
        }
        if client.write_all(&answer).is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or("0", |text| text);
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body,
    })
}

/// Collections and files by their paths: `/a/b/`, `/a/b/c`.
#[derive(Debug, Default)]
pub struct Files {
    pub collections: BTreeSet<String>,
    pub files: BTreeMap<String, Vec<u8>>,
}

/// What a test changes about a request: an answer in place of the server's, or none.
pub type Fault = Box<dyn Fn(&Request, &mut Files) -> Option<Answer> + Send + Sync>;

/// A server of WebDAV: its address, and what it holds.
pub fn start_webdav(fault: Fault) -> (SocketAddr, Arc<Mutex<Files>>) {
    let files = Arc::new(Mutex::new(Files::default()));
    let held = Arc::clone(&files);
    let address = start(Box::new(move |request| {
        let mut files = held.lock().unwrap();
        fault(request, &mut files).unwrap_or_else(|| files.answer(request))
    }));
    (address, files)
}

impl Files {
    /// What an honest server does.
    pub fn answer(&mut self, request: &Request) -> Answer {
        let path = request.path.clone();
        match request.method.as_str() {
            "PUT" => {
                self.files.insert(path, request.body.clone());
                (201, Vec::new())
            }
            "GET" => match self.files.get(&path) {
                Some(bytes) => (200, bytes.clone()),
                None => (404, Vec::new()),
            },
            "MKCOL" => match self.collections.insert(path) {
                true => (201, Vec::new()),
                false => (405, Vec::new()),
            },
            "DELETE" => match self.files.remove(&path) {
                Some(_) => (204, Vec::new()),
                None => (404, Vec::new()),
            },
            "MOVE" => {
                let target = request.headers["destination"].split_once("://").unwrap().1;
                let target = target[target.find('/').unwrap()..].to_owned();
                match self.files.remove(&path) {
                    Some(bytes) => {
                        self.files.insert(target, bytes);
                        (201, Vec::new())
                    }
                    None => (404, Vec::new()),
                }
            }
            "PROPFIND" => self.properties(request),
            _ => (405, Vec::new()),
        }
    }

    fn properties(&self, request: &Request) -> Answer {
        let path = &request.path;
        let is_below = |name: &&String| match name.strip_prefix(path.as_str()) {
            Some("") => true,
            Some(rest) => {
                let is_child = !rest.trim_end_matches('/').contains('/');
                path.ends_with('/') && request.headers["depth"] == "1" && is_child
            }
            None => false,
        };
        let mut body = "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">".to_owned();
        let mut response = |path: &str, properties: &str| {
            write!(
                body,
                "<D:response><D:href>{path}</D:href><D:propstat><D:prop>\
                 <D:getlastmodified>Sun, 01 May 2022 06:39:47 GMT</D:getlastmodified>{properties}\
                 </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            )
            .unwrap();
        };
        let mut count = 0;
        for name in self.collections.iter().filter(is_below) {
            let kind = "<D:resourcetype><D:collection/></D:resourcetype>";
            response(name, kind);
            count += 1;
        }
        for (name, bytes) in self.files.iter().filter(|(name, _)| is_below(name)) {
            let length = bytes.len();
            let file =
                format!("<D:getcontentlength>{length}</D:getcontentlength><D:resourcetype/>");
            response(name, &file);
            count += 1;
        }
        body.push_str("</D:multistatus>");
        match count {
            0 => (404, Vec::new()),
            _ => (207, body.into_bytes()),
        }
    }
}
