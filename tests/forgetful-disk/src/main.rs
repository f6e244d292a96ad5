//! A test disk that forgets unflushed data at a power cut.
//!
//! One file in a FUSE file system, meant for a loop device with direct I/O and a real file system on that. A flush of
//! the loop device arrives here as fsync.
//!
//! It says `ready` when it is mounted, then obeys commands from standard input, one line each, and answers each with
//! one line that begins with `ok` or `error`. At the end of input it unmounts itself and ends. What a cut does is in
//! `disk.rs`.
//!
//! ```text
//! cut SEED lose|keep|mix          the power fails     ok kept=3 lost=2 torn=1
//! restore                         the power is back   ok
//! fail reads|writes|flushes       EIO from now on     ok
//! ignore flushes                  they do nothing     ok
//! stall BYTES                     writes of so many bytes or more are not done and not answered   ok
//! stalled                         how many wait       ok 7
//! heal                            no faults           ok
//! ```

mod disk;

use argh::FromArgs;
use cairn_sync::Mutex;
use disk::{CutMode, Disk, Faults, SECTOR_BYTES};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Name of the one file.
const NAME: &str = "disk";
const DISK_INODE: INodeNo = INodeNo(2);
/// The kernel may believe what it was told about the file: nothing of it changes but the bytes.
const TTL: Duration = Duration::from_secs(3600);
/// Requests of the loop device that the kernel sends without waiting for the ones before.
const BACKGROUND_MAX: u16 = 64;

/// A disk that forgets what was not flushed.
#[derive(FromArgs)]
struct Arguments {
    /// image that reads and writes meet
    #[argh(option)]
    current: PathBuf,
    /// image that a cut leaves; the same bytes at the start
    #[argh(option)]
    durable: PathBuf,
    /// folder to mount on; the disk is the file `disk` in it
    #[argh(option)]
    mount: PathBuf,
}

/// Writes that a slow device has taken and not yet done.
struct Stall {
    /// Smaller ones are done at once: a file system must be able to write its journal.
    bytes_min: usize,
    writes: Vec<Stalled>,
}

/// One of them.
struct Stalled {
    offset: u64,
    data: Vec<u8>,
    reply: ReplyWrite,
}

/// The file system: a folder with one file.
#[derive(Clone)]
struct OneFile {
    disk: Arc<Mutex<Disk>>,
    /// Writes that wait for `heal`, while writes are stalled.
    stalled: Arc<Mutex<Option<Stall>>>,
}

impl OneFile {
    fn write_now(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        let written = self.disk.lock().write(offset, data);
        match (written, u32::try_from(data.len())) {
            (Ok(()), Ok(length)) => reply.written(length),
            _ => reply.error(Errno::EIO),
        }
    }

    fn heal(&self) {
        self.disk.lock().faults = Faults::default();
        let ended = self.stalled.lock().take();
        for write in ended.into_iter().flat_map(|stall| stall.writes) {
            self.write_now(write.offset, &write.data, write.reply);
        }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let bytes = self.disk.lock().bytes();
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK_INODE => (FileType::RegularFile, 0o600, bytes),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / SECTOR_BYTES as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the loop device waits for each request before it sends the next one.
        let lacking = |flags: InitFlags| io::Error::other(format!("the kernel lacks {flags:?}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(lacking)?;
        config.set_max_background(BACKGROUND_MAX).map(drop).map_err(|most| io::Error::other(most.to_string()))
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK_INODE) {
            Some(found) if parent == INodeNo::ROOT && name == NAME => {
                reply.entry(&TTL, &found, Generation(0))
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(found) => reply.attr(&TTL, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.disk.lock().read(offset, size);
        match read {
            Ok(data) => reply.data(&data),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match &mut *self.stalled.lock() {
            Some(stall) if data.len() >= stall.bytes_min => {
                stall.writes.push(Stalled { offset, data: data.to_vec(), reply });
            }
            _ => self.write_now(offset, data, reply),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let flushed = self.disk.lock().flush();
        match flushed {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file is no flush of a disk.
        reply.ok();
    }
}

/// Does what one line says; the answer without its `ok`.
fn obey(files: &OneFile, line: &str) -> Result<String, String> {
    let failed = |error: io::Error| error.to_string();
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["cut", seed, mode] => {
            let seed = seed.parse().map_err(|_| format!("no seed: {seed}"))?;
            let mode = match mode {
                "lose" => CutMode::Lose,
                "keep" => CutMode::Keep,
                "mix" => CutMode::Mix,
                other => return Err(format!("no mode: {other}")),
            };
            let cut = files.disk.lock().cut(seed, mode).map_err(failed)?;
            return Ok(format!(" kept={} lost={} torn={}", cut.kept, cut.lost, cut.torn));
        }
        ["restore"] => files.disk.lock().restore().map_err(failed)?,
        ["fail", "reads"] => files.disk.lock().faults.reads = true,
        ["fail", "writes"] => files.disk.lock().faults.writes = true,
        ["fail", "flushes"] => files.disk.lock().faults.flushes = true,
        ["ignore", "flushes"] => files.disk.lock().faults.flushes_ignored = true,
        ["stalled"] => {
            return Ok(format!(" {}", files.stalled.lock().as_ref().map_or(0, |stall| stall.writes.len())));
        }
        ["stall", bytes] => {
            let bytes_min = bytes.parse().map_err(|_| format!("no number: {bytes}"))?;
            *files.stalled.lock() = Some(Stall { bytes_min, writes: Vec::new() });
        }
        ["heal"] => files.heal(),
        _ => return Err(format!("no command: {line}")),
    }
    Ok(String::new())
}

fn open_image(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| io::Error::other(format!("{}: {e}", path.display())))
}

fn main() -> io::Result<()> {
    let arguments: Arguments = argh::from_env();
    let disk = Disk::new(open_image(&arguments.current)?, open_image(&arguments.durable)?)?;
    let files = OneFile { disk: Arc::new(Mutex::new(disk)), stalled: Arc::default() };
    let mut config = fuser::Config::default();
    config.mount_options = vec![MountOption::FSName("forgetful-disk".to_owned()), MountOption::RW];
    let session = fuser::Session::new(files.clone(), &arguments.mount, &config)?.spawn()?;
    let mut out = io::stdout().lock();
    writeln!(out, "ready")?;
    for line in io::stdin().lock().lines() {
        match obey(&files, &line?) {
            Ok(answer) => writeln!(out, "ok{answer}")?,
            Err(what) => writeln!(out, "error {what}")?,
        }
        out.flush()?;
    }
    session.umount_and_join()
}
