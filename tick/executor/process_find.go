package executor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/away"
)

// command makes the command: the program with its arguments, in its folder. It waits for them no longer than ctx lasts, and then
// returns an away.LateError: they may be on a file server that is away.
func (e *programs) command(ctx context.Context, spec ProgramSpec, owner string, facts map[string]any) (*exec.Cmd, error) {
	args := slices.Clone(spec.Run)
	if e.shell {
		if err := startable(shellPath); err != nil {
			return nil, err
		}
		args = []string{shellPath, "-c", spec.Run[0]}
	} else {
		for i, arg := range args {
			var err error
			if args[i], err = expandText(arg, facts); err != nil {
				return nil, err
			}
		}
	}
	what := fmt.Sprintf("the program %s for %q, or its folder %s,", quoted(args[0]), owner, quoted(cmp.Or(spec.Dir, "~")))
	return away.Within(ctx, what, func() (*exec.Cmd, error) {
		path, err := e.host.find(owner, filepath.FromSlash(args[0]))
		if err != nil {
			return nil, err
		}
		dir, err := folder(spec.Dir)
		if err != nil {
			return nil, err
		}
		openAhead(path, dir)
		return &exec.Cmd{Path: path, Args: args, Dir: dir}, nil
	})
}

// find returns the path by which the program is to be run.
func (h *Host) find(owner, program string) (path string, err error) {
	if !inFolder(program) {
		if program, err = lookFor(program); err != nil {
			return "", err
		}
	}
	if path, err = h.AllowsProgram(owner, program); err != nil {
		return "", err
	}
	return path, startable(path)
}

// lookFor finds a program by a name without a folder.
func lookFor(name string) (string, error) {
	for _, folder := range filepath.SplitList(searchPath) {
		for _, file := range fileNames(name) {
			path := filepath.Join(folder, file)
			if info, err := os.Stat(path); err == nil && mayExecute(info) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("there is no program %s in %s", quoted(name), searchPath)
}

// folder returns the folder in which a program runs: the one that the step names, or the home folder.
func folder(named string) (string, error) {
	if named == "" {
		return homeFolder(), nil
	}
	if _, err := os.Stat(named + "/."); err != nil { // a folder that may be entered; otherwise the error would name the program
		return "", fmt.Errorf("dir: %w", err)
	}
	return named, nil
}

// homeFolder is the folder in which a program runs if the step names no folder.
func homeFolder() string {
	if dir, err := os.UserHomeDir(); err == nil {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return string(filepath.Separator)
}

// openAhead opens what the start of a program opens: its folder, the program, and the program that its first line names. If one of
// them is on a file server that is away, this hangs, and not the start. A start that hangs would hold up the whole process: on
// Linux, its thread waits until the system has opened the program, and Go cannot halt this thread meanwhile, as it has to do to
// collect garbage. Errors are left to the start.
//
// Crash window: if the server goes away between this and the start, the process stands still.
func openAhead(path, dir string) {
	if f, err := os.Open(dir); err == nil {
		f.Close()
	}
	if interpreter := firstLine(path); interpreter != "" {
		_ = firstLine(interpreter)
	}
}

// firstLine returns the program that is to interpret a script; empty: the file is no script.
func firstLine(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // other files may wait for a writer
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256) // Linux reads as much
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) > 0 {
		return words[0]
	}
	return ""
}
