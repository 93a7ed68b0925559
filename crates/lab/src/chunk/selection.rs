//! What `--algorithm` and its companions ask for, turned into contestants.
//!
//! `--algorithm` takes a list: names of algorithms, or `all`. Options such as `--avg` hold for
//! every one of the list; an entry may have settings of its own behind a colon, which win:
//! `fastcdc:min=6K,normal=10K,level=2,gear` are two entries, for what has a `=` belongs to the
//! entry before it. An option that an algorithm does not have is an error where the algorithm was
//! named, and left out with a note where it came by `all`.

use chunking::structure::Structure;
use chunking::{ALGORITHMS, Algorithm, Isa, OWN_PARAMETERS, OwnParameter, Parameters, Rolling};

use super::contestant::{Contestant, Method, Running, rolling_name};
use super::rivals::{RIVALS, Rival};
use crate::failure::Failure;
use crate::units::{self, short_bytes};

/// Stands for every algorithm.
pub const ALL: &str = "all";

/// One thing that a chunker can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setting {
    /// `min_bytes`
    Min(u32),
    /// `avg_bytes`
    Avg(u32),
    /// `max_bytes`
    Max(u32),
    /// `normalization`
    Level(u8),
    /// The loop of a Gear hash.
    Rolling(Rolling),
    /// The instruction sets that kernels use.
    Isa(Isa),
    /// Formats whose parts are cut apart.
    Structure(Structure),
    /// What only some algorithms can be told.
    Own(OwnParameter, u64),
}

/// What the settings are called, as options and in entries of the list.
const OWN_NAMES: [(&str, OwnParameter); 7] = [
    ("normal", OwnParameter::NormalBytes),
    ("window", OwnParameter::WindowBytes),
    ("polynomial", OwnParameter::Polynomial),
    ("sequence", OwnParameter::SequenceBytes),
    ("jump-trigger", OwnParameter::JumpTrigger),
    ("jump", OwnParameter::JumpBytes),
    ("hash-bits", OwnParameter::HashBits),
];

/// All ways of rolling. The first and the last take whatever loop there is, the others are loops
/// that only some algorithms have.
const ROLLINGS: [Rolling; 5] = [
    Rolling::Fastest,
    Rolling::OneByte,
    Rolling::TwoBytes,
    Rolling::TwoStage,
    Rolling::InOrder,
];

impl Setting {
    /// The setting of that name and value.
    pub fn parse(name: &str, value: &str) -> Result<Self, String> {
        Ok(match name {
            "min" => Self::Min(units::parse_chunk_bytes(value)?),
            "avg" => Self::Avg(units::parse_chunk_bytes(value)?),
            "max" => Self::Max(units::parse_chunk_bytes(value)?),
            "level" => Self::Level(
                value
                    .parse()
                    .map_err(|_| format!("'{value}' is no level; levels are 0, 1, 2, 3"))?,
            ),
            "rolling" => Self::Rolling(parse_rolling(value)?),
            "isa" => Self::Isa(parse_isa(value)?),
            "structure" => Self::Structure(parse_structure(value)?),
            _ => {
                let own = OWN_NAMES.iter().find(|(own, _)| *own == name);
                let Some(&(_, parameter)) = own else {
                    return Err(format!("'{name}' is no setting; settings are {}", names()));
                };
                Self::Own(parameter, parse_own(parameter, value)?)
            }
        })
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Min(_) => "min",
            Self::Avg(_) => "avg",
            Self::Max(_) => "max",
            Self::Level(_) => "level",
            Self::Rolling(_) => "rolling",
            Self::Isa(_) => "isa",
            Self::Structure(_) => "structure",
            Self::Own(parameter, _) => OWN_NAMES
                .iter()
                .find(|(_, own)| *own == parameter)
                .map_or(parameter.info().name, |(name, _)| name),
        }
    }

    /// Whether `algorithm` can be told it.
    fn is_of(self, algorithm: Algorithm) -> bool {
        match self {
            Self::Min(_) | Self::Avg(_) | Self::Max(_) | Self::Isa(_) | Self::Structure(_) => true,
            Self::Level(_) => Parameters::new(algorithm).has_levels(),
            Self::Rolling(rolling) => rolling.is_of(algorithm),
            Self::Own(parameter, _) => parameter.is_of(algorithm),
        }
    }

    fn apply(self, parameters: &mut Parameters, running: &mut Running) {
        match self {
            Self::Min(bytes) => parameters.min_bytes = bytes,
            Self::Avg(bytes) => parameters.avg_bytes = bytes,
            Self::Max(bytes) => parameters.max_bytes = bytes,
            Self::Level(level) => parameters.normalization = level,
            Self::Rolling(rolling) => running.rolling = rolling,
            Self::Isa(isa) => running.isa = isa,
            // Neither a parameter nor a matter of speed: see `structure_of`.
            Self::Structure(_) => {}
            Self::Own(parameter, value) => parameters.own.set(parameter, value),
        }
    }
}

