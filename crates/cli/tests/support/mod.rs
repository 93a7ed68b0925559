//! What tests that run the program for a while share: chance by a seed, and pictures of trees.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// SplitMix64: the same numbers for the same seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    pub fn noise(&mut self, bytes: u64) -> Vec<u8> {
        let mut noise = Vec::with_capacity(bytes as usize + 8);
        while (noise.len() as u64) < bytes {
            noise.extend_from_slice(&self.bits().to_le_bytes());
        }
        noise.truncate(bytes as usize);
        noise
    }
}

/// Length and a sum of every file, by path.
pub type Picture = BTreeMap<PathBuf, (usize, u64)>;

pub fn picture(root: &Path) -> Picture {
    let mut picture = Picture::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let step = |sum: u64, word: &[u8]| {
                let mut padded = [0; 8];
                padded[..word.len()].copy_from_slice(word);
                (sum ^ u64::from_le_bytes(padded))
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(29)
            };
            let sum = bytes.chunks(8).fold(1, step);
            let name = path.strip_prefix(root).unwrap().to_owned();
            picture.insert(name, (bytes.len(), sum));
        }
    }
    picture
}
