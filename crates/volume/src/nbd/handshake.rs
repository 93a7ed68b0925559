//! From the first byte of a connection to the export that its client wants.
//!
//! The client has until a deadline, may send so many options, and each option's data is bounded:
//! what is longer is thrown away and refused.

use std::sync::Arc;
use std::time::Instant;

use super::Export;
use super::input::{Broken, Input};
use super::protocol::{
    self, BASE_ALLOCATION, BASE_ALLOCATION_ID, Fields, OPTION_BYTES_MAX, OPTIONS_MAX, OptionHeader,
    info, option, option_reply, transmission_flags,
};
use super::reply::Output;
use crate::device::{BlockDevice, Geometry};

/// What client and server agreed on.
pub(super) struct Agreed {
    pub device: Arc<dyn BlockDevice>,
    /// Whether replies are structured.
    pub is_structured: bool,
    /// Whether the client may ask for `base:allocation`.
    pub has_base_allocation: bool,
}

struct Handshake<'a, 'stream> {
    exports: &'a [Export],
    input: &'a mut Input<'stream>,
    output: &'a mut Output<'stream>,
    deadline: Instant,
    is_structured: bool,
    /// For which export `base:allocation` was chosen, by its position.
    base_allocation_of: Option<usize>,
}

/// What follows an option.
enum Next {
    Option,
    Transmission(Agreed),
    End,
}

/// Negotiates with a client. `None` when it ended the connection properly.
pub(super) fn negotiate<'stream>(
    exports: &[Export],
    input: &mut Input<'stream>,
    output: &mut Output<'stream>,
    deadline: Instant,
) -> Result<Option<Agreed>, Broken> {
    const FLAGS: u16 = protocol::FLAG_FIXED_NEWSTYLE | protocol::FLAG_NO_ZEROES;
    output.u64(protocol::HELLO_MAGIC);
    output.u64(protocol::OPTION_MAGIC);
    output.u16(FLAGS);
    output.send()?;
    let flags = Fields(input.take_before(4, deadline)?).u32();
    let flags = flags.ok_or(Broken::Violation)?;
    if flags & !u32::from(FLAGS) != 0 {
        return Err(Broken::Violation);
    }
    let is_fixed = flags & u32::from(protocol::FLAG_FIXED_NEWSTYLE) != 0;
    let no_zeroes = flags & u32::from(protocol::FLAG_NO_ZEROES) != 0;
    let mut handshake = Handshake {
        exports,
        input,
        output,
        deadline,
        is_structured: false,
        base_allocation_of: None,
    };
    for _ in 0..OPTIONS_MAX {
        match handshake.option(is_fixed, no_zeroes)? {
            Next::Option => {}
            Next::Transmission(agreed) => return Ok(Some(agreed)),
            Next::End => return Ok(None),
        }
    }
    Err(Broken::Violation)
}

impl Handshake<'_, '_> {
    fn option(&mut self, is_fixed: bool, no_zeroes: bool) -> Result<Next, Broken> {
        let header = self.input.take_before(OptionHeader::BYTES, self.deadline)?;
        let header = header.first_chunk().and_then(OptionHeader::decode);
        let OptionHeader { option, data_bytes } = header.ok_or(Broken::Violation)?;
        if !is_fixed && option != option::EXPORT_NAME {
            return Err(Broken::Violation);
        }
        if data_bytes as usize > OPTION_BYTES_MAX {
            if option == option::EXPORT_NAME {
                return Err(Broken::Violation);
            }
            self.input
                .skip_before(u64::from(data_bytes), self.deadline)?;
            self.refuse(option, option_reply::ERR_TOO_BIG, "too many bytes");
            self.output.send()?;
            return Ok(Next::Option);
        }
        let data = self.input.take_before(data_bytes as usize, self.deadline)?;
        let data = data.to_vec();
        let next = match option {
            option::EXPORT_NAME => self.export_name(&data, no_zeroes)?,
            option::ABORT => {
                self.acknowledge(option);
                Next::End
            }
            option::LIST => self.list(&data),
            option::INFO | option::GO => self.info_or_go(option, &data),
            option::STRUCTURED_REPLY => self.structured_reply(&data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(option, &data);
                Next::Option
            }
            option::STARTTLS => {
                self.refuse(option, option_reply::ERR_POLICY, "no TLS here");
                Next::Option
            }
            _ => {
                self.refuse(option, option_reply::ERR_UNSUP, "unknown option");
                Next::Option
            }
        };
        self.output.send()?;
        Ok(next)
    }

