package rules

// describe says in English what the canonical rule means.
func (r *Rule) describe() string { return r.String() }