fn names() -> String {
    let own = OWN_NAMES.iter().map(|(name, _)| *name);
    let all = [
        "min",
        "avg",
        "max",
        "level",
        "rolling",
        "isa",
        "structure",
        "label",
    ];
    all.into_iter().chain(own).collect::<Vec<_>>().join(", ")
}

/// One of [`ROLLINGS`].
pub fn parse_rolling(text: &str) -> Result<Rolling, String> {
    let found = ROLLINGS.into_iter().find(|way| rolling_name(*way) == text);
    found.ok_or_else(|| {
        let names = ROLLINGS.map(rolling_name).join(", ");
        format!("'{text}' is no way of rolling; they are {names}")
    })
}

/// A level of instruction sets that this machine has.
pub fn parse_isa(text: &str) -> Result<Isa, String> {
    let isa: Isa = text.parse().map_err(|error| format!("{error}"))?;
    if isa.is_available() {
        return Ok(isa);
    }
    let available: Vec<_> = Isa::available().map(Isa::name).collect();
    Err(format!(
        "this machine lacks {isa}; it has {}",
        available.join(", ")
    ))
}

/// One of [`Structure::NAMES`].
pub fn parse_structure(text: &str) -> Result<Structure, String> {
    Structure::from_name(text).ok_or_else(|| {
        let names = Structure::NAMES.map(|row| row.1).join(", ");
        format!("'{text}' is no format that is looked for; they are {names}")
    })
}

/// The last that is asked for, if any is.
fn structure_of<'a>(settings: impl Iterator<Item = &'a Setting>) -> Structure {
    let asked = settings.filter_map(|setting| match setting {
        Setting::Structure(structure) => Some(*structure),
        _ => None,
    });
    asked.last().unwrap_or_default()
}

/// A polynomial is a number, decimal or `0x…`; what counts bytes may have a unit.
fn parse_own(parameter: OwnParameter, value: &str) -> Result<u64, String> {
    if parameter != OwnParameter::Polynomial {
        return units::parse_bytes(value);
    }
    let number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    number
        .map_err(|_| format!("'{value}' is no polynomial; they are numbers like 0x3da3358b4dc173"))
}

/// A list of contestants, and what had to be left out on the way.
#[derive(Debug, Default, PartialEq)]
pub struct Selection {
    /// Who is measured.
    pub contestants: Vec<Contestant>,
    /// What is to be said about it.
    pub notes: Vec<String>,
}

/// An entry of the list.
struct Entry<'a> {
    /// As it was written.
    text: String,
    algorithm: &'a str,
    settings: Vec<Setting>,
    label: Option<&'a str>,
}

/// The contestants of a list, with settings that hold for all of them.
///
/// # Errors
/// When a name is unknown, a setting can't be, an algorithm that was named does not have a
/// setting, or two entries are the same.
pub fn select(list: &str, common: &[Setting]) -> Result<Selection, Failure> {
    let mut selection = Selection::default();
    for entry in entries(list)? {
        if entry.algorithm == ALL {
            add_all(&entry, common, &mut selection)?;
        } else {
            let contestant = named(&entry, common)?;
            selection.contestants.push(contestant);
        }
    }
    refuse_equal_labels(&selection.contestants)?;
    Ok(selection)
}

