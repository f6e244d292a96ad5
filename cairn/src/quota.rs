//! `cairn quota`: how much a bucket may hold.

use serde_json::{Value, json};

use crate::arguments::{command, noun};
use crate::bucket;
use crate::client::Request;
use crate::failure::{Failure, Outcome};
use crate::quantity::{ByteLimit, CountLimit};
use crate::table::{Columns, bytes, limit, text};

noun! {
    /// Limit what a bucket may hold.
    struct Quota("quota"): QuotaCommand { Set, Show }
}

command! {
    /// Set a bucket's limits. One that is not given stays as it is.
    struct Set("set") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// the most bytes of current objects, for example 10GiB; or unlimited
        #[argh(option, arg_name = "size")]
        bytes: Option<ByteLimit>,
        /// the most current objects; or unlimited
        #[argh(option, arg_name = "n")]
        objects: Option<CountLimit>,
    }
}

command! {
    /// Show a bucket's limits and what it holds.
    struct Show("show") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
    }
}

const COLUMNS: Columns = &[
    ("objects", |bucket| text(&bucket["usage"]["objects"])),
    ("objects limit", |bucket| limit(&bucket["quota"]["objects"], "objects", text)),
    ("size", |bucket| bytes(&bucket["usage"]["bytes"])),
    ("size limit", |bucket| limit(&bucket["quota"]["bytes"], "bytes", bytes)),
];

impl Set {
    /// The route takes both dimensions every time: one that is not given is read first. Who changes it in between loses.
    fn run(&self) -> Outcome {
        let (client, path) = (self.client(), bucket::path(&self.bucket));
        let asked = [
            ("bytes", self.bytes.map(|ByteLimit(limit)| limit)),
            ("objects", self.objects.map(|CountLimit(limit)| limit)),
        ];
        let present = match asked.iter().filter(|(_, asked)| asked.is_some()).count() {
            0 => return Err(Failure::WrongUsage("--bytes or --objects is needed".to_owned())),
            1 => client.call(&Request::get(path.as_str()))?,
            _ => Value::Null,
        };
        let mut quota = json!({});
        for (name, asked) in asked {
            quota[name] = match asked {
                Some(Some(limit)) => json!({"mode": "limit", name: limit}),
                Some(None) => json!({"mode": "unlimited"}),
                None => kept(&present, name)?,
            };
        }
        client.show(&Request::put(path + "/quota").json(&json!({"quota": quota})), COLUMNS)
    }
}

/// A dimension as it is now.
fn kept(bucket: &Value, name: &str) -> Result<Value, Failure> {
    let dimension = &bucket["quota"][name];
    if dimension["mode"].is_string() {
        Ok(dimension.clone())
    } else {
        Err(format!("the answer does not say what the limit on {name} is: nothing was changed").into())
    }
}

impl Show {
    fn run(&self) -> Outcome {
        self.client().show(&Request::get(bucket::path(&self.bucket)), COLUMNS)
    }
}
