#![forbid(unsafe_code)]
//! Mounts a disk in memory as a file, to try it and to measure it.
//!
//! `mount_ram DIRECTORY [MEBIBYTES [SECTOR [THREADS]]]`; ends with its input, or when unmounted.

use std::process::ExitCode;

fn main() -> ExitCode {
    match linux::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{self, Read};
    use std::path::Path;
    use std::sync::Arc;

    use volume::RamDisk;
    use volume::fuse::{Mount, Settings};

    pub fn run() -> Result<(), Box<dyn Error>> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let directory = arguments.first();
        let directory =
            directory.ok_or("usage: mount_ram DIRECTORY [MEBIBYTES [SECTOR [THREADS]]]")?;
        let number = |index: usize, default: usize| {
            let argument = arguments.get(index);
            argument.map_or(Ok(default), |argument| argument.parse())
        };
        let disk = RamDisk::new(number(1, 1024)? << 20, u32::try_from(number(2, 512)?)?);
        let mut settings = Settings::default();
        settings.threads = number(3, settings.threads)?;
        let mut mount = Mount::start(Arc::new(disk), Path::new(directory), &settings)?;
        println!("{directory}/{}", settings.name);
        io::stdin().read_to_end(&mut Vec::new())?;
        Ok(mount.unmount()?)
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    pub fn run() -> Result<(), Box<dyn std::error::Error>> {
        Err("it needs Linux".into())
    }
}
