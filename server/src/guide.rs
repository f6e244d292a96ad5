//! What `serve --dev` prints: addresses, credentials, and client lines that can be pasted as they are.
//!
//! The settings in them are those of the strict surface: path-style addressing, checksums only when required, since
//! trailing checksums are not implemented, and files in one part, since multipart uploads are not in this build.

use std::net::SocketAddr;

use crate::config::Settings;
use crate::dev_secrets::DEV_SECRETS_FILE;

/// The text.
pub(crate) fn write(settings: &Settings, data: SocketAddr, management: SocketAddr) -> String {
    let auth = &settings.auth;
    let access_key = &auth.root_access_key;
    let secret_key = auth.root_secret_key.expose();
    let token = auth.management_system_token.expose();
    let secrets = settings.server.data_dir.join(DEV_SECRETS_FILE);
    let secrets = secrets.display();
    format!(
        r#"
Cairn is ready, for trying out on this machine only.

  S3          http://{data}
  management  http://{management}
  data        {folder}
  secrets     {secrets} (keep it with the data)

  access key        {access_key}
  secret key        {secret_key}
  management token  {token}

Environment for the AWS CLI, s5cmd and the SDKs:

export AWS_ACCESS_KEY_ID={access_key}
export AWS_SECRET_ACCESS_KEY={secret_key}
export AWS_REGION=us-east-1
export AWS_ENDPOINT_URL=http://{data}
export S3_ENDPOINT_URL=http://{data}
export AWS_REQUEST_CHECKSUM_CALCULATION=when_required
export AWS_RESPONSE_CHECKSUM_VALIDATION=when_required

AWS CLI (the settings go to a file of their own; multipart uploads are not in this build):

export AWS_CONFIG_FILE="$PWD/cairn-aws-config"
aws configure set default.s3.addressing_style path
aws configure set default.s3.multipart_threshold 5GB
aws s3 mb s3://demo
aws s3 cp README.md s3://demo/README.md
aws s3api list-objects-v2 --bucket demo

s5cmd (one part per file, up to 5 GiB):

s5cmd cp --part-size 5120 --concurrency 1 ./folder/ s3://demo/folder/
s5cmd cp 's3://demo/folder/*' ./copy/

rclone (1.60 and older always send an ACL, and ACLs are not implemented: use a later one):

export RCLONE_CONFIG_CAIRN_TYPE=s3 RCLONE_CONFIG_CAIRN_PROVIDER=Other RCLONE_CONFIG_CAIRN_ENDPOINT=http://{data}
export RCLONE_CONFIG_CAIRN_ACCESS_KEY_ID={access_key} RCLONE_CONFIG_CAIRN_SECRET_ACCESS_KEY={secret_key}
export RCLONE_CONFIG_CAIRN_REGION=us-east-1 RCLONE_CONFIG_CAIRN_FORCE_PATH_STYLE=true
export RCLONE_CONFIG_CAIRN_LIST_VERSION=2 RCLONE_CONFIG_CAIRN_UPLOAD_CUTOFF=5G RCLONE_CONFIG_CAIRN_COPY_CUTOFF=5G
rclone copy ./folder cairn:demo/folder

boto3, and a link that plain curl downloads:

cat > cairn_presign.py <<'END'
import sys
import boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url="http://{data}", region_name="us-east-1",
    aws_access_key_id="{access_key}", aws_secret_access_key="{secret_key}",
    config=Config(signature_version="s3v4", s3={{"addressing_style": "path"}},
                  request_checksum_calculation="when_required", response_checksum_validation="when_required"))
print(s3.generate_presigned_url("get_object", Params={{"Bucket": sys.argv[1], "Key": sys.argv[2]}}, ExpiresIn=600))
END
curl -o README.copy "$(python3 cairn_presign.py demo README.md)"

State of the service:

SERVICE_MANAGEMENT_TOKEN={token} cairn status --endpoint http://{management}
curl -H "Authorization: Bearer {token}" http://{management}/api/v1/system/info

"#,
        folder = settings.server.data_dir.display(),
    )
}
