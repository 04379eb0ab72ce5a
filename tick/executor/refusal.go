package executor

import (
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
)

// Touched is what a step touches outside of the database, as far as its spec says it. Empty: nothing, or it is not known
// before a run.
type Touched struct {
	Program string // the path that is run
	Target  string
	Address string // of a host that is named by it
}

// Refusal is why this host does not allow the owner what a step touches: nil where it does, and where that is not known.
// A kind of leave that the host gives to nobody counts as not known: definitions are often written on another host than
// the one that executes them. No name is looked up, and no secret is read.
func (h *Host) Refusal(owner, kind string, spec json.RawMessage) error {
	k := KindOf(kind)
	if h == nil || k == nil || k.Touches == nil {
		return nil
	}
	t, err := k.Touches(spec), error(nil)
	switch {
	case t.Program != "" && len(h.Programs) > 0 && filepath.IsAbs(t.Program):
		_, err = h.AllowsProgram(owner, t.Program)
	case t.Target != "":
		if to, found := h.Targets[t.Target]; found && !to.Owners.Include(owner) {
			_, err = h.Target(owner, t.Target)
		}
	case t.Address != "" && len(h.Addresses) > 0:
		if a, bad := netip.ParseAddr(t.Address); bad == nil {
			err = h.allowsConnection(owner, a)
		}
	}
	if _, refused := errors.AsType[*RefusedError](err); !refused { // such as a program that is not there yet
		return nil
	}
	return err
}
