package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// ProgramSpec is the Spec of the executors exec and shell. As JSON it is {"run": ["pg_dump", "-Fc"], "dir": "/srv"}.
type ProgramSpec struct {
	// Run is the program with its arguments; for shell, it is one text for /bin/sh -c.
	Run []string `json:"run"`
	// Dir is the folder in which the program runs; empty: the home folder.
	Dir string `json:"dir,omitempty"`
	// Env has variables of its environment, in addition to those that each program gets.
	Env map[string]string `json:"env,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL; nil: 10 s.
	Grace *store.Duration `json:"grace,omitempty"`
	// RetryExit has the exit codes after which it is tried again; none: all codes except 0.
	RetryExit []int `json:"retry_exit,omitempty"`
	// SkipExit has the exit codes by which it says that the run has nothing to do: the run ends, and has succeeded.
	SkipExit []int `json:"skip_exit,omitempty"`
}

const shellPath = "/bin/sh"

var (
	execKind  = programKind("exec", List, nil, "program to run, then its arguments, each with an --exec of its own", checkProgram)
	shellKind = programKind("shell", Text, []string{"#"}, "text that /bin/sh runs", checkShell)
)

// programKind makes a kind of executor that runs a program. comments are what begins a comment in what it runs. check refuses programs or texts that could never run.
func programKind(name string, run Type, comments []string, help string, check func(run []string) error) Kind {
	read := func(raw json.RawMessage) (v ProgramSpec, err error) {
		if err := strictly(raw, &v); err != nil {
			return v, fmt.Errorf(`the spec is not of the form {"run": ["…"]}: %w`, err)
		}
		return v, v.check(name, check)
	}
	return Kind{
		Name: name,
		Keys: []Key{{Name: name, Type: Mapping, Short: true, Help: help, Keys: []Key{
			{Name: "run", Type: run, Comments: comments}, {Name: "dir", Type: Text}, {Name: "env", Type: Pairs}, {Name: "grace", Type: Text},
			{Name: "retry_exit", Type: List}, {Name: "skip_exit", Type: List},
		}}},
		Spec: func(given map[string]any) (json.RawMessage, error) {
			values, _ := given[name].(map[string]any)
			v, err := programSpec(name, values)
			if err == nil {
				err = v.check(name, check)
			}
			if err != nil {
				return nil, err
			}
			return json.Marshal(v)
		},
		Values: func(raw json.RawMessage) (map[string]any, error) {
			v, err := read(raw)
			return map[string]any{name: v.values(run)}, err
		},
		Line: func(raw json.RawMessage) string {
			v, err := read(raw)
			if err != nil {
				return ""
			}
			return name + " " + strings.Join(v.Run, " ")
		},
		Check: func(raw json.RawMessage) error { _, err := read(raw); return err },
		Open: func(_ *store.Store, h *Host) (Executor, error) {
			return &programs{h, name == "shell", read}, nil
		},
		Warn: func(raw json.RawMessage) string {
			v, err := read(raw)
			if err != nil || name != "exec" || len(v.Run) != 1 || !strings.Contains(v.Run[0], " ") || strings.HasSuffix(strings.ToLower(v.Run[0]), ".exe") {
				return ""
			}
			return fmt.Sprintf("the program is %.100q, with its blanks; arguments are a list, as in exec: [%.100s], "+
				"and a line for the shell is shell", v.Run[0], strings.Join(strings.Fields(v.Run[0]), ", "))
		},
		Touches: func(raw json.RawMessage) Touched {
			v, err := read(raw)
			if err != nil || name == "shell" {
				return Touched{Program: shellPath}
			}
			return Touched{Program: v.Run[0]}
		},
	}
}

// programSpec makes a spec from the values of keys.
func programSpec(name string, values map[string]any) (v ProgramSpec, err error) {
	v.Run, _ = values["run"].([]string)
	if text, ok := values["run"].(string); ok {
		v.Run = []string{text}
	}
	v.Dir, _ = values["dir"].(string)
	v.Env, _ = values["env"].(map[string]string)
	if text, ok := values["grace"].(string); ok {
		grace, err := store.ParseDuration(text)
		if err != nil {
			return v, &KeyError{[]any{name, "grace"}, err}
		}
		v.Grace = &grace
	}
	for key, into := range map[string]*[]int{"retry_exit": &v.RetryExit, "skip_exit": &v.SkipExit} {
		list, _ := values[key].([]string)
		for i, text := range list {
			code, err := strconv.Atoi(text)
			if err != nil || code < 1 || code > 255 {
				return v, &KeyError{[]any{name, key, i}, fmt.Errorf("found %q, want an exit code from 1 to 255", text)}
			}
			*into = append(*into, code)
		}
	}
	return v, nil
}

// values returns the values of keys that make this spec.
func (s ProgramSpec) values(run Type) map[string]any {
	values := map[string]any{}
	if run == List {
		values["run"] = s.Run
	} else if len(s.Run) > 0 {
		values["run"] = s.Run[0]
	}
	if s.Dir != "" {
		values["dir"] = s.Dir
	}
	if len(s.Env) > 0 {
		values["env"] = s.Env
	}
	if s.Grace != nil {
		values["grace"] = s.Grace.String()
	}
	for key, list := range map[string][]int{"retry_exit": s.RetryExit, "skip_exit": s.SkipExit} {
		var texts []string
		for _, code := range list {
			texts = append(texts, strconv.Itoa(code))
		}
		if texts != nil {
			values[key] = texts
		}
	}
	return values
}

// check refuses what no run could do.
func (s ProgramSpec) check(name string, check func(run []string) error) error {
	if len(s.Run) == 0 || strings.TrimSpace(s.Run[0]) == "" {
		return &KeyError{[]any{name}, errors.New("names nothing to run")}
	}
	if err := check(s.Run); err != nil {
		return err
	}
	if s.Dir != "" && !absolute(s.Dir) {
		return &KeyError{[]any{name, "dir"}, fmt.Errorf("found %.200q, want an absolute path without \".\" and \"..\"", s.Dir)}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		err := CheckVariable(key)
		if err == nil {
			err = CheckReferences(s.Env[key])
		}
		if err != nil {
			return &KeyError{[]any{name, "env", key}, err}
		}
	}
	for i, code := range s.SkipExit {
		if slices.Contains(s.RetryExit, code) {
			return &KeyError{[]any{name, "skip_exit", i}, fmt.Errorf("the code %d is in retry_exit, too; remove it from one of them", code)}
		}
	}
	return nil
}

// inFolder reports whether a program is named in a folder, and is not looked for.
func inFolder(program string) bool { return strings.ContainsAny(program, `/\`) }

// beforeFolders matches the drive, or the server with its share, of an absolute path of Windows.
var beforeFolders = lazyregexp.New(`^([A-Za-z]:|\\\\[^\\/]+[\\/][^\\/]+)[\\/]`)

// absolute reports whether a path is absolute, and has no "." and "..", as Unix or as Windows writes it: a definition may be
// written on another system than that of the host that executes it.
func absolute(name string) bool {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name) == name
	}
	before := beforeFolders.FindString(name)
	folders := "/" + strings.ReplaceAll(name[len(before):], `\`, "/")
	return before != "" && path.Clean(folders) == folders
}

// checkProgram refuses arguments that name a fact that no run has, and a program name that could be found in different places
// on different machines.
func checkProgram(run []string) error {
	if strings.Contains(run[0], "${") {
		return &KeyError{[]any{"exec", 0}, errors.New("the name of the program has no references: the host allows it by its name")}
	}
	if inFolder(run[0]) && !absolute(run[0]) {
		return &KeyError{[]any{"exec", 0}, fmt.Errorf("found %.200q, want an absolute path without . and .., or a name, which is looked for in %s", run[0], searchPath)}
	}
	for i, arg := range run {
		if secretReference.MatchString(arg) {
			return &KeyError{[]any{"exec", i}, errors.New("a secret among the arguments shows in the list of processes; give it to env, and use the variable")}
		}
		if err := CheckReferences(arg); err != nil {
			return &KeyError{[]any{"exec", i}, err}
		}
	}
	return nil
}

// shellVariable finds references that the shell would take for variables of its own.
var shellVariable = lazyregexp.New(`\$\{([a-z_]+|args\.[^}]*|secret:[^}]*|steps\.[^}]*)\}`)

// checkShell refuses references: the shell would execute the value of a reference as if it were part of the text.
func checkShell(run []string) error {
	for _, m := range shellVariable.FindAllStringSubmatch(run[0], -1) {
		name, given := strings.CutPrefix(m[1], "args.")
		_, isSecret := strings.CutPrefix(m[1], "secret:")
		told, ofStep := strings.CutPrefix(m[1], "steps.")
		if ofStep {
			_, _, ofStep = store.StepFact(told)
		}
		switch {
		case isSecret, ofStep: // a program has variables for the facts of steps only if its spec names one
			return &KeyError{[]any{"shell"}, fmt.Errorf("%.100s is not put into a text for the shell; give it to env, and use the variable", m[0])}
		case given || slices.Contains(References(), name):
			return &KeyError{[]any{"shell"}, fmt.Errorf(`%.100s is not put into a text for the shell, which would execute it; use "$%s"`, m[0], factVariable(m[1]))}
		}
	}
	return nil
}

// variableName matches a name that a variable in the environment of a program can have.
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// loaders matches variables by which an allowed program would run another program, or code that nobody has allowed: variables
// of the program loader, of shells and of interpreters, and variables from which many programs take a command. No list has all
// of them. So this list prevents mistakes, but it is no security border: a permission for a program allows it with any variables.
// A list of variables that the host allows would be no border either, since arguments and the folder can do as much. The
// border is a script that the host writes for the purpose.
var loaders = lazyregexp.New(`(?i)^(LD_.*|DYLD_.*|LIBPATH|SHLIB_PATH|GLIBC_TUNABLES|GCONV_PATH|OPENSSL_(CONF|CONF_INCLUDE|ENGINES|MODULES)|` +
	`PATH|PATHEXT|COMSPEC|SYSTEMROOT|WINDIR|PSMODULEPATH|COR(ECLR)?_(ENABLE_)?PROFIL.*|IFS|ENV|ZDOTDIR|BASH_ENV|BASH_FUNC.*|SHELLOPTS|BASHOPTS|PS4|GLOBIGNORE|` +
	`PYTHON.*|PERL.*|RUBY.*|LUA_.*|PHPRC|PHP_INI_SCAN_DIR|NODE_(OPTIONS|PATH|REPL_.*)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_.*|CLASSPATH|DOTNET_STARTUP_HOOKS|` +
	`GIT_.*|RSYNC_RSH|SSH_ASKPASS|SUDO_ASKPASS|TAR_OPTIONS|MAKEFLAGS|PROMPT_COMMAND|PSQLRC|EDITOR|VISUAL|PAGER|MANPAGER|.*_PAGER|LESSOPEN|LESSCLOSE|DBJOBS_.*)$`)

// CheckVariable refuses a name that no step may set in the environment of a program.
func CheckVariable(name string) error {
	switch {
	case !variableName.MatchString(name):
		return errors.New("a variable's name has letters, digits and _, and begins with no digit")
	case loaders.MatchString(name):
		return errors.New("this variable is not a step's to set: by it a program runs other code, or it is one of dbjobs' own")
	}
	return nil
}

// factVariable is the name of the variable that holds a fact.
func factVariable(fact string) string {
	upper := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, fact)
	return "DBJOBS_" + upper
}

// IsFactVariable reports whether a variable of that name may hold a fact. A program that a step runs gets these variables, too.
func IsFactVariable(name string) bool {
	return strings.HasPrefix(name, "DBJOBS_ARGS_") || strings.HasPrefix(name, "DBJOBS_STEPS_") ||
		slices.ContainsFunc(References(), func(fact string) bool { return factVariable(fact) == name })
}

// grace is the time between SIGTERM and SIGKILL.
func (s ProgramSpec) grace() time.Duration {
	if s.Grace == nil {
		return 10 * time.Second
	}
	return time.Duration(*s.Grace)
}
