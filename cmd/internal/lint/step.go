package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor"
)

func (l *linter) step(j *store.Job, s *store.Step) {
	if what := secretIn(s.Spec); what != "" {
		l.warn("job", j.FullName(), SecretInStep, "step %s holds what looks like %s; everybody who may read the database can see it", s.Name, what)
	}
	if k := executor.KindOf(s.Executor); k != nil && k.Warn != nil {
		if what := k.Warn(s.Spec); what != "" {
			l.warn("job", j.FullName(), UnlikelyStep, "step %s: %s", s.Name, what)
		}
	}
}

// comments warns of what comments take of the steps, because of how YAML reads the file.
func (l *linter) comments(j *store.Job) {
	for _, s := range l.swallowed[j.Name] {
		l.warn("job", j.FullName(), UnlikelyStep, "in line %d of %s, %s", s.Place.Line, s.Place.File, s.Text)
	}
}

// noSecret is a place in a spec whose name looks like a secret, and whose value is only a word.
const noSecret = ".auth.gcp.token"

// secretIn returns the kind of secret that a value of a step seems to be; empty: none.
func secretIn(spec json.RawMessage) string {
	var values any
	if json.Unmarshal(spec, &values) != nil {
		return ""
	}
	var look func(path, name string, v any) string
	look = func(path, name string, v any) string {
		switch v := v.(type) {
		case string:
			if secret.IsName(name) && v != "" && !strings.Contains(v, "${") && path != noSecret {
				return "a password"
			}
			return secret.Like(v)
		case []any:
			for _, e := range v {
				if what := look(path+"[]", name, e); what != "" {
					return what
				}
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if what := look(path+"."+name, name, v[name]); what != "" {
					return what
				}
			}
		}
		return ""
	}
	return look("", "", values)
}