/// Adds the chunkers of other crates, at the sizes and the level that are given.
pub fn add_rivals(common: &[Setting], selection: &mut Selection) {
    let (sizes, level) = rival_settings(common);
    for info in &RIVALS {
        match Rival::new(info.kind, sizes, level) {
            Ok(rival) => selection.contestants.push(Contestant {
                label: format!("crate {} {}", info.crate_name, info.version),
                method: Method::Rival(rival),
            }),
            Err(reason) => selection.notes.push(format!(
                "the crate {} is left out: {reason}",
                info.crate_name
            )),
        }
    }
    let ignored: Vec<_> = common
        .iter()
        .filter(|setting| {
            matches!(
                setting,
                Setting::Own(..) | Setting::Rolling(_) | Setting::Isa(_) | Setting::Structure(_)
            )
        })
        .map(|setting| format!("--{}", setting.name()))
        .collect();
    if !ignored.is_empty() {
        let note = format!(
            "other crates do not have {}: ignored there",
            ignored.join(", ")
        );
        selection.notes.push(note);
    }
}

/// Sizes and level of `fastcdc` as far as they are not given.
fn rival_settings(common: &[Setting]) -> ([u32; 3], u8) {
    let mut parameters = Parameters::new(Algorithm::FastCdc);
    for setting in common {
        setting.apply(&mut parameters, &mut Running::default());
    }
    let sizes = [
        parameters.min_bytes,
        parameters.avg_bytes,
        parameters.max_bytes,
    ];
    (sizes, parameters.normalization)
}

/// Divides a list into entries.
fn entries(list: &str) -> Result<Vec<Entry<'_>>, Failure> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (algorithm, setting) = match part.split_once(':') {
            Some((algorithm, setting)) => (Some(algorithm.trim()), Some(setting)),
            None if part.contains('=') => (None, Some(part)),
            None => (Some(part), None),
        };
        if let Some(algorithm) = algorithm {
            entries.push(Entry {
                text: part.to_owned(),
                algorithm,
                settings: Vec::new(),
                label: None,
            });
        }
        let Some(entry) = entries.last_mut() else {
            return Err(Failure::usage(format!(
                "--algorithm begins with the setting '{part}': name an algorithm before it, as in fastcdc:{part}"
            )));
        };
        if algorithm.is_none() {
            entry.text = format!("{},{part}", entry.text);
        }
        if let Some(setting) = setting {
            entry.set(setting)?;
        }
    }
    Ok(entries)
}

impl<'a> Entry<'a> {
    fn set(&mut self, setting: &'a str) -> Result<(), Failure> {
        let of_entry = |message: String| {
            Failure::usage(format!("--algorithm {}: {message}", self.text))
                .with_hint("entries are like fastcdc or fastcdc:min=6K,normal=10K,level=2")
        };
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| of_entry(format!("'{setting}' has no value")))?;
        if name.trim() == "label" {
            self.label = Some(value.trim());
            return Ok(());
        }
        let setting = Setting::parse(name.trim(), value.trim()).map_err(of_entry)?;
        self.settings.push(setting);
        Ok(())
    }
}

/// The contestant of an entry that names an algorithm.
fn named(entry: &Entry<'_>, common: &[Setting]) -> Result<Contestant, Failure> {
    let Some(algorithm) = Algorithm::from_name(entry.algorithm) else {
        let names: Vec<_> = ALGORITHMS.iter().map(|info| info.name).collect();
        return Err(
            Failure::usage(format!("there is no algorithm '{}'", entry.algorithm))
                .with_hint(format!("they are {}, or {ALL}", names.join(", "))),
        );
    };
    let mut parameters = Parameters::new(algorithm);
    let mut running = Running::default();
    for setting in common.iter().chain(&entry.settings) {
        if !setting.is_of(algorithm) {
            return Err(
                Failure::usage(format!("{algorithm} has no setting '{}'", setting.name()))
                    .with_hint(hint_of(algorithm)),
            );
        }
        setting.apply(&mut parameters, &mut running);
    }
    let label = entry.label.unwrap_or(&entry.text);
    parameters
        .validate()
        .map_err(|error| Failure::usage(format!("{label}: {error}")))?;
    let structure = structure_of(common.iter().chain(&entry.settings));
    Ok(Contestant::own(label, parameters, running).with_structure(structure))
}

/// How many of [`ROLLINGS`] every algorithm has.
const WAYS_OF_ALL: usize = 2;

