package executor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signWebhook adds the headers of Standard Webhooks (standardwebhooks.com). It adds a signature for each secret, so that a
// receiver can change to another secret.
func signWebhook(h http.Header, secrets []string, id string, at time.Time, body []byte) error {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
		if err != nil || len(key) == 0 {
			return errors.New(`a secret that signs is "whsec_" with 24 to 64 bytes in base64 after it, and this one is not: openssl rand -base64 32 makes them`)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
	return nil
}
