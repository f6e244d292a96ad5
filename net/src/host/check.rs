//! Preflight checks of the host: the kernel, io_uring and lockable memory.
//!
//! In these cases glommio panics or blames an old kernel. Here each cause has its own error, whose text says what to
//! do. The checks change nothing.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::limits::{IO_MEMORY_BYTES_MIN, MEMLOCK_BYTES_MIN, RING_BYTES, RINGS_PER_EXECUTOR};

/// The oldest supported kernel, major and minor. Earlier ones lack fixes of io_uring that durable writes need.
const KERNEL_MIN: (u32, u32) = (5, 15);
const KERNEL_RELEASE: &str = "/proc/sys/kernel/osrelease";
const IO_URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";
/// Its line `Seccomp:` gives mode 2 when a seccomp filter confines this process; see proc(5).
const STATUS: &str = "/proc/self/status";
/// Maps the users of a user namespace to those of the host; see user_namespaces(7).
const USERS: &str = "/proc/self/uid_map";
/// Bytes of the kernel's `struct io_uring_params`, which has never grown.
const IO_URING_PARAMS_BYTES: usize = 120;

/// The remedy for a seccomp filter, for each kind of container and service manager. The profile is
/// `packaging/container/seccomp.json`.
const FILTERED: &str = "a seccomp filter denies io_uring to this process, as the default profile of container engines does. \
Run the container with Cairn's profile, which is Docker's default profile plus the three system calls of io_uring:
  get the file:   packaging/container/seccomp.json of the sources, or /usr/share/cairn/seccomp.json of the image:
                  docker cp \"$(docker create <image>)\":/usr/share/cairn/seccomp.json seccomp.json
  docker, podman: run --security-opt seccomp=seccomp.json …
  compose:        security_opt: [\"seccomp=./seccomp.json\"]
  Quadlet:        SeccompProfile=/etc/cairn/seccomp.json
  Kubernetes:     seccompProfile: {type: Localhost, localhostProfile: cairn.json}, the file in /var/lib/kubelet/seccomp/
  systemd:        SystemCallFilter=io_uring_setup io_uring_enter io_uring_register";

/// The error of executors that cannot start. `Display` names the cause and the remedy.
#[derive(Debug)]
pub enum StartError {
    /// The kernel is older than 5.15.
    KernelTooOld {
        /// The release that the kernel reports.
        release: String,
    },
    /// `kernel.io_uring_disabled` is not 0.
    IoUringDisabled {
        /// Its value.
        setting: String,
    },
    /// io_uring_setup was denied.
    IoUringForbidden {
        /// Whether a seccomp filter confines this process. If not, a security module has denied it.
        filtered: bool,
    },
    /// The kernel was built without io_uring.
    IoUringMissing,
    /// io_uring_setup failed in another way.
    IoUringFailed(io::Error),
    /// The limit on locked memory is too low.
    MemlockTooLow {
        /// The limit in bytes.
        limit: u64,
    },
    /// The limit on locked memory is too low for this many executors.
    MemlockForExecutors {
        /// The limit in bytes.
        limit: u64,
        /// The executors that were requested.
        executors: usize,
        /// The number of them that the limit allows.
        possible: usize,
    },
    /// 0 executors were requested.
    NoExecutors,
    /// An executor could not be started.
    Executor {
        /// Its number.
        index: usize,
        /// The reason.
        reason: String,
    },
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KernelTooOld { release } => write!(
                formatter,
                "this kernel is Linux {release}, but 5.15 or later is required: update the kernel"
            ),
            Self::IoUringDisabled { setting } => write!(
                formatter,
                "io_uring is disabled on this host (kernel.io_uring_disabled = {setting}): set it to 0 with \
                 `sysctl kernel.io_uring_disabled=0`, and permanently in /etc/sysctl.d"
            ),
            Self::IoUringForbidden { filtered: true } => formatter.write_str(FILTERED),
            Self::IoUringForbidden { filtered: false } => formatter.write_str(
                "the kernel denies io_uring to this process, and no seccomp filter is active: a security module such as \
                 SELinux or AppArmor denies it; the host's audit log names the rule to change",
            ),
            Self::IoUringMissing => formatter.write_str(
                "this kernel was built without io_uring (CONFIG_IO_URING), or a sandbox hides it: use a kernel with io_uring",
            ),
            Self::IoUringFailed(error) => {
                write!(formatter, "io_uring cannot be set up: {error}; see the kernel log")
            }
            Self::MemlockTooLow { limit } => write!(
                formatter,
                "only {limit} bytes of memory may be locked, but {MEMLOCK_BYTES_MIN} are required: raise the limit with \
                 `ulimit -l 8192`, LimitMEMLOCK=8M in the systemd unit, or `--ulimit memlock=8388608` for a container"
            ),
            Self::MemlockForExecutors { limit, executors, possible } => write!(
                formatter,
                "only {limit} bytes of memory may be locked, which is enough for {possible} executors, but not for {executors}: \
                 raise the limit to at least {needed} bytes (`ulimit -l {kibibytes}`, LimitMEMLOCK in the systemd unit, `--ulimit \
                 memlock={needed}` for a container), or set server.executors to {possible} or fewer",
                needed = memlock_of(*executors),
                kibibytes = memlock_of(*executors).div_ceil(1024),
            ),
            Self::NoExecutors => formatter.write_str("at least one executor is required: configure one or more"),
            Self::Executor { index, reason } => write!(
                formatter,
                "executor {index} cannot start: {reason}; fewer executors or a higher memlock limit may help"
            ),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::IoUringFailed(error) => Some(error),
            _ => None,
        }
    }
}

