//! The chunks of a file: offset and length, one a line, and their mean.
//!
//! `cargo run --release -p onefold-chunking --example cut_file -- FILE`

use chunking::{Chunker, KeyMaterial, Parameters, StreamChunker};
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("give a file")?;
    let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
    let mut stream = StreamChunker::new(chunker, File::open(path)?);
    let mut count = 0u64;
    loop {
        let offset = stream.offset();
        let Some(chunk) = stream.next_chunk()? else {
            break;
        };
        println!("{offset:12} {:8}", chunk.len());
        count += 1;
    }
    let mean = stream.offset() / count.max(1);
    println!("{count} chunks, {mean} bytes on average");
    Ok(())
}
