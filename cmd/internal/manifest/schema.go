package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// schema is a JSON Schema, or a part of one.
type schema = map[string]any

// Schema returns the JSON Schema of a manifest. It is made from the tables with which a manifest is read. It
// serves editors, which complete keys and explain them. It describes the structure; only apply finds keys that
// contradict each other. It is of draft 7, because the language servers of editors support that draft
// completely.
func Schema() ([]byte, error) {
	step := steps()
	group := mappingOf(schema{"max_running": integer(1, math.MaxInt32)}, "")
	group["required"] = []string{"max_running"}
	job := mappingOf(jobKeys(), "")
	job["anyOf"] = required(append(does(), "steps"))
	whole := mappingOf(schema{
		"manifest":  described("string", "name of the manifest: what it defines belongs to it"),
		"zone":      schema{"$ref": "#/definitions/zone"},
		"defaults":  mappingOf(policyKeys(true), "policies for all jobs of the file"),
		"groups":    byName(anyOf(integer(1, math.MaxInt32), group), "caps on runs at the same time, by name"),
		"calendars": byName(calendar(), "sets of days that schedules may keep, by name"),
		"schedules": byName(schema{"$ref": "#/definitions/schedule"}, "rules that jobs may share, by name"),
		"jobs":      byName(schema{"$ref": "#/definitions/job"}, "jobs by name"),
		"include":   several(described("string", ""), "files that belong to this manifest, from its folder; a pattern such as jobs.d/*.yaml means several"),
	}, "")
	whole["patternProperties"] = schema{"^x-": true}
	whole["$schema"] = "http://json-schema.org/draft-07/schema#"
	whole["title"] = "dbjobs manifest"
	whole["definitions"] = schema{
		"job": job, "step": step, "rule": rule(nil), "schedule": rule(schema{"renamed_from": formerName()}),
		"zone":     described("string", "time zone, such as Europe/Berlin (UTC)"),
		"variable": schema{"type": "string", "pattern": `\$\{env:`, "description": "a variable of the environment: ${env:NAME}"},
		"duration": anyOf(schema{"type": "string", "pattern": `^([0-9.]+ ?[A-Za-zµ]+ ?)+$|^0$`}, schema{"const": 0}),
		"value":    schema{"type": []string{"string", "number", "boolean", "null"}},
		"written":  schema{"type": []string{"string", "number"}},
	}
	return json.MarshalIndent(whole, "", "  ")
}

func described(kind, text string) schema {
	s := schema{"type": kind}
	if text != "" {
		s["description"] = text
	}
	return s
}

// mappingOf is a mapping that may have these keys and no others.
func mappingOf(keys schema, text string) schema {
	s := described("object", text)
	s["properties"], s["additionalProperties"] = keys, false
	return s
}

// byName is a mapping from names to values of one kind.
func byName(value schema, text string) schema {
	s := described("object", text)
	s["additionalProperties"] = value
	return s
}

func anyOf(list ...schema) schema { return schema{"anyOf": list} }

// several is a single value, or a list of values.
func several(value schema, text string) schema {
	s := anyOf(value, schema{"type": "array", "items": value})
	if text != "" {
		s["description"] = text
	}
	return s
}

// orVariable is a value that is no text, or a reference to a variable that becomes such a value.
func orVariable(s schema) schema { return anyOf(s, schema{"$ref": "#/definitions/variable"}) }

func integer(least, most int64) schema {
	return orVariable(schema{"type": "integer", "minimum": least, "maximum": most})
}

// word is one of some words, of which the first one is the default, or a reference to a variable that becomes one.
func word(text string, words ...string) schema {
	s := orVariable(schema{"enum": words})
	s["default"], s["description"] = words[0], text
	return s
}

func required(keys []string) (list []schema) {
	for _, k := range keys {
		list = append(list, schema{"required": []string{k}})
	}
	return list
}

// rule is a text, or a mapping of the keys that readRule reads.
func rule(more schema) schema {
	known := schema{
		"rule":        described("string", "when: an RRULE text, a cron line, every 5m, daily at 02:30, daily every 25m from 8:10 to 17:40, at 2026-12-01T17:30:00, ..."),
		"zone":        schema{"$ref": "#/definitions/zone"},
		"nonexistent": word("a wall time that a clock change leaves out", store.NonexistentForward, store.NonexistentSkip),
		"ambiguous":   word("a wall time that a clock change repeats", store.AmbiguousFirst, store.AmbiguousLast, store.AmbiguousBoth),
		"calendar":    described("string", "name of a calendar, whose days the rule keeps"),
		"on_holiday":  word("a time on a day that the calendar takes", store.HolidaySkip, store.HolidayNext, store.HolidayPrevious),
		"description": described("string", "what it is for"),
	}
	keys := schema{}
	for _, f := range scheduleFields(&store.Schedule{}) {
		if keys[f.key] = known[f.key]; known[f.key] == nil {
			keys[f.key] = described("string", "")
		}
	}
	maps.Copy(keys, more)
	mapping := mappingOf(keys, "")
	mapping["required"] = []string{"rule"}
	return anyOf(described("string", ""), mapping)
}

func formerName() schema { return described("string", "the name that it had: apply renames it, once") }

// calendar is a list of days, or a mapping of the keys that readCalendars reads.
func calendar() schema {
	keys := schema{}
	for _, f := range (&file{}).calendarFields(&store.Calendar{}) {
		keys[f.key] = described("string", "")
	}
	day := described("string", "2026-12-25 Christmas Day, 05-01 of each year, or 2026-12-28..2026-12-31")
	keys["days"] = several(day, "")
	return anyOf(schema{"type": "array", "items": day}, mappingOf(keys, ""))
}

