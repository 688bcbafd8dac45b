//! The report as one page that stands by itself: no script, no font and no picture from elsewhere.

use std::fmt::Write;

use super::contents::{Contents, Part};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}\
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}.wide{overflow-x:auto}\
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}\
th,td{border-bottom:1px solid #e4e4e4;padding:.25rem .6rem;text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left;white-space:normal}th{vertical-align:bottom;white-space:normal}\
code{background:#f3f3f3;padding:0 .2em}pre{background:#f3f3f3;padding:.8rem;overflow-x:auto}\
figure{margin:1.5rem 0}figcaption{color:#555}svg{max-width:100%;height:auto}";

/// The page.
#[must_use]
pub fn html(contents: &Contents) -> String {
    let mut out = String::new();
    let title = inline(&contents.title);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n"
    );
    for part in &contents.parts {
        let _ = match part {
            Part::Heading(text) => writeln!(out, "<h2>{}</h2>", inline(text)),
            Part::Text(text) => writeln!(out, "<p>{}</p>", inline(text)),
            Part::Command(text) => writeln!(out, "<pre>{}</pre>", escaped(text)),
            Part::List(items) => {
                let items: String = items.iter().map(|item| format!("<li>{}</li>", inline(item))).collect();
                writeln!(out, "<ul>{items}</ul>")
            }
            Part::Table(head, rows) => {
                let row = |cells: &[String], tag: &str| {
                    let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", inline(cell)));
                    format!("<tr>{}</tr>\n", cells.collect::<String>())
                };
                let rows: String = rows.iter().map(|cells| row(cells, "td")).collect();
                writeln!(out, "<div class=\"wide\"><table>\n{}{rows}</table></div>", row(head, "th"))
            }
            Part::Plot(svg, caption) => {
                writeln!(out, "<figure><figcaption>{}</figcaption>{svg}</figure>", inline(caption))
            }
        };
    }
    out + "</body></html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The two marks of Markdown that the contents use.
fn inline(text: &str) -> String {
    marked(&marked(&escaped(text), "`", "code"), "**", "strong")
}

fn marked(text: &str, mark: &str, tag: &str) -> String {
    let pieces = text.split(mark).enumerate();
    pieces
        .map(|(nth, piece)| if nth % 2 == 0 { piece.to_owned() } else { format!("<{tag}>{piece}</{tag}>") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_escaped_and_marked() {
        assert_eq!(inline("a `<b>` & **c**"), "a <code>&lt;b&gt;</code> &amp; <strong>c</strong>");
    }
}
