package secret

import "testing"

// Of a separate owner, only its own secrets are hidden, and the whole learns them. Others have all.
func TestKnownForAnOwner(t *testing.T) {
	k := &Known{}
	k.Separate([]string{"ann", "bob"})
	k.Add("a-secret-of-all")
	k.For("ann").Add("a-secret-of-anns")
	k.For("ann").Issue("a-token-of-anns")
	k.For("ann").AddURL("postgres://ann:a-password-of-anns@h/d")
	const text = "a-secret-of-all a-secret-of-anns a-token-of-anns a-password-of-anns a-sec…"
	for owner, want := range map[string]string{
		"":    "[hidden] [hidden] [hidden] [hidden] [hidden]…",
		"eve": "[hidden] [hidden] [hidden] [hidden] [hidden]…",
		"ann": "a-secret-of-all [hidden] [hidden] [hidden] [hidden]…",
		"bob": text,
	} {
		if got := k.For(owner).Hide(text); got != want {
			t.Errorf("%q: got %q, want %q", owner, got, want)
		}
	}
	if k.Separate(nil); k.For("bob").Hide(text) != k.Hide(text) {
		t.Error("bob is still separate")
	}
	var none *Known
	none.Separate([]string{"ann"})
	if none.For("ann").Hide("plain") != "plain" {
		t.Error("one that is nil")
	}
}
