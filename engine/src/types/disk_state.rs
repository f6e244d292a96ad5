//! The state of the disk's free space.

/// The state of the disk's free space, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[repr(u8)]
pub enum DiskState {
    /// There is room.
    #[default]
    Ok = 0,
    /// Little is left above the reserve. Writes continue.
    Low = 1,
    /// Files cannot grow, and a slice has no free space left: writes are refused.
    Refusing = 2,
}

impl DiskState {
    /// All states, by their numbers.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Low, Self::Refusing];

    /// Returns the name in metrics and in the management API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Low => "low",
            Self::Refusing => "refusing",
        }
    }

    /// Returns whether writes are refused.
    #[must_use]
    pub const fn refuses_writes(self) -> bool {
        matches!(self, Self::Refusing)
    }
}
