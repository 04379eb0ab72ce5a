package executor

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
)

// Touched says what a step touches outside of the database, as far as its spec says so. Empty: the step touches nothing, or
// this is not known before a run.
type Touched struct {
	Program string // the path that is run
	Target  string
	Address string // the IP address by which the step names a host
}

// Refusal says why this host does not allow the owner what a step touches. It is nil if the host allows it, or if this is not
// known. A kind of permission that the host gives to nobody counts as not known, because definitions are often written on another
// host than the one that executes them. Refusal asks for the address of no name, and reads no secret.
func (h *Host) Refusal(owner, kind string, spec json.RawMessage) error {
	k := KindOf(kind)
	if h == nil || k == nil || k.Touches == nil {
		return nil
	}
	t, err := k.Touches(spec), error(nil)
	switch {
	case t.Program != "" && len(h.Programs) > 0:
		_, err = h.find(owner, filepath.FromSlash(t.Program))
	case t.Target != "":
		if to, found := h.Targets[t.Target]; found && !to.Owners.Include(owner) {
			_, err = h.Target(context.Background(), owner, t.Target) // it is refused, and not read
		}
	case t.Address != "" && len(h.Addresses) > 0:
		if a, bad := netip.ParseAddr(t.Address); bad == nil {
			err = h.allowsConnection(owner, a)
		}
	}
	if _, refused := errors.AsType[*RefusedError](err); !refused { // such as a program that does not exist yet
		return nil
	}
	return err
}
