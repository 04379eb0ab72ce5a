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
	shorter := ""
	if r.Shorter > 0 {
		shorter = fmt.Sprintf(", of %s only newer ones", Plural(r.Shorter, "job"))
	}
	_, err := fmt.Fprintf(w, "examined %s and %s since %s%s: %s\n", Plural(r.Jobs, "job"), Plural(r.Times, "nominal time"), Instant(r.Since), shorter, Plural(len(r.Findings), "finding"))
	return err
}
