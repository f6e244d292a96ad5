// Checks the signature of a delivery with Go's standard library.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Verify says whether a delivery is genuine and not older than the tolerance. The body must be the bytes as received.
func Verify(secret string, headers http.Header, body []byte, tolerance time.Duration) bool {
	timestamp := headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, headers.Get("webhook-id")+"."+timestamp+".")
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	// While the secret is rotated, there are two signatures.
	for _, found := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(found), expected) {
			return true
		}
	}
	return false
}

func main() {
	headers := http.Header{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers.Set(name, os.Getenv(strings.ToUpper(strings.ReplaceAll(name, "-", "_"))))
	}
	tolerance := 5 * time.Minute
	if seconds, err := strconv.Atoi(os.Getenv("WEBHOOK_TOLERANCE")); err == nil {
		tolerance = time.Duration(seconds) * time.Second
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !Verify(os.Getenv("WEBHOOK_SECRET"), headers, body, tolerance) {
		os.Exit(1)
	}
}
