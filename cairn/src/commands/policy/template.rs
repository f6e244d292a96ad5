//! Templates of policies: the documents that most applications need.

use cairn_api::{PolicyDocument, Statement};

use crate::choice::choice;

choice! {
    /// The rights that a template gives.
    Template = "read-only" | "read-write" | "create-only"
}

/// The scope of a template: a bucket, or a prefix in it.
pub(crate) struct Scope<'a> {
    /// The name of a bucket, or the beginning of names with `*` after it.
    pub(crate) bucket: &'a str,
    /// The beginning of the keys; empty for all keys.
    pub(crate) prefix: &'a str,
}

impl Template {
    /// Returns the document of a policy. All templates allow the bucket to be listed and objects to be read.
    pub(crate) fn document(self, scope: &Scope<'_>, name: Option<&str>) -> PolicyDocument {
        let Scope { bucket, prefix } = scope;
        let default_name = match *prefix {
            "" => format!("{bucket} {}", self.0),
            prefix => format!("{bucket}/{prefix} {}", self.0),
        };
        // A pattern of names covers the objects, too.
        let objects = if bucket.ends_with('*') {
            format!("bucket:{bucket}")
        } else {
            format!("bucket:{bucket}/{prefix}*")
        };
        let allow = |actions: &[&'static str], resource: String, only_if_absent| Statement {
            effect: "allow".into(),
            actions: actions.iter().map(|action| (*action).into()).collect(),
            resources: vec![resource.into()],
            only_if_absent,
            source_ip: None,
        };
        let mut statements = vec![allow(&["s3:ListBucket"], format!("bucket:{bucket}"), false)];
        statements.extend(match self.0 {
            "read-only" => vec![allow(&["s3:GetObject"], objects, false)],
            "read-write" => vec![allow(&["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], objects, false)],
            _ => vec![
                allow(&["s3:GetObject"], objects.clone(), false),
                allow(&["s3:PutObject"], objects, true),
            ],
        });
        PolicyDocument {
            name: name.map_or(default_name, str::to_owned).into(),
            description: self.description().into(),
            statements,
        }
    }

    fn description(self) -> &'static str {
        match self.0 {
            "read-only" => "List and read",
            "read-write" => "List, read, write and delete",
            _ => "List, read, and write new objects; overwrite and delete nothing",
        }
    }
}
