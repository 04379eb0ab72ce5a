package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// eachPolicy is what the lines of routines are repeated for: the policies that have a column. In such a line, @column is the
// column of jobs, @key the key in a file, @kind what the routines do with a value, @default the JSON of the default in a file,
// and @words the allowed words with commas between.
func eachPolicy() (each []*strings.Replacer) {
	for i := range policies {
		if p := &policies[i]; p.column != "" {
			kind, usual := p.inRoutines()
			each = append(each, strings.NewReplacer("@column", p.column, "@key", p.Key, "@kind", kind, "@default", usual, "@words", strings.Join(p.Allowed, ",")))
		}
	}
	return each
}

// inRoutines returns the kind, of those that policies.sql of the routines explains, and the JSON of the default.
func (p *Policy) inRoutines() (kind, usual string) {
	switch p.value(new(Job)).(type) {
	case *string:
		kind, usual = cmp.Or(p.text.kind, "text"), `""`
		if p.Allowed != nil {
			kind = "word"
		}
	case *[]string:
		kind, usual = "tags", "[]"
	case *int, *int64:
		kind, usual = "number", "0"
	case **int:
		kind, usual = "percent", "0"
	case **Attempts:
		kind, usual = "attempts", "1"
	case *Duration:
		kind, usual = "length", `"0"`
	case **Duration:
		kind, usual = "again", `"0"`
	case *bool:
		kind, usual = "flag", "false"
	case not:
		kind, usual = "off", "false"
	case *time.Time:
		kind, usual = "instant", "null"
	default:
		panic(fmt.Sprintf("store: policy %s is of no known type", p.Key))
	}
	if n, ok := p.Default.(Attempts); ok {
		return kind, fmt.Sprint(int(n))
	} else if p.Default != nil {
		b, _ := json.Marshal(p.Default) // numbers and texts always encode
		usual = string(b)
	} else if p.null {
		usual = "null"
	}
	return kind, usual
}
