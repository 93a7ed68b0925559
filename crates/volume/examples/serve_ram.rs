#![forbid(unsafe_code)]
//! Serves a disk in memory over NBD, to try clients and to measure the server.
//!
//! `serve_ram SOCKET [MEBIBYTES [SECTOR]]` or `serve_ram 127.0.0.1:10809 …`; ends with its input.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;

use volume::RamDisk;
use volume::nbd::{Endpoint, Export, Server, Settings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(place) = arguments.first() else {
        eprintln!("usage: serve_ram SOCKET|ADDRESS:PORT [MEBIBYTES [SECTOR]]");
        return ExitCode::from(2);
    };
    let number = |index: usize, default: usize| {
        let argument = arguments.get(index);
        argument.map_or(Ok(default), |argument| argument.parse())
    };
    let (Ok(mebibytes), Ok(sector)) = (number(1, 1024), number(2, 512)) else {
        eprintln!("size and sector are numbers");
        return ExitCode::from(2);
    };
    let endpoint = match place.parse() {
        Ok(address) => Endpoint::Tcp(address),
        Err(_) => Endpoint::Unix(place.into()),
    };
    match serve(endpoint, mebibytes, sector as u32) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    endpoint: Endpoint,
    mebibytes: usize,
    sector_bytes: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let export = Export {
        name: "ram".to_string(),
        description: "a disk in memory".to_string(),
        device: Arc::new(RamDisk::new(mebibytes << 20, sector_bytes)),
    };
    let server = Server::start(vec![export], &Settings::new(vec![endpoint]))?;
    println!("{}", server.endpoints()[0]);
    io::stdin().read_to_end(&mut Vec::new())?;
    println!("{:?}", server.counts());
    Ok(server.shutdown()?)
}
