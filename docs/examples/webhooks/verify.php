<?php
// Checks the signature of a delivery with PHP's standard library.

/**
 * Whether a delivery is genuine and at most $tolerance seconds old. Header names are in lower case.
 * $body must be the bytes as received: file_get_contents('php://input').
 */
function verify(string $secret, array $headers, string $body, int $tolerance = 300): bool
{
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > $tolerance) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
    if ($key === false) {
        return false;
    }
    $signed = ($headers['webhook-id'] ?? '') . '.' . $timestamp . '.' . $body;
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    // While the secret is rotated, there are two signatures.
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $found) {
        if (hash_equals($expected, $found)) {
            return true;
        }
    }
    return false;
}

if (PHP_SAPI === 'cli' && realpath($_SERVER['argv'][0]) === __FILE__) {
    $headers = [];
    foreach (['webhook-id', 'webhook-timestamp', 'webhook-signature'] as $name) {
        $headers[$name] = (string) getenv(strtoupper(strtr($name, '-', '_')));
    }
    $tolerance = (int) (getenv('WEBHOOK_TOLERANCE') ?: 300);
    exit(verify((string) getenv('WEBHOOK_SECRET'), $headers, stream_get_contents(STDIN), $tolerance) ? 0 : 1);
}
