package executor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store"
)

// prepare replaces the references of the spec, and makes the headers and the body.
func (c *call) prepare(ctx context.Context) (*url.URL, error) {
	c.facts = Facts(c.task)
	if err := c.addSecrets(ctx); err != nil {
		return nil, err
	}
	to, err := c.url()
	if err != nil {
		return nil, fmt.Errorf("its URL: %w", err)
	}
	c.header = http.Header{"User-Agent": {"dbjobs"}, "Idempotency-Key": {requestKey(c.task)}}
	if err := c.fillBody(); err != nil {
		return nil, err
	}
	for name, value := range c.spec.Headers {
		if value, err = c.expand(value); err != nil {
			return nil, fmt.Errorf("the header %s: %w", name, err)
		}
		if !validHeader(value) {
			return nil, fmt.Errorf("the header %s: its value has a control character, such as the end of a line, which no header can have", name)
		}
		c.header.Set(name, value)
	}
	return to, c.signByWebhook()
}

// requestKey identifies a run's step, for receivers that execute a request only once. It is the same in all tries and
// deliveries. The id of a run is unique among all databases. The step is identified by its name, because an edit may move it while
// the run is open; the name itself may be long, or have characters that a key cannot have.
func requestKey(t *store.Task) string {
	name := ""
	if step := t.StepAt(t.Run.Step); step != nil {
		name = step.Name
	}
	sum := sha256.Sum256([]byte(name))
	return t.Run.ID + "-" + hex.EncodeToString(sum[:6])
}

// addSecrets adds the secrets that the spec names to the facts.
func (c *call) addSecrets(ctx context.Context) error {
	text, err := json.Marshal(c.spec)
	if err != nil {
		return err
	}
	return c.host.addSecrets(ctx, c.task.Job.Owner, string(text), c.facts)
}

// expand replaces the references of a text.
func (c *call) expand(s string) (string, error) { return expandText(s, c.facts) }

// url returns the URL to which the request goes.
func (c *call) url() (*url.URL, error) { return expandURL(c.spec.URL, c.facts) }

// expandURL replaces the references of a URL. The value of a reference at the beginning is used unchanged. Any other value is
// escaped: it is one part of the path or one value of the query, and cannot break out of it.
func expandURL(spec string, facts map[string]any) (*url.URL, error) {
	first, rest := leading(spec)
	first, err := expandText(first, facts)
	if err != nil {
		return nil, err
	}
	escaped := make(map[string]any, len(facts))
	for name, v := range facts {
		s, err := text(v)
		if err != nil {
			return nil, err
		}
		escaped[name] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	var references []string
	marked, err := expandText(reference.ReplaceAllStringFunc(rest, func(s string) string {
		references = append(references, s)
		return mark + s
	}), escaped)
	if err != nil {
		return nil, err
	}
	to, err := readURL(first + strings.ReplaceAll(marked, mark, ""))
	if err != nil {
		return nil, err
	}
	return to, keepsPath(first, marked, references)
}

// mark stands before the value of a reference. No URL contains it.
const mark = "\x00"

// keepsPath refuses values because of which a part of the path is no part any more: it is empty, or one that is taken away together
// with the part before it. The request would address something else, such as all of a collection. The values of the references
// in a URL are marked, and escaped, but for the one at its beginning, first.
func keepsPath(first, marked string, references []string) error {
	if strings.ContainsAny(first, "?#") {
		return nil
	}
	marked, _, _ = strings.Cut(marked, "#")
	marked, _, _ = strings.Cut(marked, "?")
	for part := range strings.SplitSeq(first[strings.LastIndexByte(first, '/')+1:]+marked, "/") {
		n := strings.Count(part, mark)
		of := strings.Join(references[:n], "")
		references = references[n:]
		switch value := strings.ReplaceAll(part, mark, ""); {
		case n == 0:
		case value == "":
			return fmt.Errorf("%s is empty, which would lead to another path", of)
		case value == "." || value == "..":
			return fmt.Errorf("%s makes the part %s of the path, which would lead to another path", of, value)
		}
	}
	return nil
}

// fillBody makes the body, and sets its content type. If the spec has no body, the body is the run's facts. No reference is
// replaced in these: the arguments of a request may have any text.
func (c *call) fillBody() (err error) {
	kind := "application/json"
	switch method := c.spec.method(); {
	case c.spec.JSON != nil:
		var v any
		if v, err = c.filled(c.spec.JSON); err == nil {
			c.body, err = asJSON(v)
		}
	case c.spec.Body != "":
		kind = "text/plain; charset=utf-8"
		var s string
		s, err = c.expand(c.spec.Body)
		c.body = []byte(s)
	case method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch:
		facts, args := map[string]any{}, map[string]any{}
		for name, v := range c.facts {
			if arg, is := strings.CutPrefix(name, "args."); is {
				args[arg] = v
			}
		}
		for _, name := range References() {
			facts[name] = c.facts[name]
			if at, ok := facts[name].(time.Time); ok {
				facts[name], _ = text(at) // never fails
			}
		}
		facts["args"] = args
		c.body, err = asJSON(facts)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("its body: %w", err)
	}
	c.header.Set("Content-Type", kind)
	return nil
}

func asJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// filled replaces the references in the texts of a value. A text that is only a reference becomes the fact itself.
func (c *call) filled(v any) (_ any, err error) {
	switch v := v.(type) {
	case string:
		fact, err := Expand(v, c.facts)
		if at, ok := fact.(time.Time); ok {
			return text(at)
		}
		return fact, err
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = c.filled(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := maps.Clone(v)
		for name := range v {
			if out[name], err = c.filled(v[name]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func (c *call) request(ctx context.Context, to *url.URL) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, c.spec.method(), to.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, errors.New("its URL is none to which a request can be sent")
	}
	if c.body == nil {
		req.Body = http.NoBody
	}
	req.GetBody = nil // a request that was sent may have been received: only another try sends it again
	req.Header = c.header.Clone()
	return req, c.login(ctx, req)
}
