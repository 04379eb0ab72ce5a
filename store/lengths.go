package store

// The longest texts, in bytes, that each engine can hold: MySQL and MariaDB hold a rule with its zone and its calendar,
// and the start and the tags of a job with its other policies, in 65,535 bytes.
const (
	maxDescription = 1000
	maxRule        = 60_000
	maxStart       = 30_000
	maxTags        = 30_000
)

func checkDescription(s string) error { return shortText(s, maxDescription) }

// checkLengths is not part of ValidatePolicies: a row that an engine holds can be planned.
func (j *Job) checkLengths() check {
	own := Schedule{}
	if j.Own != nil {
		own = *j.Own
	}
	for _, c := range []check{{"rule", shortText(own.Rule, maxRule)}, {"rule.description", checkDescription(own.Description)},
		{"start", shortText(j.Start, maxStart)}, {"tags", shortText(string(list(j.Tags)), maxTags)}} {
		if c.err != nil {
			return c
		}
	}
	return check{}
}
