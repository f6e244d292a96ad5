//! `cairn quota`: limits the size and the number of objects of a bucket.

use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::resources::QUOTAS;
use crate::failure::{Failure, Outcome};
use crate::quantity::{ByteLimit, CountLimit};

noun! {
    /// Limit the size and the number of objects of a bucket.
    struct Quota("quota"): QuotaCommand { Set, Show }
}

command! {
    /// Set a bucket's limits. A limit that is not given does not change.
    struct Set("set") {
        /// the bucket's name
        #[argh(positional)]
        bucket: String,
        /// maximum size of all current objects, for example 10GiB, or unlimited
        #[argh(option, arg_name = "size")]
        bytes: Option<ByteLimit>,
        /// maximum number of current objects, or unlimited
        #[argh(option, arg_name = "n")]
        objects: Option<CountLimit>,
    }
}

verbs! {
    QUOTAS by {
        /// the bucket's name
        bucket
    }
    /// Show a bucket's limits and usage.
    show,
}

impl Set {
    /// The server requires both limits, so one that is not given is read first. A concurrent change of it is lost.
    fn run(&self) -> Outcome {
        let (client, path) = (self.client()?, QUOTAS.path_of(&self.bucket));
        let requested = [
            ("bytes", self.bytes.map(|ByteLimit(limit)| limit)),
            ("objects", self.objects.map(|CountLimit(limit)| limit)),
        ];
        let present = match requested.iter().filter(|(_, limit)| limit.is_some()).count() {
            0 => return Err(Failure::WrongUsage("--bytes or --objects is required".to_owned())),
            1 => client.call(&Request::get(path.as_str()))?,
            _ => Value::Null,
        };
        let mut quota = json!({});
        for (name, limit) in requested {
            quota[name] = match limit {
                Some(Some(limit)) => json!({"mode": "limit", name: limit}),
                Some(None) => json!({"mode": "unlimited"}),
                None => current(&present, name)?,
            };
        }
        QUOTAS.print(&client, &Request::put(path + "/quota").json(&json!({"quota": quota})))
    }
}

/// Returns the current limit of a dimension.
fn current(bucket: &Value, name: &str) -> Result<Value, Failure> {
    let dimension = &bucket["quota"][name];
    if dimension["mode"].is_string() {
        Ok(dimension.clone())
    } else {
        Err(format!("the response does not contain the limit on {name}; nothing was changed").into())
    }
}
