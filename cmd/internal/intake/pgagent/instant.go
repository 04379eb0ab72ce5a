package pgagent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// early stands for all earlier times: the difference between them does not matter.
var early = time.Unix(0, 0).UTC()

// UnmarshalJSON reads a row. Its times have the form of PostgreSQL, which knows times that Go does not.
func (s *Schedule) UnmarshalJSON(text []byte) error {
	type plain Schedule // has no UnmarshalJSON
	row := struct {
		*plain
		Start *string `json:"jscstart"`
		End   *string `json:"jscend"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	if row.Start != nil {
		start, endless, err := instant(*row.Start)
		if err != nil {
			return err
		}
		s.Start, s.never = start, endless
	}
	if s.End = nil; row.End != nil {
		end, endless, err := instant(*row.End)
		if err != nil {
			return err
		}
		if !endless {
			s.End = &end
		}
	}
	return nil
}

// instant reads a time. endless says that it never comes: it is infinity, or has a year of more than four digits.
func instant(text string) (t time.Time, endless bool, err error) {
	switch year, _, _ := strings.Cut(text, "-"); {
	case text == "-infinity", strings.HasSuffix(text, " BC"):
		return early, false, nil
	case text == "infinity", len(year) > 4 && strings.Trim(year, "0123456789") == "":
		return t, true, nil
	}
	t, err = time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05-07:00:00", text) // zones of former centuries
	}
	if err != nil {
		return t, false, fmt.Errorf("%.60q is no time", text)
	}
	if t.Before(early) {
		t = early
	}
	return t, false, nil
}
