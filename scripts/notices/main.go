// Notices writes the licences of everything that is linked into a program. Those who pass the program on have to
// include them:
//
//	go run ./scripts/notices -o LICENSES path/to/dbjobs
//
// The modules and their versions are read from the program itself, and their texts from the module cache. The same
// program gives the same bytes. A module without a licence is an error, because nobody may pass it on.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

func main() {
	out := flag.String("o", "LICENSES", "the file to write")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: notices [-o FILE] PROGRAM")
		os.Exit(2)
	}
	text, err := notices(flag.Arg(0))
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// notices returns the whole text. The program's own licence comes first, then Go's, then those of the modules,
// sorted by path.
func notices(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	root, err := goCommand("list", "-m", "-f", "{{.Dir}}", info.Main.Path)
	if err != nil {
		return nil, err
	}
	goroot, err := goCommand("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "The licences of %s and of all that is linked into it. The source of a module is what\n"+
		"`go mod download MODULE@VERSION` fetches.\n", info.Main.Path)
	if err := add(&b, info.Main.Path, string(root)); err != nil {
		return nil, err
	}
	if err := add(&b, "the Go standard library", string(goroot)); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		dir, err := dirOf(m)
		if err != nil {
			return nil, err
		}
		if err := add(&b, m.Path+"@"+m.Version, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// dirOf returns the folder of a module in the cache. It fetches the module if the cache does not have it.
func dirOf(m *debug.Module) (string, error) {
	out, err := goCommand("mod", "download", "-json", m.Path+"@"+m.Version)
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(out, &found)
}

func goCommand(args ...string) ([]byte, error) {
	out, err := exec.Command("go", args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %s", strings.Join(args, " "), e.Stderr)
	}
	return bytes.TrimSpace(out), err
}

// legal matches the names of the files that say what is allowed, and who has to be named.
var legal = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^copyright|^notice|^patents|^authors$`)

// add appends the files of a folder.
func add(b *bytes.Buffer, name, dir string) error {
	files, err := os.ReadDir(dir) // in the order of their names
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !legal.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 80), name, f.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s: there is no licence in %s", name, dir)
	}
	return nil
}
