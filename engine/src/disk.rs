//! Direct I/O on volumes from an executor: the engine's only use of glommio's files.
//!
//! With the feature `simulation` the files can be images in memory instead (`simulation/disk.rs`); without it every enum here
//! has one variant, and nothing is chosen. The side of plain threads is `files.rs`.
//!
//! A write runs in a task of its own that nothing cancels: a write whose future is dropped may be lost or land later,
//! so the space that it goes to stays reserved until the task has ended, whatever becomes of the client.

use crate::figures::ExecutorFigures;
use crate::files::Files;
use crate::limits::UNIT_BYTES;
#[cfg(feature = "simulation")]
use crate::simulation::disk::SimulatedFile;
use glommio::io::{DmaBuffer, DmaFile, OpenOptions, ReadResult};
use glommio::task::JoinHandle;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The volumes that an executor has open.
pub(crate) struct Disk {
    files: Files,
    figures: Arc<ExecutorFigures>,
    open: RefCell<HashMap<(u16, u32), Rc<DiskFile>>>,
}

/// One volume as an executor has it open.
pub(crate) struct DiskFile {
    handle: Handle,
    figures: Arc<ExecutorFigures>,
}

enum Handle {
    /// On the executor's ring.
    Direct(DmaFile),
    /// In memory.
    #[cfg(feature = "simulation")]
    Simulated(SimulatedFile),
}

/// A write under way, with what its preparation gave.
pub(crate) type Write<T> = JoinHandle<io::Result<T>>;

/// What a read gave: at least the bytes asked for, from an aligned start.
pub(crate) enum ReadBytes {
    Direct(ReadResult),
    #[cfg(feature = "simulation")]
    Simulated(Vec<u8>),
}

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Direct(read) => read,
            #[cfg(feature = "simulation")]
            Self::Simulated(read) => read,
        }
    }
}

/// An aligned buffer that a write takes.
pub(crate) enum WriteBuffer {
    Direct(DmaBuffer),
    #[cfg(feature = "simulation")]
    Simulated(Vec<u8>),
}

/// A full buffer, shared by its write and its digest.
#[derive(Clone)]
pub(crate) enum SharedBuffer {
    Direct(Rc<DmaBuffer>),
    #[cfg(feature = "simulation")]
    Simulated(Rc<Vec<u8>>),
}

impl WriteBuffer {
    /// The buffer again, when nobody else shares it any more.
    pub(crate) fn unshare(buffer: SharedBuffer) -> Option<Self> {
        match buffer {
            SharedBuffer::Direct(buffer) => Rc::into_inner(buffer).map(Self::Direct),
            #[cfg(feature = "simulation")]
            SharedBuffer::Simulated(buffer) => Rc::into_inner(buffer).map(Self::Simulated),
        }
    }

    /// No more changes: the buffer can be shared.
    pub(crate) fn share(self) -> SharedBuffer {
        match self {
            Self::Direct(buffer) => SharedBuffer::Direct(Rc::new(buffer)),
            #[cfg(feature = "simulation")]
            Self::Simulated(buffer) => SharedBuffer::Simulated(Rc::new(buffer)),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Direct(buffer) => buffer.as_bytes_mut(),
            #[cfg(feature = "simulation")]
            Self::Simulated(buffer) => buffer,
        }
    }
}

impl SharedBuffer {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Direct(buffer) => buffer.as_bytes(),
            #[cfg(feature = "simulation")]
            Self::Simulated(buffer) => buffer,
        }
    }
}

impl Disk {
    pub(crate) fn new(files: Files, figures: Arc<ExecutorFigures>) -> Self {
        Self { files, figures, open: RefCell::default() }
    }

    /// The file of a volume, opened when it is first used.
    pub(crate) async fn file(&self, slice: u16, volume: u32, path: &Path) -> io::Result<Rc<DiskFile>> {
        if let Some(file) = self.open.borrow().get(&(slice, volume)) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(self.open_file(path).await?);
        // Another task may have opened it meanwhile: either of the two will do.
        Ok(Rc::clone(self.open.borrow_mut().entry((slice, volume)).or_insert(file)))
    }