    /// The oldest way to choose: no reply but that of success.
    fn export_name(&mut self, name: &[u8], no_zeroes: bool) -> Result<Next, Broken> {
        let name = std::str::from_utf8(name).ok();
        let index = name.and_then(|name| self.find(name));
        let index = index.ok_or(Broken::Violation)?;
        let geometry = self.exports[index].device.geometry();
        self.output.u64(geometry.size_bytes);
        self.output.u16(flags(geometry, self.is_structured));
        if !no_zeroes {
            self.output.bytes(&[0; 124]);
        }
        Ok(Next::Transmission(self.agreed(index)))
    }

    fn list(&mut self, data: &[u8]) -> Next {
        if !data.is_empty() {
            self.refuse(option::LIST, option_reply::ERR_INVALID, "it takes no data");
            return Next::Option;
        }
        for export in self.exports {
            let name = export.name.as_bytes();
            let length = (name.len() as u32).to_be_bytes();
            let parts = [&length, name, export.description.as_bytes()];
            let reply = option_reply::SERVER;
            self.output.option_reply(option::LIST, reply, &parts);
        }
        self.acknowledge(option::LIST);
        Next::Option
    }

    fn structured_reply(&mut self, data: &[u8]) -> Next {
        let option = option::STRUCTURED_REPLY;
        if data.is_empty() {
            self.is_structured = true;
            self.acknowledge(option);
        } else {
            self.refuse(option, option_reply::ERR_INVALID, "it takes no data");
        }
        Next::Option
    }

    fn info_or_go(&mut self, option: u32, data: &[u8]) -> Next {
        let Some((name, wanted)) = info_request(data) else {
            self.refuse(option, option_reply::ERR_INVALID, "malformed request");
            return Next::Option;
        };
        let Some(index) = self.find(name) else {
            self.refuse(option, option_reply::ERR_UNKNOWN, "no such export");
            return Next::Option;
        };
        let exports = self.exports;
        let export = &exports[index];
        let geometry = export.device.geometry();
        let size = geometry.size_bytes.to_be_bytes();
        let flags = flags(geometry, self.is_structured).to_be_bytes();
        self.info(option, info::EXPORT, &[&size, &flags]);
        let [min, preferred, max] = block_sizes(geometry).map(u32::to_be_bytes);
        self.info(option, info::BLOCK_SIZE, &[&min, &preferred, &max]);
        for (kind, text) in [
            (info::NAME, &export.name),
            (info::DESCRIPTION, &export.description),
        ] {
            if wanted.contains(&kind) && !text.is_empty() {
                self.info(option, kind, &[text.as_bytes()]);
            }
        }
        self.acknowledge(option);
        if option == option::GO {
            return Next::Transmission(self.agreed(index));
        }
        Next::Option
    }

    fn info(&mut self, option: u32, kind: u16, values: &[&[u8]]) {
        let kind = kind.to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![&kind];
        parts.extend_from_slice(values);
        self.output.option_reply(option, option_reply::INFO, &parts);
    }

    fn meta_context(&mut self, option: u32, data: &[u8]) {
        let is_set = option == option::SET_META_CONTEXT;
        if is_set {
            self.base_allocation_of = None;
        }
        if !self.is_structured {
            let message = "structured replies come first";
            self.refuse(option, option_reply::ERR_INVALID, message);
            return;
        }
        let Some((name, queries)) = meta_context_request(data) else {
            self.refuse(option, option_reply::ERR_INVALID, "malformed request");
            return;
        };
        let Some(index) = self.find(name) else {
            self.refuse(option, option_reply::ERR_UNKNOWN, "no such export");
            return;
        };
        // To list, no query and the bare namespace mean everything.
        let lists_all = queries.is_empty() || queries.contains(&"base:");
        if queries.contains(&BASE_ALLOCATION) || (!is_set && lists_all) {
            let id = if is_set { BASE_ALLOCATION_ID } else { 0 }.to_be_bytes();
            let parts = [&id, BASE_ALLOCATION.as_bytes()];
            let reply = option_reply::META_CONTEXT;
            self.output.option_reply(option, reply, &parts);
            if is_set {
                self.base_allocation_of = Some(index);
            }
        }
        self.acknowledge(option);
    }

