package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// syntax reports an error of the YAML library, with its line and column. The library speaks of tokens. For
// mistakes that are common in a first file, the problem says what to do instead.
func (d *decoder) syntax(data []byte, err error) {
	p := Problem{File: d.file, Text: "not YAML: " + err.Error()}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.Line = e.Mark.Line
		p.Text, p.Column = advice(lineOf(data, p.Line), e.Message, e.Mark.Column)
		p.Text = "not YAML: " + p.Text
	}
	if d.ofHost {
		p.Text = "not YAML; look at the indentation, the quotes and the colons of this line and the one before"
	}
	d.problems = append(d.problems, p)
}

// lineOf returns the nth line of a text, counted from 1.
func lineOf(data []byte, n int) string {
	for i := 1; ; i++ {
		line, rest, more := bytes.Cut(data, []byte("\n"))
		if i == n {
			return strings.TrimSuffix(string(line), "\r")
		}
		if data = rest; !more {
			return ""
		}
	}
}

// sign matches a value without quotes that begins with a character that has a meaning in YAML. The value comes
// after a key or a dash, or is within brackets.
var sign = lazyregexp.New("(?:(?:^|[\\s,{\\[])([\\w-]+:|-)\\s+|([\\[,])\\s*)([*@%`&][^\"]*)$")

// advice returns what to do, if the line shows what its author meant. Otherwise it returns the message of the
// library. The number is the column of the mistake, counted from 1.
func advice(line, message string, column int) (string, int) {
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		return "indent with spaces: this line is indented with a tab", 1 + strings.Index(line, "\t")
	}
	if m := sign.FindStringSubmatchIndex(line); m != nil {
		flow := strings.ContainsAny(line[:m[6]], "[{")
		if key := m[2] >= 0; key || flow {
			lead := ""
			if key {
				lead = line[m[2]:m[3]] + " "
			}
			return inQuotes(lead, line[m[6]:], flow, message), 1 + utf8.RuneCountInString(line[:m[6]])
		}
	}
	if at := strings.Index(line, variableMark); at >= 0 && strings.HasPrefix(message, "did not find expected ',' or") && strings.ContainsAny(line[:at], "[{") {
		return "within { } or [ ], put a text with ${env:NAME} in quotes; give another value, such as a number, a line of its own: disabled: ${env:NAME}",
			1 + utf8.RuneCountInString(line[:at])
	}
	switch {
	case strings.HasPrefix(message, "mapping values are not allowed"):
		message += `; put a text that has ": " in it in quotes`
	case strings.HasPrefix(message, "did not find expected key"):
		message += "; is the line indented like the lines beside it? Within single quotes, ' is written twice"
	case strings.HasPrefix(message, "found unexpected end of stream"):
		message += "; a quote or bracket that was opened is not closed"
	}
	return message, column
}

// inQuotes says how to write a value that begins with one of these characters.
func inQuotes(lead, value string, flow bool, message string) string {
	const most = 80
	if flow {
		value, _, _ = strings.Cut(value, ",")
		value = strings.TrimRight(value, "]} ")
	}
	value, _, _ = strings.Cut(value, " #")
	value = strings.TrimSpace(value)
	text := fmt.Sprintf("put a value that begins with %c in quotes", value[0])
	if len(value) <= most {
		text += fmt.Sprintf(": %s\"%s\"", lead, value)
	}
	if strings.HasPrefix(message, "unknown anchor") {
		return message + "; if you do not mean an anchor, " + text
	}
	return text
}
