#![forbid(unsafe_code)]
//! Writes the samples of every target to `corpus/TARGET/`, from which fuzzing begins: cargo-fuzz
//! looks for them there. Run it in `fuzz/`.

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    for target in onefold_fuzz::targets() {
        let directory = Path::new("corpus").join(target.name);
        fs::create_dir_all(&directory)?;
        for (number, sample) in (target.samples)().iter().enumerate() {
            fs::write(directory.join(format!("sample-{number}")), sample)?;
        }
    }
    Ok(())
}
