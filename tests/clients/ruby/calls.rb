# The calls of the compatibility matrix with the AWS SDK for Ruby: one line of JSON in, one out.
#
# tests/client_matrix/clients/sdk.py describes the lines. Keys and region come from the usual AWS_* variables.

require "aws-sdk-s3"
require "json"

PART_BYTES = 5 * 1024 * 1024
COPY_WHOLE_BYTES = (ENV["CAIRN_RECOMMENDED"] ? 5 * 1024 : 32) * 1024 * 1024
# Older versions do not read AWS_ENDPOINT_URL.
CLIENT = Aws::S3::Client.new(endpoint: ENV.fetch("AWS_ENDPOINT_URL"), ssl_ca_bundle: ENV.fetch("AWS_CA_BUNDLE"), force_path_style: true, retry_limit: 0)
STORE = Aws::S3::Resource.new(client: CLIENT)
SIGNER = Aws::S3::Presigner.new(client: CLIENT)

def object(given, key = given[:key])
  STORE.bucket(given[:bucket]).object(key)
end

def names(given)
  { bucket: given[:bucket], key: given[:key] }
end

def named(tags)
  tags.to_h { |tag| [tag.key, tag.value] }
end

CALLS = {
  make: ->(given) { CLIENT.create_bucket(bucket: given[:bucket]) },
  buckets: ->(_) { CLIENT.list_buckets.buckets.map(&:name) },
  drop: ->(given) { CLIENT.delete_bucket(bucket: given[:bucket]) },
  upload: ->(given) { object(given).upload_file(given[:file], multipart_threshold: PART_BYTES) },
  download: ->(given) { CLIENT.get_object(response_target: given[:file], version_id: given[:version], **names(given)) },
  pipe: lambda do |given|
    object(given).upload_stream(part_size: PART_BYTES) do |stream|
      stream.binmode
      IO.copy_stream(given[:file], stream)
    end
  end,
  part: ->(given) { CLIENT.get_object(response_target: given[:file], range: "bytes=#{given[:first]}-#{given[:last]}", **names(given)) },
  list: ->(given) { CLIENT.list_objects_v2(bucket: given[:bucket]).flat_map { |page| page.contents.map(&:key) } },
  folders: ->(given) { CLIENT.list_objects_v2(bucket: given[:bucket], delimiter: "/").common_prefixes.map(&:prefix) },
  link_to_get: ->(given) { SIGNER.presigned_url(:get_object, expires_in: 300, **names(given)) },
  link_to_put: ->(given) { SIGNER.presigned_url(:put_object, expires_in: 300, **names(given)) },
  remove: ->(given) { CLIENT.delete_object(version_id: given[:version], **names(given)) },
  remove_many: lambda do |given|
    errors = CLIENT.delete_objects(bucket: given[:bucket], delete: { objects: given[:keys].map { |key| { key: key } } }).errors
    raise "#{errors.first.code}: #{errors.first.message}" unless errors.empty?
  end,
  # Large objects are copied in pieces, as an application does above 5 GiB.
  copy: lambda do |given|
    large = object(given).content_length > COPY_WHOLE_BYTES
    object(given).copy_to(object(given, given[:other]), multipart_copy: large, **(large ? { part_size: COPY_WHOLE_BYTES } : {}))
  end,
  version_on: ->(given) { CLIENT.put_bucket_versioning(bucket: given[:bucket], versioning_configuration: { status: "Enabled" }) },
  versions: ->(given) { CLIENT.list_object_versions(bucket: given[:bucket]).versions.map(&:version_id) },
  retain: ->(given) { CLIENT.put_object_retention(retention: { mode: "GOVERNANCE", retain_until_date: Time.now + given[:seconds] }, **names(given)) },
  retention: ->(given) { CLIENT.get_object_retention(**names(given)).retention.mode },
  hold: ->(given) { CLIENT.put_object_legal_hold(legal_hold: { status: given[:state] }, **names(given)) },
  tag: ->(given) { CLIENT.put_object_tagging(tagging: { tag_set: [{ key: given[:name], value: given[:value] }] }, **names(given)) },
  tags: ->(given) { named(CLIENT.get_object_tagging(**names(given)).tag_set) },
  tag_bucket: ->(given) { CLIENT.put_bucket_tagging(bucket: given[:bucket], tagging: { tag_set: [{ key: given[:name], value: given[:value] }] }) },
  tags_of_bucket: ->(given) { named(CLIENT.get_bucket_tagging(bucket: given[:bucket]).tag_set) },
}.freeze
# Calls whose results the caller reads; those of the others are answers of the server.
READING = %i[buckets list folders link_to_get link_to_put versions retention tags tags_of_bucket].freeze

$stdout.sync = true
$stdin.each_line do |line|
  given = JSON.parse(line, symbolize_names: true)
  call = given.delete(:call).to_sym
  begin
    result = CALLS.fetch(call).call(given)
    answer = { result: READING.include?(call) ? result : nil }
  rescue StandardError => error
    cause = error.respond_to?(:errors) ? error.errors.first : nil
    answer = { error: "#{error.class}: #{(cause || error).message}" }
  end
  puts JSON.generate(answer)
end
