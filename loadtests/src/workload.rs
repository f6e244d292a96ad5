//! Operations, and the kinds of run that use them.

use std::str::FromStr;

/// The S3 operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "named as S3 names them")]
pub enum Operation {
    Put,
    Get,
    RangeGet,
    List,
    Delete,
}

impl Operation {
    /// Number of operations.
    pub const COUNT: usize = 5;
    /// All of them, in the order of reports.
    pub const ALL: [Self; Self::COUNT] = [Self::Put, Self::Get, Self::RangeGet, Self::List, Self::Delete];

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::RangeGet => "range-get",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }

    /// Returns whether this status means success.
    #[must_use]
    pub const fn succeeds_with(self, status: u16) -> bool {
        match self {
            Self::Put | Self::Get | Self::List => status == 200,
            Self::RangeGet => status == 206,
            Self::Delete => status == 204 || status == 200,
        }
    }
}

/// The kinds of run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// One operation, over and over.
    Repeat(Operation),
    /// One operation, once per key.
    EachOnce(Operation),
    /// Several operations by weight.
    Mixed,
}

/// The order of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after the other over all connections; the first follows the last.
    Sequential,
    /// All with equal probability.
    Random,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sequential" => Ok(Self::Sequential),
            "random" => Ok(Self::Random),
            _ => Err(format!("'{text}': write sequential or random")),
        }
    }
}

/// The payload hash of a header-signed upload. Presigned uploads never have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digest {
    /// `UNSIGNED-PAYLOAD`.
    Unsigned,
    /// The SHA-256 of the body, computed for each request before its latency is measured.
    Sha256,
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unsigned" => Ok(Self::Unsigned),
            "sha256" => Ok(Self::Sha256),
            _ => Err(format!("'{text}': write unsigned or sha256")),
        }
    }
}

/// Weights of the operations of a mixed run, in the order of [`Ratio::ORDER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio(pub [u32; 5]);

impl Ratio {
    /// The order in which `--ratio` names the operations.
    pub const ORDER: [Operation; 5] =
        [Operation::Get, Operation::Put, Operation::Delete, Operation::List, Operation::RangeGet];
    pub(crate) const DEFAULT: Self = Self([60, 25, 5, 5, 5]);

    /// Sum of the weights.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|weight| u64::from(*weight)).sum()
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}': write five weights, get:put:delete:list:range-get, as 60:25:5:5:5");
        let weights: Result<Vec<u32>, _> = text.split(':').map(str::parse).collect();
        let ratio = Self(weights.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?);
        if ratio.total() == 0 { Err(wrong()) } else { Ok(ratio) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_ratio_is_refused() {
        assert_eq!("60:25:5:5:5".parse(), Ok(Ratio::DEFAULT));
        for text in ["1:1:1:1", "0:0:0:0:0", "1:1:1:1:x", "1:1:1:1:1:1"] {
            assert!(text.parse::<Ratio>().is_err(), "{text} was taken");
        }
    }
}
