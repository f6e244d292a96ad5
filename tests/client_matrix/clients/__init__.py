"""The clients of the matrix by name, in the order of the tables."""

import importlib

from client_matrix.workspace import Client

PLACES = {
    "aws-cli-1": ("aws_cli", "AwsCli"),
    "aws-cli-2": ("aws_cli", "AwsCli2"),
    "boto3": ("boto3_library", "Boto3"),
    "sdk-javascript": ("sdk", "JavaScript"),
    "sdk-go": ("sdk", "Go"),
    "sdk-java": ("sdk", "Java"),
    "sdk-rust": ("sdk", "Rust"),
    "sdk-ruby": ("sdk", "Ruby"),
    "mc": ("mc", "Mc"),
    "minio-py": ("minio_library", "MinioPy"),
    "minio-js": ("sdk", "MinioJs"),
    "s5cmd": ("s5cmd", "S5cmd"),
    "rclone": ("rclone", "Rclone"),
    "s3cmd": ("s3cmd", "S3cmd"),
    "s3fs": ("s3fs", "S3fs"),
    "libcloud": ("libcloud_library", "Libcloud"),
    "curl": ("curl", "Curl"),
    "obstore": ("obstore_library", "Obstore"),
    "opendal": ("opendal_library", "OpenDal"),
    "pyarrow": ("pyarrow_library", "PyArrow"),
    "hadoop": ("hadoop", "Hadoop"),
    "smart_open": ("smart_open_library", "SmartOpen"),
    "django-storages": ("django_library", "DjangoStorages"),
    "active-storage": ("active_storage", "ActiveStorage"),
    "restic": ("restic", "Restic"),
    "litestream": ("litestream", "Litestream"),
    "pgbackrest": ("pgbackrest", "PgBackRest"),
    "duplicity": ("duplicity", "Duplicity"),
    "barman": ("barman", "Barman"),
    "registry": ("registry", "Registry"),
    "opentofu": ("opentofu", "OpenTofu"),
    "duckdb": ("duckdb_library", "DuckDb"),
    "deltalake": ("deltalake_library", "DeltaLake"),
    "pyiceberg": ("pyiceberg_library", "PyIceberg"),
    "iceberg-java": ("iceberg_java", "IcebergJava"),
    "lance": ("lance_library", "Lance"),
    "icechunk": ("icechunk_library", "Icechunk"),
    "tensorstore": ("tensorstore_library", "TensorStore"),
    "polars": ("polars_library", "Polars"),
    "chdb": ("chdb_library", "ChDb"),
}


class Clients:
    """Imports a client when it is asked for: each one needs packages of its own."""

    def __getitem__(self, name: str) -> type[Client]:
        module, item = PLACES[name]
        return getattr(importlib.import_module(f"client_matrix.clients.{module}"), item)

    def __iter__(self):
        return iter(PLACES)


CLIENTS = Clients()
