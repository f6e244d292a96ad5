"""Writes the archives that `mc admin cluster iam export` and `mc admin cluster bucket export` write.

Names, members and values are those of exports of a MinIO server of 2025.
"""

import json
import zipfile
from pathlib import Path

NEVER = "1970-01-01T00:00:00Z"
UPDATED = "2026-11-26T12:08:23.96121697Z"
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
NOTIFICATION = f"<NotificationConfiguration {NAMESPACE}></NotificationConfiguration>"
TARGETS = "<BucketTargets></BucketTargets>"
NO_QUOTA = {"quota": 0, "size": 0, "rate": 0, "requests": 0}


def allow(actions: list[str] | str, *paths: str, effect: str = "Allow", **members: object) -> dict:
    """Returns a statement of an AWS document. Paths are resources without `arn:aws:s3:::`."""
    return {"Effect": effect, "Action": actions, "Resource": [f"arn:aws:s3:::{path}" for path in paths], **members}


def document(*statements: dict) -> dict:
    """Returns an AWS document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


BUILT_IN = {
    "consoleAdmin": document(
        {"Effect": "Allow", "Action": ["admin:*"]}, {"Effect": "Allow", "Action": ["kms:*"]}, allow(["s3:*"], "*"),
    ),
    "diagnostics": document(allow(["admin:Prometheus", "admin:ServerInfo", "admin:OBDInfo"], "*")),
    "readonly": document(allow(["s3:GetBucketLocation", "s3:GetObject"], "*")),
    "readwrite": document(allow(["s3:*"], "*")),
    "writeonly": document(allow(["s3:PutObject"], "*")),
}


class IamExport:
    """An IAM store of MinIO, and its archive."""

    def __init__(self) -> None:
        self.policies, self.users, self.groups, self.services = dict(BUILT_IN), {}, {}, {}
        self.user_mappings, self.group_mappings, self.sts_mappings = {}, {}, {}

    def user(self, name: str, secret: str, *policies: str, status: str = "enabled") -> None:
        """Adds a user with policies."""
        self.users[name] = {"secretKey": secret, "status": status}
        if policies:
            self.user_mappings[name] = {"version": 1, "policy": ",".join(policies), "updatedAt": UPDATED}

    def group(self, name: str, members: list[str], *policies: str, status: str = "enabled") -> None:
        """Adds a group with policies."""
        self.groups[name] = {"version": 1, "status": status, "members": members, "updatedAt": UPDATED}
        if policies:
            self.group_mappings[name] = {"version": 1, "policy": ",".join(policies), "updatedAt": UPDATED}

    def service(self, key: str, secret: str, parent: str, session: dict | None = None, **members: object) -> None:
        """Adds a service account."""
        claims = {"accessKey": key, "parent": parent, "sa-policy": "inherited-policy" if session is None else "embedded-policy"}
        self.services[key] = {
            "parent": parent, "accessKey": key, "secretKey": secret, "groups": None, "claims": claims,
            "sessionPolicy": session, "status": "on", "name": "", "description": "", "expiration": NEVER, **members,
        }

    def write(self, file: Path) -> Path:
        """Writes the archive."""
        files = {
            "policies": self.policies, "users": self.users, "groups": self.groups, "svcaccts": self.services,
            "user_mappings": self.user_mappings, "group_mappings": self.group_mappings, "stsuser_mappings": self.sts_mappings,
        }
        return write_archive(file, {f"iam-assets/{name}.json": json.dumps(content) for name, content in files.items()})


def write_archive(file: Path, entries: dict[str, str | bytes]) -> Path:
    """Writes an archive of these entries, compressed as MinIO does."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file


class BucketExport:
    """The settings of buckets of MinIO, and their archive."""

    def __init__(self) -> None:
        self.files: dict[str, str | bytes] = {}

    def bucket(self, name: str, versioning: str | None = None, quota: int = 0, **files: str | dict) -> None:
        """Adds a bucket. `files` are other settings by the names of their files, with `_` for `-` and without the ending."""
        entries: dict[str, str] = {"notification.xml": NOTIFICATION, "bucket-targets.json": TARGETS}
        hard = {"quotatype": "hard"} if quota else {}
        entries["quota.json"] = json.dumps(NO_QUOTA | {"quota": quota} | hard)
        if versioning:
            entries["versioning.xml"] = f"<VersioningConfiguration {NAMESPACE}><Status>{versioning}</Status></VersioningConfiguration>"
        for setting, content in files.items():
            if isinstance(content, dict):
                entries[f"{setting.replace('_', '-')}.json"] = json.dumps(content)
            else:
                entries[f"{setting.replace('_', '-')}.xml"] = content
        self.files |= {f"{name}/{file}": content for file, content in entries.items()}

    def write(self, file: Path) -> Path:
        """Writes the archive."""
        return write_archive(file, self.files)


def lifecycle(*rules: str) -> str:
    """Returns a lifecycle configuration as MinIO writes it."""
    texts = "".join(f"<Rule>{rule}</Rule>" for rule in rules)
    return f"<LifecycleConfiguration>{texts}<ExpiryUpdatedAt>{UPDATED}</ExpiryUpdatedAt></LifecycleConfiguration>"


def object_lock(mode: str = "", days: int = 0) -> str:
    """Returns an object lock configuration, with a default retention if there is a mode."""
    rule = f"<Rule><DefaultRetention><Mode>{mode}</Mode><Days>{days}</Days></DefaultRetention></Rule>" if mode else ""
    return f"<ObjectLockConfiguration {NAMESPACE}><ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}</ObjectLockConfiguration>"


def notification(target: str, prefix: str, *events: str) -> str:
    """Returns a notification configuration with one target."""
    key = f"<Filter><S3Key><FilterRule><Name>prefix</Name><Value>{prefix}</Value></FilterRule></S3Key></Filter>" if prefix else ""
    names = "".join(f"<Event>{event}</Event>" for event in events)
    queue = f"<QueueConfiguration><Id>n1</Id>{key}{names}<Queue>{target}</Queue></QueueConfiguration>"
    return f"<NotificationConfiguration {NAMESPACE}>{queue}</NotificationConfiguration>"


def public_download(bucket: str) -> dict:
    """Returns the policy that `mc anonymous set download` makes."""
    everybody = {"AWS": ["*"]}
    return document(
        allow(["s3:GetBucketLocation", "s3:ListBucket"], bucket, Principal=everybody),
        allow(["s3:GetObject"], f"{bucket}/*", Principal=everybody),
    )