/// Checks that executors can start on this host. [`start`](crate::start) does so too; this function lets a program
/// report a failure before it changes anything.
///
/// # Errors
/// [`StartError`], with cause and remedy.
pub fn check_host() -> Result<(), StartError> {
    check_kernel()?;
    check_io_uring()?;
    check_memlock()?;
    Ok(())
}

/// Checks the version of the kernel and returns its release. Returns `None` on a host without /proc, where the version
/// is unknown and only the setup itself can fail.
///
/// # Errors
/// [`StartError::KernelTooOld`].
pub fn check_kernel() -> Result<Option<String>, StartError> {
    let Ok(release) = std::fs::read_to_string(KERNEL_RELEASE) else { return Ok(None) };
    let release = release.trim().to_owned();
    match parse_release(&release) {
        Some(version) if version < KERNEL_MIN => Err(StartError::KernelTooOld { release }),
        _ => Ok(Some(release)),
    }
}

/// Checks the limit on locked memory and returns it in bytes; `None` means unlimited.
///
/// # Errors
/// [`StartError::MemlockTooLow`].
pub fn check_memlock() -> Result<Option<u64>, StartError> {
    match memlock_limit() {
        Some(limit) if limit < MEMLOCK_BYTES_MIN => Err(StartError::MemlockTooLow { limit }),
        limit => Ok(limit),
    }
}

/// Returns how many executors the limit on locked memory allows; `None` means any number.
#[must_use]
pub fn executors_possible() -> Option<usize> {
    let (status, users) = (std::fs::read_to_string(STATUS), std::fs::read_to_string(USERS));
    if locks_without_limit(&status.unwrap_or_default(), &users.unwrap_or_default()) {
        return None;
    }
    memlock_limit().map(executors_within)
}

/// Checks that the limit on locked memory is high enough for `executors`.
///
/// # Errors
/// [`StartError::MemlockForExecutors`].
pub fn check_executors(executors: usize) -> Result<(), StartError> {
    match (executors_possible(), memlock_limit()) {
        (Some(possible), Some(limit)) if possible < executors => {
            Err(StartError::MemlockForExecutors { limit, executors, possible })
        }
        _ => Ok(()),
    }
}

/// Rings of an executor. Without them it cannot start.
const RINGS_BYTES: u64 = RINGS_PER_EXECUTOR * RING_BYTES;
/// Rings of an executor, and the least memory that it registers with them. If memory cannot be registered, data is copied.
const EXECUTOR_BYTES: u64 = RINGS_BYTES + RINGS_PER_EXECUTOR * IO_MEMORY_BYTES_MIN;

/// Returns the bytes that may have to be locked for this many executors: the last one needs only rings.
const fn memlock_of(executors: usize) -> u64 {
    (executors as u64).saturating_sub(1) * EXECUTOR_BYTES + RINGS_BYTES
}

/// Returns how many executors start with this limit on locked memory, at least 1.
fn executors_within(limit: u64) -> usize {
    usize::try_from(limit.saturating_sub(RINGS_BYTES) / EXECUTOR_BYTES)
        .unwrap_or(usize::MAX)
        .saturating_add(1)
}

/// Returns whether the kernel counts no locked memory of this process: it has CAP_IPC_LOCK, and not only in a user
/// namespace. `status` and `users` are the contents of files in `/proc/self`.
fn locks_without_limit(status: &str, users: &str) -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_of_host = users.split_whitespace().eq(["0", "0", "4294967295"]);
    is_of_host && effective.is_some_and(|mask| mask & CAP_IPC_LOCK != 0)
}

/// Returns how many bytes of memory may be locked; `None` means unlimited.
pub(crate) fn memlock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Parses major and minor of a kernel release such as `6.18.44-fc`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks that this process may use io_uring: makes a ring with one entry and closes it.
///
/// # Errors
/// [`StartError`] with cause and remedy.
pub fn check_io_uring() -> Result<(), StartError> {
    match set_up_ring() {
        Ok(()) => Ok(()),
        Err(error) => {
            let disabled = std::fs::read_to_string(IO_URING_DISABLED).ok();
            let status = std::fs::read_to_string(STATUS).unwrap_or_default();
            Err(explain(error, disabled.as_deref(), is_filtered(&status)))
        }
    }
}

