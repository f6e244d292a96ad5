//! Tests of the reader of a form's parts.

use super::{PartReader, Progress, ReadForm, read_in_pieces};
use crate::forms::boundary::Delimiter;
use crate::limits::{
    FORM_BYTES_BEFORE_FILE_MAX, FORM_FIELD_BYTES_MAX, FORM_FIELDS_MAX, FORM_TRAILING_BYTES_MAX,
};

fn delimiter() -> Delimiter {
    Delimiter::new(b"xyz").expect("valid")
}

fn field(name: &str, value: &str) -> String {
    format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn file(content: &str) -> String {
    format!(
        "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
         Content-Type: text/plain\r\n\r\n{content}\r\n--xyz--\r\n"
    )
}

fn read(form: &str) -> ReadForm {
    read_in_pieces(delimiter(), form.as_bytes(), form.len())
}

fn code(form: &str) -> Option<&'static str> {
    read(form).err().map(|(code, _)| code)
}

fn fields(form: &str) -> Vec<(String, String)> {
    read(form).expect("valid").expect("has a file").0
}

/// Reads the form in pieces of every size. Each must give the same result, which is returned.
fn in_all_pieces(form: &str) -> ReadForm {
    let whole = read(form);
    for size in 1..form.len() {
        assert_eq!(read_in_pieces(delimiter(), form.as_bytes(), size), whole, "{size}");
    }
    whole
}

#[test]
fn fields_and_file_are_found_wherever_the_bytes_are_cut() {
    let tricky = "\r\n--xy\r\n\r\n--xY--\r";
    let form = format!("{}{}{}", field("Key", "a/${filename}"), field("policy", tricky), file("hello"));
    let (fields, filename, rest) = in_all_pieces(&form).expect("valid").expect("has a file");
    let expected = [("key", "a/${filename}"), ("policy", tricky)];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((&*filename, &*rest), ("a.txt", &b"hello\r\n--xyz--\r\n"[..]));
}

#[test]
fn preamble_and_white_space_after_the_boundary_are_skipped() {
    let form =
        format!("preamble\r\n--xy\r\n{}{}", field("key", "k"), file("")).replace("--xyz\r\n", "--xyz \t\r\n");
    assert_eq!(in_all_pieces(&form).expect("valid").expect("has a file").0.len(), 1);
    assert_eq!(fields(&format!("\r\n{}{}", field("key", ""), file(""))), [("key".into(), String::new())]);
}

#[test]
fn form_without_a_file_has_none() {
    assert_eq!(in_all_pieces(&format!("{}--xyz--\r\n", field("key", "k"))), Ok(None));
    assert_eq!(read("--xyz--"), Ok(None));
    assert_eq!(code(&field("key", "k")), Some("Incomplete"));
}

#[test]
fn other_grammar_is_malformed() {
    for form in [
        format!("--xyzz\r\n{}", file("")),
        format!("--xyz-\r\n{}", file("")),
        format!("--xyz --\r\n{}", file("")),
        format!("--xyz\n{}", file("")),
        format!("{}--xyzz\r\n{}", field("key", "k"), file("")),
        "--xyz\r\n\r\nvalue\r\n--xyz--\r\n\r\n".to_owned(),
        "--xyz\r\nContent-Disposition: form-data; name=key\n\r\n\r\nv\r\n--xyz--\r\n".to_owned(),
        format!("--xyz\r\nContent-Disposition: form-data; name=key; a={}\r\n\r\n", "b".repeat(5000)),
    ] {
        let refused = in_all_pieces(&form).expect_err(&form);
        assert_eq!(refused.0, "MalformedPOSTRequest", "{form:?}");
    }
    let latin = [field("key", "?").as_bytes(), file("").as_bytes()].concat();
    let latin: Vec<u8> = latin.into_iter().map(|byte| if byte == b'?' { 0xe4 } else { byte }).collect();
    let refused = read_in_pieces(delimiter(), &latin, 7).expect_err("not UTF-8");
    assert_eq!(refused.0, "MalformedPOSTRequest");
}

#[test]
fn fields_before_the_file_are_limited() {
    let long = |bytes: usize| format!("{}{}", field("key", &"a".repeat(bytes)), file(""));
    assert_eq!(code(&long(FORM_FIELD_BYTES_MAX - 3)), None);
    let too_long = Some("MaxPostPreDataLengthExceededError");
    assert_eq!(code(&long(FORM_FIELD_BYTES_MAX - 2)), too_long);
    let split = format!("{}{}", field("a", &"a".repeat(11_000)), long(11_000));
    assert_eq!(code(&split), too_long);
    let preamble = |bytes: usize| format!("{}\r\n{}", "p".repeat(bytes), file(""));
    assert_eq!(code(&preamble(30_000)), None);
    for bytes in [FORM_BYTES_BEFORE_FILE_MAX, 100_000] {
        let form = preamble(bytes);
        assert_eq!(code(&form), too_long);
        for size in [1, 1000, 4096] {
            assert_eq!(read_in_pieces(delimiter(), form.as_bytes(), size), read(&form), "{size}");
        }
    }
    let many = |count: usize| format!("{}{}", field("a", "").repeat(count), file(""));
    assert_eq!(fields(&many(FORM_FIELDS_MAX)).len(), FORM_FIELDS_MAX);
    assert_eq!(code(&many(FORM_FIELDS_MAX + 1)), Some("MalformedPOSTRequest"));
}

/// Pushes what follows the file, and returns how far it was read.
fn after_file(rest: &str) -> Result<Progress, &'static str> {
    PartReader::after_file(delimiter()).push(rest.as_bytes()).map_err(|error| error.code())
}

#[test]
fn what_follows_the_file_is_read_to_the_end() {
    for rest in ["--", "--\r\n", "--\r\nepilogue", "--anything"] {
        assert_eq!(after_file(rest), Ok(Progress::Ended), "{rest:?}");
    }
    let submit = "\r\nContent-Disposition: form-data; name=submit\r\n\r\nUpload\r\n--xyz";
    assert_eq!(after_file(&format!("{submit}--\r\n")), Ok(Progress::Ended));
    for rest in ["", "-", "\r\n", submit] {
        assert_eq!(after_file(rest), Ok(Progress::Incomplete), "{rest:?}");
    }
    let second = "\r\nContent-Disposition: form-data; name=file\r\n\r\n";
    assert!(matches!(after_file(second), Ok(Progress::File { .. })));
    assert_eq!(after_file("z--"), Err("MalformedPOSTRequest"));
    let long = "a".repeat(FORM_TRAILING_BYTES_MAX);
    assert_eq!(after_file(&format!("--{long}")), Err("MalformedPOSTRequest"));
}
