package report

import "io"

// The colours of a terminal. They are the user's own: a theme gives them a hue that can be read.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// colours has the colours of the words that name a state.
var colours = map[string]string{
	"failed": red, "failing": red, "lost": red, "parked": red, "overdue": red, "stuck": red,
	"cancelled": yellow, "paused": yellow, "disabled": yellow, "waiting": yellow, "held": yellow,
	"succeeded": green, "running": green,
}

// states has the columns and facts that contain such a word.
var states = map[string]bool{"STATE": true, "RESULT": true, "state": true, "last result": true}

// paint colours a word that names a state, in a column or of a fact, if w is a terminal that has colours. The
// width of a text is measured without colours.
func paint(w io.Writer, what, text string) string {
	o, ok := w.(*Output)
	if !ok || !o.Colour || !states[what] {
		return text
	}
	word := text
	for i, r := range text {
		if r == ' ' || r == ellipsis {
			word = text[:i]
			break
		}
	}
	if colours[word] == "" {
		return text
	}
	return colours[word] + text + plain
}

// heading makes a text bold, if w is a terminal that has colours.
func heading(w io.Writer, text string) string {
	if o, ok := w.(*Output); ok && o.Colour {
		return bold + text + plain
	}
	return text
}
