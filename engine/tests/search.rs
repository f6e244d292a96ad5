//! Searches: their bounds, and where they continue.

use crate::support::{folder, key, name, put, with_engine};
use cairn_engine::{
    Bucket, BucketChange, BucketSettings, DeleteOptions, Engine, FindObjects, FoundObjects, KeyFilter,
    ListPosition, Origin, SearchBounds, Versioning, WriteCondition,
};
use cairn_model::{Glob, Timestamp};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

async fn versioned(engine: &Rc<Engine>) -> Arc<Bucket> {
    let bucket = engine
        .store()
        .create_bucket(&name("search"), BucketSettings::default(), Origin::default())
        .await
        .expect("made");
    let enabled = BucketChange::Versioning(Versioning::Enabled);
    engine.store().change_bucket(&bucket, enabled).await.expect("changed");
    bucket
}

fn all(keys: u64) -> FindObjects {
    FindObjects {
        prefix: Vec::new(),
        key: None,
        bytes_min: 0,
        bytes_max: u64::MAX,
        modified: Timestamp(0)..Timestamp(u64::MAX),
        attributes: None,
        at: None,
        after: None,
        max: 1000,
        bounds: SearchBounds { keys, time: LONG },
    }
}

fn keys_of(found: &FoundObjects) -> Vec<&str> {
    found.objects.iter().map(|(key, _)| key.as_str()).collect()
}

/// A call ends at its bounds and goes on where it ended. Deleted keys count as examined, and no key is missed or found twice.
#[test]
fn bounded_calls_make_one_complete_search() {
    let folder = folder();
    with_engine(folder.path(), |engine| async move {
        let bucket = versioned(&engine).await;
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        for (number, name) in names.iter().enumerate() {
            for version in 0..number % 3 + 1 {
                put(&engine, &bucket, &key(name), &vec![b'x'; version], WriteCondition::default())
                    .await
                    .expect("put");
            }
            if number % 4 == 3 {
                engine.delete_object(&bucket, &key(name), DeleteOptions::default()).await.expect("deleted");
            }
        }
        let left: Vec<&str> =
            names.iter().enumerate().filter(|(number, _)| number % 4 != 3).map(|(_, name)| &**name).collect();
        for keys in [1, 7, 39, 40] {
            let (mut found, mut after, mut calls) = (Vec::new(), None::<ListPosition>, 0);
            loop {
                let find = FindObjects { after, ..all(keys) };
                let part = engine.find_objects(&bucket, find).await.expect("searched");
                assert!(part.examined <= keys && (part.examined == keys || part.next.is_none()));
                found.extend(keys_of(&part).into_iter().map(str::to_owned));
                (after, calls) = (part.next, calls + 1);
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(
                (&found[..], calls),
                (&left.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()[..], 40_u64.div_ceil(keys))
            );
        }
        // Without time, each call still gets further.
        let bounds = SearchBounds { keys: 1000, time: Duration::ZERO };
        let part = engine.find_objects(&bucket, FindObjects { bounds, ..all(1000) }).await.expect("searched");
        assert!(part.examined > 0);
        let pattern = Some(KeyFilter::Glob(Glob::parse("[02]?").expect("valid")));
        let find = FindObjects { key: pattern, bytes_min: 2, ..all(1000) };
        let found = engine.find_objects(&bucket, find).await.expect("searched");
        assert_eq!(keys_of(&found), ["02", "05", "08", "20", "26", "29"]);
    });
}
