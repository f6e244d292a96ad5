//! What the host must offer before an executor can start: a kernel with io_uring that lets us use it, and enough
//! lockable memory.
//!
//! glommio itself panics or blames an old kernel in these cases. Here each cause has its own error, whose text says
//! what to do. Only looks; changes nothing.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::limits::MEMLOCK_BYTES_MIN;

/// The oldest kernel that is supported, major and minor: earlier ones lack fixes of io_uring that durable writes need.
const KERNEL_MIN: (u32, u32) = (5, 15);
const KERNEL_RELEASE: &str = "/proc/sys/kernel/osrelease";
const IO_URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";
/// Says in its line `Seccomp:` whether a filter confines this process, which is mode 2; proc(5).
const STATUS: &str = "/proc/self/status";
/// Bytes of the kernel's `struct io_uring_params`, which has not grown since it was made.
const IO_URING_PARAMS_BYTES: usize = 120;

/// What to do about a seccomp filter, for each way in which services are confined. The profile is `packaging/container/seccomp.json`.
const FILTERED: &str = "a seccomp filter refuses io_uring to this process, as the default profile of container engines does. \
Run the container with the profile that Cairn brings, which is Docker's default and the three calls of io_uring:
  get the file:   packaging/container/seccomp.json of the sources, or /usr/share/cairn/seccomp.json of the image:
                  docker cp \"$(docker create <image>)\":/usr/share/cairn/seccomp.json seccomp.json
  docker, podman: run --security-opt seccomp=seccomp.json …
  compose:        security_opt: [\"seccomp=./seccomp.json\"]
  Quadlet:        SeccompProfile=/etc/cairn/seccomp.json
  Kubernetes:     seccompProfile: {type: Localhost, localhostProfile: cairn.json}, the file in /var/lib/kubelet/seccomp/
  systemd:        SystemCallFilter=io_uring_setup io_uring_enter io_uring_register";

/// Why the executors cannot start. `Display` names the cause and the remedy.
#[derive(Debug)]
pub enum StartError {
    /// The kernel is older than 5.15.
    KernelTooOld {
        /// The release as the kernel gives it.
        release: String,
    },
    /// `kernel.io_uring_disabled` is not 0.
    IoUringDisabled {
        /// Its value.
        setting: String,
    },
    /// io_uring_setup was refused.
    IoUringForbidden {
        /// Whether a seccomp filter confines this process; if none does, a security module has refused.
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
    /// A number of executors of 0 was asked for.
    NoExecutors,
    /// An executor could not be made.
    Executor {
        /// Its number.
        index: usize,
        /// What went wrong.
        reason: String,
    },
}

impl std::fmt::Display for StartError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KernelTooOld { release } => write!(
                formatter,
                "this kernel is Linux {release}, and 5.15 or later is needed: update the kernel"
            ),
            Self::IoUringDisabled { setting } => write!(
                formatter,
                "io_uring is turned off on this host (kernel.io_uring_disabled = {setting}): set it to 0 with \
                 `sysctl kernel.io_uring_disabled=0`, and in /etc/sysctl.d to keep it"
            ),
            Self::IoUringForbidden { filtered: true } => formatter.write_str(FILTERED),
            Self::IoUringForbidden { filtered: false } => formatter.write_str(
                "the kernel refuses io_uring to this process, which no seccomp filter confines: a security module such as \
                 SELinux or AppArmor does it; the host's audit log names the rule to change",
            ),
            Self::IoUringMissing => formatter.write_str(
                "this kernel was built without io_uring (CONFIG_IO_URING), or a sandbox hides it: use a kernel that has it",
            ),
            Self::IoUringFailed(error) => {
                write!(formatter, "io_uring cannot be set up: {error}; the kernel's log may say more")
            }
            Self::MemlockTooLow { limit } => write!(
                formatter,
                "only {limit} bytes of memory may be locked, and {MEMLOCK_BYTES_MIN} are needed: raise the limit with \
                 `ulimit -l 8192`, LimitMEMLOCK=8M in the systemd unit, or `--ulimit memlock=8388608` for a container"
            ),
            Self::NoExecutors => formatter.write_str("at least one executor is needed: configure one or more"),
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

/// Checks that executors can start on this host. [`start`](crate::start) does so too; a check of its own lets a
/// program say so before it touches anything.
///
/// # Errors
/// [`StartError`], with cause and remedy.
pub fn probe() -> Result<(), StartError> {
    probe_kernel()?;
    probe_io_uring()?;
    probe_memlock()?;
    Ok(())
}

/// Checks the kernel's version, and gives its release; `None` on a host without /proc, which cannot be judged here: the
/// set-up itself will tell.
///
/// # Errors
/// [`StartError::KernelTooOld`].
pub fn probe_kernel() -> Result<Option<String>, StartError> {
    let Ok(release) = std::fs::read_to_string(KERNEL_RELEASE) else { return Ok(None) };
    let release = release.trim().to_owned();
    match parse_release(&release) {
        Some(version) if version < KERNEL_MIN => Err(StartError::KernelTooOld { release }),
        _ => Ok(Some(release)),
    }
}

/// Checks the limit on locked memory, and gives it; `None`: there is no limit.
///
/// # Errors
/// [`StartError::MemlockTooLow`].
pub fn probe_memlock() -> Result<Option<u64>, StartError> {
    match memlock_limit() {
        Some(limit) if limit < MEMLOCK_BYTES_MIN => Err(StartError::MemlockTooLow { limit }),
        limit => Ok(limit),
    }
}

/// Bytes that may be locked; None: without limit.
pub(crate) fn memlock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Major and minor of a kernel release such as `6.18.44-fc`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Makes a ring with one entry and closes it.
///
/// # Errors
/// [`StartError`] with cause and remedy when this process may not have one.
pub fn probe_io_uring() -> Result<(), StartError> {
    match set_up_ring() {
        Ok(()) => Ok(()),
        Err(error) => {
            let disabled = std::fs::read_to_string(IO_URING_DISABLED).ok();
            let status = std::fs::read_to_string(STATUS).unwrap_or_default();
            Err(explain(error, disabled.as_deref(), is_filtered(&status)))
        }
    }
}

/// Whether the status of a process names a seccomp filter.
fn is_filtered(status: &str) -> bool {
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

/// From what the kernel answered and what `/proc` says to the cause.
fn explain(error: io::Error, disabled: Option<&str>, filtered: bool) -> StartError {
    match (error.raw_os_error(), disabled.map(str::trim)) {
        (Some(libc::EPERM), Some(setting)) if setting != "0" => {
            StartError::IoUringDisabled { setting: setting.to_owned() }
        }
        (Some(libc::EPERM | libc::EACCES), _) => StartError::IoUringForbidden { filtered },
        // podman's default profile says so of every call that it does not list. A kernel that has the setting has io_uring.
        (Some(libc::ENOSYS), setting) if filtered || setting.is_some() => {
            StartError::IoUringForbidden { filtered: true }
        }
        (Some(libc::ENOSYS), _) => StartError::IoUringMissing,
        // Before 5.12 rings counted as locked memory; security modules still say so.
        (Some(libc::ENOMEM), _) => StartError::MemlockTooLow { limit: memlock_limit().unwrap_or(u64::MAX) },
        _ => StartError::IoUringFailed(error),
    }
}

#[expect(
    unsafe_code,
    reason = "no safe wrapper for io_uring_setup is at hand, and glommio panics where it fails"
)]
fn set_up_ring() -> io::Result<()> {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};
    #[repr(C, align(8))]
    struct Params([u8; IO_URING_PARAMS_BYTES]);
    let mut params = Params([0; IO_URING_PARAMS_BYTES]);
    // SAFETY: io_uring_setup reads and writes one `struct io_uring_params`, which is 120 bytes of integers, zeroed as it
    // asks, aligned for its 64-bit fields, and alive during the call.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.0.as_mut_ptr()) };
    let descriptor = match RawFd::try_from(result) {
        Ok(descriptor) if descriptor >= 0 => descriptor,
        _ => return Err(io::Error::last_os_error()),
    };
    // SAFETY: the call has just returned this descriptor, so it is open and nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(parse_release("6.18.44-fc-v657\n"), Some((6, 18)));
        assert_eq!(parse_release("5.4.0"), Some((5, 4)));
        assert!(parse_release("5.4.0").unwrap() < KERNEL_MIN);
        assert!(parse_release("10.0").unwrap() > KERNEL_MIN);
        assert_eq!(parse_release("unknown"), None);
    }

    #[test]
    fn each_refusal_names_its_own_remedy() {
        let refused = |code, disabled, filtered| {
            explain(io::Error::from_raw_os_error(code), disabled, filtered).to_string()
        };
        assert!(refused(libc::EPERM, Some("2\n"), true).contains("sysctl kernel.io_uring_disabled=0"));
        for disabled in [Some("0\n"), None] {
            for code in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
                assert!(
                    refused(code, disabled, true).contains("--security-opt seccomp=seccomp.json"),
                    "{code}"
                );
            }
            assert!(refused(libc::EPERM, disabled, false).contains("SELinux"));
        }
        assert!(refused(libc::ENOSYS, None, false).contains("CONFIG_IO_URING"));
        assert!(StartError::MemlockTooLow { limit: 65536 }.to_string().contains("LimitMEMLOCK"));
    }

    #[test]
    fn a_filter_is_recognised_in_the_status() {
        assert!(is_filtered("Name:\tcairn\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered("Name:\tcairn\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(!is_filtered(""));
    }

    #[test]
    fn this_host_can_run_the_tests() {
        probe().unwrap();
    }
}
