// The settings of clients that the console shows, as `cairn app create` prints them: a test compares them.

/**
 * Clients with blocks of lines to paste. A pair is a condition (`strict`, `http`, `tls` or `prefix`) and its line.
 * Words in braces and ACCESS_KEY, SECRET_KEY, BUCKET and PATH are replaced.
 */
export const CLIENTS = [
  {
    name: "aws-cli",
    title: "AWS CLI",
    sign: "shell",
    blocks: [
      {
        place: "~/.aws/config",
        lines: [
          "[profile cairn]",
          "endpoint_url = {endpoint}",
          "region = {region}",
          ["strict", "request_checksum_calculation = when_required"],
          ["strict", "response_checksum_validation = when_required"],
          "s3 =",
          "    addressing_style = path",
          "    signature_version = s3v4",
          ["strict", "    multipart_threshold = 5GB"],
        ],
      },
      {
        place: "~/.aws/credentials",
        lines: ["[cairn]", "aws_access_key_id = ACCESS_KEY", "aws_secret_access_key = SECRET_KEY"],
      },
      {
        place: "shell",
        lines: ["aws s3 ls --profile cairn"],
      },
    ],
  },
  {
    name: "boto3",
    title: "boto3",
    sign: "code",
    blocks: [
      {
        place: "Python",
        lines: [
          "import boto3",
          "from botocore.config import Config",
          "",
          "s3 = boto3.client(",
          '    "s3",',
          '    endpoint_url="{endpoint}",',
          '    region_name="{region}",',
          '    aws_access_key_id="ACCESS_KEY",',
          '    aws_secret_access_key="SECRET_KEY",',
          "    config=Config(",
          ["strict", '        request_checksum_calculation="when_required",'],
          ["strict", '        response_checksum_validation="when_required",'],
          '        signature_version="s3v4",',
          '        s3={"addressing_style": "path"},',
          "    ),",
          ")",
        ],
      },
    ],
  },
  {
    name: "javascript",
    title: "AWS SDK for JavaScript 3",
    sign: "code",
    blocks: [
      {
        place: "JavaScript",
        lines: [
          "const s3 = new S3Client({",
          '  endpoint: "{endpoint}",',
          '  region: "{region}",',
          '  credentials: { accessKeyId: "ACCESS_KEY", secretAccessKey: "SECRET_KEY" },',
          "  forcePathStyle: true,",
          ["strict", '  requestChecksumCalculation: "WHEN_REQUIRED",'],
          ["strict", '  responseChecksumValidation: "WHEN_REQUIRED",'],
          "});",
        ],
      },
    ],
  },
  {
    name: "rclone",
    title: "rclone",
    sign: "arrow",
    blocks: [
      {
        place: "~/.config/rclone/rclone.conf",
        lines: [
          "[cairn]",
          "type = s3",
          "provider = Other",
          "endpoint = {endpoint}",
          "region = {region}",
          "access_key_id = ACCESS_KEY",
          "secret_access_key = SECRET_KEY",
          "force_path_style = true",
          "list_version = 2",
          ["strict", "copy_cutoff = 5G"],
        ],
      },
      {
        place: "shell",
        lines: ["rclone lsd cairn:"],
      },
    ],
  },
  {
    name: "restic",
    title: "restic",
    sign: "archive",
    blocks: [
      {
        place: "shell",
        lines: [
          "export AWS_ACCESS_KEY_ID=ACCESS_KEY",
          "export AWS_SECRET_ACCESS_KEY=SECRET_KEY",
          "export AWS_DEFAULT_REGION={region}",
          "restic -r s3:{endpoint}/BUCKET/PATH -o s3.bucket-lookup=path init",
        ],
      },
    ],
  },
  {
    name: "nextcloud",
    title: "Nextcloud",
    sign: "globe",
    needs: "read-write",
    blocks: [
      {
        place: "config/config.php, inside $CONFIG, before the first start",
        lines: [
          "'objectstore' => [",
          "  'class' => '\\\\OC\\\\Files\\\\ObjectStore\\\\S3',",
          "  'arguments' => [",
          "    'bucket' => 'BUCKET',",
          "    'hostname' => '{host}',",
          "    'port' => {port},",
          "    'region' => '{region}',",
          "    'key' => 'ACCESS_KEY',",
          "    'secret' => 'SECRET_KEY',",
          "    'use_ssl' => {secure},",
          "    'use_path_style' => true,",
          "    'verify_bucket_exists' => false,",
          "  ],",
          "],",
        ],
      },
    ],
  },
  {
    name: "immich",
    title: "Immich",
    sign: "image",
    needs: "read-write",
    blocks: [
      {
        place: "shell, for an external library that Immich only reads",
        lines: [
          "echo ACCESS_KEY:SECRET_KEY > ~/.passwd-s3fs && chmod 600 ~/.passwd-s3fs",
          "s3fs BUCKET /srv/photos -o url={endpoint},endpoint={region},use_path_request_style,ro,allow_other",
        ],
      },
      {
        place: "docker-compose.yml, volumes of immich-server",
        lines: ["- /srv/photos:/mnt/photos:ro"],
      },
    ],
  },
];
