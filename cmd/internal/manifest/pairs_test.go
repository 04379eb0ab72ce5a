package manifest

import (
	"strings"
	"testing"
	"time"
)

// JSON escapes a character beyond U+FFFF as a pair, and a manifest in JSON may have it.
func TestPairsOfJSON(t *testing.T) {
	for text, want := range map[string]string{
		`nightly \ud83d\udcbe`:                  "nightly \U0001F4BE",
		`\uD83D\uDCBE\ud83d\uDCBE.`:             "\U0001F4BE\U0001F4BE.",
		`\\ud83d\\udcbe`:                        `\ud83d\udcbe`,
		`\\\ud83d\udcbe`:                        "\\\U0001F4BE",
		`\\ud83d \ud83d\udcbe`:                  "\\ud83d \U0001F4BE",
		`\ud83d\udcbe \u00e9 \/ \" \U0001F4BE`:  "", // \U is no JSON
		`\ud83d`:                                "", // half of a pair
		`\ud83d\ud83d`:                          "",
		`\udcbe\ud83d`:                          "",
		`\ud83d\udcbe \u00e9 \ud7ff \/ \" \ue0`: "",
		`\ud83d\udcbe \u00e9 \ud7ff \/ \"`:      "\U0001F4BE \u00e9 \ud7ff / \"",
	} {
		in := `{"jobs": {"a": {"sql": "SELECT 1", "description": "` + text + `"}}}`
		m, err := Read([]Input{{Path: "m.json", In: strings.NewReader(in)}}, Options{Now: time.Now()})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is read as %q", text, m.Jobs[0].Description)
		case want != "" && (err != nil || m.Jobs[0].Description != want):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if list := entryList([]string{`{"text": "\ud83d\udcbe"}`}); list.Content[0].Content == nil || list.Content[0].Content[1].Value != "\U0001F4BE" {
		t.Errorf("the value of a flag: %+v", list.Content[0])
	}
}
