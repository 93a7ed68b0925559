//! Which parts of an open file are data and which are holes.
//!
//! What enters is an open file with its size and the bytes that it takes on the medium; what
//! leaves are extents that cover `0..size` without gaps, found one by one as they are asked for.
//! A file that takes as many bytes as it is long is one extent of data; so is what a file system
//! that knows no holes says. `SEEK_DATA` and `SEEK_HOLE` move the file's position: read with
//! positioned reads meanwhile.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::status::Status;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Bytes to be read.
    Data {
        /// Where it begins.
        offset: u64,
        /// Its length, at least 1.
        bytes: u64,
    },
    /// Zeros that the file system does not store.
    Hole {
        /// Where it begins.
        offset: u64,
        /// Its length, at least 1.
        bytes: u64,
    },
}

/// The extents of a file, in order.
#[derive(Debug)]
pub struct Extents<F> {
    file: F,
    size: u64,
    offset: u64,
    /// The hole before `offset` is done, so that data begins there.
    at_data: bool,
    /// No more questions: the rest is data.
    rest_is_data: bool,
}

impl<F: AsFd> Extents<F> {
    /// The extents of `file`, which has `size` bytes of which `stored_bytes` are on the medium.
    pub fn new(file: F, size: u64, stored_bytes: u64) -> Self {
        Self {
            file,
            size,
            offset: 0,
            at_data: false,
            rest_is_data: stored_bytes >= size,
        }
    }

    /// Where data begins at or after the current offset; the end of the file when there is none.
    fn next_data(&mut self) -> Result<u64, Errno> {
        match seek_data(&self.file, self.offset) {
            Err(Errno::NXIO) => {
                // What the file has lost since its size was taken is no hole: reading it as
                // data shows that it is gone.
                self.rest_is_data = true;
                Status::of(&self.file).map(|status| status.size)
            }
            found => found,
        }
    }

    fn data_until(&mut self, end: u64) -> Extent {
        let offset = self.offset;
        self.offset = end;
        self.at_data = false;
        Extent::Data {
            offset,
            bytes: end - offset,
        }
    }

    fn find(&mut self) -> Result<Extent, Errno> {
        if self.rest_is_data {
            return Ok(self.data_until(self.size));
        }
        if !self.at_data {
            let data = self.next_data()?.clamp(self.offset, self.size);
            self.at_data = true;
            if data > self.offset {
                let (offset, bytes) = (self.offset, data - self.offset);
                self.offset = data;
                return Ok(Extent::Hole { offset, bytes });
            }
            if self.rest_is_data {
                return Ok(self.data_until(self.size));
            }
        }
        match seek_hole(&self.file, self.offset) {
            // A hole that begins where data was found: the file changes meanwhile.
            Ok(end) if end <= self.offset => {
                self.rest_is_data = true;
                Ok(self.data_until(self.size))
            }
            Ok(end) => Ok(self.data_until(end.min(self.size))),
            // The file became shorter: whoever reads it will see.
            Err(Errno::NXIO) => Ok(self.data_until(self.size)),
            Err(errno) => Err(errno),
        }
    }
}

impl<F: AsFd> Iterator for Extents<F> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        if self.offset >= self.size {
            return None;
        }
        Some(self.find().unwrap_or_else(|_| {
            // Holes are an economy, never worth losing the file for: read everything.
            self.rest_is_data = true;
            self.data_until(self.size)
        }))
    }
}

#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "solaris",
    target_os = "illumos",
    target_vendor = "apple"
))]
mod system {
    use super::{AsFd, Errno};
    use rustix::fs::SeekFrom;

    pub fn seek_data(file: impl AsFd, offset: u64) -> Result<u64, Errno> {
        rustix::fs::seek(file, SeekFrom::Data(offset))
    }

    pub fn seek_hole(file: impl AsFd, offset: u64) -> Result<u64, Errno> {
        rustix::fs::seek(file, SeekFrom::Hole(offset))
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "solaris",
    target_os = "illumos",
    target_vendor = "apple"
)))]
mod system {
    use super::{AsFd, Errno};

    pub fn seek_data(_: impl AsFd, _: u64) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }

    pub fn seek_hole(_: impl AsFd, _: u64) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }
}

use system::{seek_data, seek_hole};

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    fn extents_of(file: &File) -> Vec<Extent> {
        let metadata = file.metadata().unwrap();
        Extents::new(file, metadata.len(), metadata.blocks() * 512).collect()
    }

    fn check_cover(extents: &[Extent], size: u64) {
        let mut end = 0;
        for extent in extents {
            let (Extent::Data { offset, bytes } | Extent::Hole { offset, bytes }) = *extent;
            assert_eq!(offset, end);
            assert!(bytes > 0);
            end = offset + bytes;
        }
        assert_eq!(end, size);
    }

    #[test]
    fn holes_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create_new(directory.path().join("sparse")).unwrap();
        assert_eq!(extents_of(&file), []);
        file.write_all_at(b"data", 0).unwrap();
        assert_eq!(
            extents_of(&file),
            [Extent::Data {
                offset: 0,
                bytes: 4
            }]
        );
        file.write_all_at(&[7; 65536], 1 << 20).unwrap();
        file.set_len(5 << 20).unwrap();
        let extents = extents_of(&file);
        check_cover(&extents, 5 << 20);
        let holes = extents
            .iter()
            .filter(|extent| matches!(extent, Extent::Hole { .. }))
            .count();
        if holes == 0 {
            return; // A file system without holes.
        }
        let expected_data = Extent::Data {
            offset: 1 << 20,
            bytes: 65536,
        };
        assert!(extents.contains(&expected_data), "{extents:?}");
        assert!(
            matches!(extents.last(), Some(Extent::Hole { .. })),
            "{extents:?}"
        );
    }

    #[test]
    fn only_holes_and_changed_sizes() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create_new(directory.path().join("sparse")).unwrap();
        file.set_len(1 << 20).unwrap();
        check_cover(&extents_of(&file), 1 << 20);
        // The size known before is not the size any more.
        for size in [1 << 10, 1 << 21] {
            let extents: Vec<Extent> = Extents::new(&file, size, 0).collect();
            check_cover(&extents, size);
            let ends_in_data = matches!(extents.last(), Some(Extent::Data { .. }));
            assert_eq!(
                ends_in_data,
                size > 1 << 20,
                "bytes that are gone are no hole"
            );
        }
    }

    #[test]
    fn what_has_no_holes_is_data() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let extents: Vec<Extent> = Extents::new(&reader, 10, 0).collect();
        assert_eq!(
            extents,
            [Extent::Data {
                offset: 0,
                bytes: 10
            }]
        );
    }
}
