//! Explains a SIGBUS: a page of a mapped file cannot be read.
//!
//! LMDB reads its data file through a memory map. If the device cannot read a page, or the file was truncated, the kernel
//! sends SIGBUS to the thread that touched the page. The read cannot be completed or skipped: the thread is somewhere within
//! LMDB. So the process ends, as it would without a handler. The handler only writes first what happened, to which file,
//! and what to do.
//!
//! The handler makes system calls only, and uses no memory but its stack: it may interrupt any code. It runs on the
//! alternate stack that the standard library gives to each thread. Then the default action ends the process, so its parent
//! sees a death by SIGBUS, and systemd starts it again.

use std::sync::atomic::{AtomicBool, Ordering};

/// Longest path that is reported. Longer ones are cut.
const PATH_BYTES_MAX: usize = 1024;
/// Bytes of one read of the list of mappings. With the path they fit into the smallest alternate stack (8 KiB).
const PIECE_BYTES: usize = 512;

const BEFORE_PATH: &[u8] = b"cairn: fatal: a page of ";
const UNKNOWN_PATH: &[u8] = b"a mapped file";
const AFTER_PATH: &[u8] = b" could not be read (SIGBUS): the device failed, or the file was truncated while it was in use. \
The process ends.\n  Look for I/O errors in the kernel's log (dmesg) and check the disk and the file system. Then start the service again: it \
refuses to start if the file is too short.\n";

/// Installs the handler for the whole process.
pub(crate) fn explain_bus_errors() {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    #[expect(unsafe_code, reason = "there is no safe way to set a signal's handler")]
    // SAFETY: an all-zero sigaction is a valid value; the handler has the signature that SA_SIGINFO requires and makes only
    // async-signal-safe calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        // The arguments are valid, so this cannot fail. Without the handler the process would end without an explanation.
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_bus_error(
    signal: libc::c_int,
    information: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    /// Several threads may fail at the same time. One explanation suffices.
    static EXPLAINED: AtomicBool = AtomicBool::new(false);
    #[expect(unsafe_code, reason = "a signal handler has only the calls of libc")]
    // SAFETY: the kernel passes a valid siginfo_t, whose address is set for SIGBUS; signal() and raise() are
    // async-signal-safe.
    unsafe {
        if !EXPLAINED.swap(true, Ordering::SeqCst) {
            explain((*information).si_addr() as usize);
        }
        libc::signal(signal, libc::SIG_DFL);
        // Blocked while the handler runs, so the default action follows its return. This also covers a SIGBUS that another
        // process sent, which no instruction would repeat.
        libc::raise(signal);
    }
}

/// Writes the explanation to the standard error. Makes system calls only.
fn explain(address: usize) {
    let mut search = MappingSearch::new(address);
    #[expect(unsafe_code, reason = "a signal handler has only the calls of libc")]
    // SAFETY: open, read, write and close are async-signal-safe; the buffers outlive the calls and their lengths are right.
    unsafe {
        let maps = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if maps >= 0 {
            let mut piece = [0u8; PIECE_BYTES];
            while let Ok(read @ 1..) =
                usize::try_from(libc::read(maps, piece.as_mut_ptr().cast(), PIECE_BYTES))
            {
                if search.feed(piece.get(..read).unwrap_or_default()) {
                    break;
                }
            }
            libc::close(maps);
        }
        let path = if search.path().is_empty() { UNKNOWN_PATH } else { search.path() };
        for part in [BEFORE_PATH, path, AFTER_PATH] {
            // Nothing can be done if the standard error is closed.
            libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len());
        }
    }
}

/// Finds the path of the mapping that contains an address, in the text of `/proc/self/maps`.
///
/// Each line is `start-end permissions offset device inode path`, with addresses in hex. The text may be fed in pieces of
/// any length. Nothing is allocated, and nothing panics.
struct MappingSearch {
    address: usize,
    /// Fields of the current line that have ended.
    fields: usize,
    /// The first and the second address of the line.
    range: [usize; 2],
    /// The one of the two that is being read.
    bound: usize,
    path: [u8; PATH_BYTES_MAX],
    path_bytes: usize,
    after_space: bool,
}

impl MappingSearch {
    const fn new(address: usize) -> Self {
        Self {
            address,
            fields: 0,
            range: [0; 2],
            bound: 0,
            path: [0; PATH_BYTES_MAX],
            path_bytes: 0,
            after_space: false,
        }
    }

    /// Reads a piece of the text. Returns whether the mapping was found.
    fn feed(&mut self, piece: &[u8]) -> bool {
        /// Fields before the path.
        const FIELDS: usize = 5;
        for &byte in piece {
            match byte {
                b'\n' => {
                    if (self.range[0]..self.range[1]).contains(&self.address) {
                        return true;
                    }
                    *self = Self::new(self.address);
                }
                b' ' if self.fields < FIELDS => {
                    self.fields += usize::from(!self.after_space);
                    self.after_space = true;
                }
                // Blanks align the path.
                b' ' if self.path_bytes == 0 => {}
                _ if self.fields == 0 && byte == b'-' => self.bound = 1,
                _ if self.fields == 0 => {
                    let digit = char::from(byte).to_digit(16).unwrap_or(0) as usize;
                    if let Some(bound) = self.range.get_mut(self.bound) {
                        *bound = bound.wrapping_mul(16).wrapping_add(digit);
                    }
                }
                _ => {
                    self.after_space = false;
                    if self.fields == FIELDS
                        && let Some(place) = self.path.get_mut(self.path_bytes)
                    {
                        *place = byte;
                        self.path_bytes += 1;
                    }
                }
            }
        }
        false
    }

    /// Returns the path of the mapping. Empty if it was not found, or if it maps no file.
    fn path(&self) -> &[u8] {
        let is_found = (self.range[0]..self.range[1]).contains(&self.address);
        if is_found { self.path.get(..self.path_bytes).unwrap_or_default() } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::MappingSearch;

    const MAPS: &[u8] = b"55d0c0000000-55d0c0100000 r-xp 00000000 fe:00 1050 /usr/bin/cairn\n\
        7f0000000000-7f8000000000 r--s 00000000 fe:00 262160                     /srv/my store/slices/00/meta/data.mdb\n\
        7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0\n\
        7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n";

    fn path_of(address: usize, piece_bytes: usize) -> String {
        let mut search = MappingSearch::new(address);
        let _ = MAPS.chunks(piece_bytes).any(|piece| search.feed(piece));
        String::from_utf8(search.path().to_vec()).expect("a path")
    }

    #[test]
    fn mapping_of_an_address_is_found_in_pieces_of_any_length() {
        for piece_bytes in [1, 2, 7, 64, 512] {
            for address in [0x7f00_0000_0000, 0x7f7f_ffff_ffff] {
                assert_eq!(path_of(address, piece_bytes), "/srv/my store/slices/00/meta/data.mdb");
            }
            assert_eq!(path_of(0x55d0_c000_0001, piece_bytes), "/usr/bin/cairn");
            assert_eq!(path_of(0x7ffd_0000_0000, piece_bytes), "[stack]");
            for unmapped in [0, 0x7f80_0000_0000, 0x7ffc_0000_0000, usize::MAX] {
                assert_eq!(path_of(unmapped, piece_bytes), "", "{unmapped:x}");
            }
        }
    }
}
