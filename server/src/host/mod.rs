//! The host of the process: memory, open files, ports, permissions, and the service manager.

pub(crate) mod address_space;
pub(crate) mod data_folder;
pub(crate) mod memory;
pub(crate) mod open_files;
pub(crate) mod port;
mod port_holder;
pub(crate) mod protection;
pub(crate) mod sd_notify;
pub(crate) mod watchdog;
