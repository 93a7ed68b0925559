//! A page of HTML in one file: its style, headings, tables. Nothing in it is loaded from
//! anywhere, and it runs no script.

use std::fmt::Write as _;

/// Style of the page and of the plots in it.
const STYLE: &str = "\
:root{color-scheme:light}\
body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;color:#1b1f24;background:#fff;max-width:1240px;margin:2rem auto;padding:0 1.5rem}\
h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #d0d7de;padding-bottom:.2rem}h3{font-size:1rem;margin:1.3rem 0 .3rem}\
p{margin:.4rem 0;max-width:75ch}.lead{color:#424a53}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.6rem 0}\
th{text-align:right;font-weight:600;border-bottom:2px solid #8c959f;padding:.25rem .6rem;white-space:nowrap}\
td{text-align:right;border-bottom:1px solid #eaeef2;padding:.2rem .6rem;white-space:nowrap}\
th.words,td.words{text-align:left}td.prose{text-align:left;white-space:normal}\
tr:hover td{background:#f6f8fa}.facts td{text-align:left;white-space:normal}.facts td:first-child{color:#424a53;white-space:nowrap}\
.holds{color:#116329;font-weight:600}.fails{color:#a40e26;font-weight:600}.open{color:#6e5494;font-weight:600}\
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(370px,1fr));gap:.6rem 1.2rem}\
.legend{display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;font-size:13px;margin:.1rem 0 .8rem 3.6rem}.legend svg{width:26px;height:10px;vertical-align:middle;margin-right:.35rem}\
figure{margin:.6rem 0}figure svg{width:100%;height:auto;display:block}figcaption{font-size:13px;color:#424a53;max-width:95ch}\
svg text{font-family:inherit;fill:#1b1f24}svg .title{font-size:13px;font-weight:600}svg .tick{font-size:11.5px;fill:#424a53}svg .label{font-size:12px}svg .note{font-size:11px;fill:#424a53}svg .name{font-size:12px}\
svg .grid{stroke:#e4e8ec;stroke-width:1}svg .axis{fill:none;stroke:#57606a;stroke-width:1.2}svg .mark{stroke:#8c959f;stroke-dasharray:3 3}svg .leader{stroke:#8c959f;stroke-width:.8}\
svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round}svg .line:hover{stroke-width:4}svg rect:hover{opacity:.7}\
code{font-size:.92em;background:#f3f5f7;padding:.05rem .3rem;border-radius:3px}\
@media print{body{margin:0;max-width:none}.grid,figure{break-inside:avoid}}";

/// A page in the making.
#[derive(Debug)]
pub struct Page {
    text: String,
}

impl Page {
    /// A page of that title, with a sentence below it.
    pub fn new(title: &str, lead: &str) -> Self {
        let title = escaped(title);
        Self {
            text: format!(
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
                 <title>{title}</title><style>{STYLE}</style></head><body>\n\
                 <h1>{title}</h1>\n<p class=\"lead\">{}</p>\n",
                escaped(lead)
            ),
        }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.text, "<h2>{}</h2>", escaped(text));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "<p>{}</p>", escaped(text));
    }

    /// Names and what they are.
    pub fn facts(&mut self, facts: &[(&str, String)]) {
        self.text.push_str("<table class=\"facts\">");
        for (name, value) in facts {
            let _ = write!(
                self.text,
                "<tr><td>{}</td><td>{}</td></tr>",
                escaped(name),
                escaped(value)
            );
        }
        self.text.push_str("</table>\n");
    }

    /// A table: words in the first columns, as many as `words` says, numbers in the others.
    pub fn table(&mut self, words: usize, headings: &[&str], rows: &[Vec<String>]) {
        let cells = |row: &Vec<String>| {
            let cells = row.iter().enumerate();
            let cell = |(column, text): (usize, &String)| {
                let class = if column < words {
                    " class=\"words\""
                } else {
                    ""
                };
                format!("<td{class}>{}</td>", escaped(text))
            };
            cells.map(cell).collect()
        };
        let rows: Vec<String> = rows.iter().map(cells).collect();
        self.table_of_cells(words, headings, &rows);
    }

    /// A table whose rows are `<td>` elements already.
    pub fn table_of_cells(&mut self, words: usize, headings: &[&str], rows: &[String]) {
        self.text.push_str("<div class=\"wide\"><table><thead><tr>");
        for (column, heading) in headings.iter().enumerate() {
            let class = if column < words {
                " class=\"words\""
            } else {
                ""
            };
            let _ = write!(self.text, "<th{class}>{}</th>", escaped(heading));
        }
        self.text.push_str("</tr></thead><tbody>");
        for row in rows {
            let _ = write!(self.text, "<tr>{row}</tr>");
        }
        self.text.push_str("</tbody></table></div>\n");
    }

    /// A plot with words below it.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        let _ = writeln!(
            self.text,
            "<figure>{svg}<figcaption>{}</figcaption></figure>",
            escaped(caption)
        );
    }

    /// Plots side by side, with words below them.
    pub fn figures(&mut self, svgs: &[String], caption: &str) {
        self.text.push_str("<div class=\"grid\">");
        for svg in svgs {
            let _ = write!(self.text, "<figure>{svg}</figure>");
        }
        let _ = writeln!(
            self.text,
            "</div><figure><figcaption>{}</figcaption></figure>",
            escaped(caption)
        );
    }

    /// What the colours and patterns of lines mean.
    pub fn legend(&mut self, series: &[(super::plot::Style, String)]) {
        self.text.push_str("<div class=\"legend\">");
        for (style, name) in series {
            let _ = write!(
                self.text,
                "<span><svg viewBox=\"0 0 26 10\"><line x1=\"0\" y1=\"5\" x2=\"26\" y2=\"5\" stroke=\"{}\" stroke-width=\"3\" stroke-dasharray=\"{}\"/></svg>{}</span>",
                style.colour,
                style.dash,
                escaped(name)
            );
        }
        self.text.push_str("</div>\n");
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.text.push_str("</body></html>\n");
        self.text
    }
}

/// `text` as HTML and SVG may carry it.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_and_words_stay_words() {
        let mut page = Page::new("a<b", "c&d");
        page.facts(&[("x", "<script>".to_owned())]);
        page.table(1, &["h"], &[vec!["\"q\"".to_owned()]]);
        page.figure("<svg></svg>", "<i>");
        let text = page.finish();
        assert!(text.contains("a&lt;b") && text.contains("&lt;script&gt;"));
        assert!(!text.contains("<script") && !text.contains("<i>"));
        for word in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
