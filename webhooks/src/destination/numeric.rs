//! The spellings of IPv4 addresses that `getaddrinfo` accepts: decimal, octal, hexadecimal, shortened.

use std::net::Ipv4Addr;

/// The meaning of a host whose last label is a number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Numeric {
    /// It does not end in a number: a name.
    Name,
    /// An address, in whatever spelling.
    Address(Ipv4Addr),
    /// It ends in a number, but is no address. No top-level domain is numeric.
    Invalid,
}

/// Reads a host as the C library's `inet_aton` does: one to four parts in decimal, octal (`0…`) or hexadecimal (`0x…`), the
/// last of which fills all remaining bytes.
pub(super) fn parse(host: &str) -> Numeric {
    let parts: Vec<&str> = host.split('.').collect();
    let Some(last) = parts.last().filter(|last| is_numeric(last)) else {
        return Numeric::Name;
    };
    let Some(leading) = parts.get(..parts.len() - 1).filter(|leading| leading.len() <= 3) else {
        return Numeric::Invalid;
    };
    let mut address = 0_u32;
    for part in leading {
        let Some(value) = number(part).filter(|&value| value <= 0xff) else {
            return Numeric::Invalid;
        };
        address = address << 8 | value;
    }
    let bits = 32 - 8 * leading.len();
    match number(last) {
        Some(value) if u64::from(value) < 1 << bits => {
            // A shift by all 32 bits is no shift: then there are no leading parts.
            Numeric::Address(Ipv4Addr::from(
                address.checked_shl(u32::try_from(bits).unwrap_or(32)).unwrap_or(0) | value,
            ))
        }
        _ => Numeric::Invalid,
    }
}

/// Returns whether a label looks like a number to some C library: digits, or `0x` and hexadecimal digits.
fn is_numeric(label: &str) -> bool {
    let hexadecimal =
        label.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads one part in the base that its prefix says.
fn number(part: &str) -> Option<u32> {
    let (digits, base) = match part.as_bytes() {
        [b'0', b'x', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        _ => (part, 10),
    };
    // from_str_radix would accept a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, base).ok())?
}

#[cfg(test)]
mod tests {
    use super::{Numeric, parse};
    use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

    #[test]
    fn every_spelling_of_an_address_is_recognised() {
        for (host, address) in [
            ("127.0.0.1", [127, 0, 0, 1]),
            ("2130706433", [127, 0, 0, 1]),
            ("0x7f.1", [127, 0, 0, 1]),
            ("0177.0.0.1", [127, 0, 0, 1]),
            ("0x7f000001", [127, 0, 0, 1]),
            ("127.1", [127, 0, 0, 1]),
            ("127.0.1", [127, 0, 0, 1]),
            ("127.65535", [127, 0, 255, 255]),
            ("0", [0, 0, 0, 0]),
            ("00", [0, 0, 0, 0]),
            ("4294967295", [255, 255, 255, 255]),
            ("0xa9.0376.43518", [169, 254, 169, 254]),
        ] {
            assert_eq!(parse(host), Numeric::Address(Ipv4Addr::from(address)), "{host}");
        }
    }

    #[test]
    fn numbers_that_are_no_addresses_are_not_names_either() {
        for host in [
            "256.0.0.1",
            "1.2.3.4.5",
            "1.2.3.256",
            "4294967296",
            "08.0.0.1",
            "a.1",
            "1..1",
            "0x",
            "1.0x",
            "127.0.0.09",
        ] {
            assert_eq!(parse(host), Numeric::Invalid, "{host}");
        }
        for host in ["example.com", "1.example", "0x7f.example", "1a", "a", "x7"] {
            assert_eq!(parse(host), Numeric::Name, "{host}");
        }
    }

    /// The reader would miss an address if the C library understood more than it does.
    #[test]
    fn the_c_library_agrees() {
        for host in [
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "0x7f000001",
            "127.65535",
            "0",
            "0xa9.0376.43518",
        ] {
            let found: Vec<IpAddr> =
                (host, 80).to_socket_addrs().expect("a literal").map(|found| found.ip()).collect();
            let Numeric::Address(address) = parse(host) else { panic!("{host} is an address") };
            assert_eq!(found, [IpAddr::V4(address)], "{host}");
        }
    }
}