/// What an algorithm can be told.
fn hint_of(algorithm: Algorithm) -> String {
    let mut names = ["min", "avg", "max"].map(str::to_owned).to_vec();
    if Parameters::new(algorithm).has_levels() {
        names.push("level".to_owned());
    }
    let ways = ROLLINGS.into_iter().filter(|way| way.is_of(algorithm));
    let ways: Vec<_> = ways.map(rolling_name).collect();
    if ways.len() > WAYS_OF_ALL {
        names.push(format!("rolling ({})", ways.join(", ")));
    }
    for info in OWN_PARAMETERS {
        if info.parameter.is_of(algorithm) {
            names.push(Setting::Own(info.parameter, 0).name().to_owned());
        }
    }
    format!("it has {}", names.join(", "))
}

/// Every algorithm that can be with these settings.
fn add_all(
    entry: &Entry<'_>,
    common: &[Setting],
    selection: &mut Selection,
) -> Result<(), Failure> {
    if let Some(label) = entry.label {
        return Err(Failure::usage(format!(
            "--algorithm {}: all of them can't be called '{label}'",
            entry.text
        )));
    }
    for info in ALGORITHMS {
        let mut parameters = Parameters::new(info.algorithm);
        let mut running = Running::default();
        for setting in common.iter().chain(&entry.settings) {
            if setting.is_of(info.algorithm) {
                setting.apply(&mut parameters, &mut running);
            }
        }
        match parameters.validate() {
            Ok(()) => {
                let structure = structure_of(common.iter().chain(&entry.settings));
                let contestant = Contestant::own(info.name, parameters, running);
                let contestant = contestant.with_structure(structure);
                selection.contestants.push(contestant);
            }
            Err(error) => {
                let note = format!("{} is left out: {error}", info.name);
                selection.notes.push(note);
            }
        }
    }
    note_unlike_sizes(selection);
    for setting in common.iter().chain(&entry.settings) {
        let without: Vec<_> = ALGORITHMS
            .iter()
            .filter(|info| !setting.is_of(info.algorithm))
            .map(|info| info.name)
            .collect();
        if !without.is_empty() {
            selection.notes.push(format!(
                "'{}' is ignored for algorithms that do not have it: {}",
                setting.name(),
                without.join(", ")
            ));
        }
    }
    Ok(())
}

/// Says which have another expected size than the first, as presets of other programs do.
fn note_unlike_sizes(selection: &mut Selection) {
    let sizes = |contestant: &Contestant| match &contestant.method {
        Method::Own { parameters, .. } => Some(*parameters),
        Method::Rival(_) => None,
    };
    let Some(first) = selection.contestants.first().and_then(sizes) else {
        return;
    };
    let unlike: Vec<String> = selection
        .contestants
        .iter()
        .filter_map(|contestant| Some((&contestant.label, sizes(contestant)?)))
        .filter(|(_, parameters)| parameters.avg_bytes != first.avg_bytes)
        .map(|(label, parameters)| {
            let [min, avg, max] = [
                parameters.min_bytes,
                parameters.avg_bytes,
                parameters.max_bytes,
            ]
            .map(|bytes| short_bytes(u64::from(bytes)));
            format!("{label} ({min}, {avg}, {max})")
        })
        .collect();
    if !unlike.is_empty() {
        selection.notes.push(format!(
            "other sizes than the rest, so do not compare their ratios: {}",
            unlike.join(", ")
        ));
    }
}

