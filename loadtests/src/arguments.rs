//! The command line. Only words and defaults; what goes together is decided in `plan`.
//!
//! argh has no shared options, so a macro writes the common ones into every workload's command. (It tells `Option` by
//! its tokens, hence the brackets around types that pass through the macro.)

use std::path::PathBuf;

use argh::FromArgs;

use crate::plan::{Digest, Order, Ratio};
use crate::request::{Auth, Secret};
use crate::sizes::Sizes;
use crate::units::{ByteCount, Span};

/// An S3 load generator: closed loop, one thread per connection, bodies that can be verified, HDR latencies.
#[derive(FromArgs, Debug)]
pub struct Arguments {
    /// what to do
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
            /// authorities (PEM) to trust; an https endpoint needs it
            #[argh(option)]
            ca_certificate: Option<PathBuf>,
            /// bucket to work in
            #[argh(option)]
            bucket: String,
            /// access key (else AWS_ACCESS_KEY_ID)
            #[argh(option)]
            access_key: Option<String>,
            /// secret key (else AWS_SECRET_ACCESS_KEY)
            #[argh(option)]
            secret_key: Option<Secret>,
            /// region of the signature (default us-east-1)
            #[argh(option, default = "String::from(\"us-east-1\")")]
            region: String,
            /// header, presigned or none (default header)
            #[argh(option, default = "Auth::Header")]
            auth: Auth,
            /// connections, each with one request at a time (default 32)
            #[argh(option, default = "32")]
            connections: u32,
            /// threads that share them (default: one per CPU for bodies up to 64KiB, else one per connection)
            #[argh(option)]
            threads: Option<u32>,
            /// number of keys (default 10000)
            #[argh(option, default = "10_000")]
            keys: u64,
            /// what every key begins with (default load/)
            #[argh(option, default = "String::from(\"load/\")")]
            prefix: String,
            /// keys per folder under the prefix; 0 for no folders (default 0)
            #[argh(option, default = "0")]
            folder_keys: u64,
            /// object sizes: 4KiB, 1KiB..64KiB or 4KiB:60,64KiB:30,1MiB:10 (default 4KiB)
            #[argh(option)]
            size: Option<Sizes>,
            /// measured time (default 10s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(10))")]
            duration: Span,
            /// time before it, not measured (default 2s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(2))")]
            warm_up: Span,
            /// end after so many requests, without warm-up or clock
            #[argh(option)]
            requests: Option<u64>,
            /// seed of content, sizes and choices; equal for writing and checking (default 1)
            #[argh(option, default = "1")]
            seed: u64,
            /// give up a request that waits longer for bytes (default 60s)
            #[argh(option, default = "Span(std::time::Duration::from_secs(60))")]
            timeout: Span,
            /// send buffer of each socket; 0 leaves it to the kernel, for networks that are far (default 192KiB)
            #[argh(option, default = "ByteCount(192 * 1024)")]
            send_buffer: ByteCount,
            /// what signed uploads say of their body: unsigned or sha256 (default unsigned)
            #[argh(option, default = "Digest::Unsigned")]
            payload_digest: Digest,
            /// compare what comes back with what was written; exit code 2 if it differs
            #[argh(switch)]
            verify: bool,
            /// exit code 3 on any failed request
            #[argh(switch)]
            fail_on_error: bool,
            /// write the result as JSON
            #[argh(switch)]
            json: bool,
            /// add the figures of every second to the JSON
            #[argh(switch)]
            time_series: bool,
            /// process to watch for memory and CPU time (Linux, same host)
            #[argh(option)]
            server_pid: Option<u32>,
            $($(#[$meta])* $field: $($type)+,)*
        }

        impl $name {
            /// The options in the form that all workloads share.
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

workload_command!(PutCommand, "put", "Upload objects, one key after the other, and begin again after the last." {
    /// sequential or random keys (default sequential)
    #[argh(option)]
    order: [Option<Order>],
});
workload_command!(GetCommand, "get", "Download whole objects that `prepare` wrote." {
    /// sequential or random keys (default random)
    #[argh(option)]
    order: [Option<Order>],
});
workload_command!(RangeGetCommand, "range-get", "Download ranges at random offsets; --size is that of the objects." {
    /// sequential or random keys (default random)
    #[argh(option)]
    order: [Option<Order>],
    /// bytes per range (default 64KiB)
    #[argh(option)]
    range_size: [Option<ByteCount>],
});
workload_command!(ListCommand, "list", "List pages that begin at random keys (ListObjectsV2 with start-after)." {
    /// keys per page (default 1000)
    #[argh(option)]
    max_keys: [Option<u32>],
    /// group keys by this delimiter
    #[argh(option)]
    delimiter: [Option<String>],
    /// go through the whole list by continuation tokens instead
    #[argh(switch)]
    walk: [bool],
});
workload_command!(DeleteCommand, "delete", "Delete every key once, and end with the last." {});
workload_command!(MixedCommand, "mixed", "A mix of operations; each connection has its own keys and knows which exist." {
    /// weights of get:put:delete:list:range-get (default 60:25:5:5:5)
    #[argh(option)]
    ratio: [Option<Ratio>],
    /// bytes per range (default 64KiB)
    #[argh(option)]
    range_size: [Option<ByteCount>],
    /// keys per page (default 1000)
    #[argh(option)]
    max_keys: [Option<u32>],
});
workload_command!(PrepareCommand, "prepare", "Create the bucket if need be and upload every key once." {});
workload_command!(CleanCommand, "clean", "List everything under the prefix and delete it." {});
workload_command!(IdleCommand, "idle", "Open connections and hold them for --duration; for the server's memory figure." {
    /// one small signed list on each connection first
    #[argh(switch)]
    touch: [bool],
});

workload_command!(MultipartCommand, "multipart", "Upload every key once, each in parts over all connections at the same time." {
    /// bytes per part (default 64MiB)
    #[argh(option)]
    part_size: [Option<ByteCount>],
});

/// The least server that a client can talk to, to find the generator's own ceiling. It stores nothing: a GET
/// answers the content that `prepare` would have written.
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
    /// bucket to work in; made if need be
    #[argh(option, default = "String::from(\"histories\")")]
    pub bucket: String,
    /// access key (else AWS_ACCESS_KEY_ID)
    #[argh(option)]
    pub access_key: Option<String>,
    /// secret key (else AWS_SECRET_ACCESS_KEY)
    #[argh(option)]
    pub secret_key: Option<Secret>,
    /// how many (default 100)
    #[argh(option, default = "100")]
    pub histories: u64,
    /// clients that work at the same time (default 5)
    #[argh(option, default = "5")]
    pub clients: u64,
    /// requests of each client in each history (default 20)
    #[argh(option, default = "20")]
    pub operations: u64,
    /// keys that they share (default 3)
    #[argh(option, default = "3")]
    pub keys: u64,
    /// what all choices follow from (default: another each time)
    #[argh(option)]
    pub seed: Option<u64>,
    /// folder for histories that fail (default ./failed-histories)
    #[argh(option, default = "PathBuf::from(\"failed-histories\")")]
    pub save: PathBuf,
    /// add a stale read to every history, to see that the checker finds it
    #[argh(switch)]
    pub fault_stale_read: bool,
}

/// Write the objects that `prepare` would upload as files, for a server of plain files to compare with.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "files")]
pub struct FilesCommand {
    /// number of keys (default 10000)
    #[argh(option, default = "10_000")]
    pub keys: u64,
    /// what every key begins with (default load/)
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
    /// folder to write to: the one that the server shows as the bucket
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