/// Returns whether a process status reports a seccomp filter.
fn is_filtered(status: &str) -> bool {
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

/// Derives the cause from the kernel's error and from `/proc`.
fn explain(error: io::Error, disabled: Option<&str>, filtered: bool) -> StartError {
    match (error.raw_os_error(), disabled.map(str::trim)) {
        (Some(libc::EPERM), Some(setting)) if setting != "0" => {
            StartError::IoUringDisabled { setting: setting.to_owned() }
        }
        (Some(libc::EPERM | libc::EACCES), _) => StartError::IoUringForbidden { filtered },
        // podman's default profile returns ENOSYS for every call that it does not list. A kernel with the setting has
        // io_uring.
        (Some(libc::ENOSYS), setting) if filtered || setting.is_some() => {
            StartError::IoUringForbidden { filtered: true }
        }
        (Some(libc::ENOSYS), _) => StartError::IoUringMissing,
        // Before 5.12 rings counted as locked memory. Security modules still return this error.
        (Some(libc::ENOMEM), _) => StartError::MemlockTooLow { limit: memlock_limit().unwrap_or(u64::MAX) },
        _ => StartError::IoUringFailed(error),
    }
}

#[expect(
    unsafe_code,
    reason = "there is no safe wrapper for io_uring_setup among the dependencies, and glommio panics where it fails"
)]
fn set_up_ring() -> io::Result<()> {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};
    #[repr(C, align(8))]
    struct Params([u8; IO_URING_PARAMS_BYTES]);
    let mut params = Params([0; IO_URING_PARAMS_BYTES]);
    // SAFETY: io_uring_setup reads and writes one `struct io_uring_params`: 120 bytes of integers, zeroed as required,
    // aligned for its 64-bit fields, and alive during the call.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.0.as_mut_ptr()) };
    let descriptor = match RawFd::try_from(result) {
        Ok(descriptor) if descriptor >= 0 => descriptor,
        _ => return Err(io::Error::last_os_error()),
    };
    // SAFETY: the call has just returned this descriptor, so it is open and has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_by_number() {
        assert_eq!(parse_release("6.18.44-fc-v657\n"), Some((6, 18)));
        assert_eq!(parse_release("5.4.0"), Some((5, 4)));
        assert!(parse_release("5.4.0").unwrap() < KERNEL_MIN);
        assert!(parse_release("10.0").unwrap() > KERNEL_MIN);
        assert_eq!(parse_release("unknown"), None);
    }

    #[test]
    fn each_failure_names_its_own_remedy() {
        let explained = |code, disabled, filtered| {
            explain(io::Error::from_raw_os_error(code), disabled, filtered).to_string()
        };
        assert!(explained(libc::EPERM, Some("2\n"), true).contains("sysctl kernel.io_uring_disabled=0"));
        for disabled in [Some("0\n"), None] {
            for code in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
                assert!(
                    explained(code, disabled, true).contains("--security-opt seccomp=seccomp.json"),
                    "{code}"
                );
            }
            assert!(explained(libc::EPERM, disabled, false).contains("SELinux"));
        }
        assert!(explained(libc::ENOSYS, None, false).contains("CONFIG_IO_URING"));
        assert!(StartError::MemlockTooLow { limit: 65536 }.to_string().contains("LimitMEMLOCK"));
    }

    #[test]
    fn a_seccomp_filter_is_recognised_in_the_status() {
        assert!(is_filtered("Name:\tcairn\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered("Name:\tcairn\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(!is_filtered(""));
    }

    /// With the usual limit of 8 MiB, the start failed on hosts with many cores.
    #[test]
    fn executors_are_bounded_by_locked_memory_unless_the_kernel_does_not_count_it() {
        const HOST: &str = "         0          0 4294967295\n";
        let status = |mask: &str| format!("Name:\tcairn\nCapPrm:\tffffffffffffffff\nCapEff:\t{mask}\n");
        assert!(locks_without_limit(&status("000001ffffffffff"), HOST));
        assert!(!locks_without_limit(&status("00000000a80425fb"), HOST), "root of a container");
        assert!(!locks_without_limit(&status("000001ffffffffff"), "0 1000 1\n"), "root of a user namespace");
        assert!(!locks_without_limit("", ""));
        let too_many = StartError::MemlockForExecutors { limit: 8 << 20, executors: 64, possible: 30 };
        let text = too_many.to_string();
        assert!(text.contains("enough for 30 executors") && text.contains("17891328 bytes"), "{text}");
        assert_eq!([512 << 10, 8 << 20].map(executors_within), [2, 30]);
        for executors in 1..1024 {
            assert_eq!(executors_within(memlock_of(executors)), executors);
        }
    }

    #[test]
    fn this_host_can_run_the_tests() {
        check_host().unwrap();
    }
}