func jobKeys() schema {
	keys := schema{
		"schedule":  schema{"$ref": "#/definitions/rule", "description": "name of a schedule, or a rule"},
		"schedules": several(described("string", ""), "names of schedules"),
		"rule":      schema{"$ref": "#/definitions/rule", "description": "a rule of the job's own"},
		"zone":      schema{"$ref": "#/definitions/zone"},

		"renamed_from": formerName(),
		"steps":        schema{"type": "array", "minItems": 1, "items": schema{"$ref": "#/definitions/step"}, "description": "steps, executed in order"},
	}
	for _, shared := range []bool{false, true} {
		for k, v := range policyKeys(shared) {
			keys[k] = v
		}
	}
	for _, k := range executor.Kinds {
		for _, key := range k.Keys {
			keys[key.Name] = executorKey(key)
		}
	}
	return keys
}

func steps() schema {
	way := schema{"type": "string", "pattern": `^(next|succeed|fail|step:.+|.*\$\{env:.*)$`}
	keys := schema{"name": described("string", ""), "timeout": ofDuration("longest time of one attempt"), "retry": section("retry").schema(), "on_success": way, "on_failure": way}
	for _, k := range executor.Kinds {
		for _, key := range k.Keys {
			keys[key.Name] = executorKey(key)
		}
	}
	s := mappingOf(keys, "")
	s["anyOf"] = required(does())
	return s
}

func policyKeys(shared bool) schema {
	keys := schema{}
	for _, e := range entries {
		if e.Shared == shared {
			keys[e.key] = e.schema()
		}
	}
	return keys
}

func ofDuration(text string) schema {
	s := orVariable(schema{"$ref": "#/definitions/duration"})
	s["description"] = strings.TrimSpace(text + ": a length of time such as 90s, 1h30m, 30d or 2 minutes")
	return s
}

// schema returns the schema of the values that read accepts.
func (e entry) schema() schema {
	if e.inner != nil {
		keys := schema{}
		for _, in := range e.inner {
			keys[in.key] = in.schema()
		}
		whole := mappingOf(keys, "")
		if short := e.short(); short != nil {
			return anyOf(short.schema(), whole)
		}
		if e.key == "retry" {
			return anyOf(orVariable(schema{"type": "integer", "minimum": 0, "maximum": 999}), schema{"enum": []string{"until-next"}}, whole)
		}
		return whole
	}
	s := e.values()
	if e.Help != "" {
		s["description"] = cmp.Or(s["description"], any(e.Usage()))
	}
	switch usual := e.Default.(type) {
	case nil:
	case fmt.Stringer:
		s["default"] = usual.String()
	case store.Attempts:
		s["default"] = int(usual)
	default:
		s["default"] = usual
	}
	return s
}

func (e entry) values() schema {
	switch e.Of(&store.Job{}).(type) {
	case *string:
		if e.Allowed != nil {
			return orVariable(schema{"enum": e.Allowed})
		}
		return schema{"type": "string"}
	case *[]string:
		return several(schema{"type": "string"}, "")
	case *[]store.After:
		one := mappingOf(schema{"job": described("string", "name of a job, or owner/name"), "on": orVariable(schema{"enum": store.Ends()})}, "")
		one["required"] = []string{"job"}
		return several(anyOf(schema{"type": "string"}, one), "")
	case *int, **int:
		return integer(e.Least, cmp.Or(e.Most, math.MaxInt32))
	case *int64:
		return integer(e.Least, cmp.Or(e.Most, 1<<53))
	case *bool:
		return orVariable(schema{"type": "boolean"})
	case *time.Time:
		return orVariable(schema{"type": "string", "format": "date-time"})
	case *store.Duration, **store.Duration:
		return ofDuration(e.Usage())
	case **store.Attempts:
		return anyOf(integer(1, 1000), schema{"enum": []string{"until-next"}})
	}
	panic(fmt.Sprintf("manifest: policy %s has an unknown type", e.Key))
}

// executorKey returns the schema of the values that readValue accepts.
func executorKey(key executor.Key) schema {
	s := executorValue(key)
	if key.Help != "" {
		s["description"] = key.Help
	}
	return s
}

func executorValue(key executor.Key) schema {
	value, written := schema{"$ref": "#/definitions/value"}, schema{"$ref": "#/definitions/written"}
	switch key.Type {
	case executor.Switch:
		return orVariable(schema{"type": "boolean"})
	case executor.Text, executor.TargetName:
		if key.Filled {
			return schema{"type": "string", "minLength": 1}
		}
		return schema{"type": "string"}
	case executor.Arguments:
		return several(value, "")
	case executor.Statements:
		one := mappingOf(schema{"text": described("string", "the statement"), "args": several(value, "its arguments")}, "")
		one["required"] = []string{"text"}
		return several(anyOf(schema{"type": "string"}, one), "")
	case executor.List:
		return several(written, "")
	case executor.Pairs:
		return byName(written, "")
	case executor.Mapping:
		keys := schema{}
		for _, sub := range key.Keys {
			keys[sub.Name] = executorKey(sub)
		}
		mapping := mappingOf(keys, "")
		if key.Short {
			mapping["required"] = []string{key.Keys[0].Name}
			return anyOf(executorKey(key.Keys[0]), mapping)
		}
		return mapping
	}
	return schema{} // any JSON
}
