package lint

import (
	"encoding/json"
	"testing"
)

// TestSecretInIsTheSame: of several secrets in a step, the warning names the same one each time.
func TestSecretInIsTheSame(t *testing.T) {
	spec := json.RawMessage(`{"json": {"password": "geheim", "key": "-----BEGIN RSA PRIVATE KEY-----"}}`)
	for range 50 {
		if got := secretIn(spec); got != "a private key" {
			t.Fatalf("found %q", got)
		}
	}
}
