# What Active Storage does with the files of a Rails application: `active_storage.rb write|read|remove BUCKET FOLDER`.
#
# Its service is made from the settings of config/storage.yml, without an application around it. Keys and region come from the usual
# AWS_* variables.

require "active_support"
require "active_support/core_ext"
require "active_storage"
require "active_storage/service"
require "active_storage/service/s3_service"
require "net/http"
require "openssl"
# A model, which Rails would load.
require File.join(Gem.loaded_specs.fetch("activestorage").full_gem_path, "app/models/active_storage/filename")

VERB, BUCKET, FOLDER = ARGV
SETTINGS = {
  "cairn" => {
    "service" => "S3", "endpoint" => ENV.fetch("AWS_ENDPOINT_URL"), "region" => ENV.fetch("AWS_REGION"), "bucket" => BUCKET,
    "access_key_id" => ENV.fetch("AWS_ACCESS_KEY_ID"), "secret_access_key" => ENV.fetch("AWS_SECRET_ACCESS_KEY"),
    "ssl_ca_bundle" => ENV.fetch("AWS_CA_BUNDLE"), "force_path_style" => true, "retry_limit" => 0,
    "upload" => { "multipart_threshold" => 5.megabytes },
  },
}.freeze
SERVICE = ActiveStorage::Service.configure(:cairn, SETTINGS.deep_symbolize_keys)
NAMES = %w[large small].freeze

def content(name)
  File.binread(File.join(FOLDER, name))
end

def md5(bytes)
  OpenSSL::Digest::MD5.base64digest(bytes)
end

def visit(method, url, headers = {}, body = nil)
  uri = URI(url)
  request = Net::HTTP.const_get(method).new(uri, headers)
  request.body = body
  options = { use_ssl: uri.scheme == "https", ca_file: ENV.fetch("AWS_CA_BUNDLE") }
  answer = Net::HTTP.start(uri.host, uri.port, options) { |http| http.request(request) }
  raise "#{method} of a link: #{answer.code} #{answer.body}" unless answer.is_a?(Net::HTTPSuccess)

  answer
end

def expect(found, expected, what)
  raise "#{what}: #{found.inspect[0, 100]} instead of #{expected.inspect[0, 100]}" unless found == expected
end

case VERB
when "write"
  NAMES.each do |name|
    SERVICE.upload(name, File.open(File.join(FOLDER, name), "rb"), checksum: md5(content(name)), content_type: "image/png", filename: ActiveStorage::Filename.new("a.png"))
  end
  # As a browser uploads it.
  told = { content_type: "text/plain", content_length: 4, checksum: md5("sent") }
  visit(:Put, SERVICE.url_for_direct_upload("direct", expires_in: 300, **told), SERVICE.headers_for_direct_upload("direct", filename: ActiveStorage::Filename.new("b.txt"), **told), "sent")
  3.times { |number| SERVICE.upload("variants/large/#{number}", StringIO.new("variant"), checksum: md5("variant")) }
when "read"
  NAMES.each { |name| expect(SERVICE.download(name), content(name), name) }
  expect(SERVICE.download_chunk("large", 100..199), content("large")[100..199], "a part")
  expect(SERVICE.exist?("missing"), false, "a missing file exists")
  link = SERVICE.url("direct", expires_in: 300, filename: ActiveStorage::Filename.new("c.txt"), disposition: :attachment, content_type: "text/plain")
  answer = visit(:Get, link)
  expect([answer.body, answer["Content-Disposition"].start_with?('attachment; filename="c.txt"')], ["sent", true], "the direct upload")
when "remove"
  SERVICE.delete_prefixed("variants/large/")
  NAMES.each { |name| SERVICE.delete(name) }
  expect([SERVICE.exist?("variants/large/0"), SERVICE.exist?("large"), SERVICE.exist?("direct")], [false, false, true], "what is left")
end
