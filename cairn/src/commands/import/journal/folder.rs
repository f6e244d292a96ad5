//! The folder of a journal.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Error, ErrorKind, Lines, Write};
use std::path::{Path, PathBuf};

use cairn_sync::Mutex;

use super::bounds::Bounds;
use super::record::Record;
use crate::failure::Failure;

/// Begins the first line of a list. The source and the birth of the bucket here follow.
const HEADER: &str = "cairn-import 1";
/// Ends the names of the list of the last run, of the list of this run, and of a list that is being put together.
const LAST: &str = "list";
const NEW: &str = "new";
const JOINED: &str = "joined";
/// The files of versions that could not be imported, and of those in whose place a client has written others.
const FAILURES: &str = "failures.jsonl";
const KEPT: &str = "kept.jsonl";

/// A journal, which one command at a time may use.
pub(crate) struct Journal {
    folder: PathBuf,
    source: String,
    failures: Mutex<BufWriter<File>>,
    kept: Mutex<BufWriter<File>>,
    /// Uploads that are not complete.
    uploads: Mutex<File>,
    /// Held while the command runs.
    _lock: File,
}

impl Journal {
    /// Opens the journal of imports from a source, or creates it.
    pub(crate) fn open(folder: &str, source: &str) -> Result<Self, Failure> {
        let folder = Path::new(folder);
        let failed = |error: Error| failed(folder, &error);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        if lock.try_lock().is_err() {
            return Err(format!("another import uses the journal {}", folder.display()).into());
        }
        let named = folder.join("source");
        let known = match fs::read_to_string(&named) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(failed)?,
        };
        match known.trim() {
            known if known == source => {}
            // An empty file was left by a version of this program that did not write the name whole.
            "" => {
                let unfinished = folder.join("source.new");
                let written = fs::write(&unfinished, format!("{source}\n"));
                written.and_then(|()| fs::rename(&unfinished, &named)).map_err(failed)?;
            }
            other => {
                let other = crate::terminal::plain(other);
                return Err(format!(
                    "the journal {} is of an import from {other}: name another folder with --journal",
                    folder.display()
                )
                .into());
            }
        }
        let listed =
            |name| File::create(folder.join(name)).map(BufWriter::new).map(Mutex::new).map_err(failed);
        let (failures, kept) = (listed(FAILURES)?, listed(KEPT)?);
        let uploads =
            OpenOptions::new().create(true).append(true).open(folder.join("uploads")).map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
            source: source.to_owned(),
            failures,
            kept,
            uploads: Mutex::new(uploads),
            _lock: lock,
        })
    }

    /// Returns the file in which failures are listed.
    pub(crate) fn failures_path(&self) -> String {
        self.folder.join(FAILURES).display().to_string()
    }

    /// Returns the file in which versions of the source are listed that are not here, because a client has written others.
    pub(crate) fn kept_path(&self) -> String {
        self.folder.join(KEPT).display().to_string()
    }

    /// Adds a failure to the list.
    pub(crate) fn add_failure(&self, line: &str) -> Result<(), Failure> {
        self.add_line(&self.failures, line)
    }

    /// Adds a version that is not here, because a client has written another one.
    pub(crate) fn add_kept(&self, line: &str) -> Result<(), Failure> {
        self.add_line(&self.kept, line)
    }

    fn add_line(&self, file: &Mutex<BufWriter<File>>, line: &str) -> Result<(), Failure> {
        let mut file = file.lock();
        file.write_all(line.as_bytes())
            .and_then(|()| file.flush())
            .map_err(|error| failed(&self.folder, &error))
    }

    /// Notes an upload before its parts are sent, so that the next run can remove it.
    pub(crate) fn add_upload(&self, line: &str) -> Result<(), Failure> {
        let mut file = self.uploads.lock();
        file.write_all(format!("{line}\n").as_bytes()).map_err(|error| failed(&self.folder, &error))
    }

    /// Takes the uploads that an earlier run has begun.
    pub(crate) fn take_uploads(&self) -> Result<Vec<String>, Failure> {
        let file = self.uploads.lock();
        let text = fs::read_to_string(self.folder.join("uploads"));
        let text = text.and_then(|text| file.set_len(0).map(|()| text));
        let text = text.map_err(|error| failed(&self.folder, &error))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn path(&self, bucket: &str, end: &str) -> PathBuf {
        self.folder.join(format!("{bucket}.{end}"))
    }

    fn header(&self, born: &str) -> String {
        format!("{HEADER}\t{}\t{born}", self.source)
    }

    /// Returns the list of the last run of a bucket, and begins a new one. `born` is when the bucket was created here: a list
    /// of an earlier bucket of this name counts for nothing.
    pub(crate) fn begin(&self, bucket: &str, born: &str) -> Result<(ListReader, ListWriter), Failure> {
        let lists = self.join(bucket, born).and_then(|()| {
            let last = self.open_list(bucket, LAST, born)?;
            let mut writer = BufWriter::with_capacity(1 << 18, File::create(self.path(bucket, NEW))?);
            writeln!(writer, "{}", self.header(born))?;
            Ok((ListReader::new(last)?, ListWriter { writer }))
        });
        lists.map_err(|error| failed(&self.folder, &error))
    }

    /// Returns keys that divide the list of the last run into ranges of about a page each.
    pub(crate) fn bounds(&self, bucket: &str, born: &str) -> Result<Vec<String>, Failure> {
        let found = self.open_list(bucket, LAST, born).and_then(|lines| {
            let (mut list, mut bounds) = (ListReader::new(lines)?, Bounds::new());
            while let Some(record) = list.next()? {
                bounds.add(record.key);
            }
            Ok(bounds.finish())
        });
        found.map_err(|error| failed(&self.folder, &error))
    }

    /// Makes the new list the list of the last run.
    pub(crate) fn finish(&self, bucket: &str, list: ListWriter) -> Result<(), Failure> {
        let renamed = list.close().and_then(|()| fs::rename(self.path(bucket, NEW), self.path(bucket, LAST)));
        renamed.map_err(|error| failed(&self.folder, &error))
    }

    fn open_list(
        &self,
        bucket: &str,
        end: &str,
        born: &str,
    ) -> Result<Option<Lines<BufReader<File>>>, Error> {
        let file = match File::open(self.path(bucket, end)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut lines = BufReader::with_capacity(1 << 18, file).lines();
        let header = lines.next().transpose()?;
        Ok((header.as_deref() == Some(self.header(born).as_str())).then_some(lines))
    }

    /// Puts the rest of the last list behind the beginning that a killed run has left.
    fn join(&self, bucket: &str, born: &str) -> Result<(), Error> {
        let Some(lines) = self.open_list(bucket, NEW, born)? else { return Ok(()) };
        let mut beginning = ListReader::new(Some(lines))?;
        let mut rest = ListReader::new(self.open_list(bucket, LAST, born)?)?;
        let mut writer = BufWriter::new(File::create(self.path(bucket, JOINED))?);
        writeln!(writer, "{}", self.header(born))?;
        let mut last_key = None;
        while let Some(record) = beginning.next()? {
            write!(writer, "{record}")?;
            last_key = Some(record.key);
        }
        while let Some(record) = rest.next()? {
            if last_key.as_ref().is_none_or(|last| last.as_bytes() < record.key.as_bytes()) {
                write!(writer, "{record}")?;
            }
        }
        writer.flush()?;
        fs::rename(self.path(bucket, JOINED), self.path(bucket, LAST))?;
        fs::remove_file(self.path(bucket, NEW))
    }
}

fn failed(folder: &Path, error: &Error) -> Failure {
    format!("the journal {} cannot be used: {error}", folder.display()).into()
}

/// The records of a list, in order. It ends at a damaged line, which a killed run has left.
pub(crate) struct ListReader {
    lines: Option<Lines<BufReader<File>>>,
    ahead: Option<Record>,
}

impl ListReader {
    fn new(lines: Option<Lines<BufReader<File>>>) -> Result<Self, Error> {
        let mut reader = Self { lines, ahead: None };
        reader.read_on()?;
        Ok(reader)
    }

    fn read_on(&mut self) -> Result<(), Error> {
        self.ahead = match self.lines.as_mut().and_then(Iterator::next) {
            None => None,
            // A torn line need not be text.
            Some(Err(error)) if error.kind() == ErrorKind::InvalidData => None,
            Some(line) => Record::parse(&line?),
        };
        if self.ahead.is_none() {
            self.lines = None;
        }
        Ok(())
    }

    /// Returns whether there is no record left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.ahead.is_none()
    }

    /// Returns the next record.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, Error> {
        let next = self.ahead.take();
        if next.is_some() {
            self.read_on()?;
        }
        Ok(next)
    }

    /// Returns the next record if its key is `key`, or with `before` if it is less.
    pub(crate) fn next_of(&mut self, key: &str, before: bool) -> Result<Option<Record>, Failure> {
        let fits = self.ahead.as_ref().is_some_and(|next| match before {
            true => next.key.as_bytes() < key.as_bytes(),
            false => next.key == key,
        });
        if !fits {
            return Ok(None);
        }
        self.next().map_err(|error| format!("the journal cannot be read: {error}").into())
    }
}

