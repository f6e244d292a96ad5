//! The state of the disk's free space.

cairn_model::named_enum! {
    /// The state of the disk's free space, from good to bad. Named as in metrics and in the management API.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
    #[repr(u8)]
    pub enum DiskState {
        /// There is room.
        #[default]
        Ok = 0 => "ok",
        /// Little is left above the reserve. Writes continue.
        Low = 1 => "low",
        /// Files cannot grow, and a slice has no free space left: writes are refused.
        Refusing = 2 => "refusing",
    }
}

impl DiskState {
    /// Returns whether writes are refused.
    #[must_use]
    pub const fn refuses_writes(self) -> bool {
        matches!(self, Self::Refusing)
    }
}
