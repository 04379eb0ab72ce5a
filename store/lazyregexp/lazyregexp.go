// Package lazyregexp has regular expressions that are compiled when they are first used, as in the
// Go tree. A process of dbjobs does one thing and ends: to compile all of them took a quarter of the
// CPU time of its start.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp has those methods of regexp.Regexp that are called, and they do the same.
type Regexp struct{ compiled func() *regexp.Regexp }

// inTest: a test finds at its start an expression that does not compile.
var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// New is regexp.MustCompile, at the first use.
func New(expr string) *Regexp {
	r := &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
	if inTest {
		r.compiled()
	}
	return r
}

// MatchString reports whether s has a match.
func (r *Regexp) MatchString(s string) bool {
	return r.compiled().MatchString(s)
}

// Match reports whether b has a match.
func (r *Regexp) Match(b []byte) bool {
	return r.compiled().Match(b)
}

// Find returns the first match.
func (r *Regexp) Find(b []byte) []byte {
	return r.compiled().Find(b)
}

// FindString returns the first match.
func (r *Regexp) FindString(s string) string {
	return r.compiled().FindString(s)
}

// FindStringIndex returns where the first match is.
func (r *Regexp) FindStringIndex(s string) []int {
	return r.compiled().FindStringIndex(s)
}

// FindStringSubmatch returns the first match and its groups.
func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.compiled().FindStringSubmatch(s)
}

// FindStringSubmatchIndex returns where the first match and its groups are.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindAllString returns at most n matches, or all.
func (r *Regexp) FindAllString(s string, n int) []string {
	return r.compiled().FindAllString(s, n)
}

// FindAllStringSubmatch returns at most n matches, or all, with their groups.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// Split returns what is between the matches.
func (r *Regexp) Split(s string, n int) []string {
	return r.compiled().Split(s, n)
}

// ReplaceAllString puts a text, in which $1 is a group, in place of each match.
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc puts what a function makes of it in place of each match.
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}
