//! Markup: the growing page, escaped text, tables, and times as text.

use std::fmt::{self, Write};

/// Text of the growing page.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Appends markup; texts from outside must be wrapped in `Text`.
    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // A String takes all writes.
        let _ = self.0.write_fmt(markup);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// Appends a table; captions and head are markup, cells are plain text. The first cell heads its row.
    pub(super) fn table<const N: usize>(
        &mut self,
        caption: &str,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        self.add(format_args!("<table>\n<caption>{caption}</caption>\n<thead><tr>"));
        for cell in head {
            self.add(format_args!("<th scope=\"col\">{cell}</th>"));
        }
        self.add(format_args!("</tr></thead>\n<tbody>\n"));
        for row in rows {
            self.add(format_args!("<tr>"));
            for (column, cell) in row.iter().enumerate() {
                let (open, close) = if column == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                self.add(format_args!("<{open}>{}</{close}>", Text(cell)));
            }
            self.add(format_args!("</tr>\n"));
        }
        self.add(format_args!("</tbody>\n</table>\n"));
    }
}

/// Plain text, escaped for element content and quoted attributes.
///
/// Control characters, characters that change the direction of text, and noncharacters become `\u{…}`.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{61c}'
                | '\u{feff}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{fffe}'..='\u{ffff}' => {
                    write!(f, "{}", character.escape_unicode())?;
                }
                _ if character.is_control() => write!(f, "{}", character.escape_unicode())?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Minute as a date and a time of day in UTC.
pub(super) fn minute_text(minute: i64) -> String {
    format_minute(minute, "%Y-%m-%d %H:%M")
}

/// Minute in UTC in the form of `strftime`; minutes out of the calendar appear as numbers.
pub(super) fn format_minute(minute: i64, form: &str) -> String {
    match jiff::Timestamp::from_second(minute.saturating_mul(60)) {
        Ok(time) => time.strftime(form).to_string(),
        Err(_) => format!("minute {minute}"),
    }
}
