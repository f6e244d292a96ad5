#!/bin/sh
# Checks the signature of a delivery with openssl. The body is read from standard input; the secret and the headers are in
# WEBHOOK_SECRET, WEBHOOK_ID, WEBHOOK_TIMESTAMP and WEBHOOK_SIGNATURE. Exits with 0 if the delivery is genuine.
set -eu

case $WEBHOOK_TIMESTAMP in '' | *[!0-9]*) exit 1 ;; esac
age=$(($(date +%s) - WEBHOOK_TIMESTAMP))
[ "${age#-}" -le "${WEBHOOK_TOLERANCE:-300}" ] || exit 1

# The key is seen by others on this machine while openssl runs: do not use this where others can log in.
key=$(printf %s "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
expected=v1,$({ printf '%s.%s.' "$WEBHOOK_ID" "$WEBHOOK_TIMESTAMP" && cat; } |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

# The time that the comparison of hashes takes does not show how many characters of a signature are right.
hash() { printf %s "$1" | openssl dgst -sha256 -binary | od -An -v -tx1; }

# While the secret is rotated, there are two signatures.
for found in $WEBHOOK_SIGNATURE; do
    [ "$(hash "$found")" != "$(hash "$expected")" ] || exit 0
done
exit 1
