package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The problem of a file that is included and cannot be read names it once.
func TestIncludedFileThatCannotBeRead(t *testing.T) {
	const memory = "/proc/self/mem" // its first page cannot be read, not even by root
	if _, err := os.Stat(memory); err != nil {
		t.Skip("a file that nobody can read is needed: ", err)
	}
	const want = `jobs.yaml:1:11: include[0]: "/proc/self/mem": input/output error`
	if _, err := decode(t, "include: [/proc/self/mem]\n"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The bytes of the files of this machine do not count for those from elsewhere, of which there may be fewer.
func TestFileFromElsewhereAfterALongOne(t *testing.T) {
	const short = "groups: {a: 1}\n"
	for name, c := range map[string]struct {
		local, elsewhere int // bytes of files before this one
		text             string
		want             string
	}{
		"a long one before it":     {17 << 20, 0, short, ""},
		"others before it":         {MaxBytes - 16<<20, 16<<20 - len(short), short, ""},
		"too many from there":      {17 << 20, 16 << 20, short, "longer than 16777216 bytes, with the files before it"},
		"too many altogether":      {MaxBytes - 5, 0, short, "longer than 67108864 bytes, with the files before it"},
		"it is too long by itself": {5, 0, strings.Repeat(" ", 16<<20+1), "longer than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{m: &Manifest{}, left: MaxBytes, leftAlone: MaxBytesAlone}
			r.count(c.local, false)
			r.count(c.elsewhere, true)
			if err := r.load(Input{Path: "jobs.yaml", In: strings.NewReader(c.text), Alone: true}, nil, nil); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range r.files[0].problems {
				got += p.Text
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A folder of files may have what an editor needs for them: the JSON Schema is no manifest.
func TestFolderWithTheSchemaOfAnEditor(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"dbjobs.schema.json": string(schema), "jobs.json": `{"groups": {"a": 1}}`, "schema.json": `{"groups": {"b": 1}}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Folder(folder)
	if err != nil || len(list) != 2 || filepath.Base(list[0].Path) != "jobs.json" || filepath.Base(list[1].Path) != "schema.json" {
		t.Errorf("%+v, %v", list, err)
	}
}
