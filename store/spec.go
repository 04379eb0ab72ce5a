package store

import "encoding/json"

// SpecRules are what an executor knows about the specs of steps. Form writes specs that mean the same in one form, however
// plain SQL has written them.
type SpecRules struct {
	Check func(spec json.RawMessage) error
	Form  func(spec json.RawMessage) (json.RawMessage, error)
}

var specs = map[string]SpecRules{}

// KnowSpecs registers what an executor knows about specs. Executors call it when their package is initialized.
func KnowSpecs(executor string, rules SpecRules) { specs[executor] = rules }

// form returns the spec in its one form. A spec that cannot be read keeps its own.
func (st *Step) form() json.RawMessage {
	if form := specs[st.Executor].Form; form != nil {
		if b, err := form(st.Spec); err == nil {
			return canonical(b)
		}
	}
	return canonical(st.Spec)
}

func (st *Step) checkSpec() error {
	if check := specs[st.Executor].Check; check != nil {
		return check(st.Spec)
	}
	return nil
}
