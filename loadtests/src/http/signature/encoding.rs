//! Percent-encoding as SigV4 requires it: everything except `A-Za-z0-9-._~`, in upper-case hex, a space as `%20`.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a key or path; slashes are not encoded.
pub fn push_encoded_path(text: &str, out: &mut String) {
    push(text, out, |byte| byte == b'/');
}

/// Appends the name or value of a query parameter; slashes are encoded too.
pub fn push_encoded_value(text: &str, out: &mut String) {
    push(text, out, |_| false);
}

fn push(text: &str, out: &mut String, also_kept: impl Fn(u8) -> bool) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') || also_kept(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_slashes_and_values_do_not() {
        let (mut path, mut value) = (String::new(), String::new());
        push_encoded_path("a//b c+ü~", &mut path);
        push_encoded_value("a//b c+ü~", &mut value);
        assert_eq!(path, "a//b%20c%2B%C3%BC~");
        assert_eq!(value, "a%2F%2Fb%20c%2B%C3%BC~");
    }
}
