//! All limits of the management plane, with their reasons.

use std::time::Duration;

/// Most verifications that run at once, on all executors together. Each reads one block at a time; more would make each
/// slower and the device busier.
pub(crate) const VERIFICATIONS_MAX: usize = 2;

/// Keys that one request changes when it undeletes or restores. The client sends it again for the others.
pub(crate) const RUN_KEYS_MAX: u64 = 100_000;

/// Copies that a restoration of a bucket makes at the same time.
pub(crate) const RESTORE_COPIES_MAX: usize = 16;

/// Most keys that one search examines, and the longest time that it takes. The client continues with the token.
pub(crate) const FIND_KEYS_MAX: u64 = 1_000_000;
/// See [`FIND_KEYS_MAX`].
pub(crate) const FIND_TIME_MAX: Duration = Duration::from_secs(2);
/// Largest size that a search can ask for, in bytes: far above that of any object.
pub(crate) const FIND_BYTES_MAX: u64 = 1_000_000_000_000_000;
/// Longest content type that a search can ask for, in characters.
pub(crate) const FIND_TYPE_CHARACTERS_MAX: usize = 255;

/// Most keys that one count of folders examines, and its longest time. Both are large: most clients ask once, and wait.
pub(crate) const USAGE_KEYS_MAX: u64 = 10_000_000;
/// See [`USAGE_KEYS_MAX`].
pub(crate) const USAGE_TIME_MAX: Duration = Duration::from_secs(20);
/// Most folders that a count returns: those with the most bytes. Up to two more may continue in other pages.
pub(crate) const FOLDERS_MAX: usize = 1000;

/// Most intervals of a count of changes, and how many there are unless the client says otherwise: one for 2 hours of a week.
pub(crate) const CHANGE_STEPS_MAX: u64 = 168;
/// See [`CHANGE_STEPS_MAX`].
pub(crate) const CHANGE_STEPS_DEFAULT: u64 = 84;
/// Reads of the engine for one interval, of a few thousand events each. What is left out is said.
pub(crate) const CHANGE_READS_MAX: usize = 16;
/// Longest time of one count. The newest intervals are counted first.
pub(crate) const CHANGE_TIME_MAX: Duration = Duration::from_secs(2);
/// Most deletions that a count names, and the fewest objects that each of them has removed.
pub(crate) const CHANGE_DELETIONS_MAX: usize = 20;
/// See [`CHANGE_DELETIONS_MAX`].
pub(crate) const CHANGE_DELETED_MIN: u64 = 10;
/// Most principals and rules that are told apart in one interval.
pub(crate) const CHANGE_ACTORS_MAX: usize = 1000;

/// Most entries of a history.
pub(crate) const HISTORY_ENTRIES_MAX: usize = 1000;
/// Most storage events that are examined for a history, and the longest time that each of its sources takes.
pub(crate) const HISTORY_EVENTS_MAX: u64 = 1_000_000;
/// See [`HISTORY_EVENTS_MAX`].
pub(crate) const HISTORY_TIME_MAX: Duration = Duration::from_secs(2);
/// Pages of the audit trail that are read for a history. Each reads 200 000 records at most.
pub(crate) const HISTORY_AUDIT_PAGES_MAX: usize = 5;
/// Most archives that are written at once, on all executors together. Each keeps its list of entries in memory.
pub(crate) const ARCHIVES_MAX: usize = 8;
/// Most entries of an archive. They are counted before it begins, which takes a second for so many.
pub(crate) const ARCHIVE_ENTRIES_MAX: u64 = 100_000;
/// Most bytes that the list of an archive takes in memory, with the names that were used: 100,000 entries with names of
/// 80 bytes.
pub(crate) const ARCHIVE_LIST_BYTES_MAX: usize = 20 << 20;
/// Bytes of headers and small objects that are sent together.
pub(crate) const ARCHIVE_BUFFER_BYTES: usize = 64 << 10;

/// Most runs of imports that are remembered. An importer whose run was forgotten begins another one.
pub(crate) const IMPORT_RUNS_MAX: usize = 1000;

/// Most of them that a list shows, the latest ones.
pub(crate) const IMPORT_RUNS_SHOWN: usize = 100;
/// Most versions of a batch of imports.
pub(crate) const IMPORT_BATCH_VERSIONS_MAX: usize = 64;
/// Most versions of batches that an executor commits at the same time. Writes of others wait for the commits that they are in.
pub(crate) const IMPORT_COMMIT_VERSIONS_MAX: usize = 16;
/// Largest batch of imports, in bytes. Hashing it takes less than a millisecond.
pub(crate) const IMPORT_BATCH_BYTES_MAX: usize = 512 << 10;
/// Intervals of which the bytes that came in imports are kept, and the length of each: the last ten minutes.
pub(crate) const IMPORT_INTERVALS: usize = 60;
pub(crate) const IMPORT_INTERVAL_SECONDS: u64 = 10;
/// Most reports of imports that are kept in memory. Each has at most the size of a body.
pub(crate) const IMPORT_REPORTS_MAX: usize = 8;
/// Most characters of a key and of a message in the last failure of a run.
pub(crate) const IMPORT_TEXT_CHARACTERS_MAX: usize = 200;

