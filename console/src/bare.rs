//! Scripts and style sheets without what browsers do not need: comments, indentation, most ends of lines, and spaces
//! between signs.
//!
//! A script is read as far as that takes: strings, templates and regular expressions stay as they are. The formatter of the
//! console puts spaces around every operator, so a slash between two spaces divides, as `/=` does, and other ones begin
//! a regular expression or a comment.

/// After these, the end of a line means nothing, in a script and in a style sheet.
const JOINED: [char; 5] = ['(', '[', '{', ',', ';'];

/// Returns a script without what browsers do not need.
pub(crate) fn script(text: &str) -> String {
    let lines = lines(text);
    let mut reader = Reader { left: &lines, made: String::with_capacity(lines.len()), open: Vec::new() };
    while let Some(character) = reader.left.chars().next() {
        reader.take(character);
    }
    reader.made
}

/// Returns a style sheet without what browsers do not need.
pub(crate) fn style(text: &str) -> String {
    let lines = lines(text);
    let parts = lines.split('"').enumerate().map(|(number, part)| {
        if number % 2 == 1 {
            return part.to_owned();
        }
        [(": ", ":"), (", ", ","), (" {", "{"), (" > ", ">"), (";}", "}")]
            .iter()
            .fold(part.to_owned(), |made, (long, short)| made.replace(long, short))
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// Returns a text without comments, indentation, and the ends of lines and the commas that mean nothing. Only comments that
/// begin a line are found, so none in a string; a test makes sure that no text has several lines. Lines that may end with
/// a comment stay as they are.
fn lines(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut is_inside = false;
    for line in text.lines() {
        let start = line.trim_start();
        is_inside |= start.starts_with("/*");
        if !is_inside && !start.starts_with("//") {
            if made.ends_with(',') && start.starts_with([')', ']', '}']) {
                made.pop();
            }
            made.push_str(start);
            if !start.ends_with(JOINED) || start.contains(" //") {
                made.push('\n');
            }
        }
        is_inside &= !line.contains("*/");
    }
    made
}

/// The meaning of an opening brace of a script.
#[derive(PartialEq)]
enum Brace {
    Block,
    /// A value in a template.
    Value,
}

/// Reads a script.
struct Reader<'a> {
    left: &'a str,
    made: String,
    open: Vec<Brace>,
}

impl Reader<'_> {
    /// Takes what begins with a character.
    fn take(&mut self, first: char) {
        match first {
            '"' | '\'' => self.keep(end_of_string(self.left, first)),
            '`' => {
                self.keep(1);
                self.take_template();
            }
            '{' => {
                self.open.push(Brace::Block);
                self.keep(1);
            }
            '}' if self.open.pop() == Some(Brace::Value) => {
                self.keep(1);
                self.take_template();
            }
            '}' => {
                if self.made.ends_with(';') {
                    self.made.pop();
                }
                self.keep(1);
            }
            '/' if self.left.starts_with("//") => self.keep(self.left.find('\n').unwrap_or(self.left.len())),
            '/' if self.left.starts_with("/ ") && self.made.ends_with('\n') => self.keep(1),
            '/' => self.keep(end_of_expression(self.left)),
            ' ' => {
                let is_division = self.left.starts_with(" / ") || self.left.starts_with(" /= ");
                self.left = &self.left[1..];
                if is_division {
                    self.keep(1);
                } else if self.needs_space() {
                    self.made.push(' ');
                }
            }
            other => self.keep(other.len_utf8()),
        }
    }

    /// Keeps so many bytes as they are.
    fn keep(&mut self, bytes: usize) {
        let (kept, left) = self.left.split_at(bytes);
        self.made.push_str(kept);
        self.left = left;
    }

    /// Keeps a template up to its end or its next value.
    fn take_template(&mut self) {
        let mut is_escaped = false;
        for (index, character) in self.left.char_indices() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '`' => return self.keep(index + 1),
                '$' if self.left[index..].starts_with("${") => {
                    self.open.push(Brace::Value);
                    return self.keep(index + 2);
                }
                _ => {}
            }
        }
        panic!("a template without an end: {}", begin_of(self.left));
    }

    /// Returns whether what was made and what is left would become something else without a space.
    fn needs_space(&self) -> bool {
        let is_word = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
        let (Some(before), Some(after)) = (self.made.chars().next_back(), self.left.chars().next()) else {
            return false;
        };
        is_word(before) && is_word(after)
            || before == after && ['+', '-', '/'].contains(&before)
            || before == '<' && after == '!'
    }
}

/// Returns the begin of a text, for people.
fn begin_of(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Returns the length of a string with its quotes.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return index + 1,
            _ => {}
        }
    }
    panic!("a string without an end: {}", begin_of(text));
}

/// Returns the length of a regular expression with its slashes. In a class, a slash means itself.
fn end_of_expression(text: &str) -> usize {
    let (mut is_escaped, mut is_class) = (false, false);
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return index + 1,
            '\n' => break,
            _ => {}
        }
    }
    panic!("a regular expression without an end: {}", begin_of(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_loses_what_means_nothing() {
        for (given, expected) in [
            ("// A comment.\nconst a = 1;\n  const b = [\n    2,\n  ];\n", "const a=1;const b=[2];"),
            ("if (a && !b) {\n  return { c, d: e };\n}\n", "if(a&&!b){return{c,d:e}}\n"),
            ("return a / b;\n", "return a/b;"),
            ("a /= b +\nc\n/ d;\n", "a/=b+\nc\n/d;"),
            ("a = b + +c - -d + e;\n", "a=b+ +c- -d+e;"),
            ("const f = async (x) => x ?? null;\n", "const f=async(x)=>x??null;"),
            ("for (const one of new Set(all)) go(one);\n", "for(const one of new Set(all))go(one);"),
            ("a = b; // why\nc();\n", "a=b;// why\nc();"),
        ] {
            assert_eq!(script(given), expected);
        }
    }

    #[test]
    fn texts_and_expressions_of_a_script_stay() {
        for text in [
            "a=\"b, \\\" { c }; d\";",
            "a='b, \\' { c }';",
            "a=`b, \\` { ${c({d:`e { ${f}, `})} ; }, /g`;",
            "a=b.replace(/ [/, \"] {1, 3}\\/ = /g,\" = \");",
        ] {
            assert_eq!(script(text), text);
        }
    }

    #[test]
    fn a_style_sheet_loses_what_means_nothing() {
        assert_eq!(
            style(
                "/* A comment. */\na > b,\n.c :focus {\n  margin: 0 calc(1px + 2px);\n  content: \": {, \";\n}\n"
            ),
            "a>b,.c :focus{margin:0 calc(1px + 2px);content:\": {, \"}\n"
        );
    }

    #[test]
    #[should_panic(expected = "a string without an end")]
    fn an_unknown_form_is_found() {
        let _ = script("a = \"b;\n");
    }
}
