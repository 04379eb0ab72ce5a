package secret

import "testing"

// Of an owner, only its own secrets are hidden, and the whole learns them. The login of the process has all.
func TestKnownForAnOwner(t *testing.T) {
	k := &Known{}
	k.Separate(true, "ticker")
	k.Add("a-secret-of-all")
	k.For("ann").Add("a-secret-of-anns")
	k.For("ann").Issue("a-token-of-anns")
	k.For("ann").AddURL("postgres://ann:a-password-of-anns@h/d")
	const text = "a-secret-of-all a-secret-of-anns a-token-of-anns a-password-of-anns a-sec…"
	for owner, want := range map[string]string{
		"":       "[hidden] [hidden] [hidden] [hidden] [hidden]…",
		"ticker": "[hidden] [hidden] [hidden] [hidden] [hidden]…",
		"ann":    "a-secret-of-all [hidden] [hidden] [hidden] [hidden]…",
		"bob":    text,
	} {
		if got := k.For(owner).Hide(text); got != want {
			t.Errorf("%q: got %q, want %q", owner, got, want)
		}
	}
	if k.Separate(false, ""); k.For("bob").Hide(text) != k.Hide(text) {
		t.Error("bob is still separate")
	}
	var none *Known
	none.Separate(true, "")
	if none.For("ann").Hide("plain") != "plain" {
		t.Error("one that is nil")
	}
}

// A secret that an owner can use, but not read, is hidden as a whole. What is only a part of it stays as it is, wherever the text
// is cut: otherwise the owner could guess it letter by letter.
func TestKnownThatAnOwnerCannotRead(t *testing.T) {
	k := &Known{}
	k.Separate(true, "")
	ann := k.For("ann")
	ann.Use("used-by-a-mail-server-for-all")
	ann.Issue("issued-by-a-cloud-for-an-hour")
	ann.AddURL("mysql://u:of-a-target-that-ann-uses@h/d")
	for text, want := range map[string]string{
		"[used-by-a-mail-server-for-all|issued-by-a-cloud-for-an-hour|of-a-target-that-ann-uses]": "[[hidden]|[hidden]|[hidden]]",
		"used-b… issued-b… of-a-t…":                              "",
		"…for-all …an-hour …ann-uses":                            "",
		"used-by-a-mail-server-for-al issued-by-a-cloud-for-an-": "", // a server cuts so
		"of-a-target-that-ann-use":                               "",
		"dXNlZC1ieS1hLW1h…":                                      "",
	} {
		if want == "" {
			want = text
		}
		if got := ann.Hide(text); got != want {
			t.Errorf("ann: got %q, want %q", got, want)
		}
	}
	if got, want := k.Hide("used-b… issued-b… of-a-t…"), "[hidden]… [hidden]… [hidden]…"; got != want {
		t.Errorf("all: got %q, want %q", got, want)
	}
	if ann.Add("used-by-a-mail-server-for-all"); ann.Hide("used-b…") != "[hidden]…" {
		t.Error("a secret that ann can read, too, is not hidden at a cut")
	}
}

// A secret is known in the whole process, also where it was not given out: there, as a whole.
func TestKnownInOneProcess(t *testing.T) {
	process, one, other := &Known{}, &Known{}, &Known{}
	for range 2 {
		one.Share(process)
		other.Share(process)
	}
	other.Separate(true, "")
	one.Separate(true, "")
	one.Add("given-to-a-step-of-one")
	one.For("bob").Add("given-to-a-step-of-bob")
	one.AddURL("postgres://u:password-of-one@h/d")
	const text = "given-to-a-step-of-one given-to-a-step-of-bob password-of-one given-to…"
	for got, want := range map[string]string{
		one.Hide(text):              "[hidden] [hidden] [hidden] [hidden]…",
		other.Hide(text):            "[hidden] [hidden] password-of-one given-to…",
		other.For("ann").Hide(text): text,
		one.For("bob").Hide(text):   "given-to-a-step-of-one [hidden] password-of-one [hidden]…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
