//! The machine that measured, as far as it tells: from /proc and /sys, nothing by name or address.

use std::fs;

use serde::Serialize;

/// Extensions of the instruction set that kernels of chunkers and hashes use, as
/// /proc/cpuinfo names them (x86-64, then AArch64).
const EXTENSIONS: &[&str] = &[
    "sse4_2",
    "pclmulqdq",
    "avx2",
    "bmi2",
    "sha_ni",
    "gfni",
    "vpclmulqdq",
    "avx512f",
    "avx512bw",
    "avx512vbmi",
    "asimd",
    "crc32",
    "pmull",
    "sha2",
    "sve",
];

/// What is known of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Its architecture.
    pub architecture: &'static str,
    /// Extensions of its instruction set.
    pub instruction_sets: Vec<String>,
    /// Cores that this process may use.
    pub cores: u64,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and release.
    pub system: String,
    /// The system's setting for huge pages.
    pub huge_pages: Option<String>,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease");
        let setting = read("/sys/kernel/mm/transparent_hugepage/enabled");
        let (cpu, instruction_sets) = processor(&read("/proc/cpuinfo"));
        Self {
            cpu,
            architecture: std::env::consts::ARCH,
            instruction_sets,
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            memory_bytes: total_memory(&read("/proc/meminfo")),
            system: format!("{} {}", std::env::consts::OS, release.trim())
                .trim()
                .to_owned(),
            huge_pages: between_brackets(&setting),
        }
    }
}

/// Model and extensions.
fn processor(cpuinfo: &str) -> (String, Vec<String>) {
    let field = |names: &[&str]| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            names.contains(&name.trim()).then(|| value.trim())
        })
    };
    let model = field(&["model name", "Processor", "CPU part"]).unwrap_or("unknown");
    let flags: Vec<_> = field(&["flags", "Features"])
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let extensions = EXTENSIONS.iter().filter(|name| flags.contains(name));
    let extensions = extensions.map(|&name| name.to_owned()).collect();
    (model.to_owned(), extensions)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// `madvise` of `always [madvise] never`.
fn between_brackets(setting: &str) -> Option<String> {
    let (_, rest) = setting.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        let cpuinfo = "processor : 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 gfni other\n";
        let (cpu, extensions) = processor(cpuinfo);
        assert_eq!(cpu, "Some CPU");
        assert_eq!(extensions, ["avx2", "gfni"]);
        assert_eq!(processor("").0, "unknown");
        let meminfo = "MemTotal:       2048 kB\nMemFree: 1 kB\n";
        assert_eq!(total_memory(meminfo), Some(2 << 20));
        let setting = between_brackets("always [madvise] never\n");
        assert_eq!(setting.as_deref(), Some("madvise"));
        assert!(Machine::here().cores >= 1);
    }
}
