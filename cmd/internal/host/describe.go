package host

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// Describe adds to r what the settings put in force, without a secret. It returns the settings that would fail
// when they are needed.
func (s *Settings) Describe(ctx context.Context, r *report.Config) (problems []manifest.Problem) {
	wrong := func(at manifest.Problem, err error) {
		if err != nil {
			at.Text = err.Error()
			problems = append(problems, at)
		}
	}
	for _, o := range s.Owners {
		value, err := s.value(ctx, o.Source)
		if err == nil {
			err = usable(value)
		}
		wrong(o.Place, err)
		r.Add("owner", o.Name, strings.TrimSpace(publicURL(value)+in(o.Source)), where(o.Place), nil)
	}
	for _, o := range s.Targets {
		value, err := s.value(ctx, o.Source)
		if err == nil {
			err = usable(value)
		}
		wrong(o.Place, err)
		r.Add("target", o.Name, strings.TrimSpace(publicURL(value)+in(o.Source)), where(o.Place), o.Owners)
	}
	for _, p := range s.Programs {
		wrong(p.Place, executor.Program{Path: p.Value}.Check())
		r.Add("program", "", p.Value, where(p.Place), p.Owners)
	}
	for _, a := range s.Addresses {
		r.Add("address", "", a.Value, where(a.Place), a.Owners)
	}
	for _, c := range s.Clouds {
		r.Add("cloud", "", c.Value, where(c.Place), c.Owners)
	}
	offered := map[string][]string{}
	for _, o := range s.Secrets {
		if offered[o.Name] = o.Owners; slices.Contains(s.vars, o.Name) {
			continue
		}
		_, err := s.value(ctx, o.Source)
		wrong(o.Place, err)
		r.Add("secret", o.Name, strings.TrimSpace(in(o.Source)), where(o.Place), o.Owners)
	}
	for _, name := range s.vars {
		_, err := s.value(ctx, manifest.Source{Variable: SecretPrefix + name})
		wrong(manifest.Problem{File: SecretPrefix + name}, err)
		r.Add("secret", name, "", SecretPrefix+name, offered[name])
	}
	if m := s.Mail; m != nil {
		if m.User != "" {
			_, err := s.value(ctx, m.Password)
			wrong(m.Place, err)
		}
		r.Add("mail", m.From, fmt.Sprintf("%s:%d, %s", m.Server, m.Port, m.TLS), where(m.Place), m.Owners)
	}
	s.describeHeartbeat(ctx, r, wrong)
	for event, job := range s.On.All() {
		if *job != "" {
			r.Add("on", event, *job, s.From, nil)
		}
	}
	return problems
}

// describeHeartbeat adds the servers of the heartbeat, and reports what is missing in its URLs.
func (s *Settings) describeHeartbeat(ctx context.Context, r *report.Config, wrong func(manifest.Problem, error)) {
	b := s.Heartbeat
	if b == nil {
		return
	}
	to, allowed, err := s.Monitor(ctx, nil)
	wrong(b.Place, err)
	for _, u := range []struct{ name, text string }{{"", to.URL}, {"start", to.Start}, {"success", to.Success}, {"failure", to.Failure}} {
		if u.text == "" && (u.name != "" || b.Start+b.Success+b.Failure != "") {
			continue
		}
		wrong(b.Place, allowed.CheckSecrets(ctx, "", u.text))
		r.Add("heartbeat", u.name, publicURL(u.text)+in(b.Source), where(b.Place), nil)
	}
}

// usable returns why the URL of a target cannot be used, as far as that is known without a connection.
func usable(url string) error {
	db, err := engine.New(url, engine.Options{Target: true})
	if err != nil {
		return err
	}
	return db.Close()
}

// where returns a place as text.
func where(p manifest.Problem) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// in says where a value is, if it is not in the settings themselves.
func in(s manifest.Source) string {
	switch {
	case s.File != "":
		return " in " + s.File
	case s.Variable != "":
		return " in " + s.Variable
	case s.AWSSecret != "":
		return " in the secret " + s.AWSSecret
	}
	return ""
}

// publicURL returns the part of a URL that is no secret. The path of a heartbeat is a secret.
func publicURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil, raw == "": // the URL could not be read
		return ""
	case strings.HasPrefix(u.Scheme, "http"):
		return u.Scheme + "://" + u.Host
	}
	if e, err := engine.Of(raw); err == nil && !e.KnowsLogins {
		return raw // a file has no password
	}
	return u.Scheme + "://" + u.Host + u.Path
}