    async fn open_file(&self, path: &Path) -> io::Result<DiskFile> {
        let handle = match &self.files {
            Files::System => {
                let path: PathBuf = path.to_owned();
                let file = OpenOptions::new().read(true).write(true).dma_open(path).await;
                Handle::Direct(file.map_err(io::Error::from)?)
            }
            #[cfg(feature = "simulation")]
            Files::Simulated(simulation) => Handle::Simulated(simulation.disk.open(path)?),
        };
        Ok(DiskFile { handle, figures: Arc::clone(&self.figures) })
    }
}

impl DiskFile {
    /// Length in bytes.
    pub(crate) async fn length(&self) -> io::Result<u64> {
        match &self.handle {
            Handle::Direct(file) => file.file_size().await.map_err(io::Error::from),
            #[cfg(feature = "simulation")]
            Handle::Simulated(file) => Ok(file.length()),
        }
    }
}

/// A buffer of `bytes` bytes, rounded up to whole units.
pub(crate) fn write_buffer(file: &DiskFile, bytes: usize) -> WriteBuffer {
    let unit = usize::try_from(UNIT_BYTES).unwrap_or(4096);
    let bytes = bytes.next_multiple_of(unit);
    match &file.handle {
        Handle::Direct(file) => WriteBuffer::Direct(file.alloc_dma_buffer(bytes)),
        #[cfg(feature = "simulation")]
        Handle::Simulated(_) => WriteBuffer::Simulated(vec![0; bytes]),
    }
}

/// Begins to write the buffer that `prepared` gives, whole units, at `offset`. `keep` lives until the write has ended.
pub(crate) fn write<T: 'static>(
    file: &Rc<DiskFile>,
    offset: u64,
    prepared: impl Future<Output = io::Result<(SharedBuffer, T)>> + 'static,
    keep: impl Sized + 'static,
) -> Write<T> {
    let file = Rc::clone(file);
    glommio::spawn_local(async move {
        let (buffer, outcome) = prepared.await?;
        let bytes = buffer.as_bytes().len();
        let begun = Instant::now();
        let written = write_now(&file, offset, buffer).await;
        drop(keep);
        file.figures.writes.note_time(begun.elapsed());
        match written? {
            count if count == bytes => {
                file.figures.written_bytes.add(bytes as u64);
                Ok(outcome)
            }
            count => {
                Err(io::Error::new(io::ErrorKind::WriteZero, format!("{count} of {bytes} bytes written")))
            }
        }
    })
    .detach()
}

async fn write_now(file: &DiskFile, offset: u64, buffer: SharedBuffer) -> io::Result<usize> {
    match (&file.handle, buffer) {
        (Handle::Direct(file), SharedBuffer::Direct(buffer)) => {
            file.write_rc_at(buffer, offset).await.map_err(io::Error::from)
        }
        #[cfg(feature = "simulation")]
        (Handle::Simulated(file), buffer) => file.write_in_turn(buffer.as_bytes(), offset).await,
        #[cfg(feature = "simulation")]
        _ => Err(io::Error::other("a simulated buffer for a real file")),
    }
}

/// Reads `bytes` bytes (a multiple of a unit) at `offset`.
pub(crate) async fn read(file: &DiskFile, offset: u64, bytes: usize) -> io::Result<ReadBytes> {
    let begun = Instant::now();
    let read = read_now(file, offset, bytes).await;
    file.figures.reads.note_time(begun.elapsed());
    let read = read?;
    file.figures.read_bytes.add(read.as_ref().len() as u64);
    if read.as_ref().len() < bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} of {bytes} bytes read", read.as_ref().len()),
        ));
    }
    Ok(read)
}

async fn read_now(file: &DiskFile, offset: u64, bytes: usize) -> io::Result<ReadBytes> {
    match &file.handle {
        Handle::Direct(file) => {
            file.read_at_aligned(offset, bytes).await.map(ReadBytes::Direct).map_err(io::Error::from)
        }
        #[cfg(feature = "simulation")]
        Handle::Simulated(file) => file.read_in_turn(offset, bytes).await.map(ReadBytes::Simulated),
    }
}
