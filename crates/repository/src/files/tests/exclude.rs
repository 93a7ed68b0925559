//! What a walk leaves out: patterns, caches, ignore files.

use super::super::{Action, FilesError};
use super::*;

const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# a cache";

fn events(place: &Place, options: &FilterOptions) -> Vec<String> {
    events_of(&[place.path()], options, place.path())
}

fn patterns(texts: &[&str]) -> FilterOptions {
    FilterOptions {
        patterns: texts.iter().map(|&text| text.to_owned()).collect(),
        ..FilterOptions::default()
    }
}

#[test]
fn patterns_decide() {
    let place = Place::new();
    for file in ["a.o", "a.c", "d/b.o", "d/e/c.c", "target/x", "d/target"] {
        place.file(file, "");
    }
    let without_objects = [
        "a.c", "+d", "+d/e", "d/e/c.c", "-d/e", "d/target", "-d", "+target", "target/x", "-target",
    ];
    assert_eq!(events(&place, &patterns(&["*.o"])), without_objects);
    // A pattern for directories leaves files alone.
    let events_left = events(&place, &patterns(&["target/", "*.o", "*.c"]));
    assert_eq!(events_left, ["+d", "+d/e", "-d/e", "d/target", "-d"]);
    let absolute = format!("{}/d", place.path().display());
    assert_eq!(
        events(&place, &patterns(&[&absolute, "target"])),
        ["a.c", "a.o"]
    );
    // Nothing comes back from a directory that is left out.
    assert_eq!(
        events(&place, &patterns(&["*", "!c.c"])),
        Vec::<String>::new()
    );
    assert_eq!(
        events(&place, &patterns(&["*", "!c.c", "!d", "!e"])),
        ["+d", "+d/e", "d/e/c.c", "-d/e", "-d"]
    );
    // What was given is never left out.
    let given = [place.join("a.o"), place.join("target")];
    let given: Vec<&Path> = given.iter().map(PathBuf::as_path).collect();
    let given = events_of(&given, &patterns(&["*.o", "target"]), place.path());
    assert_eq!(given, ["a.o", "+target", "target/x", "-target"]);
}

#[test]
fn sources_of_patterns_in_order() {
    let place = Place::new();
    for file in ["tree/a", "tree/b", "tree/C"] {
        place.file(file, "");
    }
    let list = place.file("list", "# all\na\nb\n");
    let options = FilterOptions {
        patterns: vec!["!b".to_owned()],
        patterns_ignoring_case: vec!["c".to_owned()],
        pattern_files: vec![list],
        ..FilterOptions::default()
    };
    let tree = place.join("tree");
    assert_eq!(events_of(&[&tree], &options, &tree), ["b"]);
    let filter = Filter::new(&options).unwrap();
    assert_eq!(filter.patterns().texts(), ["a", "b", "!b", "c"]);
    let bad = FilterOptions {
        pattern_files: vec![place.join("gone")],
        ..FilterOptions::default()
    };
    assert!(matches!(
        Filter::new(&bad),
        Err(FilesError::PatternFile { .. })
    ));
    assert!(matches!(
        Filter::new(&patterns(&["{a"])),
        Err(FilesError::BadPattern { .. })
    ));
}

#[test]
fn caches_keep_their_tag() {
    let place = Place::new();
    place.file("cache/CACHEDIR.TAG", SIGNATURE);
    place.file("cache/data", "");
    place.file("cache/sub/data", "");
    place.file("false/CACHEDIR.TAG", "Signature: no");
    place.file("false/data", "");
    place.file("linked/data", "");
    let tag = place.join("cache/CACHEDIR.TAG");
    std::os::unix::fs::symlink(tag, place.join("linked/CACHEDIR.TAG")).unwrap();
    let options = FilterOptions {
        caches: true,
        ..FilterOptions::default()
    };
    let expected = [
        "+cache",
        "cache/CACHEDIR.TAG",
        "-cache",
        "+false",
        "false/CACHEDIR.TAG",
        "false/data",
        "-false",
        "+linked",
        "=linked/CACHEDIR.TAG",
        "linked/data",
        "-linked",
    ];
    assert_eq!(events(&place, &options), expected);
    assert_eq!(
        events(&place, &FilterOptions::default()).len(),
        expected.len() + 4
    );
    // What lies in a cache is stored where it was given.
    let given = place.join("cache/data");
    let both = events_of(&[place.path(), &given], &options, place.path());
    assert_eq!(
        both[..4],
        ["+cache", "cache/CACHEDIR.TAG", "cache/data", "-cache"]
    );
}

#[test]
fn ignore_files_count_below_their_directory() {
    let place = Place::new();
    place.file(
        ".gitignore",
        "*.log\n/only-here\n!keep.log\n# comment\n\nbuild/\n",
    );
    for file in [
        "a.log",
        "keep.log",
        "only-here",
        "sub/only-here",
        "sub/a.log",
        "sub/b.txt",
        "build/x",
        "sub/build",
        "other/a.log",
    ] {
        place.file(file, "");
    }
    place.file("sub/.gitignore", "!a.log\nb.txt\n");
    place.file("sub/.onefoldignore", "!b.txt\n");
    let options = FilterOptions {
        ignore_files: true,
        ..FilterOptions::default()
    };
    let expected = [
        ".gitignore",
        "keep.log",
        "+other",
        "-other",
        "+sub",
        "sub/.gitignore",
        "sub/.onefoldignore",
        "sub/a.log",
        "sub/b.txt",
        "sub/build",
        "sub/only-here",
        "-sub",
    ];
    assert_eq!(events(&place, &options), expected);
    // Without the option they are files like others.
    assert!(events(&place, &FilterOptions::default()).contains(&"a.log".to_owned()));
    // Patterns of the backup win over ignore files.
    let mut with_pattern = patterns(&["!other/a.log", "sub"]);
    with_pattern.ignore_files = true;
    let expected = [".gitignore", "keep.log", "+other", "other/a.log", "-other"];
    assert_eq!(events(&place, &with_pattern), expected);
}

#[test]
fn bad_ignore_files_are_problems() {
    let place = Place::new();
    place.file(".gitignore", b"{a\n\xff\n*.o\n");
    place.file("a.o", "");
    place.file("large/.gitignore", vec![b'\n'; (1 << 20) + 1]);
    std::fs::create_dir_all(place.join("directory/.onefoldignore")).unwrap();
    let options = FilterOptions {
        ignore_files: true,
        ..FilterOptions::default()
    };
    let found = gather(walk_of(&[place.path()], &options), place.path());
    assert!(
        !found.events.contains(&"a.o".to_owned()),
        "the rest of the file counts"
    );
    assert_eq!(found.problems.len(), 3);
    assert!(
        found
            .problems
            .iter()
            .all(|problem| problem.what == Action::ReadRules)
    );
    assert!(matches!(
        found.problems[2].error,
        FilesError::BadRules { .. }
    ));
    assert!(
        found
            .events
            .contains(&"+directory/.onefoldignore".to_owned())
    );
}