/// A list that is being written.
pub(crate) struct ListWriter {
    writer: BufWriter<File>,
}

impl ListWriter {
    /// Appends records, as text.
    pub(crate) fn add(&mut self, lines: &str) -> Result<(), Failure> {
        let written = self.writer.write_all(lines.as_bytes());
        written.map_err(|error| format!("the journal cannot be written: {error}").into())
    }

    /// Passes what was appended on to the file, where it survives the end of this program.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| format!("the journal cannot be written: {error}").into())
    }

    fn close(mut self) -> Result<(), Error> {
        self.writer.flush()?;
        self.writer.get_ref().sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::import::journal::State;

    fn record(key: &str) -> Record {
        let text = |text: &str| text.to_owned();
        Record {
            key: text(key),
            id: text("1"),
            version: text("v"),
            settings: text("s"),
            state: State::Imported,
        }
    }

    fn keys(mut list: ListReader) -> Vec<String> {
        std::iter::from_fn(|| list.next().expect("a list")).map(|record| record.key).collect()
    }

    fn write(list: &mut ListWriter, keys: &[&str]) {
        let lines: String = keys.iter().map(|key| record(key).to_string()).collect();
        list.add(&lines).expect("written");
    }

    /// It was taken for the journal of another source, for ever.
    #[test]
    fn a_run_that_was_killed_before_it_named_its_source_is_begun_again() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("source"), "").expect("written");
        let open = |source| Journal::open(folder.path().to_str().expect("text"), source).map(drop);
        assert_eq!(open("http://old:9000").err().map(|_| ()), None);
        assert!(open("http://other:9000").is_err());
    }

    #[test]
    fn a_killed_run_is_continued_with_the_rest_of_the_last_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("text");
        let journal = Journal::open(path, "http://old:9000").expect("a journal");
        let (last, mut new) = journal.begin("b", "t").expect("begun");
        assert_eq!(keys(last), [""; 0]);
        write(&mut new, &["a", "b", "c"]);
        journal.finish("b", new).expect("finished");

        let (_, mut new) = journal.begin("b", "t").expect("begun");
        write(&mut new, &["A", "b"]);
        new.add("bb\t1\tv").expect("torn");
        drop(new);
        let (last, new) = journal.begin("b", "t").expect("begun");
        assert_eq!(keys(last), ["A", "b", "c"]);
        drop(new);
        // The beginning that was left is empty.
        assert_eq!(keys(journal.begin("b", "t").expect("begun").0), ["A", "b", "c"]);
        // Another bucket of the same name.
        assert_eq!(keys(journal.begin("b", "later").expect("begun").0), [""; 0]);
    }

    #[test]
    fn a_journal_belongs_to_one_source_and_one_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("text");
        let journal = Journal::open(path, "http://old:9000").expect("a journal");
        assert!(Journal::open(path, "http://old:9000").is_err());
        journal.add_upload("b\tk\tu").expect("noted");
        assert_eq!(journal.take_uploads(), Ok(vec!["b\tk\tu".to_owned()]));
        assert_eq!(journal.take_uploads(), Ok(vec![]));
        drop(journal);
        assert!(Journal::open(path, "http://other:9000").is_err());
        assert!(Journal::open(path, "http://old:9000").is_ok());
    }

    #[test]
    fn records_are_taken_key_by_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(folder.path().to_str().expect("text"), "s").expect("a journal");
        let (_, mut new) = journal.begin("b", "t").expect("begun");
        write(&mut new, &["a", "b", "b", "d"]);
        journal.finish("b", new).expect("finished");
        let (mut last, _) = journal.begin("b", "t").expect("begun");
        let mut taken = |key: &str, before| {
            std::iter::from_fn(|| last.next_of(key, before).expect("read"))
                .map(|record| record.key)
                .collect::<String>()
        };
        assert_eq!(
            [taken("b", true), taken("b", false), taken("c", false), taken("c", true)],
            ["a", "bb", "", ""]
        );
    }
}
