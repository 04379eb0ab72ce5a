package report

import (
	"fmt"
	"io"

	"github.com/dbjobs/dbjobs/tick/doctor"
)

// Doctor prints what an examination found, the worst first. Only one that came to its end says how much it examined.
func Doctor(w io.Writer, r *doctor.Report) error {
	for _, f := range r.Findings {
		subject := ""
		if f.Job != "" {
			subject = "job " + Line(f.Job) + ": "
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n  %s (%s)\n", f.Level, subject, Line(f.Problem), Line(f.Advice), f.Check); err != nil {
			return err
		}
	}
	if r.Stopped != "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "examined %s and %s since %s: %s\n", Plural(r.Jobs, "job"), Plural(r.Times, "nominal time"), Instant(r.Since), Plural(len(r.Findings), "finding"))
	return err
}
