//! `cairn quota`: limits the size and the number of objects of a bucket.

use cairn_api::{Bucket, ByteQuota, ObjectQuota, QuotaMode, SetQuota};

use crate::client::{Request, read};
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
        let present = match (self.bytes, self.objects) {
            (None, None) => return Err(Failure::WrongUsage("--bytes or --objects is required".to_owned())),
            (Some(_), Some(_)) => None,
            _ => {
                let body = client.call(&Request::get(path.as_str()))?;
                let bucket: Result<Bucket, Failure> = read(&body);
                Some(bucket.map_err(|error| format!("{}; nothing was changed", error.message()))?.quota)
            }
        };
        let (present_bytes, present_objects) = present.map(|quota| (quota.bytes, quota.objects)).unzip();
        let mode = |limit: Option<u64>| limit.map_or(QuotaMode::Unlimited, |_| QuotaMode::Limit);
        let bytes = self.bytes.map(|ByteLimit(bytes)| ByteQuota { mode: mode(bytes), bytes });
        let objects = self.objects.map(|CountLimit(objects)| ObjectQuota { mode: mode(objects), objects });
        let (Some(bytes), Some(objects)) = (bytes.or(present_bytes), objects.or(present_objects)) else {
            unreachable!("a limit that is not given was read")
        };
        let quota = SetQuota { quota: cairn_api::Quota { bytes, objects } };
        QUOTAS.print(&client, &Request::put(path + "/quota").json(&quota))
    }
}