    fn acknowledge(&mut self, option: u32) {
        self.output.option_reply(option, option_reply::ACK, &[]);
    }

    fn refuse(&mut self, option: u32, reply: u32, message: &str) {
        self.output
            .option_reply(option, reply, &[message.as_bytes()]);
    }

    /// The position of an export.
    fn find(&self, name: &str) -> Option<usize> {
        let mut names = self.exports.iter().map(|export| export.name.as_str());
        names
            .position(|known| known == name)
            .or_else(|| (name.is_empty() && !self.exports.is_empty()).then_some(0))
    }

    fn agreed(&self, index: usize) -> Agreed {
        Agreed {
            device: Arc::clone(&self.exports[index].device),
            is_structured: self.is_structured,
            has_base_allocation: self.base_allocation_of == Some(index),
        }
    }
}

/// Name of the export, and kinds of information that are wanted.
fn info_request(data: &[u8]) -> Option<(&str, Vec<u16>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    let wanted: Option<Vec<u16>> = (0..count).map(|_| fields.u16()).collect();
    fields.is_empty().then_some((name, wanted?))
}

/// Name of the export, and queries.
fn meta_context_request(data: &[u8]) -> Option<(&str, Vec<&str>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(fields.string()?);
    }
    fields.is_empty().then_some((name, queries))
}

/// What the export can do. Holes of ours are as fast to make as anything can be, and a flush
/// covers what all connections wrote.
fn flags(geometry: Geometry, is_structured: bool) -> u16 {
    use transmission_flags as flags;
    let always = flags::HAS_FLAGS
        | flags::SEND_FLUSH
        | flags::SEND_FUA
        | flags::SEND_TRIM
        | flags::SEND_WRITE_ZEROES
        | flags::CAN_MULTI_CONN
        | flags::SEND_FAST_ZERO;
    let read_only = if geometry.read_only {
        flags::READ_ONLY
    } else {
        0
    };
    let structured = if is_structured { flags::SEND_DF } else { 0 };
    always | read_only | structured
}

/// Least, preferred and most bytes of a request.
fn block_sizes(geometry: Geometry) -> [u32; 3] {
    let least = geometry.sector_bytes;
    let most = super::REQUEST_BYTES_MAX;
    // It must be a power of two.
    let preferred = geometry.preferred_bytes.clamp(least, most);
    [least, 1 << preferred.ilog2(), most]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_sizes_are_powers_of_two_within_the_others() {
        let of = |sector_bytes, preferred_bytes| {
            block_sizes(Geometry {
                size_bytes: 0,
                sector_bytes,
                preferred_bytes,
                read_only: false,
            })
        };
        assert_eq!(of(512, 4096), [512, 4096, 1 << 25]);
        assert_eq!(of(4096, 512), [4096, 4096, 1 << 25]);
        assert_eq!(of(512, 100_000), [512, 65_536, 1 << 25]);
        assert_eq!(of(512, u32::MAX), [512, 1 << 25, 1 << 25]);
    }

    #[test]
    fn malformed_requests_are_none() {
        assert_eq!(info_request(&[0; 6]), Some(("", vec![])));
        assert_eq!(info_request(&[0; 7]), None);
        assert_eq!(info_request(&[0, 0, 0, 0, 0, 2, 0, 3]), None);
        assert_eq!(meta_context_request(&[0; 8]), Some(("", vec![])));
        // More queries than bytes.
        let lie = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(meta_context_request(&lie), None);
    }
}
