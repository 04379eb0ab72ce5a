// Package terraform_test holds the modules' READMEs against the modules.
package terraform_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of inputs and outputs into the READMEs")

// TestReadmesHaveTheInputsAndOutputs: the tables between the markers in each module's README are those of its .tf
// files. `go test ./terraform -update` writes them.
func TestReadmesHaveTheInputsAndOutputs(t *testing.T) {
	for _, module := range []string{"aws", "gcp"} {
		t.Run(module, func(t *testing.T) {
			readme := filepath.Join(module, "README.md")
			text, err := os.ReadFile(readme)
			if err != nil {
				t.Fatal(err)
			}
			want := string(text)
			for kind, table := range map[string]string{"variable": inputs(t, module), "output": outputs(t, module)} {
				begin, end := "<!-- "+kind+"s: made by go test ./terraform -update -->\n", "<!-- end of "+kind+"s -->"
				before, rest, found := strings.Cut(want, begin)
				_, after, ended := strings.Cut(rest, end)
				if !found || !ended {
					t.Fatalf("%s lacks the lines %q and %q", readme, begin, end)
				}
				want = before + begin + table + end + after
			}
			if want == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s does not have the inputs and outputs of the .tf files; run go test ./terraform -update", readme)
		})
	}
}

// TestCertificatesAreWhole: a download that breaks off leaves no file, which the next make would pack into the function.
func TestCertificatesAreWhole(t *testing.T) {
	dir, got := t.TempDir(), ""
	for _, code := range []string{"18", "0"} {
		curl := "#!/bin/sh\nshift $(($# - 3))\necho " + code + " >\"$2\"\nexit " + code + "\n" // it ends with -o FILE URL
		if err := os.WriteFile(filepath.Join(dir, "curl"), []byte(curl), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("make", "-s", "-C", "..", "BUILD="+dir, filepath.Join(dir, "global-bundle.pem"))
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		text, _ := os.ReadFile(filepath.Join(dir, "global-bundle.pem"))
		if got = strings.TrimSpace(string(text)); (err == nil) != (code == "0") || err != nil && got != "" {
			t.Errorf("curl ends with %s: %v, the file has %q: %s", code, err, got, said)
		}
	}
	if got != "0" {
		t.Errorf("the file has %q", got)
	}
}

// TestTheWalksAreShort: on each cloud, from a clone to the first run are at most six steps, each of which is one command.
func TestTheWalksAreShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, found := strings.Cut(string(text), "\n## From a clone to the first run\n")
	walks, _, ended := strings.Cut(walks, "\n## ")
	aws, gcp, both := strings.Cut(walks, "\nOn Google Cloud,")
	if !found || !ended || !both {
		t.Fatal("README.md does not have two walks")
	}
	for _, walk := range []string{aws, gcp} {
		steps := regexp.MustCompile(`(?m)^\d\. .+$`).FindAllString(walk, -1)
		if len(steps) < 3 || len(steps) > 6 {
			t.Errorf("%d steps: %q", len(steps), steps)
		}
		for i, step := range steps {
			if !strings.HasPrefix(step, fmt.Sprintf("%d. ", i+1)) || i+1 < len(steps) && strings.Count(step, "`") < 2 {
				t.Errorf("step %d is no command: %s", i+1, step)
			}
		}
	}
}

func inputs(t *testing.T, module string) string {
	var b strings.Builder
	b.WriteString("| input | type | default | |\n| --- | --- | --- | --- |\n")
	for _, v := range blocks(t, module, "variable") {
		kind, standard := v.attributes["type"], v.attributes["default"]
		if kind == "" || v.attributes["description"] == "" {
			t.Errorf("variable %s of %s lacks a type or a description", v.name, module)
		}
		kind, _, _ = strings.Cut(kind, "({") // an object's description tells its attributes
		kind += strings.Repeat(")", strings.Count(kind, "(")-strings.Count(kind, ")"))
		if standard == "" {
			standard = "(required)"
		} else {
			standard = "`" + standard + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.name, kind, standard, described(t, v))
	}
	return b.String()
}

func outputs(t *testing.T, module string) string {
	var b strings.Builder
	b.WriteString("| output | |\n| --- | --- |\n")
	for _, v := range blocks(t, module, "output") {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, described(t, v))
	}
	return b.String()
}

// described is a block's description as a table's cell.
func described(t *testing.T, v block) string {
	text := strings.Trim(v.attributes["description"], `"`)
	if text == "" || strings.Contains(text, `\`) || strings.Contains(text, "|") && strings.Count(text, "`")%2 == 1 {
		t.Errorf("%s: the description is missing, or not one plain line", v.name)
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// A block is a variable or an output, with its attributes as they are written.
type block struct {
	name       string
	attributes map[string]string
}

var (
	blockStart = regexp.MustCompile(`^(\w+) "(\w+)" \{$`)
	attribute  = regexp.MustCompile(`^  (\w+) += (.*)$`)
)

// blocks are those of one kind in the order of the files, which `terraform fmt` has formatted: a block's own
// attributes are indented by two blanks, and what is inside of one by more.
func blocks(t *testing.T, module, kind string) (all []block) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(module, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .tf files in %s (%v)", module, err)
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if m := blockStart.FindStringSubmatch(line); m != nil && m[1] == kind {
				all, inside = append(all, block{m[2], map[string]string{}}), true
			} else if m := attribute.FindStringSubmatch(line); m != nil && inside {
				all[len(all)-1].attributes[m[1]] = m[2]
			} else if line == "}" {
				inside = false
			}
		}
	}
	if len(all) < 5 {
		t.Fatalf("only %d %ss found in %s", len(all), kind, module)
	}
	return all
}

// TestPasswordsAreEscapedAsInURLs: urlencode writes a blank as a plus, which the first parts of a URL take for a plus.
func TestPasswordsAreEscapedAsInURLs(t *testing.T) {
	files, err := filepath.Glob("*/*/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob("*/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, modules...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Count(string(text), "urlencode(")
		if found += all; all != len(regexp.MustCompile(`replace\(urlencode\([a-z_.]+\), "\+", "%20"\)`).FindAll(text, -1)) {
			t.Errorf("%s: a text with a blank in it becomes another one", file)
		}
	}
	if found == 0 {
		t.Error("nothing is escaped any more")
	}
}