fn refuse_equal_labels(contestants: &[Contestant]) -> Result<(), Failure> {
    for (index, contestant) in contestants.iter().enumerate() {
        let is_twice = contestants[..index]
            .iter()
            .any(|other| other.label == contestant.label);
        if is_twice {
            return Err(Failure::usage(format!(
                "'{}' stands twice in --algorithm",
                contestant.label
            ))
            .with_hint("give one of them another name, as in gear:label=second"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(contestant: &Contestant) -> (Parameters, Rolling) {
        match &contestant.method {
            Method::Own {
                parameters,
                running,
                ..
            } => (*parameters, running.rolling),
            Method::Rival(_) => panic!("a rival"),
        }
    }

    #[test]
    fn entries_have_settings_of_their_own() {
        let list = "fastcdc:min=6K,normal=10K,level=3,rolling=two,gear, rabin:window=64,label=R";
        let common = [Setting::Max(128 << 10)];
        let selection = select(list, &common).unwrap();
        let labels: Vec<_> = selection.contestants.iter().map(|c| &c.label).collect();
        let first = "fastcdc:min=6K,normal=10K,level=3,rolling=two";
        assert_eq!(labels, [first, "gear", "R"]);
        let (parameters, rolling) = own(&selection.contestants[0]);
        assert_eq!(rolling, Rolling::TwoBytes);
        assert_eq!(parameters.min_bytes, 6144);
        assert_eq!(parameters.normalization, 3);
        assert_eq!(parameters.max_bytes, 128 << 10);
        assert_eq!(parameters.own.get(OwnParameter::NormalBytes), Some(10_240));
        let (parameters, _) = own(&selection.contestants[2]);
        assert_eq!(parameters.own.get(OwnParameter::WindowBytes), Some(64));
        assert_eq!(parameters.max_bytes, 128 << 10);
    }

    #[test]
    fn wrong_lists_say_what_is_wrong() {
        for (list, words) in [
            ("fastdcd", "no algorithm 'fastdcd'"),
            ("min=6K,gear", "begins with the setting"),
            ("gear:min", "has no value"),
            ("gear:size=4", "'size' is no setting"),
            ("gear:level=1", "gear has no setting 'level'"),
            ("gear:min=64K", "is impossible"),
            ("gear,gear", "stands twice"),
            ("fastcdc:rolling=three", "fastest, one, two"),
            ("rabin:polynomial=x", "polynomial"),
            ("all:label=x", "can't be called"),
            ("", "no algorithm ''"),
        ] {
            let failure = select(list, &[]).unwrap_err();
            assert!(failure.message.contains(words), "{list}: {failure}");
            assert_eq!(failure.code, crate::failure::USAGE);
        }
        let hint = select("nothing", &[]).unwrap_err().hint.unwrap();
        for info in ALGORITHMS {
            assert!(hint.contains(info.name));
        }
        let failure = select("fastcdc,gear", &[Setting::Level(1)]).unwrap_err();
        assert!(failure.message.contains("gear has no setting 'level'"));
        let hint = "it has min, avg, max, rolling (fastest, one, two-stage, in-order)";
        assert_eq!(failure.hint.as_deref(), Some(hint));
    }

    #[test]
    fn hints_name_the_loops_that_an_algorithm_has() {
        for info in ALGORITHMS {
            let hint = hint_of(info.algorithm);
            let words: Vec<_> = hint.split([' ', ',', '(', ')']).collect();
            for way in [Rolling::OneByte, Rolling::TwoBytes, Rolling::TwoStage] {
                let is_named = words.contains(&rolling_name(way));
                assert_eq!(is_named, way.is_of(info.algorithm), "{hint}");
            }
        }
        assert_eq!(hint_of(Algorithm::Fixed), "it has min, avg, max");
    }

    #[test]
    fn all_ignores_what_an_algorithm_does_not_have_and_says_so() {
        let selection = select(ALL, &[Setting::Level(1)]).unwrap();
        assert_eq!(selection.contestants.len(), ALGORITHMS.len());
        assert_eq!(own(&selection.contestants[0]).0.normalization, 1);
        let ignored = &selection.notes[1];
        assert!(ignored.contains("'level' is ignored"), "{ignored}");
        assert!(ignored.contains("gear"));
        let plain = select(ALL, &[]).unwrap().notes;
        assert_eq!(plain.len(), 1);
        assert!(
            plain[0].ends_with("xet (8K, 64K, 128K), restic (512K, 1M, 8M)"),
            "{plain:?}"
        );
        assert_eq!(select("gear,fastcdc", &[]).unwrap().notes, [""; 0]);
        let impossible = select(ALL, &[Setting::Max(16 << 10)]).unwrap();
        assert!(impossible.contestants.len() < ALGORITHMS.len());
        assert!(
            impossible
                .notes
                .iter()
                .any(|note| note.contains("restic is left out"))
        );
    }

    #[test]
    fn rivals_have_the_sizes_that_are_given() {
        let mut selection = Selection::default();
        let common = [Setting::Avg(16 << 10), Setting::Level(1)];
        add_rivals(&common, &mut selection);
        assert_eq!(selection.contestants.len(), RIVALS.len());
        assert_eq!(selection.contestants[0].sizes(), [2048, 16_384, 65_536]);
        let mut selection = Selection::default();
        add_rivals(&[Setting::Avg(10_000)], &mut selection);
        assert_eq!(selection.contestants, []);
        assert_eq!(selection.notes.len(), RIVALS.len());
    }
}
