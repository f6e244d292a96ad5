"""Lifecycle configuration through S3, and rules with tags. Extended mode, with days of two seconds and a run each second."""

from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from harness.accounts import create_account, statement
from harness.boto import headers, make_client, refused
from harness.expect import assert_error
from harness.management import Management, expect, expect_refusal, lifecycle_runs_later
from harness.s3 import xml
from harness.server import Cairn
from harness.wait import until

DAY_SECONDS = 2
MINIMUM_SIZE = "x-amz-transition-default-minimum-object-size"
TEMPORARY = {"Key": "kind", "Value": "temporary"}
TAGS = [{"key": "kind", "value": "temporary"}]


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts an extended server whose days are short."""
    settings = {"SERVICE_LIFECYCLE_DAY_SECONDS": str(DAY_SECONDS), "SERVICE_LIFECYCLE_INTERVAL_SECONDS": "1"}
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", **settings).start()


@pytest.fixture
def store(extended_store: Cairn) -> Cairn:
    """Clients are of the extended server."""
    return extended_store


def put_rules(boto: BaseClient, bucket: str, *rules: dict, **options: str) -> dict:
    """Replaces the rules of a bucket. Rules are enabled unless they say otherwise."""
    rules = [{"Status": "Enabled"} | rule for rule in rules]
    return boto.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules}, **options)


def rules_of(boto: BaseClient, bucket: str) -> list[dict]:
    """Reads the rules of a bucket."""
    return boto.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]


def managed(admin: Management, bucket: str) -> list[dict]:
    """Reads the rules of a bucket on the management plane."""
    return expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]


def test_round_trip(boto: BaseClient, extended_bucket: str):
    """What is put is read, in its order, with an ID for each rule."""
    with refused(404, "NoSuchLifecycleConfiguration"):
        rules_of(boto, extended_bucket)
    both = {"And": {"Prefix": "t/", "Tags": [TEMPORARY, {"Key": "a&<b", "Value": ""}]}}
    with refused(400, "InvalidTag"):
        put_rules(boto, extended_bucket, {"Filter": both, "Expiration": {"Days": 1}})
    both["And"]["Tags"][1]["Key"] = "ä b"
    rules = [
        {"ID": "all ü<&", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30}},
        {"ID": "tag", "Filter": {"Tag": TEMPORARY}, "Status": "Disabled", "Expiration": {"Days": 36500}},
        {"ID": "both", "Filter": both, "NoncurrentVersionExpiration": {"NoncurrentDays": 3, "NewerNoncurrentVersions": 5}},
        {"ID": "markers", "Filter": {"Prefix": "m/"}, "Expiration": {"ExpiredObjectDeleteMarker": True}},
        {"ID": "uploads", "Filter": {"Prefix": "u/"}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        {"ID": "several", "Filter": {}, "Expiration": {"Days": 2}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 36500}},
    ]
    answer = put_rules(boto, extended_bucket, *rules)
    assert headers(answer)[MINIMUM_SIZE] == "all_storage_classes_128K"
    read = boto.get_bucket_lifecycle_configuration(Bucket=extended_bucket)
    assert read["Rules"] == [{"Status": "Enabled"} | rule for rule in rules]
    assert read["TransitionDefaultMinimumObjectSize"] == "all_storage_classes_128K"
    put_rules(boto, extended_bucket, *read["Rules"], TransitionDefaultMinimumObjectSize="all_storage_classes_128K")
    assert rules_of(boto, extended_bucket) == read["Rules"]
    put_rules(boto, extended_bucket, {"Prefix": "old/", "Expiration": {"Days": 2}}, {"Filter": {}, "Expiration": {"Days": 2}})
    first, second = rules_of(boto, extended_bucket)
    assert len({first["ID"], second["ID"], ""}) == 3
    boto.delete_bucket_lifecycle(Bucket=extended_bucket)
    boto.delete_bucket_lifecycle(Bucket=extended_bucket)
    with refused(404, "NoSuchLifecycleConfiguration"):
        rules_of(boto, extended_bucket)
    for call in (boto.get_bucket_lifecycle_configuration, boto.delete_bucket_lifecycle):
        with refused(404, "NoSuchBucket"):
            call(Bucket="no-such-bucket")


def test_refused_configurations_change_nothing(boto: BaseClient, extended_bucket: str):
    """The last rule is wrong. The first one must not be stored, and the earlier ones stay."""
    good = {"ID": "good", "Filter": {"Prefix": "g/"}, "Expiration": {"Days": 9}}
    put_rules(boto, extended_bucket, good)
    days, everything = {"Expiration": {"Days": 1}}, {"Filter": {"Prefix": ""}}
    for wrong, status, code, named in (
        (everything | {"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, 501, "NotImplemented", "Transition"),
        (everything | {"AbortIncompleteMultipartUpload": {}}, 400, "MalformedXML", "DaysAfterInitiation"),
        (everything | days | {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 0}}, 400, "InvalidArgument", "positive"),
        ({"Filter": {"Tag": TEMPORARY}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}, 400, "InvalidRequest", "selected by prefix"),
        (everything | {"Expiration": {"Date": "2030-01-01T00:00:00Z"}}, 501, "NotImplemented", "Days"),
        ({"Filter": {"ObjectSizeGreaterThan": 500}} | days, 501, "NotImplemented", "ObjectSizeGreaterThan"),
        ({"Filter": {"Tag": TEMPORARY}, "Expiration": {"ExpiredObjectDeleteMarker": True}}, 400, "InvalidRequest", "delete markers have no tags"),
        (everything | {"Expiration": {"Days": 0}}, 400, "InvalidArgument", "positive"),
        (everything | {"Expiration": {"Days": 1, "ExpiredObjectDeleteMarker": True}}, 400, "MalformedXML", "Rule of its own"),
        (everything, 400, "InvalidRequest", "action"),
        (days, 400, "MalformedXML", "Filter"),
        (everything | days | {"Prefix": ""}, 400, "MalformedXML", "not both"),
        (everything | days | {"ID": "other"}, 400, "InvalidArgument", "unique"),
        (everything | days | {"ID": "i" * 256}, 400, "InvalidArgument", "255"),
    ):
        with refused(status, code) as answer:
            put_rules(boto, extended_bucket, {"ID": "other", "Filter": {"Prefix": "o/"}, "Expiration": {"Days": 1}}, wrong)
        assert named in answer["Error"]["Message"], answer["Error"]
        assert rules_of(boto, extended_bucket) == [good | {"Status": "Enabled"}], wrong
    many = [everything | days for _ in range(1000)]
    put_rules(boto, extended_bucket, *many)
    assert len(rules_of(boto, extended_bucket)) == 1000
    with refused(400, "InvalidRequest"):
        put_rules(boto, extended_bucket, *many, everything | days)
    with refused(400, "InvalidRequest") as answer:
        put_rules(boto, extended_bucket, good, TransitionDefaultMinimumObjectSize="varies_by_storage_class")
    assert "storage classes" in answer["Error"]["Message"]


SMALL = "<ObjectSizeGreaterThan>1</ObjectSizeGreaterThan>"
TAG = "<Tag><Key>k</Key><Value>v</Value></Tag>"


@pytest.mark.parametrize(("parts", "named"), [
    ({"more": "<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>"}, "Transition in Rule"),
    ({"more": "<NoncurrentVersionTransition><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionTransition>"}, "NoncurrentVersionTransition in Rule"),
    ({"more": "<DelMarkerExpiration><Days>1</Days></DelMarkerExpiration>"}, "DelMarkerExpiration in Rule"),
    ({"more": "<AllVersionsExpiration><Days>1</Days></AllVersionsExpiration>"}, "AllVersionsExpiration in Rule"),
    ({"filter": SMALL}, "ObjectSizeGreaterThan in Filter"),
    ({"filter": SMALL.replace("Greater", "Less")}, "ObjectSizeLessThan in Filter"),
    ({"filter": f"<And>{TAG}{SMALL}</And>"}, "ObjectSizeGreaterThan in And"),
    ({"filter": f"<And>{TAG}{SMALL.replace('Greater', 'Less')}</And>"}, "ObjectSizeLessThan in And"),
    ({"expiration": "<Date>2030-01-01T00:00:00Z</Date>"}, "Date in Expiration"),
    ({"expiration": "<Days>1</Days><ExpiredObjectAllVersions>true</ExpiredObjectAllVersions>"}, "ExpiredObjectAllVersions in Expiration"),
])
def test_each_element_that_is_not_implemented_is_named(extended_store: Cairn, extended_bucket: str, parts: dict, named: str):
    """The first rule is right, and not stored either. The rules of before stay."""
    s3, target = extended_store.s3, f"/{extended_bucket}?lifecycle"

    def document(expiration: str = "<Days>9</Days>", filter: str = "", more: str = "") -> bytes:
        good = "<Rule><ID>good</ID><Filter/><Status>Enabled</Status><Expiration><Days>9</Days></Expiration></Rule>"
        other = f"<Rule><Filter>{filter}</Filter><Status>Enabled</Status><Expiration>{expiration}</Expiration>{more}</Rule>"
        return f"<LifecycleConfiguration>{good}{other}</LifecycleConfiguration>".encode()

    assert s3.request("PUT", target, body=document(filter=TAG)).status == 200
    before = s3.request("GET", target).body
    answer = s3.request("PUT", target, body=document(**parts))
    assert_error(answer, 501, "NotImplemented")
    assert f"{named} is not implemented, and nothing was changed" in answer.body.decode(), answer.body
    assert s3.request("GET", target).body == before
    found = expect(extended_store.admin.get(f"/refused-requests/{answer.get('x-amz-request-id')}"), 200)
    assert (found["refused_by"], found["setting"]) == ("not_implemented", None), "no mode implements it"


def test_filters_with_tags_are_read_as_they_were_put(boto: BaseClient, extended_bucket: str):
    """One tag, one tag within `And`, several with and without a prefix, ten of them; eleven are refused."""
    tags = [{"Key": f"k{number}", "Value": f"v {number}/ä+=@"} for number in range(11)]
    filters = [
        {"Tag": tags[0]}, {"And": {"Prefix": "one/", "Tags": tags[:1]}}, {"And": {"Tags": tags[:2]}}, {"And": {"Prefix": "p/", "Tags": tags[:3]}},
        {"And": {"Prefix": "ten/", "Tags": tags[:10]}},
    ]
    rules = [{"ID": f"r{number}", "Status": "Enabled", "Filter": found, "NoncurrentVersionExpiration": {"NoncurrentDays": 9}} for number, found in enumerate(filters)]
    put_rules(boto, extended_bucket, *rules)
    assert rules_of(boto, extended_bucket) == rules
    with refused(400, "InvalidRequest"):
        put_rules(boto, extended_bucket, {"Filter": {"And": {"Prefix": "", "Tags": [tags[0], tags[0]]}}, "Expiration": {"Days": 1}})
    for many in (tags, [{"Key": "k", "Value": "v" * 257}]):
        with refused(400):
            put_rules(boto, extended_bucket, {"Filter": {"And": {"Prefix": "", "Tags": many}}, "Expiration": {"Days": 1}})
        assert rules_of(boto, extended_bucket) == rules


def test_each_form_of_a_filter_is_returned(extended_store: Cairn, admin: Management, boto: BaseClient, extended_bucket: str):
    """A `Prefix` of the rule was returned as a `Filter`: Terraform then changed the configuration in every run.

    The forms stay over a restart, and when the management API changes something else of the rule.
    """
    one = [TEMPORARY]
    forms = [
        {"Prefix": "old/"}, {"Prefix": ""}, {"Filter": {}}, {"Filter": {"Prefix": ""}}, {"Filter": {"Prefix": "p/"}}, {"Filter": {"Tag": TEMPORARY}},
        {"Filter": {"And": {"Prefix": "p/"}}}, {"Filter": {"And": {"Prefix": ""}}}, {"Filter": {"And": {"Tags": one}}},
        {"Filter": {"And": {"Prefix": "", "Tags": one}}}, {"Filter": {"And": {"Prefix": "p/", "Tags": one}}},
    ]
    rules = [{"ID": f"r{number}", "Status": "Enabled", "Expiration": {"Days": 9}} | form for number, form in enumerate(forms)]
    put_rules(boto, extended_bucket, *rules)
    assert rules_of(boto, extended_bucket) == rules
    extended_store.kill()
    extended_store.start()
    assert rules_of(boto, extended_bucket) == rules
    for rule in managed(admin, extended_bucket):
        body = {"prefix": rule["prefix"], "tags": rule["tags"], "expiration": 8}
        expect(admin.put(f"/buckets/{extended_bucket}/lifecycle/{rule['id']}", body), 200)
    assert rules_of(boto, extended_bucket) == [rule | {"Expiration": {"Days": 8}} for rule in rules]
    first = managed(admin, extended_bucket)[0]
    expect(admin.put(f"/buckets/{extended_bucket}/lifecycle/{first['id']}", {"prefix": "new/", "expiration": 8}), 200)
    assert rules_of(boto, extended_bucket)[0]["Filter"] == {"Prefix": "new/"}, "another prefix is one of the management API"


def test_raw_requests(extended_store: Cairn, extended_bucket: str):
    """Documents that no SDK sends, a wrong digest, and the root of another document."""
    s3, target = extended_store.s3, f"/{extended_bucket}?lifecycle"
    rule = "<Rule><Filter/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>"
    good = f"<LifecycleConfiguration>{rule}</LifecycleConfiguration>".encode()
    for body in (b"", b"<LifecycleConfiguration/>", b"<Other/>", good[:-5], good.replace(b"<Filter/>", b"<Filter/><Unknown/>"), b"<!DOCTYPE a>" + good):
        assert_error(s3.request("PUT", target, body=body), 400, "MalformedXML")
    assert_error(s3.request("PUT", target, [("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")], good), 400, "BadDigest")
    assert_error(s3.request("PUT", target, body=b"x" * ((1 << 20) + 1)), 400, "MalformedXML")
    assert_error(s3.request("GET", target), 404, "NoSuchLifecycleConfiguration")
    assert s3.request("PUT", target, body=good).status == 200
    (rule,) = xml(s3.request("GET", target)).findall("Rule")
    assert rule.find("Filter") is not None and len(rule.find("Filter")) == 0 and rule.find("Prefix") is None


def test_both_planes_know_the_same_rules(admin: Management, boto: BaseClient, extended_bucket: str):
    """A rule keeps its id, its ID in S3 and its totals, whoever changes it."""
    created = expect(admin.post(f"/buckets/{extended_bucket}/lifecycle", {
        "prefix": "a/", "expiration": 5, "expired_delete_markers": True, "noncurrent_version_expiration": 2,
    }), 201)
    assert created["s3_id"] is None and created["tags"] == []
    first, markers = rules_of(boto, extended_bucket)
    assert (first["ID"], markers["ID"]) == (created["id"], f"{created['id']}-delete-markers")
    assert first["Expiration"] == {"Days": 5} and markers["Expiration"] == {"ExpiredObjectDeleteMarker": True}
    put_rules(boto, extended_bucket, first | {"Expiration": {"Days": 7}}, {"ID": "named", "Filter": {"Tag": TEMPORARY}, "Expiration": {"Days": 1}})
    kept, named = managed(admin, extended_bucket)
    assert (kept["id"], kept["created_at"], kept["expiration"]) == (created["id"], created["created_at"], 7)
    assert kept["s3_id"] is None and not kept["expired_delete_markers"]
    assert (named["s3_id"], named["tags"], named["prefix"]) == ("named", TAGS, "")
    path = f"/buckets/{extended_bucket}/lifecycle/{named['id']}"
    changed = expect(admin.put(path, {"prefix": "b/", "expiration": 2, "tags": TAGS}), 200)
    assert (changed["s3_id"], changed["id"], changed["prefix"]) == ("named", named["id"], "b/")
    assert rules_of(boto, extended_bucket)[1]["Filter"] == {"And": {"Prefix": "b/", "Tags": [TEMPORARY]}}
    put_rules(boto, extended_bucket, {"ID": "named", "Filter": {"Prefix": ""}, "Expiration": {"Days": 3}})
    (again,) = managed(admin, extended_bucket)
    assert (again["id"], again["created_at"], again["tags"]) == (named["id"], named["created_at"], [])
    for wrong in ({"tags": [{"key": "a", "value": "!"}], "expiration": 1}, {"tags": TAGS, "expired_delete_markers": True}):
        expect_refusal(admin.post(f"/buckets/{extended_bucket}/lifecycle", {"prefix": ""} | wrong), 400, "INVALID_REQUEST")


def test_rule_expires_what_has_its_tags(extended_store: Cairn, admin: Management, boto: BaseClient, extended_bucket: str):
    """By the tags of the moment. The header of the object names the ID."""
    names = {"Bucket": extended_bucket}
    rule = {"ID": "temporary/ä", "Filter": {"Tag": TEMPORARY}, "Expiration": {"Days": 2}}
    put_rules(boto, extended_bucket, rule)
    put = boto.put_object(**names, Key="tagged", Body=b"12345", Tagging="kind=temporary&more=x")
    assert 'rule-id="temporary%2F%C3%A4"' in put["Expiration"]
    assert "Expiration" not in boto.put_object(**names, Key="plain", Body=b"x")
    assert "Expiration" not in boto.put_object(**names, Key="other", Body=b"x", Tagging="kind=lasting")
    assert boto.head_object(**names, Key="tagged")["Expiration"] == put["Expiration"]
    copy = boto.copy_object(**names, Key="copy", CopySource=f"{extended_bucket}/tagged")
    assert "temporary" in copy["Expiration"]
    upload = boto.create_multipart_upload(**names, Key="parts", Tagging="kind=temporary")
    part = boto.upload_part(**names, Key="parts", UploadId=upload["UploadId"], PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    done = boto.complete_multipart_upload(**names, Key="parts", UploadId=upload["UploadId"], MultipartUpload=parts)
    assert "temporary" in done["Expiration"]
    # It is due at the same time, but loses its tags.
    boto.put_object(**names, Key="saved", Body=b"x", Tagging="kind=temporary")
    boto.delete_object_tagging(**names, Key="saved")
    preview = expect(admin.post(f"/buckets/{extended_bucket}/lifecycle/preview", {"prefix": "", "expiration": 1, "tags": TAGS}), 200)
    assert preview["next_due_at"] or preview["current_objects"]
    until(lambda: sorted(extended_store.s3.list_all(extended_bucket)) == ["other", "plain", "saved"], "not expired")
    lifecycle_runs_later(admin, 2 * DAY_SECONDS)
    assert sorted(extended_store.s3.list_all(extended_bucket)) == ["other", "plain", "saved"]
    (found,) = managed(admin, extended_bucket)
    # The committer is asked about tagged versions only.
    assert (found["status"]["examined"], found["status"]["expired_objects"], found["status"]["failed"]) == (3, 3, 0)
    boto.put_object_tagging(**names, Key="plain", Tagging={"TagSet": [TEMPORARY]})
    until(lambda: sorted(extended_store.s3.list_all(extended_bucket)) == ["other", "saved"], "not expired")


def test_each_version_goes_by_its_own_tags(extended_store: Cairn, boto: BaseClient, extended_bucket: str):
    """A noncurrent version without the tag stays, also below a tagged one. `And` needs every tag and the prefix."""
    names = {"Bucket": extended_bucket}
    boto.put_bucket_versioning(**names, VersioningConfiguration={"Status": "Enabled"})
    both = {"And": {"Prefix": "v/", "Tags": [TEMPORARY, {"Key": "team", "Value": "a"}]}}
    versions = {}
    for key, tagging in [
        ("v/k", "kind=temporary&team=a"), ("v/k", "kind=temporary"), ("v/k", "kind=temporary&team=a&more=x"), ("v/k", "kind=temporary&team=a"),
        ("other", "kind=temporary&team=a"), ("other", "kind=temporary&team=a"),
    ]:
        versions.setdefault(key, []).append(boto.put_object(**names, Key=key, Body=b"x", Tagging=tagging)["VersionId"])

    def left() -> dict[str, list[str]]:
        found = {}
        for version in boto.list_object_versions(**names)["Versions"]:
            found.setdefault(version["Key"], []).insert(0, version["VersionId"])
        return found

    assert left() == versions
    put_rules(boto, extended_bucket, {"Filter": both, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}})
    wanted = {"v/k": [versions["v/k"][1], versions["v/k"][3]], "other": versions["other"]}
    until(lambda: left() == wanted, "not expired")
    lifecycle_runs_later(extended_store.admin, 2 * DAY_SECONDS)
    assert left() == wanted, "a version whose tags do not match is gone, or the current one"


def test_rules_survive_a_kill(extended_store: Cairn, admin: Management, boto: BaseClient, extended_bucket: str):
    """Tags and IDs are on disk when the request is answered."""
    rule = {"ID": "kept", "Filter": {"And": {"Prefix": "p/", "Tags": [TEMPORARY]}}, "Expiration": {"Days": 3000}, "Status": "Enabled"}
    put_rules(boto, extended_bucket, rule)
    before = managed(admin, extended_bucket)[0]["id"]
    extended_store.kill()
    extended_store.start()
    assert rules_of(boto, extended_bucket) == [rule]
    assert managed(admin, extended_bucket)[0]["id"] == before


def test_permission_and_audit(extended_store: Cairn, admin: Management, extended_bucket: str):
    """Lifecycle rules are settings of the bucket."""
    manager = create_account(extended_store, statement("allow", "ManageBucket", f"bucket:{extended_bucket}")).s3
    writer = create_account(extended_store, statement("allow", ["PutObject", "DeleteObject"], f"bucket:{extended_bucket}/*")).s3
    rule = {"Filter": {"Prefix": ""}, "Expiration": {"Days": 3000}}
    with refused(403, "AccessDenied"):
        put_rules(make_client(writer), extended_bucket, rule)
    with refused(403, "AccessDenied"):
        make_client(writer).delete_bucket_lifecycle(Bucket=extended_bucket)
    assert managed(admin, extended_bucket) == []
    put_rules(make_client(manager), extended_bucket, rule)
    assert len(rules_of(make_client(manager), extended_bucket)) == 1
    make_client(manager).delete_bucket_lifecycle(Bucket=extended_bucket)
    events = expect(admin.get("/audit/events", params={"limit": 1000, "bucket": extended_bucket}), 200)["events"]
    found = [(event["operation"], event["result"], event["detail"].split(";")[0]) for event in events[::-1] if "Lifecycle" in event["operation"]]
    assert [one[:2] for one in found] == [
        ("PutBucketLifecycleConfiguration", "denied"), ("DeleteBucketLifecycle", "denied"),
        ("PutBucketLifecycleConfiguration", "allowed"), ("DeleteBucketLifecycle", "allowed"),
    ]
    assert found[2][2] == "1 rules"
