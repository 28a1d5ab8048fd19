//! Text as HTML. Whatever comes from packets goes through [`Html::text`]; only literals of the program go elsewhere.

use std::fmt::{self, Display, Write};

/// A page so far.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Appends markup. A text that is made while the program runs cannot come here.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends text, also of an attribute in quotation marks.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // A String takes everything.
        let _ = write!(Escaped(&mut self.0), "{text}");
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Appends literals as markup, and what is in braces as text.
macro_rules! html {
    ($page:expr, $($part:tt)*) => {{ $( $crate::page::html::html_part!($page, $part); )* }};
}

macro_rules! html_part {
    ($page:expr, { $text:expr }) => {
        $page.text($text)
    };
    ($page:expr, $markup:literal) => {
        $page.raw($markup)
    };
}

pub(super) use {html, html_part};

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                letter if is_unseen(letter) => write!(self.0, "\\u{{{:x}}}", u32::from(letter))?,
                letter => self.0.push(letter),
            }
        }
        Ok(())
    }
}

/// Whether a letter cannot be seen, or changes the order of those around it: a reader would take one name for another.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut page = Html::default();
        page.text(text);
        page.0
    }

    #[test]
    fn no_text_is_markup() {
        assert_eq!(escaped("</style><script>'\"&"), "&lt;/style&gt;&lt;script&gt;&#39;&quot;&amp;");
        assert_eq!(escaped("www.例え.jp"), "www.例え.jp");
        let all: String = (0..=0xff).map(char::from).collect();
        assert!(!escaped(&all).contains(['<', '>', '"', '\'', '\n', '\0']));
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(escaped("a\u{202e}gpj\0\n"), "a\\u{202e}gpj\\u{0}\\u{a}");
        assert_eq!(escaped("p\u{200b}a\u{e0041}"), "p\\u{200b}a\\u{e0041}");
    }

    #[test]
    fn markup_and_text_are_told_apart() {
        let mut page = Html::default();
        let name = "<b>";
        html!(page, "<i>" {name} "</i>" {1 + 1});
        assert_eq!(page.0, "<i>&lt;b&gt;</i>2");
    }
}