/// Most sessions of the console: people, each with a few browsers.
pub(crate) const SESSIONS_MAX: usize = 1000;
/// Most sessions of one credential. Several people may share the system token.
pub(crate) const SESSIONS_OF_CREDENTIAL_MAX: usize = 50;

/// Longest `User-Agent` that is kept of a session, in bytes: those of browsers have 100 to 200.
pub(crate) const USER_AGENT_BYTES_MAX: usize = 256;

/// Largest JSON body of a request, in bytes (specification, "Limits").
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// Most reads of one batch.
pub(crate) const BATCH_READS_MAX: usize = 16;
/// Most bytes of the answers of a batch together, beyond which reads are refused. Those of the overview have some kilobytes. It
/// is what the memory of a connection includes for a response.
pub(crate) const BATCH_BYTES_MAX: usize = 128 << 10;

/// Largest body of a login, in bytes: a token or a credential. Everybody may send it.
pub(crate) const LOGIN_BYTES_MAX: usize = 4096;

/// Most values in a JSON body. Parsing 1 MiB of empty objects would block the executor for a tenth of a second. The
/// largest policy has about 11 000 values.
pub(crate) const JSON_VALUES_MAX: usize = 20_000;

/// Longest error message about a JSON body, in bytes. The message quotes what the client sent.
pub(crate) const JSON_MESSAGE_BYTES_MAX: usize = 200;

/// Most entries of a page of a list, and the default.
pub(crate) const LIST_ENTRIES_MAX: usize = 1000;
/// Longest value of a setting in the explanation of a refused request, in bytes. A list of host names can be longer.
pub(crate) const SETTING_VALUE_BYTES_MAX: usize = 512;
/// Resources of policies that are compared for an explanation before the executor serves other requests: about 0.1 ms.
pub(crate) const EXPLAINED_AT_ONCE: usize = 4096;

/// Objects of a page that are looked up before the executor serves other requests: about 0.2 ms.
pub(crate) const LIST_YIELD_ENTRIES: usize = 64;

/// Most bytes of names and values of the user metadata, and of the values of the other stored headers (AWS: "Working
/// with object metadata").
pub(crate) const STORED_HEADER_BYTES_MAX: usize = 2048;

/// Most bytes of a text that a preview shows: more than anyone reads there.
pub(crate) const PREVIEW_TEXT_BYTES_MAX: u64 = 1 << 20;
/// Largest image with a preview, in bytes: browsers draw it without a noticeable pause.
pub(crate) const PREVIEW_IMAGE_BYTES_MAX: u64 = 16 << 20;

/// Largest PDF with a preview, in bytes: a scanned book.
pub(crate) const PREVIEW_PDF_BYTES_MAX: u64 = 64 << 20;

/// Most parameters of a query. Only lists are repeated, and none has more sensible values.
pub(crate) const QUERY_PARAMETERS_MAX: usize = 64;

/// Longest text that events are searched for, in bytes: the cost of a search grows with it.
pub(crate) const CONTAINED_BYTES_MAX: usize = 256;

/// Events in a page unless the client asks for another number (specification, "Reading events").
pub(crate) const EVENT_PAGE_EVENTS_DEFAULT: usize = 100;
/// Longest time that a request waits for an event, in seconds.
pub(crate) const EVENT_WAIT_SECONDS_MAX: u64 = 30;
/// Reads of the engine for one page. Each examines a few thousand events, and other requests are served in between.
pub(crate) const EVENT_READS_MAX: usize = 64;
/// Most requests that wait for an event on one executor. Each looks for one forty times a second.
pub(crate) const EVENT_WAITS_MAX: usize = 64;
/// Most of them of one caller: a quarter, so that no caller takes the places of all others. A consumer needs one.
pub(crate) const EVENT_WAITS_OF_CALLER_MAX: usize = EVENT_WAITS_MAX / 4;

/// Refused requests in a list unless the client asks for another number.
pub(crate) const REFUSED_REQUESTS_DEFAULT: usize = 100;

/// Shares or embeds of a list that are sent at once. An embed with 100 origins has about 3 KiB.
pub(crate) const LINKS_AT_ONCE: usize = 64;
