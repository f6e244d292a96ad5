//! The command line: options and their defaults. `plan` checks which options can be combined.
//!
//! argh has no shared options, so a macro adds the common ones to every workload's command. argh recognises `Option` by its
//! tokens, so types that pass through the macro are in brackets.

use std::path::PathBuf;

use argh::FromArgs;

use crate::http::request::{Auth, Secret};
use crate::objects::sizes::Sizes;
use crate::units::{ByteCount, Span};
use crate::workload::{Digest, Order, Ratio};

/// An S3 load generator: closed or open loop, bodies that can be verified, HDR latencies.
#[derive(FromArgs, Debug)]
pub struct Arguments {
    /// the command
    #[argh(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
#[expect(missing_docs, reason = "each command describes itself")]
pub enum Command {
    Put(PutCommand),
    Get(GetCommand),
    RangeGet(RangeGetCommand),
    List(ListCommand),
    Delete(DeleteCommand),
    Mixed(MixedCommand),
    Prepare(PrepareCommand),
    Clean(CleanCommand),
    Idle(IdleCommand),
    Multipart(MultipartCommand),
    Files(FilesCommand),
    NullServer(NullServerCommand),
    Table(TableCommand),
    Histories(HistoriesCommand),
}

/// The options of every workload.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "described where they are declared, in `workload_command!`")]
pub struct Common {
    pub endpoint: String,
    pub ca_certificate: Option<PathBuf>,
    pub bucket: String,
    pub access_key: Option<String>,
    pub secret_key: Option<Secret>,
    pub region: String,
    pub auth: Auth,
    pub connections: u32,
    pub threads: Option<u32>,
    pub keys: u64,
    pub prefix: String,
    pub folder_keys: u64,
    pub first_key: u64,
    pub scatter: bool,
    pub size: Option<Sizes>,
    pub duration: Span,
    pub warm_up: Span,
    pub requests: Option<u64>,
    pub seed: u64,
    pub timeout: Span,
    pub send_buffer: ByteCount,
    pub payload_digest: Digest,
    pub verify: bool,
    pub fail_on_error: bool,
    pub json: bool,
    pub time_series: bool,
    pub server_pid: Option<u32>,
}

/// The options that only some workloads have.
#[derive(Clone, Default, Debug)]
#[expect(missing_docs, reason = "described where they are declared, below")]
pub struct Particular {
    pub order: Option<Order>,
    pub range_size: Option<ByteCount>,
    pub max_keys: Option<u32>,
    pub delimiter: Option<String>,
    pub walk: bool,
    pub ratio: Option<Ratio>,
    pub touch: bool,
    pub part_size: Option<ByteCount>,
    pub urls: Option<PathBuf>,
    pub origin: Option<String>,
    pub rate: Option<u32>,
}

macro_rules! workload_command {
    ($name:ident, $command:literal, $about:literal { $($(#[$meta:meta])* $field:ident: [$($type:tt)+],)* }) => {
        #[doc = $about]
        #[derive(FromArgs, Debug)]
        #[argh(subcommand, name = $command)]
        pub struct $name {
            /// http://host:port of the server (default http://127.0.0.1:7600)
            #[argh(option, default = "String::from(\"http://127.0.0.1:7600\")")]
            endpoint: String,
            /// PEM file of trusted certificate authorities; required with an https endpoint
            #[argh(option)]
            ca_certificate: Option<PathBuf>,
            /// the bucket
            #[argh(option)]
            bucket: String,
            /// access key (default: AWS_ACCESS_KEY_ID)
            #[argh(option)]
            access_key: Option<String>,
            /// secret key (default: AWS_SECRET_ACCESS_KEY)
            #[argh(option)]
            secret_key: Option<Secret>,
            /// region of the signature (default us-east-1)
            #[argh(option, default = "String::from(\"us-east-1\")")]
            region: String,
            /// authentication: header, presigned or none (default header)
            #[argh(option, default = "Auth::Header")]
            auth: Auth,
            /// number of connections, each with one request at a time (default 32)
            #[argh(option, default = "32")]
            connections: u32,
            /// threads that share the connections (default: one per CPU for bodies up to 64KiB, otherwise one per connection)
            #[argh(option)]
            threads: Option<u32>,
            /// number of keys (default 10000)
            #[argh(option, default = "10_000")]
            keys: u64,
            /// prefix of every key (default load/)
            #[argh(option, default = "String::from(\"load/\")")]
            prefix: String,
            /// keys per folder under the prefix; 0 for no folders (default 0)
            #[argh(option, default = "0")]
            folder_keys: u64,
            /// number of the first key, to continue what an earlier run has written (default 0)
            #[argh(option, default = "0")]
            first_key: u64,
            /// scatter the keys: one that is written next lies anywhere among the others
            #[argh(switch)]
            scatter: bool,
            /// object sizes: 4KiB, 1KiB..64KiB or 4KiB:60,64KiB:30,1MiB:10 (default 4KiB)
            #[argh(option)]
            size: Option<Sizes>,
            /// length of the measured window (default 10s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(10))")]
            duration: Span,
            /// time before the measured window (default 2s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(2))")]
            warm_up: Span,
            /// stop after this number of requests, without warm-up and time limit
            #[argh(option)]
            requests: Option<u64>,
            /// seed of content, sizes and choices; must be the same for writing and verifying (default 1)
            #[argh(option, default = "1")]
            seed: u64,
            /// time limit of a request without progress (default 60s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(60))")]
            timeout: Span,
            /// send buffer of each socket; 0 means the kernel's default, for networks with high latency (default 192KiB)
            #[argh(option, default = "ByteCount(192 * 1024)")]
            send_buffer: ByteCount,
            /// payload hash of signed uploads: unsigned or sha256 (default unsigned)
            #[argh(option, default = "Digest::Unsigned")]
            payload_digest: Digest,
            /// compare responses with what was written; exit code 2 if they differ
            #[argh(switch)]
            verify: bool,
            /// exit with 3 if any request fails
            #[argh(switch)]
            fail_on_error: bool,
            /// write the result as JSON
            #[argh(switch)]
            json: bool,
            /// add measurements of every second to the JSON
            #[argh(switch)]
            time_series: bool,
            /// process whose memory and CPU time are reported (Linux, same host)
            #[argh(option)]
            server_pid: Option<u32>,
            $($(#[$meta])* $field: $($type)+,)*
        }

        impl $name {
            /// Splits the options into those of all workloads and those of this one.
            #[must_use]
            pub fn split(self) -> (Common, Particular) {
                #[allow(unused_mut, reason = "some workloads have no options of their own")]
                let mut particular = Particular::default();
                $(particular.$field = self.$field;)*
                let common = Common {
                    endpoint: self.endpoint,
                    ca_certificate: self.ca_certificate,
                    bucket: self.bucket,
                    access_key: self.access_key,
                    secret_key: self.secret_key,
                    region: self.region,
                    auth: self.auth,
                    connections: self.connections,
                    threads: self.threads,
                    keys: self.keys,
                    prefix: self.prefix,
                    folder_keys: self.folder_keys,
                    first_key: self.first_key,
                    scatter: self.scatter,
                    size: self.size,
                    duration: self.duration,
                    warm_up: self.warm_up,
                    requests: self.requests,
                    seed: self.seed,
                    timeout: self.timeout,
                    send_buffer: self.send_buffer,
                    payload_digest: self.payload_digest,
                    verify: self.verify,
                    fail_on_error: self.fail_on_error,
                    json: self.json,
                    time_series: self.time_series,
                    server_pid: self.server_pid,
                };
                (common, particular)
            }
        }
    };
}

workload_command!(PutCommand, "put", "Upload objects, one key after the other, and start again after the last." {
    /// sequential or random keys (default sequential)
    #[argh(option)]
    order: [Option<Order>],
    /// requests per second that are due, whether earlier ones were answered or not: an open loop
    #[argh(option)]
    rate: [Option<u32>],
});
workload_command!(GetCommand, "get", "Download whole objects that `prepare` wrote." {
    /// sequential or random keys (default random)
    #[argh(option)]
    order: [Option<Order>],
    /// file with a URL for each key, one a line, such as those of embeds and shares; with --auth none
    #[argh(option)]
    urls: [Option<PathBuf>],
    /// header Origin of requests for --urls
    #[argh(option)]
    origin: [Option<String>],
    /// requests per second that are due, whether earlier ones were answered or not: an open loop
    #[argh(option)]
    rate: [Option<u32>],
});
workload_command!(RangeGetCommand, "range-get", "Download ranges at random offsets; --size is the size of the objects." {
    /// sequential or random keys (default random)
    #[argh(option)]
    order: [Option<Order>],
    /// bytes per range (default 64KiB)
    #[argh(option)]
    range_size: [Option<ByteCount>],
    /// file with a URL for each key, one a line, such as those of embeds and shares; with --auth none
    #[argh(option)]
    urls: [Option<PathBuf>],
    /// header Origin of requests for --urls
    #[argh(option)]
    origin: [Option<String>],
    /// requests per second that are due, whether earlier ones were answered or not: an open loop
    #[argh(option)]
    rate: [Option<u32>],
});
workload_command!(ListCommand, "list", "List pages that begin at random keys (ListObjectsV2 with start-after)." {
    /// keys per page (default 1000)
    #[argh(option)]
    max_keys: [Option<u32>],
    /// group keys by this delimiter
    #[argh(option)]
    delimiter: [Option<String>],
    /// read the whole list with continuation tokens instead
    #[argh(switch)]
    walk: [bool],
    /// requests per second that are due, whether earlier ones were answered or not: an open loop
    #[argh(option)]
    rate: [Option<u32>],
});
workload_command!(DeleteCommand, "delete", "Delete every key once." {});
workload_command!(MixedCommand, "mixed", "Run a mix of operations; each connection has its own keys and knows which exist." {
    /// weights of get:put:delete:list:range-get (default 60:25:5:5:5)
    #[argh(option)]
    ratio: [Option<Ratio>],
    /// bytes per range (default 64KiB)
    #[argh(option)]
    range_size: [Option<ByteCount>],
    /// keys per page (default 1000)
    #[argh(option)]
    max_keys: [Option<u32>],
    /// requests per second that are due, whether earlier ones were answered or not: an open loop
    #[argh(option)]
    rate: [Option<u32>],
});
workload_command!(PrepareCommand, "prepare", "Create the bucket if it is missing, and upload every key once." {});
workload_command!(CleanCommand, "clean", "List everything under the prefix and delete it." {});
workload_command!(IdleCommand, "idle", "Open connections and hold them for --duration, to measure the server's memory." {
    /// send one small signed list request on each connection first
    #[argh(switch)]
    touch: [bool],
});

workload_command!(MultipartCommand, "multipart", "Upload every key once, each in parts over all connections in parallel." {
    /// bytes per part (default 64MiB)
    #[argh(option)]
    part_size: [Option<ByteCount>],
});

/// Run a minimal server, to measure the maximum rate of the generator itself. It stores nothing: a GET returns the content that
/// `prepare` would have written.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "null-server")]
pub struct NullServerCommand {
    /// address to listen on (default 127.0.0.1:7699)
    #[argh(option, default = "String::from(\"127.0.0.1:7699\")")]
    pub bind: String,
    /// size of every object (default 4KiB)
    #[argh(option, default = "ByteCount(4096)")]
    pub size: ByteCount,
    /// seed of the content (default 1)
    #[argh(option, default = "1")]
    pub seed: u64,
}

/// Record concurrent histories on few keys and check that they are linearizable.
#[derive(FromArgs, Clone, Debug)]
#[argh(subcommand, name = "histories")]
pub struct HistoriesCommand {
    /// http://host:port of the server (default http://127.0.0.1:7600)
    #[argh(option, default = "String::from(\"http://127.0.0.1:7600\")")]
    pub endpoint: String,
    /// the bucket; created if it is missing
    #[argh(option, default = "String::from(\"histories\")")]
    pub bucket: String,
    /// access key (default: AWS_ACCESS_KEY_ID)
    #[argh(option)]
    pub access_key: Option<String>,
    /// secret key (default: AWS_SECRET_ACCESS_KEY)
    #[argh(option)]
    pub secret_key: Option<Secret>,
    /// number of histories (default 100)
    #[argh(option, default = "100")]
    pub histories: u64,
    /// number of concurrent clients (default 5)
    #[argh(option, default = "5")]
    pub clients: u64,
    /// requests of each client in each history (default 20)
    #[argh(option, default = "20")]
    pub operations: u64,
    /// number of keys that the clients share (default 3)
    #[argh(option, default = "3")]
    pub keys: u64,
    /// seed of all choices (default: random)
    #[argh(option)]
    pub seed: Option<u64>,
    /// folder for histories that fail (default ./failed-histories)
    #[argh(option, default = "PathBuf::from(\"failed-histories\")")]
    pub save: PathBuf,
    /// add a stale read to every history, to show that the checker finds it
    #[argh(switch)]
    pub fault_stale_read: bool,
}

/// Write the objects that `prepare` would upload as files, to compare with a file server.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "files")]
pub struct FilesCommand {
    /// number of keys (default 10000)
    #[argh(option, default = "10_000")]
    pub keys: u64,
    /// prefix of every key (default load/)
    #[argh(option, default = "String::from(\"load/\")")]
    pub prefix: String,
    /// keys per folder under the prefix; 0 for no folders (default 0)
    #[argh(option, default = "0")]
    pub folder_keys: u64,
    /// object sizes, as for `put` (default 4KiB)
    #[argh(option, default = "Sizes::Fixed(ByteCount(4096))")]
    pub size: Sizes,
    /// seed of content and sizes (default 1)
    #[argh(option, default = "1")]
    pub seed: u64,
    /// folder to write to: the one that the server serves as the bucket
    #[argh(positional)]
    pub folder: std::path::PathBuf,
}

/// Make a Markdown table of medians and ratios from results named WORK@SERVER@ROUND.json.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "table")]
pub struct TableCommand {
    /// the server that the others are compared with (default cairn)
    #[argh(option, default = "String::from(\"cairn\")")]
    pub subject: String,
    /// folder of the results
    #[argh(positional)]
    pub folder: std::path::PathBuf,
}
